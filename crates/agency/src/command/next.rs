//! `agency next`: the agent that has waited longest for you.

use std::cmp::Reverse;
use std::io::IsTerminal;

use agency_api::config::Overrides;
use agency_api::method::{TaskList, TaskListParams, TaskRef};
use agency_api::pty::AttachMode;
use agency_api::view::{AgentState, Task};
use agency_api::{Bytes, Failure, FailureCode};

use crate::attach::{self, Target};
use crate::context::{self, Context};
use crate::output;
use crate::stop::Done;
use crate::talk;

pub(super) async fn next(context: &Context) -> Done {
    let mut daemon = context.daemon().await?;
    let listing = daemon.call(TaskList, TaskListParams { cwd: None }).await?;
    let Some(task) = longest(&listing.tasks) else {
        return Err(Failure::new("no agent is waiting for you")
            .code(FailureCode::NotFound)
            .hint("`agency ls --all` shows the state of all agents")
            .into());
    };
    if !std::io::stdout().is_terminal() {
        output::line(&output::task_line(task))?;
        return Ok(std::process::ExitCode::SUCCESS);
    }
    if talk::holds(task) {
        return super::chat::talk(context, context::reference(task), None).await;
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

/// Those that nobody has looked at come first: the one you left a moment ago is not what you are asking for.
fn longest(tasks: &[Task]) -> Option<&Task> {
    let waited = |task: &Task| match task.state {
        Some(AgentState::NeedsInput { for_seconds, .. } | AgentState::Stale { for_seconds, .. }) => {
            Some(for_seconds)
        }
        _ => None,
    };
    let waiting = tasks.iter().filter_map(|task| Some((task, waited(task)?)));
    waiting.min_by_key(|(task, seconds)| (task.seen, Reverse(*seconds))).map(|(task, _)| task)
}
