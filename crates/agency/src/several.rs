//! One command for several tasks: each is done or fails by itself.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use agency_api::method::{TaskList, TaskListParams};
use agency_api::view::Task;

use crate::context::{self, Context};
use crate::outcome::{CommandError, CommandResult};
use crate::output;

/// The name under which `agency undo` restores everything that this command removes.
pub(crate) fn new_batch(command: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{command}-{}", now.as_millis())
}

/// The ids of the tasks of this project that fit.
pub(crate) async fn find(
    context: &Context,
    fits: impl Fn(&Task) -> bool,
) -> Result<Vec<String>, CommandError> {
    let here = TaskListParams { cwd: Some(context::here()?) };
    let listing = context.daemon().await?.call(TaskList, here).await?;
    Ok(listing.tasks.iter().filter(|task| fits(task)).map(|task| task.id.to_string()).collect())
}

/// Acts on each task. A failure is printed and does not stop the others; then the command fails. A single task fails
/// like a command for one task.
pub(crate) async fn each(names: &[String], act: impl AsyncFn(&str) -> CommandResult) -> CommandResult {
    if let [only] = names {
        return act(only).await;
    }
    let mut end = ExitCode::SUCCESS;
    for name in names {
        match act(name).await {
            Ok(code) if code == ExitCode::SUCCESS => {}
            Ok(_) => end = ExitCode::FAILURE,
            Err(CommandError::Failed(failure)) => {
                output::print_failure(&failure);
                end = ExitCode::FAILURE;
            }
            Err(closed @ CommandError::PipeClosed) => return Err(closed),
        }
    }
    Ok(end)
}
