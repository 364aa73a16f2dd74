//! The limits of `[mcp]`: what an agent may do to other tasks. The daemon checks them, not the MCP server that asks.

use std::path::Path;

use agency_api::mcp::{PermitParams, Terms, TermsParams};
use agency_api::method::{self, TaskNewParams};
use agency_api::{Failure, FailureCode};
use agency_core::config::{Mcp, TOOLS};
use agency_core::ids::{ProjectId, RunId, TaskKey};
use agency_core::tokens;
use agency_driver::acp::McpServer;
use agency_run::environment;

use super::router::Router;
use super::{Pending, World};

/// Users can edit task files so that parents form a circle.
const DEEPEST: u32 = 100;

/// Tools that an agent cannot use on its own task: it would wait for itself, or interrupt itself.
const NOT_TO_ITSELF: [&str; 5] =
    ["send_message", "wait_for_task", "interrupt_task", "stop_task", "answer_approval"];

/// Tools that an agent can use only on tasks that it started.
const ONLY_BELOW: [&str; 2] = ["interrupt_task", "stop_task"];

pub(super) fn register(router: &mut Router) {
    router.on(method::McpTerms, World::mcp_terms);
    router.on(method::McpPermit, World::mcp_permit);
}

impl World {
    fn mcp_terms(&mut self, (id, params): (ProjectId, TermsParams)) -> Result<Terms, Failure> {
        let asker = params.run.as_deref().map(|run| self.asker(&id, run)).transpose()?;
        let asker = asker.map(|key| self.view(&key)).transpose()?;
        Ok(Terms { allow: self.mcp_settings(&id)?.allow, asker })
    }

    /// Fails with the reason if the agent may not use the tool.
    fn mcp_permit(&mut self, (id, params): (ProjectId, PermitParams)) -> Result<Terms, Failure> {
        let mcp = self.mcp_settings(&id)?;
        let tool = params.tool.as_str();
        refuse_forbidden_tool(&mcp, tool)?;
        let asker = params.who.run.as_deref().map(|run| self.asker(&id, run)).transpose()?;
        let about = params.task.as_deref().map(|name| self.find_in(&id, name)).transpose()?;
        if let (Some(asker), Some(about)) = (&asker, &about) {
            self.refuse_self_and_foreign_tasks(asker, about, tool)?;
        }
        if let (Some(asker), "start_task") = (&asker, tool) {
            self.may_start(asker, &mcp)?;
        }
        let asker = asker.map(|key| self.view(&key)).transpose()?;
        Ok(Terms { allow: mcp.allow, asker })
    }

    /// The parent of a new task, if the agent of the parent may start one more.
    pub(super) fn parent_for(&self, project: &ProjectId, run: &str) -> Result<TaskKey, Failure> {
        let mcp = self.mcp_settings(project)?;
        refuse_forbidden_tool(&mcp, "start_task")?;
        let asker = self.asker(project, run)?;
        self.may_start(&asker, &mcp)?;
        Ok(asker)
    }

    /// A task that an agent starts gets the environment that the user gave to that agent: programs that run MCP servers
    /// pass on only a part of it.
    pub(super) fn lend_environment(&self, params: &mut TaskNewParams) {
        let run = params.on_behalf_of.as_ref().map(|run| RunId(run.clone()));
        let held = run.and_then(|run| self.runs.live.get(&run)).map(|live| &live.handle.environment);
        if let Some(environment) = held.filter(|environment| !environment.is_empty()) {
            params.caller.env = environment.clone();
        }
    }

    /// Agency's own MCP server for a session on a shared process: the environment of such a process cannot say to which
    /// task the agent belongs. `None` unless the user wants that.
    pub(super) fn mcp_server(&self, key: &TaskKey, run: &RunId, root: &Path) -> Option<McpServer> {
        self.mcp_settings(&key.project).ok().filter(|mcp| mcp.offer && !mcp.allow.is_empty())?;
        let (program, socket) = (self.context.program.as_ref()?, self.context.state.daemon_socket());
        let env = [
            (environment::RUN_ID, run.0.clone()),
            (environment::SOCKET, socket.to_str()?.to_owned()),
            (tokens::PROJECT_ROOT, root.to_str()?.to_owned()),
        ];
        Some(McpServer {
            name: "agency".to_owned(),
            command: program.to_str()?.to_owned(),
            args: vec!["mcp".to_owned()],
            env: env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        })
    }

