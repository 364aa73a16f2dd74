//! Lists the agents that a caller can use: the command of each, and whether its program is installed.

use std::path::Path;

use agency_api::method::{self, AgentListParams, AgentListing};
use agency_api::view::{self, AgentCommand};
use agency_api::{Bytes, Failure};
use agency_core::agent::{Agent, Driver, built_ins};
use agency_core::config::{Config, Key, Origin};
use agency_core::ids::ProjectId;
use agency_run::environment::Environment;
use agency_run::environment::find_program;
use agency_run::plan;
use agency_server::Argument;

use super::World;
use super::argument::open_project;
use super::loop_event::OpenedProject;
use super::router::Router;

pub(super) fn register(router: &mut Router) {
    router.on(method::AgentList, World::agent_listing);
}

/// Whose agents a caller asks for.
struct AgentQuery {
    /// `None` outside a project: then the agents of the user alone.
    project: Option<ProjectId>,
    /// The caller's `PATH`.
    path: Option<Bytes>,
}

impl Argument<World, AgentListParams> for AgentQuery {
    type Prepared = (Option<OpenedProject>, Option<Bytes>);

    async fn prepare(params: AgentListParams) -> Result<Self::Prepared, Failure> {
        let project = match params.cwd {
            // Agents exist outside projects, too.
            Some(cwd) => open_project(cwd).await.ok(),
            None => None,
        };
        Ok((project, params.path))
    }

    fn resolve(world: &mut World, (project, path): Self::Prepared) -> Result<AgentQuery, Failure> {
        let project = project.map(|project| world.open_project(project)).transpose()?;
        Ok(AgentQuery { project, path })
    }
}

impl World {
    fn agent_listing(&mut self, query: AgentQuery) -> Result<AgentListing, Failure> {
        let AgentQuery { project: id, path } = query;
        let root = id.as_ref().and_then(|id| self.store.project(id)).map(|known| known.root().to_path_buf());
        let settings = self.settings(id.as_ref())?;
        let views = AgentViews {
            config: &settings.config,
            directory: root.as_deref().unwrap_or(Path::new("/")),
            env: path.into_iter().map(|path| ("PATH".into(), path.as_os_str().to_owned())).collect(),
        };
        let default = plan::choose_agent(&settings.config, None, &views.env).map(|(agent, _)| &agent.name);
        let view = |agent| views.view(agent, default.as_ref().is_ok_and(|name| **name == agent.name));
        let agents = settings.config.agents.iter().map(view).collect();
        let mut warnings = settings.warnings.clone();
        warnings.extend(default.err().map(|failure| failure.message));
        Ok(AgentListing { agents, warnings })
    }
}

struct AgentViews<'a> {
    config: &'a Config,
    directory: &'a Path,
    env: Environment,
}

impl AgentViews<'_> {
    fn view(&self, agent: &Agent, default: bool) -> view::Agent {
        let commands: Vec<AgentCommand> =
            agent.drivers().into_iter().filter_map(|driver| self.command(agent, driver)).collect();
        let driver = agent.usual_driver();
        let own = commands.iter().find(|command| command.driver == driver.as_str());
        view::Agent {
            name: agent.name.clone(),
            display_name: agent.display_name.clone(),
            default,
            driver: driver.to_string(),
            installed: own.is_some_and(|command| command.program.is_some()),
            origin: self.origin(agent),
            well_known: is_well_known(agent),
            commands,
        }
    }

    fn command(&self, agent: &Agent, driver: Driver) -> Option<AgentCommand> {
        let found = |program: &str| find_program(program, &self.env, self.directory);
        let action = match driver {
            Driver::Acp => agent.launch_acp(|program| found(program).is_some()).ok()?,
            Driver::Terminal | Driver::StreamJson => agent.launch(driver, false).ok()?,
        };
        let program = action.first().and_then(|program| found(program));
        Some(AgentCommand {
            driver: driver.to_string(),
            command: action.clone(),
            program: program.map(Bytes::from),
        })
    }

    /// The first line of a configuration file that mentions the agent.
    fn origin(&self, agent: &Agent) -> String {
        let of_agent = |key: &Key| match key {
            Key::Agent { agent: name, .. } | Key::Env { agent: name, .. } => *name == agent.name,
            Key::Config(_) | Key::Rule { .. } => false,
        };
        let places = self.config.origins().filter(|(key, _)| of_agent(key)).map(|(_, origin)| origin);
        let first = places.filter_map(|origin| match origin {
            Origin::File { file, line } => Some((file, line)),
            _ => None,
        });
        match first.min() {
            Some((file, line)) => format!("{file}:{line}"),
            None => "built in".to_owned(),
        }
    }
}

/// Whether the agent has the program that is built in under its name. A program from a configuration file might do
/// anything when it is asked for its version, and a shell has no version.
fn is_well_known(agent: &Agent) -> bool {
    let same = |known: &Agent| known.name == agent.name && known.program() == agent.program();
    agent.program() != Some("sh") && built_ins().iter().any(same)
}
