//! `agency agents`: lists agents, their commands, and whether they are installed.

use std::process::ExitCode;

use agency_api::method::{AgentList, AgentListParams};
use agency_api::{Bytes, Failure, FailureCode, view};
use agency_client::Client;
use serde::Serialize;

use crate::cli::Agents;
use crate::context::{self, Context};
use crate::outcome::CommandResult;
use crate::output::{self, Cell, Colour, cell, column, flexible};
use crate::{program_version, progress};

/// An agent and the version of its program.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct KnownAgent {
    #[serde(flatten)]
    pub(super) agent: view::Agent,
    /// Null if the program was not asked or did not answer.
    pub(super) version: Option<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Listing {
    agents: Vec<KnownAgent>,
    warnings: Vec<String>,
}

pub(super) async fn agents(context: &Context, args: Agents) -> CommandResult {
    let (agents, warnings) = {
        let mut daemon = context.daemon().await?;
        progress::during("asking for versions", list_agents(&mut daemon, !args.no_versions)).await?
    };
    let listing = Listing { agents, warnings };
    if args.json {
        output::json(&listing)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&table(&listing.agents))?;
    if listing.agents.iter().any(|known| !known.agent.installed) {
        output::line("\nTo add an agent or change its flags, edit [agents.NAME] in config.toml.")?;
    }
    listing.warnings.iter().for_each(|warning| output::warning(warning));
    Ok(ExitCode::SUCCESS)
}

/// The agents that are configured for the current directory, and warnings about their configuration.
pub(super) async fn list_agents(
    daemon: &mut Client,
    with_versions: bool,
) -> Result<(Vec<KnownAgent>, Vec<String>), Failure> {
    let path = std::env::var_os("PATH").map(Bytes::from);
    let params = AgentListParams { cwd: Some(context::here()?), path };
    let listing = daemon.call(AgentList, params).await?;
    // Ask all programs at the same time, so that one that hangs does not delay the others.
    let answers: Vec<_> = listing
        .agents
        .into_iter()
        .map(|agent| {
            let program = own_program(&agent).filter(|_| with_versions && agent.well_known).cloned();
            tokio::spawn(
                async move { KnownAgent { version: program_version::ask_version(program).await, agent } },
            )
        })
        .collect();
    let mut agents = Vec::new();
    for known in answers {
        let cannot = || Failure::new("cannot ask for versions").code(FailureCode::Internal);
        agents.push(known.await.map_err(|err| cannot().caused_by(&err))?);
    }
    Ok((agents, listing.warnings))
}

fn own_program(agent: &view::Agent) -> Option<&Bytes> {
    agent.commands.iter().find(|command| command.driver == agent.driver)?.program.as_ref()
}

fn table(agents: &[KnownAgent]) -> String {
    let columns = [
        column("AGENT"),
        column("INSTALLED"),
        flexible("VERSION", 9),
        flexible("DRIVERS", 8),
        flexible("COMMAND", 10),
        flexible("DEFINED", 8),
    ];
    output::table(&columns, &agents.iter().map(row).collect::<Vec<_>>())
}

fn row(known: &KnownAgent) -> Vec<Cell> {
    let agent = &known.agent;
    let name = if agent.default { format!("{} *", agent.name) } else { agent.name.clone() };
    let (installed, colour) = match (agent.commands.is_empty(), agent.installed) {
        (true, _) => ("no command", Colour::Red),
        (false, true) => ("yes", Colour::Green),
        (false, false) => ("no", Colour::Faint),
    };
    let drivers: Vec<&str> = agent.commands.iter().map(|command| command.driver.as_str()).collect();
    vec![
        cell(name),
        cell(installed).coloured(Some(colour)),
        cell(known.version.as_deref().unwrap_or("-")),
        cell(drivers.join(", ")),
        cell(command(agent)),
        cell(&agent.origin),
    ]
}

fn command(agent: &view::Agent) -> String {
    let own = agent.commands.iter().find(|command| command.driver == agent.driver);
    own.map_or_else(|| "-".to_owned(), |command| command.command.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_which_agents_are_installed_and_the_default() {
        let agent = |name: &str, installed| view::Agent {
            name: name.into(),
            display_name: name.into(),
            default: installed,
            driver: "terminal".into(),
            commands: vec![view::AgentCommand {
                driver: "terminal".into(),
                command: vec![name.into(), "--x".into()],
                program: None,
            }],
            installed,
            origin: "built in".into(),
            well_known: true,
        };
        let agents = [
            KnownAgent { agent: agent("codex", true), version: Some("1.2.3".into()) },
            KnownAgent { agent: agent("gemini", false), version: None },
        ];
        assert_eq!(
            table(&agents),
            "\
AGENT    INSTALLED  VERSION  DRIVERS   COMMAND     DEFINED
codex *  yes        1.2.3    terminal  codex --x   built in
gemini   no         -        terminal  gemini --x  built in"
        );
    }
}
