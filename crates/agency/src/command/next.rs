//! `agency next`: attaches to the agent that has waited longest for the user.

use std::cmp::Reverse;
use std::io::IsTerminal;

use agency_api::config::Overrides;
use agency_api::method::{TaskList, TaskListParams, TaskRef};
use agency_api::pty::AttachMode;
use agency_api::view::{AgentState, Task};
use agency_api::{Bytes, Failure, FailureCode};

use crate::attach::{self, Target};
use crate::context::{self, Context};
use crate::conversation;
use crate::outcome::CommandResult;
use crate::output;

pub(super) async fn next(context: &Context) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let listing = daemon.call(TaskList, TaskListParams { cwd: None }).await?;
    let Some(task) = longest_waiting(&listing.tasks) else {
        return Err(Failure::new("no agent is waiting for you")
            .code(FailureCode::NotFound)
            .hint("`agency ls --all` shows the state of all agents")
            .into());
    };
    if !std::io::stdout().is_terminal() {
        output::line(&output::task_line(task))?;
        return Ok(std::process::ExitCode::SUCCESS);
    }
    if conversation::has_conversation(task) {
        return super::chat::open_chat(context, context::reference(task), None).await;
    }
    let name = task.id.to_string();
    let target = Target {
        task: TaskRef { cwd: Bytes(task.project.0.clone()), name },
        mode: AttachMode::Control,
        frames: false,
        overrides: Overrides::from_process(&context.options),
    };
    attach::attach(context, target).await
}

/// Agents that the user has not looked at come first, because the user has just left the others.
fn longest_waiting(tasks: &[Task]) -> Option<&Task> {
    let waited = |task: &Task| match task.state {
        Some(AgentState::NeedsInput { for_seconds, .. } | AgentState::Stale { for_seconds, .. }) => {
            Some(for_seconds)
        }
        _ => None,
    };
    let waiting = tasks.iter().filter_map(|task| Some((task, waited(task)?)));
    waiting.min_by_key(|(task, seconds)| (task.seen, Reverse(*seconds))).map(|(task, _)| task)
}
