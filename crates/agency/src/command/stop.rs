//! `agency stop`: stops agents and names the processes that were stopped with them.

use std::process::ExitCode;

use agency_api::keeper::Ended;
use agency_api::method::TaskStop;
use agency_api::view::{Task, TaskStatus};

use crate::cli::Stop;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::{output, several};

pub(super) async fn stop(context: &Context, args: Stop) -> CommandResult {
    let names = match args.all {
        true => several::find(context, |task| task.run.is_some()).await?,
        false => args.tasks,
    };
    if names.is_empty() {
        output::note("no agent is running in this project");
    }
    several::each(&names, async |name| stop_one(context, name, args.json).await).await
}

async fn stop_one(context: &Context, name: &str, json: bool) -> CommandResult {
    let stopped = context.daemon().await?.call(TaskStop, context.task(name)?).await?;
    if json {
        output::json_line(&stopped)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(task) = &stopped.task {
        output::line(&stopped_text(task, stopped.code.is_some()))?;
    }
    print_ended(&stopped.ended);
    Ok(ExitCode::SUCCESS)
}

/// The status of a task that is not `stopped` stays, and the line says so.
fn stopped_text(task: &Task, had_agent: bool) -> String {
    match task.status {
        TaskStatus::Stopped => output::task_line(task),
        _ if !had_agent => output::task_line(task),
        status => {
            format!("{} {}: agent stopped (task is {})", task.id, task.slug, output::status_name(status))
        }
    }
}

/// Names the processes outside the agent's process group: the user may not expect that they were stopped.
pub(super) fn print_ended(ended: &[Ended]) {
    for process in ended {
        let how = if process.killed { "killed" } else { "ended" };
        output::note(&format!("also {how}: {} (pid {})", output::printable(&process.name), process.pid));
    }
}
