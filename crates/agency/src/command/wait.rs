//! `agency wait`: waits until an agent is in one of the given states, for scripts.

use std::process::ExitCode;

use crate::agent_wait::{WaitEnd, wait_for_state};
use crate::cli::Wait;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::output;

/// The agent exited, and the caller waited for something else.
const EXITED_INSTEAD: u8 = 3;
const TIMED_OUT: u8 = 4;

pub(super) async fn wait(context: &Context, args: Wait) -> CommandResult {
    let task = context.task(&args.name.task)?;
    let waiting = wait_for_state(context, &task, &args.until);
    let end = match args.timeout {
        None => waiting.await?,
        Some(timeout) => match tokio::time::timeout(timeout, waiting).await {
            Ok(end) => end?,
            Err(_) => {
                output::note(&format!("timed out: {} is not in that state yet", args.name.task));
                return Ok(ExitCode::from(TIMED_OUT));
            }
        },
    };
    Ok(match end {
        WaitEnd::Reached(state) => {
            output::line(&state)?;
            ExitCode::SUCCESS
        }
        WaitEnd::ExitedInstead(state) => {
            output::line(&state)?;
            ExitCode::from(EXITED_INSTEAD)
        }
    })
}
