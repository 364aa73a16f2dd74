//! Attaches to a task: shows its terminal in the user's terminal and sends the user's keys to it.
//!
//! Draws nothing of its own. The daemon sends the scrollback and the screen, then the agent's output. When the daemon
//! ends, the client finds another one and continues.

mod connection;
mod last_row;
pub(crate) mod leave_keys;
pub(crate) mod restore;
pub(crate) mod signals;
mod terminal;
mod title;
mod viewer;

use std::io::IsTerminal;
use std::process::ExitCode;

use agency_api::view::Task;
use agency_api::{Failure, FailureCode};
use agency_terminal::keys::DetachKeys;

use crate::context::Context;
use crate::outcome::{self, CommandError, CommandResult};
use crate::output;

pub(crate) use connection::Target;
pub(crate) use restore::LEAVE;
use signals::Signals;
use terminal::{Terminal, TerminalEnd};
use viewer::{End, Viewer};

const KEYS_VARIABLE: &str = "AGENCY_DETACH_KEYS";

/// How a user left a terminal or a conversation.
#[derive(Debug)]
pub(crate) enum Departure {
    /// The command ends.
    Over(ExitCode),
    /// The user goes on to the next task that needs them.
    Next(Box<Task>),
}

pub(crate) async fn attach(context: &Context, target: Target) -> Result<Departure, CommandError> {
    require_terminal(&target)?;
    // Before we read the size, so that we miss no change of it.
    let signals = Signals::watch().map_err(|err| outcome::failed("cannot watch for signals", &err))?;
    let mut daemon = context.daemon().await?;
    let connected = connection::connect(&mut daemon, &target, connection::FirstScreen::Scrollback).await?;
    let keys = detach_keys(connected.detach_keys.as_deref())?;
    // Warnings come before the screen shows the agent.
    connected.notes.iter().for_each(|note| output::warning(note));
    let (is_shell, task) = (target.shell.is_some(), connected.task.clone());
    let name = target_name(&task, target.shell.as_deref());
    let terminal = Terminal::take().map_err(|err| outcome::failed("cannot take over the terminal", &err))?;
    let viewer = Viewer::new(context.clone(), target, connected, keys, terminal, signals);
    let ended = viewer.run().await;
    match (ended.end, ended.terminal) {
        (End::Signal(number), _) => Ok(Departure::Over(ExitCode::from(128 + number))),
        (End::Next, TerminalEnd::Clean) => Ok(Departure::Next(Box::new(task))),
        (end, TerminalEnd::Clean) => {
            if ended.denied_clipboard {
                output::note(&format!(
                    "[{name} tried to copy to the clipboard; to allow it: agency config set clipboard allow]"
                ));
            }
            let code = exit_code(&end).filter(|_| is_shell);
            report(&name, end, is_shell).map(|reported| Departure::Over(code.unwrap_or(reported)))
        }
        (_, TerminalEnd::Hanging) => Ok(Departure::Over(ExitCode::FAILURE)),
    }
}

fn require_terminal(target: &Target) -> Result<(), Failure> {
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return Ok(());
    }
    let name = match &target.shell {
        Some(shell) => format!("{}:{shell}", target.task.name),
        None => target.task.name.clone(),
    };
    Err(Failure::new(format!("cannot attach to {name} without a terminal"))
        .code(FailureCode::NeedsTerminal)
        .because("standard input and standard output must both be terminals")
        .hint(format!(
            "`agency logs -f {name}` prints its output, `agency send {name} MESSAGE` sends it a message"
        )))
}

/// `text` is the value that the daemon found in files, variables and options.
pub(crate) fn detach_keys(text: Option<&str>) -> Result<DetachKeys, Failure> {
    let Some(text) = text else { return Ok(DetachKeys::default()) };
    DetachKeys::parse(text).map_err(|err| {
        let by_variable = std::env::var(KEYS_VARIABLE).is_ok_and(|value| value == text);
        let what = if by_variable { KEYS_VARIABLE } else { "detach_keys" };
        Failure::new(format!("{what} cannot be used"))
            .code(FailureCode::InvalidConfig)
            .caused_by(&err)
            .hint("`agency config --show-origin` shows where it is set")
    })
}

fn target_name(task: &Task, shell: Option<&str>) -> String {
    match shell {
        Some(shell) => format!("{}-{}:{shell}", task.id, task.slug),
        None => format!("{}-{}", task.id, task.slug),
    }
}

/// The exit code of a program that ended while the user was attached to it.
fn exit_code(end: &End) -> Option<ExitCode> {
    match end {
        End::Exited(code) => code.parse::<u8>().ok().map(ExitCode::from),
        _ => None,
    }
}

fn report(name: &str, end: End, is_shell: bool) -> CommandResult {
    match end {
        End::Detached => output::note(&format!("[detached from {name}]")),
        End::DetachedAsWatcher => output::note(&format!(
            "[detached from {name}; another viewer has control, `agency attach {name} --take` takes it]"
        )),
        End::Exited(code) => output::note(&format!("[{name} exited {}]", output::printable(&code))),
        End::EndedMeanwhile(task) => {
            // The task knows only how its agent ended.
            let code = task.last_exit.filter(|_| !is_shell).unwrap_or_else(|| "unknown".to_owned());
            output::note(&format!(
                "[{name} exited {} while no daemon was running]",
                output::printable(&code)
            ));
        }
        // There is no terminal to print to.
        End::HungUp | End::Signal(_) | End::Next => return Ok(ExitCode::FAILURE),
        End::Lost(failure) => return Err(failure.into()),
    }
    Ok(ExitCode::SUCCESS)
}
