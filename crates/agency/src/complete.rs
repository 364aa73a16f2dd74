//! The names of tasks and agents that a shell offers for completion.
//!
//! A shell that waits for names must not hang or see an error: if the daemon does not answer, there are no names.

use std::ffi::OsStr;
use std::time::Duration;

use agency_api::method::{AgentList, AgentListParams, Nothing, ProjectList, TaskList, TaskListParams};
use agency_client::Client;
use clap::builder::StyledStr;
use clap_complete::CompletionCandidate;

use crate::context::{self, Context};
use crate::output;

/// Longer than a running daemon takes to answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

pub(crate) fn tasks(typed: &OsStr) -> Vec<CompletionCandidate> {
    let listing = ask(async |mut daemon| {
        let here = TaskListParams { cwd: context::here().ok() };
        match daemon.call(TaskList, here).await {
            Ok(listing) => Some(listing),
            // Outside a project, the tasks of all projects can be named.
            Err(_) => daemon.call(TaskList, TaskListParams { cwd: None }).await.ok(),
        }
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

pub(crate) fn projects(typed: &OsStr) -> Vec<CompletionCandidate> {
    let listing = ask(async |mut daemon| daemon.call(ProjectList, Nothing {}).await.ok());
    let projects = listing.map(|listing| listing.projects).unwrap_or_default();
    let named = projects
        .iter()
        .map(|project| candidate(&project.name, &project.root.as_path().display().to_string()));
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

/// Does not start a daemon only to learn that there are no projects.
fn ask<T>(question: impl AsyncFnOnce(Client) -> Option<T>) -> Option<T> {
    let context = Context::from_process(Vec::new()).ok()?;
    if !context.state.projects().is_dir() {
        return None;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        let answer = async { question(context.daemon().await.ok()?).await };
        tokio::time::timeout(ANSWERED_WITHIN, answer).await.ok()?
    })
}
