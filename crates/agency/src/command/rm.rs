//! `agency rm`: removes a task and its workspace.

use std::process::ExitCode;

use agency_api::method::{TaskRemove, TaskRemoveParams};

use crate::cli::Rm;
use crate::context::Context;
use crate::output;
use crate::stop::Done;

pub(super) async fn rm(context: &Context, args: Rm) -> Done {
    let params = TaskRemoveParams { task: context.task(&args.name.task)?, discard: args.discard };
    let removed = context.daemon().await?.call(TaskRemove, params).await?;
    output::line(&format!("{} {} removed", removed.id, removed.slug))?;
    if let Some(kept) = &removed.kept_as {
        output::line(&format!("what was in it is kept as {}", output::printable(kept)))?;
    }
    Ok(ExitCode::SUCCESS)
}
