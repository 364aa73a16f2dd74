//! `agency next`: opens the task whose agent needs the user most.

use std::io::IsTerminal;
use std::process::ExitCode;

use agency_api::method::{TaskList, TaskListParams};
use agency_api::{Failure, FailureCode};

use super::visit::{Visit, visit};
use crate::attach::Departure;
use crate::context::{self, Context};
use crate::outcome::CommandResult;
use crate::output;
use crate::task_order::next_waiting;

pub(super) async fn next(context: &Context) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let listing = daemon.call(TaskList, TaskListParams { cwd: None }).await?;
    let Some(task) = next_waiting(&listing.tasks, None) else {
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
        let Some(task) = next_waiting(&listing.tasks, Some(&left)) else {
            output::note(&format!(
                "[detached from {}-{}; no other agent is waiting for you]",
                left.id, left.slug
            ));
            return Ok(ExitCode::SUCCESS);
        };
        departure = visit(context, Visit::of(context::reference(task))).await?;
    }
}