    fn mcp_settings(&self, project: &ProjectId) -> Result<Mcp, Failure> {
        Ok(self.settings(Some(project))?.config.mcp)
    }

    /// The task of the agent that asks. The agent must be live and in this project.
    fn asker(&self, project: &ProjectId, run: &str) -> Result<TaskKey, Failure> {
        let live = self.runs.live.get(&RunId(run.to_owned()));
        let key = live.map(|live| live.key.clone()).filter(|key| key.project == *project);
        key.ok_or_else(|| {
            Failure::new("cannot tell which task this agent belongs to")
                .code(FailureCode::NotAllowed)
                .because(format!("no task of this project has a live run {run}"))
                .hint("start the agent again: AGENCY_RUN_ID in its environment says who it is")
        })
    }

    fn refuse_self_and_foreign_tasks(
        &self,
        asker: &TaskKey,
        about: &TaskKey,
        tool: &str,
    ) -> Result<(), Failure> {
        if asker == about && NOT_TO_ITSELF.contains(&tool) {
            return Err(Failure::new(format!("{tool} cannot be used on your own task"))
                .code(FailureCode::NotAllowed)
                .because(format!("{} is your own task", self.name(asker))));
        }
        if ONLY_BELOW.contains(&tool) && !self.is_below(about, asker) {
            return Err(Failure::new(format!("you did not start task {}", self.name(about)))
                .code(FailureCode::NotAllowed)
                .because("an agent may interrupt and stop only the tasks that it started"));
        }
        Ok(())
    }

    fn may_start(&self, asker: &TaskKey, mcp: &Mcp) -> Result<(), Failure> {
        let above = self.ancestors(asker).count() as u32;
        if above >= mcp.depth {
            let stands = match above {
                0 => format!("task {} was started by a person", self.name(asker)),
                _ => format!("task {} was started by an agent itself", self.name(asker)),
            };
            return Err(Failure::new("this agent may not start others")
                .code(FailureCode::NotAllowed)
                .because(format!("{stands}, and `depth` in [mcp] is {}", mcp.depth))
                .hint(format!("the user can allow it: agency config set mcp.depth {}", above + 1)));
        }
        let live = self.live_children(asker);
        if mcp.max_tasks > 0 && live >= mcp.max_tasks as usize {
            return Err(Failure::new(format!("task {} has {live} live tasks already", self.name(asker)))
                .code(FailureCode::MaxAgentsReached)
                .because(format!("`max_tasks` in [mcp] is {}", mcp.max_tasks))
                .hint("wait for one of them, or stop one"));
        }
        Ok(())
    }

    /// The number of child tasks whose agents are live or being started.
    fn live_children(&self, parent: &TaskKey) -> usize {
        let is_starting = |key: &TaskKey| {
            self.requests
                .pending
                .values()
                .any(|pending| matches!(pending, Pending::Start { key: of, .. } if of == key))
        };
        let ids = self.store.project(&parent.project).into_iter().flat_map(|known| known.tasks.keys());
        let keys = ids.map(|task| TaskKey { project: parent.project.clone(), task: *task });
        keys.filter(|key| self.parent(key).as_ref() == Some(parent))
            .filter(|key| self.supervisor.live_run(key).is_some() || is_starting(key))
            .count()
    }

    fn is_below(&self, key: &TaskKey, above: &TaskKey) -> bool {
        self.ancestors(key).any(|ancestor| ancestor == *above)
    }

    /// The tasks above it, the nearest first.
    fn ancestors(&self, key: &TaskKey) -> impl Iterator<Item = TaskKey> {
        let above = std::iter::successors(self.parent(key), |key| self.parent(key));
        above.take(DEEPEST as usize)
    }

    fn parent(&self, key: &TaskKey) -> Option<TaskKey> {
        let task = self.store.file(key).ok()?.fields().parent?;
        Some(TaskKey { project: key.project.clone(), task })
    }

    fn name(&self, key: &TaskKey) -> String {
        self.store.task(key).map_or_else(|| key.task.to_string(), |task| task.name.to_string())
    }
}

fn refuse_forbidden_tool(mcp: &Mcp, tool: &str) -> Result<(), Failure> {
    if mcp.allows(tool) {
        return Ok(());
    }
    if !TOOLS.contains(&tool) {
        return Err(Failure::new(format!("there is no tool {tool}")).code(FailureCode::NotFound));
    }
    Err(Failure::new(format!("{tool} is not allowed"))
        .code(FailureCode::NotAllowed)
        .because("it is not in `mcp.allow`"))
}
