//! `agency idle`, `complete` and `fail`: set the status of a task.

use std::process::ExitCode;

use agency_api::method::{Method, TaskRef};
use agency_api::view::Task;

use crate::cli::TaskName;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::output;

pub(super) async fn mark<M>(context: &Context, method: M, args: TaskName) -> CommandResult
where
    M: Method<Params = TaskRef, Result = Task>,
{
    let task = context.task(&args.task)?;
    let task = context.daemon().await?.call(method, task).await?;
    output::line(&output::task_line(&task))?;
    Ok(ExitCode::SUCCESS)
}
