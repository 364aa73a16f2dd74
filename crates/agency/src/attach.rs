//! An attached terminal: the task's screen here, the keys typed here there.
//!
//! Draws nothing of its own. The daemon sends the scrollback and the screen, then what the agent
//! prints; when the daemon leaves, another one is found and the view goes on.

mod link;
pub(crate) mod restore;
mod signals;
mod terminal;
mod title;
mod viewer;

use std::io::IsTerminal;
use std::process::ExitCode;

use agency_api::view::Task;
use agency_api::{Failure, FailureCode};
use agency_terminal::keys::DetachKeys;

use crate::context::Context;
use crate::output;
use crate::stop::{self, Done};

pub(crate) use link::Target;
pub(crate) use restore::LEAVE;
use signals::Signals;
use terminal::{Left, Terminal};
use viewer::{End, Viewer};

const KEYS_VARIABLE: &str = "AGENCY_DETACH_KEYS";

pub(crate) async fn attach(context: &Context, target: Target) -> Done {
    need_terminal(&target)?;
    // Before the size is asked for, so that no change of it is missed.
    let signals = Signals::watch().map_err(|err| stop::failed("cannot watch for signals", &err))?;
    let mut daemon = context.daemon().await?;
    let connected = link::connect(&mut daemon, &target, link::Begin::Scrollback).await?;
    let keys = detach_keys(connected.detach_keys.as_deref())?;
    // Before the screen is the agent's.
    connected.notes.iter().for_each(|note| output::warning(note));
    let name = task_name(&connected.task);
    let terminal = Terminal::take().map_err(|err| stop::failed("cannot take over the terminal", &err))?;
    let viewer = Viewer::new(context.clone(), target, connected, keys, terminal, signals);
    let ended = viewer.run().await;
    match (ended.end, ended.left) {
        (End::Signal(number), _) => Ok(ExitCode::from(128 + number)),
        (end, Left::Clean) => {
            if ended.denied_clipboard {
                output::note(&format!(
                    "[{name} tried to copy to the clipboard; to allow it: agency config set clipboard allow]"
                ));
            }
            report(&name, end)
        }
        (_, Left::Hanging) => Ok(ExitCode::FAILURE),
    }
}

fn need_terminal(target: &Target) -> Result<(), Failure> {
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return Ok(());
    }
    let name = &target.task.name;
    Err(Failure::new(format!("cannot attach to {name} without a terminal"))
        .code(FailureCode::NeedsTerminal)
        .because("standard input and standard output must both be terminals")
        .hint(format!(
            "`agency logs -f {name}` prints its output, `agency send {name} TEXT` sends it a text"
        )))
}

/// As the daemon found them in files, variables and options.
fn detach_keys(text: Option<&str>) -> Result<DetachKeys, Failure> {
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

fn task_name(task: &Task) -> String {
    format!("{}-{}", task.id, task.slug)
}

fn report(name: &str, end: End) -> Done {
    match end {
        End::Detached => output::note(&format!("[detached from {name}]")),
        End::StoppedLooking => output::note(&format!(
            "[detached from {name}; another viewer has control, `agency attach {name} --take` takes it]"
        )),
        End::Exited(code) => output::note(&format!("[{name} exited {}]", output::printable(&code))),
        End::EndedMeanwhile(task) => {
            let code = task.last_exit.unwrap_or_else(|| "unknown".to_owned());
            output::note(&format!(
                "[{name} exited {} while no daemon was running]",
                output::printable(&code)
            ));
        }
        // Nobody is left to read a word.
        End::HungUp | End::Signal(_) => return Ok(ExitCode::FAILURE),
        End::Lost(failure) => return Err(failure.into()),
    }
    Ok(ExitCode::SUCCESS)
}
