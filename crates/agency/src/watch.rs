//! Waits for a start, a setup or a removal, and shows what its setup or teardown commands print.

use std::cell::RefCell;
use std::time::Duration;

use agency_api::event::{Event, EventData, SetupPhase};
use agency_api::method::{EventSubscribe, EventSubscribeParams, Method, TaskRef, TaskStop};
use agency_api::{Failure, FailureCode};
use agency_client::Client;
use tokio::signal::unix::{SignalKind, signal};

use crate::context::Context;
use crate::progress;

/// Events about output that was printed before the answer are on their way already.
const LAST_EVENTS_WITHIN: Duration = Duration::from_secs(2);

/// The setup or teardown commands of one call, as its events report them.
#[derive(Debug, Default)]
pub(crate) struct WatchedCommands {
    token: String,
    /// The task whose commands are running now.
    running: Option<TaskRef>,
    /// The commands are a teardown.
    is_teardown: bool,
    /// The losses of a removal were shown before it began.
    pub(crate) has_named_losses: bool,
    /// Commands have started, so the task and its workspace exist even if the call fails.
    pub(crate) has_started: bool,
}

/// A token for [`agency_api::method::Caller`]'s `watch` that no other caller uses.
pub(crate) fn new_token() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", std::process::id(), now.as_nanos())
}

/// Calls the method and prints the output of the setup or teardown that belongs to `token`. Ctrl-c stops the commands.
pub(crate) async fn call_and_watch<M: Method>(
    context: &Context,
    what: &str,
    method: M,
    params: M::Params,
    token: String,
) -> (Result<M::Result, Failure>, WatchedCommands) {
    let watched = RefCell::new(WatchedCommands { token, ..WatchedCommands::default() });
    let outcome = async {
        let mut daemon = context.daemon().await?;
        // A daemon that cannot send events can still do the work. The setup log has the output.
        if let Err(failure) = daemon.call(EventSubscribe, EventSubscribeParams::default()).await
            && daemon.is_broken()
        {
            return Err(failure);
        }
        let calling = daemon.call_with_events(method, params, |event| watched.borrow_mut().on_event(&event));
        let answer = progress::during(what, until_interrupted(context, &watched, calling)).await;
        read_last_events(&mut daemon, &watched).await;
        answer
    };
    let outcome = outcome.await;
    (outcome, watched.into_inner())
}

/// Ctrl-c stops the commands, and the call then fails. If no commands are running, ctrl-c only ends the waiting.
async fn until_interrupted<T>(
    context: &Context,
    watched: &RefCell<WatchedCommands>,
    calling: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut calling = std::pin::pin!(calling);
    tokio::select! {
        answer = &mut calling => return answer,
        () = interrupt_signal() => {}
    }
    let running = watched.borrow().running.clone();
    let Some(task) = running else {
        return Err(Failure::new("interrupted")
            .code(FailureCode::Cancelled)
            .hint("`agency ls` shows what was done so far"));
    };
    let (name, is_teardown) = (task.name.clone(), watched.borrow().is_teardown);
    context.daemon().await?.call(TaskStop, task.into()).await?;
    match calling.await {
        Ok(answer) => Ok(answer),
        Err(failure) if is_teardown => Err(failure),
        Err(_) => Err(Failure::new("interrupted")
            .code(FailureCode::Cancelled)
            .because("the setup commands were stopped; the task and its workspace stay")
            .hint(format!(
                "`agency start {name}` runs the setup again, `agency start {name} --skip-setup` starts without it"
            ))),
    }
}

async fn interrupt_signal() {
    match signal(SignalKind::interrupt()) {
        Ok(mut interrupts) => drop(interrupts.recv().await),
        // Without a handler, the signal ends this process.
        Err(_) => std::future::pending().await,
    }
}

async fn read_last_events(daemon: &mut Client, watched: &RefCell<WatchedCommands>) {
    let rest = async {
        while watched.borrow().running.is_some() {
            match daemon.next_event().await {
                Some(event) => watched.borrow_mut().on_event(&event),
                None => return,
            }
        }
    };
    // The setup log has what does not arrive in time.
    tokio::time::timeout(LAST_EVENTS_WITHIN, rest).await.unwrap_or_default();
}

impl WatchedCommands {
    fn on_event(&mut self, event: &Event) {
        let is_ours = |asked_by: &[String]| asked_by.contains(&self.token);
        match &event.data {
            EventData::SetupStarted(started) if is_ours(&started.asked_by) => {
                let name = event.task.map(|task| task.to_string()).unwrap_or_default();
                self.running = event.project.clone().map(|cwd| TaskRef { cwd, name });
                self.is_teardown = started.phase == SetupPhase::Teardown;
                self.has_started = true;
            }
            EventData::RemovalStarted(removal) if is_ours(&removal.asked_by) => {
                self.has_named_losses = true;
                removal.lost.iter().for_each(|lost| progress::line(lost));
            }
            EventData::SetupOutput(output) if is_ours(&output.asked_by) => {
                output.text.lines().for_each(progress::line);
            }
            EventData::SetupEnded(ended) if is_ours(&ended.asked_by) => self.running = None,
            _ => {}
        }
    }
}
