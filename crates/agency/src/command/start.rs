//! `agency start` and `agency restart`.

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
use crate::log_stream::copy_log;
use crate::output;
use crate::stop::{Done, Stop, with_hint};
use crate::talk;
use crate::watch;

/// What a start is to do otherwise than usual.
#[derive(Default)]
struct Wishes {
    driver: Option<String>,
    fresh: bool,
    skip_setup: bool,
}

pub(super) async fn start(context: &Context, args: Start) -> Done {
    begin(context, TaskStart, args).await
}

pub(super) async fn restart(context: &Context, args: Start) -> Done {
    begin(context, TaskRestart, args).await
}

/// A task that is known and has no run any more.
pub(super) async fn again(context: &Context, task: &Task) -> Done {
    let started = launched(context, TaskStart, context::reference(task), Wishes::default()).await?;
    started.notes.iter().for_each(|note| output::note(&output::printable(note)));
    show(context, &started.task).await
}

async fn begin<M>(context: &Context, method: M, args: Start) -> Done
where
    M: Method<Params = TaskStartParams, Result = Started>,
{
    let wishes = Wishes { driver: args.driver, fresh: args.fresh, skip_setup: args.skip_setup };
    let started = launched(context, method, context.task(&args.name.task)?, wishes).await?;
    started.notes.iter().for_each(|note| output::note(&output::printable(note)));
    match args.attach {
        true => show(context, &started.task).await,
        false => say(&started.task),
    }
}

async fn launched<M>(context: &Context, method: M, task: TaskRef, wishes: Wishes) -> Result<Started, Failure>
where
    M: Method<Params = TaskStartParams, Result = Started>,
{
    let watch = watch::word();
    let Wishes { driver, fresh, skip_setup } = wishes;
    let caller = caller::listening(&context.options, &watch);
    let params = TaskStartParams { task, driver, fresh, skip_setup, caller };
    watch::call(context, "starting the agent", method, params, watch).await.0
}

fn say(task: &Task) -> Done {
    output::line(&output::task_line(task))?;
    Ok(ExitCode::SUCCESS)
}

/// The terminal of a task that was just started, or a line about it where there is no terminal.
pub(super) async fn show(context: &Context, task: &Task) -> Done {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return say(task);
    }
    if talk::holds(task) {
        return super::chat::talk(context, context::reference(task), None).await;
    }
    let target = Target {
        task: context::reference(task),
        mode: AttachMode::Control,
        frames: false,
        overrides: Overrides::from_process(&context.options),
    };
    let lives = |stop| match stop {
        Stop::Failed(failure) => {
            let way_in = format!("{}-{} was started: agency attach {}", task.id, task.slug, task.id);
            Stop::Failed(with_hint(failure, &way_in))
        }
        other => other,
    };
    match attach::attach(context, target).await {
        Err(Stop::Failed(failure)) => match ended_already(context, task).await {
            Some(code) => last_words(context, task, &code).await,
            None => Err(lives(Stop::Failed(failure))),
        },
        done => done,
    }
}

/// The exit code of a task that had nothing more to do before anybody could look.
async fn ended_already(context: &Context, task: &Task) -> Option<String> {
    let task = context.daemon().await.ok()?.call(TaskGet, context::reference(task)).await.ok()?;
    task.run.is_none().then_some(task.last_exit).flatten()
}

async fn last_words(context: &Context, task: &Task, code: &str) -> Done {
    let params = LogReadParams { task: context::reference(task), form: LogForm::Text, follow: false };
    let mut daemon = context.daemon().await?;
    let answer = daemon.call(LogRead, params).await?;
    copy_log(daemon.stream(&answer.stream).await?, &mut std::io::stdout().lock()).await?;
    output::note(&format!("[{}-{} exited {}]", task.id, task.slug, output::printable(code)));
    Ok(ExitCode::SUCCESS)
}
