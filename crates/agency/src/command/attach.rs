//! `agency attach`: opens the terminal or the conversation of a task, or a terminal beside its agent.

use std::io::IsTerminal;

use agency_api::method::{TaskList, TaskListParams};
use agency_api::pty::AttachMode;
use agency_api::view::Task;
use agency_api::{Failure, FailureCode};

use super::next;
use super::visit::{Visit, visit};
use crate::cli::Attach;
use crate::context::{self, Context};
use crate::outcome::CommandResult;
use crate::task_order::next_waiting;

pub(super) async fn attach(context: &Context, args: Attach) -> CommandResult {
    let mode = match (args.take, args.read_only) {
        (_, true) => AttachMode::ReadOnly,
        (true, false) => AttachMode::Take,
        (false, false) => AttachMode::Control,
    };
    let (task, shell) = match &args.task {
        Some(name) => context.terminal(name)?,
        None => (context::reference(&unnamed_task(context).await?), None),
    };
    let departure = visit(
        context,
        Visit { shell, mode, frames: args.frames, all_history: args.all_history, ..Visit::of(task) },
    )
    .await?;
    next::go_on(context, departure).await
}

/// The task that `agency next` opens, or else the newest one whose agent is running.
async fn unnamed_task(context: &Context) -> Result<Task, Failure> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Failure::new("`agency attach` needs a terminal").code(FailureCode::NeedsTerminal));
    }
    let tasks = context.daemon().await?.call(TaskList, TaskListParams { cwd: None }).await?.tasks;
    let newest = tasks.iter().filter(|task| task.run.is_some()).min_by_key(|task| task.age_seconds);
    next_waiting(&tasks, None).or(newest).cloned().ok_or_else(|| {
        Failure::new("no agent is running")
            .code(FailureCode::NotFound)
            .hint("`agency ls --all` lists all tasks, `agency new` starts one")
    })
}
