//! An attached terminal: the task's screen here, the keys typed here there.
//!
//! Draws nothing of its own. The daemon sends the scrollback and the screen, then what the agent
//! prints; when the daemon leaves, another one is found and the view goes on.

mod link;
mod restore;
mod signals;
mod terminal;
mod title;
mod viewer;

use std::io::IsTerminal;
use std::process::ExitCode;

use agency_api::Failure;
use agency_api::view::Task;
use agency_terminal::keys::DetachKeys;

use crate::context::Context;
use crate::output;
use crate::stop::{self, Done};

pub(crate) use link::Target;
use signals::Signals;
use terminal::{Left, Terminal};
use viewer::{End, Viewer};

pub(crate) async fn attach(context: &Context, target: Target) -> Done {
    need_terminal(&target)?;
    let wished = match keys_from_options(&context.options)? {
        Some(keys) => Some(keys),
        None => keys_from_environment()?,
    };
    // Before the size is asked for, so that no change of it is missed.
    let signals = Signals::watch().map_err(|err| stop::failed("cannot watch for signals", &err))?;
    let mut daemon = context.daemon().await?;
    let connected = link::connect(&mut daemon, &target, link::Begin::Scrollback).await?;
    let keys = match wished {
        Some(keys) => keys,
        None => keys_from_configuration(connected.detach_keys.as_deref())?,
    };
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
                    "[{name} wanted to copy to the clipboard; `agency config set clipboard allow` lets agents]"
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
        .because("standard input and output must both be one")
        .hint(format!("agency logs -f {name} prints what it does, agency send {name} TEXT types")))
}

fn keys_from_options(options: &[String]) -> Result<Option<DetachKeys>, Failure> {
    let said = options
        .iter()
        .rev()
        .find_map(|option| option.split_once('=').filter(|(key, _)| key.trim() == "detach_keys"));
    let keys = said.map(|(_, text)| DetachKeys::parse(text.trim().trim_matches('"')));
    keys.transpose().map_err(|err| Failure::new("--config detach_keys cannot be used").caused_by(&err))
}

fn keys_from_environment() -> Result<Option<DetachKeys>, Failure> {
    match std::env::var("AGENCY_DETACH_KEYS") {
        Ok(text) if !text.is_empty() => DetachKeys::parse(&text)
            .map(Some)
            .map_err(|err| Failure::new("AGENCY_DETACH_KEYS cannot be used").caused_by(&err)),
        _ => Ok(None),
    }
}

fn keys_from_configuration(text: Option<&str>) -> Result<DetachKeys, Failure> {
    match text {
        Some(text) => DetachKeys::parse(text).map_err(|err| {
            Failure::new("detach_keys in config.toml cannot be used")
                .caused_by(&err)
                .hint("mend it, or set AGENCY_DETACH_KEYS for this time")
        }),
        None => Ok(DetachKeys::default()),
    }
}

fn task_name(task: &Task) -> String {
    format!("{}-{}", task.id, task.slug)
}

fn report(name: &str, end: End) -> Done {
    match end {
        End::Detached => output::note(&format!("[detached from {name}]")),
        End::StoppedLooking => output::note(&format!(
            "[detached from {name}, where someone else types; `agency attach {name} --take` takes over]"
        )),
        End::Exited(code) => output::note(&format!("[{name} exited {}]", output::printable(&code))),
        End::EndedMeanwhile(task) => {
            let code = task.last_exit.unwrap_or_else(|| "unknown".to_owned());
            output::note(&format!("[{name} exited {} while the daemon was away]", output::printable(&code)));
        }
        // Nobody is left to read a word.
        End::HungUp | End::Signal(_) => return Ok(ExitCode::FAILURE),
        End::Lost(failure) => return Err(failure.into()),
    }
    Ok(ExitCode::SUCCESS)
}
