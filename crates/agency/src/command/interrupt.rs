//! `agency interrupt`: ends an agent's turn and keeps its session.

use std::process::ExitCode;

use agency_api::method::TaskInterrupt;

use crate::cli::TaskName;
use crate::context::Context;
use crate::output;
use crate::stop::Done;

pub(super) async fn interrupt(context: &Context, args: TaskName) -> Done {
    let task = context.task(&args.task)?;
    context.daemon().await?.call(TaskInterrupt, task).await?;
    output::note("interrupted");
    Ok(ExitCode::SUCCESS)
}
