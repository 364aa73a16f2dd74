//! `agency idle`, `complete` and `fail`: set the status of tasks.

use std::process::ExitCode;

use agency_api::method::{Method, TaskRef};
use agency_api::view::Task;

use crate::cli::TaskNames;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::{output, several};

pub(super) async fn mark<M>(context: &Context, method: M, args: TaskNames) -> CommandResult
where
    M: Method<Params = TaskRef, Result = Task>,
{
    several::each(&args.tasks, async |name| {
        let task = context.daemon().await?.call(method, context.task(name)?).await?;
        output::line(&output::task_line(&task))?;
        Ok(ExitCode::SUCCESS)
    })
    .await
}
