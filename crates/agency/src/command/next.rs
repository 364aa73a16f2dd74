//! `agency next`: opens the task whose agent has waited longest for the user.

use std::cmp::Reverse;
use std::io::IsTerminal;
use std::process::ExitCode;

use agency_api::method::{TaskList, TaskListParams};
use agency_api::view::{AgentState, Task};
use agency_api::{Failure, FailureCode};

use super::visit::{Visit, visit};
use crate::attach::Departure;
use crate::context::{self, Context};
use crate::outcome::CommandResult;
use crate::output;

pub(super) async fn next(context: &Context) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let listing = daemon.call(TaskList, TaskListParams { cwd: None }).await?;
    let Some(task) = longest_waiting(&listing.tasks, None) else {
        return Err(Failure::new("no agent is waiting for you")
            .code(FailureCode::NotFound)
            .hint("`agency ls --all` shows the state of all agents")
            .into());
    };
    if !std::io::stdout().is_terminal() {
        output::line(&output::task_line(task))?;
        return Ok(ExitCode::SUCCESS);
    }
    let departure = visit(context, Visit::of(context::reference(task))).await?;
    go_on(context, departure).await
}

/// After the user has left a task: opens the next one, as often as the user asks for it.
pub(super) async fn go_on(context: &Context, mut departure: Departure) -> CommandResult {
    loop {
        let left = match departure {
            Departure::Over(code) => return Ok(code),
            Departure::Next(left) => left,
        };
        let listing = context.daemon().await?.call(TaskList, TaskListParams { cwd: None }).await?;
        let Some(task) = longest_waiting(&listing.tasks, Some(&left)) else {
            output::note(&format!(
                "[detached from {}-{}; no other agent is waiting for you]",
                left.id, left.slug
            ));
            return Ok(ExitCode::SUCCESS);
        };
        departure = visit(context, Visit::of(context::reference(task))).await?;
    }
}

/// Agents that the user has not looked at come first, because the user has just left the others. `left` is not next.
pub(super) fn longest_waiting<'a>(tasks: &'a [Task], left: Option<&Task>) -> Option<&'a Task> {
    let waited = |task: &Task| match task.state {
        Some(AgentState::NeedsInput { for_seconds, .. } | AgentState::Stale { for_seconds, .. }) => {
            Some(for_seconds)
        }
        _ => None,
    };
    let is_left = |task: &Task| left.is_some_and(|left| (&left.project, left.id) == (&task.project, task.id));
    let waiting = tasks.iter().filter(|task| !is_left(task)).filter_map(|task| Some((task, waited(task)?)));
    waiting.min_by_key(|(task, seconds)| (task.seen, Reverse(*seconds))).map(|(task, _)| task)
}
