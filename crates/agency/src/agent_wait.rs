//! Waits until a task's agent is in one of several states.
//!
//! Continues when the daemon restarts: it asks each new daemon again.

use std::time::Duration;

use agency_api::event::{Event, EventData};
use agency_api::method::{EventSubscribe, EventSubscribeParams, TaskGet, TaskRef};
use agency_api::view::{AgentState, Task, Why};
use agency_api::{Failure, FailureCode};
use agency_client::Client;

use crate::context::Context;
use crate::output;

/// A killed daemon is usually replaced within moments.
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// A daemon that is killed while it starts gives no reason; one that cannot start fails each time.
const MOST_RETRIES: u32 = 10;

/// The states that a caller can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Until {
    /// The agent waits for anything
    NeedsInput,
    /// The agent is done, or at its prompt
    Finished,
    /// The agent asks for permission
    Permission,
    /// The agent asks a question
    Question,
    Running,
    Exited,
}

impl Until {
    fn is_wait(self, why: Why) -> bool {
        match self {
            Until::NeedsInput => true,
            Until::Finished => matches!(why, Why::Finished | Why::Prompt),
            Until::Permission => why == Why::Permission,
            Until::Question => why == Why::Question,
            Until::Running | Until::Exited => false,
        }
    }
}

/// How the wait ended, with the state in words.
pub(crate) enum WaitEnd {
    Reached(String),
    ExitedInstead(String),
}

/// Waits for one of the states. An agent at its prompt with a queued text waits for no user: it gets that text next.
pub(crate) async fn wait_until(
    context: &Context,
    task: &TaskRef,
    until: &[Until],
) -> Result<WaitEnd, Failure> {
    loop {
        let end = wait_for_state(context, task, until).await?;
        let now = context.daemon().await?.call(TaskGet, task.clone()).await?;
        let why = match now.state {
            Some(AgentState::NeedsInput { why, .. } | AgentState::Stale { why, .. }) => Some(why),
            _ => None,
        };
        let gets_text = now.queued > 0 && why.is_some_and(|why| why != Why::Permission);
        if !gets_text || until.contains(&Until::Running) {
            return Ok(end);
        }
        wait_for_state(context, task, &[Until::Running, Until::Exited]).await?;
    }
}

async fn wait_for_state(context: &Context, task: &TaskRef, until: &[Until]) -> Result<WaitEnd, Failure> {
    let mut failures = 0;
    loop {
        match follow_task(context, task, until).await? {
            Followed::Ended(end) => return Ok(end),
            Followed::DaemonGone => failures = 0,
            Followed::NoDaemon(failure) if failures == MOST_RETRIES => return Err(failure),
            Followed::NoDaemon(_) => failures += 1,
        }
        tokio::time::sleep(RETRY_AFTER).await;
    }
}

enum Followed {
    Ended(WaitEnd),
    DaemonGone,
    NoDaemon(Failure),
}

async fn follow_task(context: &Context, task: &TaskRef, until: &[Until]) -> Result<Followed, Failure> {
    let mut daemon = match context.daemon().await {
        Ok(daemon) => daemon,
        Err(failure) => return Ok(Followed::NoDaemon(failure)),
    };
    match follow_events(&mut daemon, task, until).await {
        Ok(Some(end)) => Ok(Followed::Ended(end)),
        Ok(None) => Ok(Followed::DaemonGone),
        Err(_) if daemon.is_broken() => Ok(Followed::DaemonGone),
        Err(refusal) => Err(refusal),
    }
}

/// `None` if the daemon ended before the agent reached a state.
async fn follow_events(
    daemon: &mut Client,
    task: &TaskRef,
    until: &[Until],
) -> Result<Option<WaitEnd>, Failure> {
    // Subscribe first, so that no change between the two calls is missed.
    daemon.call(EventSubscribe, EventSubscribeParams::default()).await?;
    let now = daemon.call(TaskGet, task.clone()).await?;
    if let Some(end) = end_by_task(&now, until)? {
        return Ok(Some(end));
    }
    while let Some(event) = daemon.next_event().await {
        if matches!(event.data, EventData::Missed(_)) {
            let now = daemon.call(TaskGet, task.clone()).await?;
            if let Some(end) = end_by_task(&now, until)? {
                return Ok(Some(end));
            }
        }
        if let Some(end) = end_by_event(&now, &event, until) {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

fn end_by_task(task: &Task, until: &[Until]) -> Result<Option<WaitEnd>, Failure> {
    let detail = task.evidence.as_ref().and_then(|evidence| evidence.detail.as_deref());
    match (&task.state, &task.last_exit) {
        (Some(state), _) => Ok(end_by_state(state, detail, until)),
        (None, Some(code)) => Ok(end_by_state(&AgentState::Exited { code: code.clone() }, None, until)),
        (None, None) => Err(Failure::new(format!("task {}-{} has no agent to wait for", task.id, task.slug))
            .code(FailureCode::NotRunning)
            .because("it has never been started")
            .hint(format!("agency start {}", task.id))),
    }
}

fn end_by_event(task: &Task, event: &Event, until: &[Until]) -> Option<WaitEnd> {
    let is_ours = event.task == Some(task.id) && event.project.as_ref() == Some(&task.project);
    match &event.data {
        EventData::StateChange(change) if is_ours => {
            end_by_state(&change.new, change.evidence.detail.as_deref(), until)
        }
        _ => None,
    }
}

fn end_by_state(state: &AgentState, detail: Option<&str>, until: &[Until]) -> Option<WaitEnd> {
    let text = || output::printable(&output::state_text(state, detail));
    match state {
        AgentState::NeedsInput { why, .. } | AgentState::Stale { why, .. } => {
            until.iter().any(|until| until.is_wait(*why)).then(|| WaitEnd::Reached(text()))
        }
        AgentState::Running { .. } => until.contains(&Until::Running).then(|| WaitEnd::Reached(text())),
        AgentState::Starting { .. } => None,
        AgentState::Exited { .. } if until.contains(&Until::Exited) => Some(WaitEnd::Reached(text())),
        AgentState::Exited { .. } => Some(WaitEnd::ExitedInstead(text())),
    }
}
