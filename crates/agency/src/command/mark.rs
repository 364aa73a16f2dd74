//! `agency idle`, `complete` and `fail`: what a person says about a task.

use std::process::ExitCode;

use agency_api::method::{Method, TaskRef};
use agency_api::view::Task;

use crate::cli::TaskName;
use crate::context::Context;
use crate::output;
use crate::stop::Done;

pub(super) async fn mark<M>(context: &Context, method: M, args: TaskName) -> Done
where
    M: Method<Params = TaskRef, Result = Task>,
{
    let task = context.task(&args.task)?;
    let task = context.daemon().await?.call(method, task).await?;
    output::line(&output::task_line(&task))?;
    Ok(ExitCode::SUCCESS)
}
