//! `agency rename`: changes the name of a draft.

use std::process::ExitCode;

use agency_api::method::{TaskRename, TaskRenameParams};

use crate::cli::Rename;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::output;

pub(super) async fn rename(context: &Context, args: Rename) -> CommandResult {
    let params = TaskRenameParams { task: context.task(&args.name.task)?, slug: args.slug };
    let task = context.daemon().await?.call(TaskRename, params).await?;
    output::line(&format!("{}-{}: renamed", task.id, task.slug))?;
    Ok(ExitCode::SUCCESS)
}
