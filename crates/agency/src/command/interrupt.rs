//! `agency interrupt`: interrupts an agent's turn; its session continues.

use std::process::ExitCode;

use agency_api::method::TaskInterrupt;

use crate::cli::TaskName;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::output;

pub(super) async fn interrupt(context: &Context, args: TaskName) -> CommandResult {
    let task = context.task(&args.task)?;
    context.daemon().await?.call(TaskInterrupt, task).await?;
    output::note("interrupted");
    Ok(ExitCode::SUCCESS)
}
