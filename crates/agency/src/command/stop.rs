//! `agency stop`: stops agents and names the processes that were stopped with them.

use std::process::ExitCode;

use agency_api::keeper::Ended;
use agency_api::method::{TaskStop, TaskStopParams};
use agency_api::view::{Task, TaskStatus};

use crate::cli::Stop;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::{output, running_programs, several};

pub(super) async fn stop(context: &Context, args: Stop) -> CommandResult {
    let names = match args.all {
        true => several::find(context, |task| task.run.is_some()).await?,
        false => args.tasks.clone(),
    };
    if names.is_empty() {
        output::note("no agent is running in this project");
    }
    several::each(&names, async |name| stop_one(context, name, &args).await).await
}

async fn stop_one(context: &Context, name: &str, args: &Stop) -> CommandResult {
    let task = context.task(name)?;
    let stop = async |force| {
        let params = TaskStopParams { task: task.clone(), force };
        context.daemon().await?.call(TaskStop, params).await
    };
    let stopped = running_programs::ask_to_end(args.force, stop).await?;
    if args.json {
        output::json_line(&stopped)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(task) = &stopped.task {
        output::line(&stopped_text(task, stopped.code.is_some()))?;
    }
    print_ended(&stopped.ended);
    print_closed(&stopped.closed);
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

/// Names the terminals beside the agent that were closed with it.
pub(super) fn print_closed(closed: &[String]) {
    closed
        .iter()
        .for_each(|name| output::note(&format!("also closed: terminal {}", output::printable(name))));
}

/// Names the processes outside the agent's process group: the user may not expect that they were stopped.
pub(super) fn print_ended(ended: &[Ended]) {
    for process in ended {
        let how = if process.killed { "killed" } else { "ended" };
        output::note(&format!("also {how}: {} (pid {})", output::printable(&process.name), process.pid));
    }
}
