//! `agency start` and `agency restart`: start the agent of a task.

use std::io::IsTerminal;
use std::process::ExitCode;

use agency_api::Failure;
use agency_api::config::Overrides;
use agency_api::method::{
    LogForm, LogRead, LogReadParams, Method, Started, TaskGet, TaskRef, TaskRestart, TaskStart,
    TaskStartParams,
};
use agency_api::pty::AttachMode;
use agency_api::view::Task;

use crate::attach::{self, Target};
use crate::caller;
use crate::cli::Start;
use crate::context::{self, Context};
use crate::conversation;
use crate::log_stream::copy_log;
use crate::outcome::{CommandError, CommandResult, with_hint};
use crate::output;
use crate::watch;

/// Options of a start.
#[derive(Default)]
struct StartOptions {
    driver: Option<String>,
    fresh: bool,
    skip_setup: bool,
}

pub(super) async fn start(context: &Context, args: Start) -> CommandResult {
    start_and_show(context, TaskStart, args).await
}

pub(super) async fn restart(context: &Context, args: Start) -> CommandResult {
    start_and_show(context, TaskRestart, args).await
}

/// Starts the agent of a known task that has no run.
pub(super) async fn start_again(context: &Context, task: &Task) -> CommandResult {
    let started = call_start(context, TaskStart, context::reference(task), StartOptions::default()).await?;
    started.notes.iter().for_each(|note| output::note(&output::printable(note)));
    show(context, &started.task).await
}

async fn start_and_show<M>(context: &Context, method: M, args: Start) -> CommandResult
where
    M: Method<Params = TaskStartParams, Result = Started>,
{
    let options = StartOptions { driver: args.driver, fresh: args.fresh, skip_setup: args.skip_setup };
    let started = call_start(context, method, context.task(&args.name.task)?, options).await?;
    started.notes.iter().for_each(|note| output::note(&output::printable(note)));
    match args.attach {
        true => show(context, &started.task).await,
        false => print_task(&started.task),
    }
}

async fn call_start<M>(
    context: &Context,
    method: M,
    task: TaskRef,
    options: StartOptions,
) -> Result<Started, Failure>
where
    M: Method<Params = TaskStartParams, Result = Started>,
{
    let watch = watch::new_token();
    let StartOptions { driver, fresh, skip_setup } = options;
    let caller = caller::caller_with_watch(&context.options, &watch);
    let params = TaskStartParams { task, driver, fresh, skip_setup, caller };
    watch::call_and_watch(context, "starting the agent", method, params, watch).await.0
}

fn print_task(task: &Task) -> CommandResult {
    output::line(&output::task_line(task))?;
    Ok(ExitCode::SUCCESS)
}

/// Attaches to a task that was just started; without a terminal, prints a line about it.
pub(super) async fn show(context: &Context, task: &Task) -> CommandResult {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return print_task(task);
    }
    if conversation::has_conversation(task) {
        return super::chat::open_chat(context, context::reference(task), None).await;
    }
    let target = Target {
        task: context::reference(task),
        mode: AttachMode::Control,
        frames: false,
        overrides: Overrides::from_process(&context.options),
    };
    let with_way_in = |error| match error {
        CommandError::Failed(failure) => {
            let way_in = format!("{}-{} was started: agency attach {}", task.id, task.slug, task.id);
            CommandError::Failed(with_hint(failure, &way_in))
        }
        other => other,
    };
    match attach::attach(context, target).await {
        Err(CommandError::Failed(failure)) => match exit_code_if_ended(context, task).await {
            Some(code) => print_last_output(context, task, &code).await,
            None => Err(with_way_in(CommandError::Failed(failure))),
        },
        done => done,
    }
}

/// The exit code, if the agent has already ended.
async fn exit_code_if_ended(context: &Context, task: &Task) -> Option<String> {
    let task = context.daemon().await.ok()?.call(TaskGet, context::reference(task)).await.ok()?;
    task.run.is_none().then_some(task.last_exit).flatten()
}

async fn print_last_output(context: &Context, task: &Task, code: &str) -> CommandResult {
    let params = LogReadParams { task: context::reference(task), form: LogForm::Text, follow: false };
    let mut daemon = context.daemon().await?;
    let answer = daemon.call(LogRead, params).await?;
    copy_log(daemon.stream(&answer.stream).await?, &mut std::io::stdout().lock()).await?;
    output::note(&format!("[{}-{} exited {}]", task.id, task.slug, output::printable(code)));
    Ok(ExitCode::SUCCESS)
}
