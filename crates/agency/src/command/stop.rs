//! `agency stop`: stops an agent and names the processes that were stopped with it.

use std::process::ExitCode;

use agency_api::keeper::Ended;
use agency_api::method::TaskStop;

use crate::cli::TaskName;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::output;

pub(super) async fn stop(context: &Context, args: TaskName) -> CommandResult {
    let task = context.task(&args.task)?;
    let stopped = context.daemon().await?.call(TaskStop, task).await?;
    if let Some(task) = &stopped.task {
        output::line(&output::task_line(task))?;
    }
    print_ended(&stopped.ended);
    Ok(ExitCode::SUCCESS)
}

/// Names the processes outside the agent's process group: the user may not expect that they were stopped.
pub(super) fn print_ended(ended: &[Ended]) {
    for process in ended {
        let how = if process.killed { "killed" } else { "ended" };
        output::note(&format!("also {how}: {} (pid {})", output::printable(&process.name), process.pid));
    }
}
