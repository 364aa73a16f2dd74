//! Gathers everything with which an agent's keeper, or its session on a connection, is started.
//!
//! Not here: whether to start one (the supervisor orders it), how it is started (see `agency_run::start`), and with which
//! words and environment (see `agency_run::plan`).

use agency_api::{Failure, FailureCode};
use agency_core::agent::Driver;
use agency_core::ids::{Epoch, TaskKey};
use agency_core::slug::TaskName;
use agency_core::supervisor::StartCause;
use agency_run::blocking::blocking;
use agency_run::connection::ConnectionPlan;
use agency_run::plan::{LaunchPlan, StartOptions};
use agency_run::run_context::RunContext;
use agency_run::run_meta::{self, AcpMeta, RunMeta};
use agency_run::start::Launch;
use agency_store::clock;
use agency_work::turns;
use agency_workspace::{Project, Vcs, WorkspaceName};

use super::World;
use super::loop_event::LoopEvent;
use super::tasks::{no_task, store_failure};

impl World {
    pub(super) fn start_keeper(&mut self, key: TaskKey, epoch: Epoch, cause: StartCause) {
        let reporter = self.context.reporter.clone();
        match self.prepare_launch(&key, cause) {
            Ok(launch) => {
                let turns = self.turns_of(&key, &launch);
                tokio::spawn(async move {
                    if let Some((project, name)) = turns {
                        snapshot_before_first_turn(project, name).await;
                    }
                    let started =
                        launch.run(reporter.sink(), reporter.connections(key.clone())).await.map(Box::new);
                    reporter.report(LoopEvent::KeeperStarted { key, epoch, started }).await;
                });
            }
            Err(failure) => {
                tokio::spawn(async move {
                    reporter.report(LoopEvent::KeeperStarted { key, epoch, started: Err(failure) }).await;
                });
            }
        }
    }

    fn prepare_launch(&mut self, key: &TaskKey, cause: StartCause) -> Result<Launch, Failure> {
        if cause == StartCause::Crash {
            self.plan_again(key)?;
        }
        let plan = self
            .starts
            .plans
            .get(key)
            .cloned()
            .ok_or_else(|| Failure::new("the start was not planned").code(FailureCode::Internal))?;
        let (project, workspace) = self.workspace_of(key)?;
        let task = self.store.task(key).ok_or_else(|| no_task(key))?;
        let file =
            self.store.file(key).map_err(|err| store_failure(err).within("the task cannot be started"))?;
        let run = run_meta::new_run_id()
            .map_err(|err| Failure::new("no random numbers").code(FailureCode::IoError).caused_by(&err))?;
        let dir = self.context.state.run(&run.0);
        let ports = self.workspaces.records.get(key).ports();
        let worktree = agency_workspace::workspace_path(&project, &workspace);
        if !worktree.is_dir() {
            // Never start it in another directory: the agent would work on the wrong files.
            return Err(Failure::new(format!("the workspace {} is gone", worktree.display()))
                .code(FailureCode::WorkspaceMissing));
        }
        let runs = self.runs.history.get(key).map(Vec::as_slice).unwrap_or_default();
        let before = runs.last();
        let is_in_terminal = |meta: &&RunMeta| meta.driver == Driver::Terminal.to_string();
        let last_journal = runs.iter().rfind(is_in_terminal).filter(|_| plan.driver == Driver::Terminal);
        let last_journal = last_journal.map(|meta| self.context.state.run(&meta.run.0).journal());
        let connection = (plan.driver == Driver::Acp).then(|| self.connection_for(key, &plan, &task.name));
        let meta = RunMeta {
            run: run.clone(),
            host: self.context.state.host().to_string(),
            host_name: run_meta::host_name(),
            root: project.root().to_path_buf(),
            vcs: project.vcs().to_string(),
            task: key.task.0,
            slug: task.name.slug.as_str().to_string(),
            agent: plan.agent.name.clone(),
            driver: plan.driver.to_string(),
            program: plan.fold.program.clone(),
            base_branch: file.fields().base_branch.clone(),
            acp: connection.as_ref().map(|connection| AcpMeta {
                connection: connection.name.clone(),
                cwd: worktree.clone(),
                session_id: file.fields().session_id.clone(),
                must_resume: before.is_none_or(|meta| meta.acp.is_none()),
                mode: plan.agent.mode.clone(),
                is_mode_usual: plan.agent.has_usual_mode(),
                servers: self.mcp_server(key, &run, project.root()).into_iter().collect(),
            }),
            shell: None,
            started_at: clock::timestamp(),
            order: before.map_or(1, |meta| meta.order + 1),
        };
        Ok(Launch {
            last_journal,
            context: RunContext {
                id: run,
                name: task.name.to_string(),
                driver: plan.driver,
                is_session: connection.is_some(),
                conversation: meta.conversation_terms(),
                before: self.conversations_before(runs, &meta),
                dir,
                epoch: self.context.epoch.clone(),
                owner: serde_json::to_value(&meta).ok(),
                keeper_binary: self.context.keeper_binary.clone(),
                open_files: plan.open_files.or(self.context.open_files),
                spare: plan.agent.spare.clone(),
                fold: plan.fold.clone(),
                rule_book: self.context.rule_book.clone(),
                memories: self.context.memories.clone(),
                task_words: self.task_words(key),
            },
            name: task.name.clone(),
            file: file.clone(),
            worktree,
            socket: self.context.state.daemon_socket(),
            connection,
            plan,
            meta,
            ports,
        })
    }

