//! `agency stop`: ends the agent and says what went with it.

use std::process::ExitCode;

use agency_api::keeper::Ended;
use agency_api::method::TaskStop;

use crate::cli::TaskName;
use crate::context::Context;
use crate::output;
use crate::stop::Done;

pub(super) async fn stop(context: &Context, args: TaskName) -> Done {
    let task = context.task(&args.task)?;
    let stopped = context.daemon().await?.call(TaskStop, task).await?;
    if let Some(task) = &stopped.task {
        output::line(&output::task_line(task))?;
    }
    say_ended(&stopped.ended);
    Ok(ExitCode::SUCCESS)
}

/// Processes outside the agent's group, which nobody would expect to be gone.
pub(super) fn say_ended(ended: &[Ended]) {
    for process in ended {
        let how = if process.killed { "killed" } else { "ended" };
        output::note(&format!("also {how}: {} (pid {})", output::printable(&process.name), process.pid));
    }
}
