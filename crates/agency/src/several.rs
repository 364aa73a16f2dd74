//! One command for several tasks: each is done or fails by itself.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::outcome::{CommandError, CommandResult};
use crate::output;

/// The name under which `agency undo` restores everything that this command removes.
pub(crate) fn new_batch(command: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{command}-{}", now.as_millis())
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