    /// The workspace, if the driver reports the turns of its agent.
    fn turns_of(&self, key: &TaskKey, launch: &Launch) -> Option<(Project, WorkspaceName)> {
        let (project, name) = self.workspace_of(key).ok()?;
        (launch.plan.driver != Driver::Terminal && project.vcs() != Vcs::Plain).then_some((project, name))
    }

    /// The connection that the task's session will use.
    fn connection_for(&self, key: &TaskKey, plan: &LaunchPlan, name: &TaskName) -> ConnectionPlan {
        let agent = &plan.agent;
        // A project that configures an agent in its own way must not share that connection with other projects.
        let usual = self
            .settings(None)
            .ok()
            .and_then(|settings| settings.config.agents.find(&agent.name).cloned().ok());
        let is_usual = usual.is_some_and(|usual| (&usual.acp, &usual.env) == (&agent.acp, &agent.env));
        let connection = match (plan.has_own_connection(), is_usual) {
            (true, _) => self.own_connection_name(key, &agent.name, &name.to_string()),
            (false, true) => agent.name.clone(),
            (false, false) => format!("{}@{}", agent.name, key.project),
        };
        ConnectionPlan {
            name: connection,
            agent: agent.name.clone(),
            display_name: agent.display_name.clone(),
            is_own: plan.has_own_connection(),
        }
    }

    /// A restart after a crash has no caller, so it uses the environment that the keeper held.
    fn plan_again(&mut self, key: &TaskKey) -> Result<(), Failure> {
        let environment = self.runs.environments.remove(key).unwrap_or_default();
        let mut caller = agency_api::method::Caller { env: environment, ..Default::default() };
        if let Some(plan) = self.starts.plans.get(key) {
            caller.size = Some(plan.size);
            caller.open_files = plan.open_files;
            caller.overrides = plan.overrides.clone();
        }
        let plan = self.plan_start(key, &caller, StartOptions::default())?;
        self.starts.plans.insert(key.clone(), plan);
        Ok(())
    }
}

/// Takes a snapshot of the files before the first turn. If that fails, the agent still starts.
async fn snapshot_before_first_turn(project: Project, name: WorkspaceName) {
    if let Err(cause) = blocking(move || turns::keep_start(&project, &name)).await {
        tracing::warn!(%cause, "no snapshot was taken before the first turn");
    }
}
