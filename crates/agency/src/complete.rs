//! What a shell is offered while a command is typed: options and commands, and the names of tasks and
//! agents as they are at that moment.
//!
//! A shell that waits must never hang, and never see an error: without an answer there are no names.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use agency_api::method::{AgentList, AgentListParams, TaskList, TaskListParams};
use agency_client::Client;
use clap::CommandFactory;
use clap::builder::StyledStr;
use clap_complete::CompletionCandidate;
use clap_complete::env::{Bash, Fish, Shells, Zsh};

use crate::cli::Cli;
use crate::context::{self, Context};
use crate::output;

/// What the scripts set, for the one call that asks for candidates.
pub(crate) const VARIABLE: &str = "AGENCY_COMPLETE";

pub(crate) const SHELLS: Shells<'static> = Shells(&[&Bash, &Zsh, &Fish]);

/// Longer than a daemon that is there ever takes; a person has stopped waiting by then.
const PATIENCE: Duration = Duration::from_secs(2);

/// Answers a shell that asks for candidates. Anything else is a command to be carried out, whatever the
/// variable says: one that somebody exported by mistake must not make every command a question.
pub(crate) fn answered() -> Option<ExitCode> {
    let shell = std::env::var(VARIABLE).ok()?;
    let mut words = std::env::args_os().skip(1);
    words.next().filter(|first| first == "--")?;
    let words: Vec<OsString> = words.collect();
    let completer = SHELLS.completer(&shell).filter(|_| !words.is_empty())?;
    // A word about progress would be written over the line that is being typed.
    output::be_quiet(true);
    let mut answer = Vec::new();
    let here = std::env::current_dir().ok();
    let written = completer.write_complete(&mut Cli::command(), words, here.as_deref(), &mut answer);
    let told = written.and_then(|()| std::io::stdout().lock().write_all(&answer));
    Some(if told.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(crate) fn tasks(typed: &OsStr) -> Vec<CompletionCandidate> {
    let listing = ask(async |mut daemon| {
        let here = TaskListParams { cwd: context::here().ok() };
        daemon.call(TaskList, here).await.ok()
    });
    let tasks = listing.map(|listing| listing.tasks).unwrap_or_default();
    let named = tasks.iter().map(|task| {
        let what = format!("{}, {}", output::status_name(task.status), task.agent_name);
        candidate(&task.slug, &what)
    });
    beginning_with(typed, named)
}

pub(crate) fn agents(typed: &OsStr) -> Vec<CompletionCandidate> {
    let listing = ask(async |mut daemon| {
        let path = std::env::var_os("PATH").map(Into::into);
        daemon.call(AgentList, AgentListParams { cwd: context::here().ok(), path }).await.ok()
    });
    let agents = listing.map(|listing| listing.agents).unwrap_or_default();
    let named = agents.iter().map(|agent| {
        let what = if agent.installed { "installed" } else { "not installed" };
        candidate(&agent.name, &format!("{}, {what}", agent.display_name))
    });
    beginning_with(typed, named)
}

fn candidate(name: &str, what: &str) -> CompletionCandidate {
    CompletionCandidate::new(name).help(Some(StyledStr::from(output::printable(what))))
}

fn beginning_with(
    typed: &OsStr,
    names: impl Iterator<Item = CompletionCandidate>,
) -> Vec<CompletionCandidate> {
    let typed = typed.as_encoded_bytes();
    names.filter(|name| name.get_value().as_encoded_bytes().starts_with(typed)).collect()
}

/// Where nothing was ever started there is nothing to name, and nobody is started to say so.
fn ask<T>(question: impl AsyncFnOnce(Client) -> Option<T>) -> Option<T> {
    let context = Context::from_process(Vec::new()).ok()?;
    if !context.state.projects().is_dir() {
        return None;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        let answer = async { question(context.daemon().await.ok()?).await };
        tokio::time::timeout(PATIENCE, answer).await.ok()?
    })
}
