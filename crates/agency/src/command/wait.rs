//! `agency wait`: blocks until a task's agent is in a state, for scripts.

use std::process::ExitCode;
use std::time::Duration;

use agency_api::Failure;
use agency_api::method::{EventSubscribe, EventSubscribeParams, TaskGet, TaskRef};
use agency_api::view::{AgentState, Event, Task};
use agency_client::Client;
use tokio::time::Instant;

use crate::cli::{Until, Wait};
use crate::context::Context;
use crate::output;
use crate::stop::Done;

/// It exited, and that was not what was waited for.
const EXITED_INSTEAD: u8 = 3;
const TIMED_OUT: u8 = 4;

/// A daemon that was killed is back within moments.
const AGAIN_AFTER: Duration = Duration::from_millis(100);
/// One that is killed while it starts says nothing; one that cannot start says so each time.
const TRIES: u32 = 10;

enum Met {
    Reached(String),
    Exited(String),
}

pub(super) async fn wait(context: &Context, args: Wait) -> Done {
    let task = context.task(&args.name.task)?;
    let met = match args.timeout {
        None => watch(context, &task, &args.until).await?,
        Some(timeout) => {
            match tokio::time::timeout_at(Instant::now() + timeout, watch(context, &task, &args.until)).await
            {
                Ok(met) => met?,
                Err(_) => {
                    output::note(&format!("{} did not get there in time", args.name.task));
                    return Ok(ExitCode::from(TIMED_OUT));
                }
            }
        }
    };
    Ok(match met {
        Met::Reached(words) => {
            output::line(&words)?;
            ExitCode::SUCCESS
        }
        Met::Exited(words) => {
            output::line(&words)?;
            ExitCode::from(EXITED_INSTEAD)
        }
    })
}

/// For those who ask afterwards what became of it.
pub(crate) async fn wait_until(context: &Context, task: &TaskRef, until: &[Until]) -> Result<(), Failure> {
    watch(context, task, until).await.map(drop)
}

/// Outlives daemons: each new one is asked again.
async fn watch(context: &Context, task: &TaskRef, until: &[Until]) -> Result<Met, Failure> {
    let mut failed = 0;
    loop {
        match ask(context, task, until).await? {
            Asked::Met(met) => return Ok(met),
            Asked::DaemonGone => failed = 0,
            Asked::NoDaemon(failure) if failed == TRIES => return Err(failure),
            Asked::NoDaemon(_) => failed += 1,
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

enum Asked {
    Met(Met),
    DaemonGone,
    NoDaemon(Failure),
}

async fn ask(context: &Context, task: &TaskRef, until: &[Until]) -> Result<Asked, Failure> {
    let mut daemon = match context.daemon().await {
        Ok(daemon) => daemon,
        Err(failure) => return Ok(Asked::NoDaemon(failure)),
    };
    match follow(&mut daemon, task, until).await {
        Ok(Some(met)) => Ok(Asked::Met(met)),
        Ok(None) => Ok(Asked::DaemonGone),
        Err(_) if daemon.is_broken() => Ok(Asked::DaemonGone),
        Err(refusal) => Err(refusal),
    }
}

/// `None` once the daemon has gone.
async fn follow(daemon: &mut Client, task: &TaskRef, until: &[Until]) -> Result<Option<Met>, Failure> {
    // First the subscription: what happens between the two calls is in both.
    daemon.call(EventSubscribe, EventSubscribeParams::default()).await?;
    let now = daemon.call(TaskGet, task.clone()).await?;
    if let Some(met) = met_by_task(&now, until)? {
        return Ok(Some(met));
    }
    while let Some(event) = daemon.next_event().await {
        if event.kind == "Missed" {
            let now = daemon.call(TaskGet, task.clone()).await?;
            if let Some(met) = met_by_task(&now, until)? {
                return Ok(Some(met));
            }
        }
        if let Some(met) = met_by_event(&now, &event, until) {
            return Ok(Some(met));
        }
    }
    Ok(None)
}

fn met_by_task(task: &Task, until: &[Until]) -> Result<Option<Met>, Failure> {
    let detail = task.evidence.as_ref().and_then(|evidence| evidence.detail.as_deref());
    match (&task.state, &task.last_exit) {
        (Some(state), _) => Ok(met(state, detail, until)),
        (None, Some(code)) => Ok(met(&AgentState::Exited { code: code.clone() }, None, until)),
        (None, None) => Err(Failure::new(format!("task {}-{} has no agent to wait for", task.id, task.slug))
            .because("it has never been started")
            .hint(format!("agency start {}", task.id))),
    }
}

fn met_by_event(task: &Task, event: &Event, until: &[Until]) -> Option<Met> {
    let is_ours = event.kind == "StateChange"
        && event.task == Some(task.id)
        && event.project.as_ref() == Some(&task.project);
    let state = serde_json::from_value(event.data["new"].clone()).ok().filter(|_| is_ours)?;
    met(&state, event.data["evidence"]["detail"].as_str(), until)
}

fn met(state: &AgentState, detail: Option<&str>, until: &[Until]) -> Option<Met> {
    let words = || output::printable(&output::state_text(state, detail));
    match state {
        AgentState::NeedsInput { .. } | AgentState::Stale { .. } => {
            until.contains(&Until::NeedsInput).then(|| Met::Reached(words()))
        }
        AgentState::Running { .. } => until.contains(&Until::Running).then(|| Met::Reached(words())),
        AgentState::Starting { .. } => None,
        AgentState::Exited { .. } if until.contains(&Until::Exited) => Some(Met::Reached(words())),
        AgentState::Exited { .. } => Some(Met::Exited(words())),
    }
}
