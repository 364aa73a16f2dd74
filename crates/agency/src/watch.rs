//! Waiting for a start, a setup or a removal, and showing what its commands print meanwhile.

use std::cell::RefCell;
use std::time::Duration;

use agency_api::event::{Event, EventData, SetupPhase};
use agency_api::method::{EventSubscribe, EventSubscribeParams, Method, TaskRef, TaskStop};
use agency_api::{Failure, FailureCode};
use agency_client::Client;
use tokio::signal::unix::{SignalKind, signal};

use crate::context::Context;
use crate::progress;

/// What was printed before the answer is on its way already.
const HEARD_WITHIN: Duration = Duration::from_secs(2);

/// What became of the commands that ran meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    watch: String,
    /// The task whose commands run now.
    at_work: Option<TaskRef>,
    /// They clear up before it is removed.
    is_teardown: bool,
    /// Commands have run: the task and its workspace are there, whatever the answer says.
    pub(crate) has_begun: bool,
}

/// A word that nobody else listens for.
pub(crate) fn word() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", std::process::id(), now.as_nanos())
}

/// Calls, and shows what the setup or teardown prints whose caller said `watch`. Ctrl-c ends a setup.
pub(crate) async fn call<M: Method>(
    context: &Context,
    what: &str,
    method: M,
    params: M::Params,
    watch: String,
) -> (Result<M::Result, Failure>, Heard) {
    let heard = RefCell::new(Heard { watch, ..Heard::default() });
    let outcome = async {
        let mut daemon = context.daemon().await?;
        // One that does not tell what it does can do it all the same, and the log has it.
        if let Err(failure) = daemon.call(EventSubscribe, EventSubscribeParams::default()).await
            && daemon.is_broken()
        {
            return Err(failure);
        }
        let calling = daemon.call_with_events(method, params, |event| heard.borrow_mut().hear(&event));
        let answer = progress::during(what, or_interrupted(context, &heard, calling)).await;
        hear_the_rest(&mut daemon, &heard).await;
        answer
    };
    let outcome = outcome.await;
    (outcome, heard.into_inner())
}

/// Ctrl-c ends the commands, and with them what waits for them; without any, it ends the waiting.
async fn or_interrupted<T>(
    context: &Context,
    heard: &RefCell<Heard>,
    calling: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut calling = std::pin::pin!(calling);
    tokio::select! {
        answer = &mut calling => return answer,
        () = interrupted() => {}
    }
    let at_work = heard.borrow().at_work.clone();
    let Some(task) = at_work else {
        return Err(Failure::new("interrupted")
            .code(FailureCode::Cancelled)
            .hint("`agency ls` shows what was done so far"));
    };
    let (name, is_teardown) = (task.name.clone(), heard.borrow().is_teardown);
    context.daemon().await?.call(TaskStop, task).await?;
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

async fn interrupted() {
    match signal(SignalKind::interrupt()) {
        Ok(mut interrupts) => drop(interrupts.recv().await),
        // Then it was never taken from the system, which ends us.
        Err(_) => std::future::pending().await,
    }
}

async fn hear_the_rest(daemon: &mut Client, heard: &RefCell<Heard>) {
    let rest = async {
        while heard.borrow().at_work.is_some() {
            match daemon.next_event().await {
                Some(event) => heard.borrow_mut().hear(&event),
                None => return,
            }
        }
    };
    // What does not come is in the log.
    tokio::time::timeout(HEARD_WITHIN, rest).await.unwrap_or_default();
}

impl Heard {
    fn hear(&mut self, event: &Event) {
        let is_ours = |asked_by: &[String]| asked_by.contains(&self.watch);
        match &event.data {
            EventData::SetupStarted(started) if is_ours(&started.asked_by) => {
                let name = event.task.map(|task| task.to_string()).unwrap_or_default();
                self.at_work = event.project.clone().map(|cwd| TaskRef { cwd, name });
                self.is_teardown = started.phase == SetupPhase::Teardown;
                self.has_begun = true;
            }
            EventData::SetupOutput(output) if is_ours(&output.asked_by) => {
                output.text.lines().for_each(progress::line);
            }
            EventData::SetupEnded(ended) if is_ours(&ended.asked_by) => self.at_work = None,
            _ => {}
        }
    }
}
