//! `agency notify test`: sends a test notification on every channel.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use agency_api::config::Overrides;
use agency_api::method::NotifyTest;
use agency_api::notify::{ChannelOutcome, ChannelState, TestParams};
use serde::Serialize;

use crate::cli::NotifyCommand;
use crate::context::Context;
use crate::outcome::{CommandError, CommandResult};
use crate::output::{self, Colour, cell, column, printable};
use crate::terminal_notification::{TerminalNotification, environment_variable};

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Report {
    ways: Vec<ChannelState>,
}

pub(super) async fn notify(context: &Context, command: NotifyCommand) -> CommandResult {
    let NotifyCommand::Test { json } = command;
    let params = TestParams { overrides: Overrides::from_process(&context.options) };
    let tested = context.daemon().await?.call(NotifyTest, params).await?;
    tested.warnings.iter().for_each(|warning| output::warning(warning));
    let mut report = Report { ways: tested.ways };
    report.ways.push(test_terminal(&tested.terminal, json)?);
    match json {
        true => output::json(&report)?,
        false => print(&report)?,
    }
    Ok(match report.ways.iter().any(|way| way.outcome == ChannelOutcome::Failed) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// Notifies this terminal, as if its user were attached to another task.
fn test_terminal(setting: &str, json: bool) -> Result<ChannelState, CommandError> {
    let notification = TerminalNotification::from_setting(setting, environment_variable);
    let mut stdout = std::io::stdout();
    let (outcome, detail) = match notification {
        TerminalNotification::Nothing => (ChannelOutcome::Off, "notify.terminal is none".to_owned()),
        _ if json || !stdout.is_terminal() => {
            (ChannelOutcome::Off, "standard output is not a terminal".to_owned())
        }
        _ => {
            stdout.write_all(&notification.bytes("this is a test, no agent needs you"))?;
            stdout.flush()?;
            (
                ChannelOutcome::Sent,
                format!("{}, to this terminal (notify.terminal is {setting})", notification.name()),
            )
        }
    };
    Ok(ChannelState { way: "terminal".to_owned(), outcome, detail })
}

fn print(report: &Report) -> Result<(), CommandError> {
    let (sent, failed, off) = (Colour::Green, Colour::Red, Colour::Faint);
    let row = |way: &ChannelState| {
        let (word, colour) = match way.outcome {
            ChannelOutcome::Sent => ("sent", sent),
            ChannelOutcome::Failed => ("failed", failed),
            ChannelOutcome::Off | ChannelOutcome::Unused => ("off", off),
        };
        vec![cell(way.way.clone()), cell(word).coloured(Some(colour)), cell(printable(&way.detail))]
    };
    let rows: Vec<_> = report.ways.iter().map(row).collect();
    output::line(output::table(&[column("CHANNEL"), column("OUTCOME"), column("DETAIL")], &rows).trim_end())?;
    if report.ways.iter().all(|way| way.outcome == ChannelOutcome::Off) {
        output::note("no channel is configured; for example: agency config set notify.command PROGRAM");
    }
    Ok(())
}
