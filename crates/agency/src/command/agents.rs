//! `agency agents`: every agent, what it runs, and whether that is there.

use std::process::ExitCode;

use agency_api::method::{AgentList, AgentListParams};
use agency_api::{Bytes, Failure, FailureCode, view};
use agency_client::Client;
use serde::Serialize;

use super::version;
use crate::cli::Agents;
use crate::context::{self, Context};
use crate::output::{self, Cell, Colour, cell, column, flexible};
use crate::progress;
use crate::stop::Done;

/// An agent, and what its program says of itself.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Known {
    #[serde(flatten)]
    pub(super) agent: view::Agent,
    /// Null when it was not asked or did not say.
    pub(super) version: Option<String>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Listing {
    agents: Vec<Known>,
    warnings: Vec<String>,
}

pub(super) async fn agents(context: &Context, args: Agents) -> Done {
    let (agents, warnings) = {
        let mut daemon = context.daemon().await?;
        progress::during("asking for versions", known(&mut daemon, !args.no_versions)).await?
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

/// The agents as the daemon knows them from here, and warnings about their configuration.
pub(super) async fn known(
    daemon: &mut Client,
    with_versions: bool,
) -> Result<(Vec<Known>, Vec<String>), Failure> {
    let path = std::env::var_os("PATH").map(Bytes::from);
    let params = AgentListParams { cwd: Some(context::here()?), path };
    let listing = daemon.call(AgentList, params).await?;
    // All at once: one that hangs costs no more than its own time.
    let asked: Vec<_> = listing
        .agents
        .into_iter()
        .map(|agent| {
            let program = own_program(&agent).filter(|_| with_versions && agent.well_known).cloned();
            tokio::spawn(async move { Known { version: version::of(program).await, agent } })
        })
        .collect();
    let mut agents = Vec::new();
    for known in asked {
        let cannot = || Failure::new("cannot ask for versions").code(FailureCode::Internal);
        agents.push(known.await.map_err(|err| cannot().caused_by(&err))?);
    }
    Ok((agents, listing.warnings))
}

fn own_program(agent: &view::Agent) -> Option<&Bytes> {
    agent.commands.iter().find(|command| command.driver == agent.driver)?.program.as_ref()
}

fn table(agents: &[Known]) -> String {
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

fn row(known: &Known) -> Vec<Cell> {
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
    fn the_table_says_what_is_there_and_which_one_is_taken() {
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
            Known { agent: agent("codex", true), version: Some("1.2.3".into()) },
            Known { agent: agent("gemini", false), version: None },
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
