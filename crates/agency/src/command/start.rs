//! `agency start` and `agency restart`: start the agents of tasks.

use std::io::IsTerminal;
use std::process::ExitCode;

use agency_api::Failure;
use agency_api::method::{
    LogForm, LogRead, LogReadParams, Method, Nothing, Started, TaskCutOff, TaskGet, TaskRef, TaskRestart,
    TaskStart, TaskStartParams,
};
use agency_api::view::Task;

use super::next;
use super::visit::{Visit, visit};
use crate::caller;
use crate::cli::{Restart, Start, StartOptions};
use crate::context::{self, Context};
use crate::log_stream::copy_log;
use crate::outcome::{CommandError, CommandResult, with_hint};
use crate::{output, several, watch};

pub(super) async fn start(context: &Context, args: Start) -> CommandResult {
    if args.all {
        return start_cut_off(context, &args).await;
    }
    if let ([name], true) = (args.tasks.as_slice(), args.options.attach) {
        let started = call_start(context, TaskStart, context.task(name)?, &args.options).await?;
        print_notes(&started);
        return show(context, &started.task, started.notes).await;
    }
    several::each(&args.tasks, async |name| start_one(context, context.task(name)?, &args).await).await
}

pub(super) async fn restart(context: &Context, args: Restart) -> CommandResult {
    let started = call_start(context, TaskRestart, context.task(&args.name.task)?, &args.options).await?;
    print_notes(&started);
    match args.options.attach {
        true => show(context, &started.task, started.notes).await,
        false => print_task(&started.task),
    }
}

async fn start_one(context: &Context, task: TaskRef, args: &Start) -> CommandResult {
    let started = call_start(context, TaskStart, task, &args.options).await?;
    if args.json {
        output::json_line(&started)?;
        return Ok(ExitCode::SUCCESS);
    }
    print_notes(&started);
    print_task(&started.task)
}

/// Starts every agent that no one asked to end.
async fn start_cut_off(context: &Context, args: &Start) -> CommandResult {
    let listing = context.daemon().await?.call(TaskCutOff, Nothing {}).await?;
    if listing.tasks.is_empty() {
        output::note("no agent was ended by a reboot, a shutdown or a signal");
    }
    let mut end = ExitCode::SUCCESS;
    for task in &listing.tasks {
        match start_one(context, context::reference(task), args).await {
            Ok(_) => {}
            Err(CommandError::Failed(failure)) => {
                output::print_failure(&failure);
                end = ExitCode::FAILURE;
            }
            Err(closed) => return Err(closed),
        }
    }
    Ok(end)
}

fn print_notes(started: &Started) {
    started.notes.iter().for_each(|note| output::note(&output::printable(note)));
}

/// Starts the agent of a task and prints nothing but notes.
pub(super) async fn start_task(context: &Context, task: TaskRef) -> Result<(), CommandError> {
    print_notes(&call_start(context, TaskStart, task, &StartOptions::default()).await?);
    Ok(())
}

/// Starts the agent of a known task that has no run.
pub(super) async fn start_again(context: &Context, task: &Task) -> CommandResult {
    let started = call_start(context, TaskStart, context::reference(task), &StartOptions::default()).await?;
    print_notes(&started);
    show(context, &started.task, started.notes).await
}

async fn call_start<M>(
    context: &Context,
    method: M,
    task: TaskRef,
    options: &StartOptions,
) -> Result<Started, Failure>
where
    M: Method<Params = TaskStartParams, Result = Started>,
{
    let watch = watch::new_token();
    let StartOptions { driver, fresh, skip_setup, .. } = options.clone();
    let caller = caller::caller_with_watch(&context.options, &watch);
    let params = TaskStartParams { task, driver, fresh, skip_setup, caller };
    watch::call_and_watch(context, "starting the agent", method, params, watch).await.0
}

fn print_task(task: &Task) -> CommandResult {
    output::line(&output::task_line(task))?;
    Ok(ExitCode::SUCCESS)
}

/// Opens a task that was just started, and repeats the notes of the start afterwards; without a terminal, prints a line
/// about it.
pub(super) async fn show(context: &Context, task: &Task, notes: Vec<String>) -> CommandResult {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return print_task(task);
    }
    match visit(context, Visit { notes, ..Visit::of(context::reference(task)) }).await {
        Ok(departure) => next::go_on(context, departure).await,
        Err(CommandError::Failed(failure)) => match exit_code_if_ended(context, task).await {
            Some(code) => print_last_output(context, task, &code).await,
            None => {
                let way_in = format!("{}-{} was started: agency attach {}", task.id, task.slug, task.id);
                Err(with_hint(failure, &way_in).into())
            }
        },
        Err(other) => Err(other),
    }
}

/// The exit code, if the agent has already ended.
async fn exit_code_if_ended(context: &Context, task: &Task) -> Option<String> {
    let task = context.daemon().await.ok()?.call(TaskGet, context::reference(task)).await.ok()?;
    task.run.is_none().then_some(task.last_exit).flatten()
}

async fn print_last_output(context: &Context, task: &Task, code: &str) -> CommandResult {
    let params =
        LogReadParams { task: context::reference(task), shell: None, form: LogForm::Text, follow: false };
    let mut daemon = context.daemon().await?;
    let answer = daemon.call(LogRead, params).await?;
    copy_log(daemon.stream(&answer.stream).await?, &mut std::io::stdout().lock()).await?;
    output::note(&format!("[{}-{} exited {}]", task.id, task.slug, output::printable(code)));
    Ok(ExitCode::SUCCESS)
}
