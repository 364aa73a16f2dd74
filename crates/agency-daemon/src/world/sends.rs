//! Texts for agents: the daemon sends them at once, or queues them until the agent is at its prompt.

use std::time::Duration;

use agency_api::chat::Image;
use agency_api::event::{DroppedEvent, ErrorEvent, QueuedEvent, SentEvent};
use agency_api::method::{
    self, Queue, QueueDropParams, QueueListParams, Queued, Receipt, ReceiptKind, TaskSendParams,
};
use agency_api::{Bytes, Failure, FailureCode};
use agency_core::agent_state::AgentState;
use agency_core::evidence::Why;
use agency_core::ids::TaskKey;
use agency_core::supervisor::Operation;
use agency_driver::sending::SendOrder;
use agency_run::command::{RunCommand, SendRequest};
use agency_run::handle::RunCommands;
use agency_server::Argument;
use agency_store::prompt_queue::{DeliveryStep, QueuedMessage};
use agency_terminal::keys::Keystroke;
use tokio::sync::oneshot;

use super::argument::open_task;
use super::loop_event::{LoopEvent, NamedTask};
use super::router::{Later, Router};
use super::runs::is_conversation;
use super::{LiveRun, World};

/// An agent that does not read fills the buffer of its terminal, and a stopped keeper takes no bytes. After this time
/// the daemon gives up. Waiting for a prompt, for the text at the prompt and for proof takes less.
const TAKEN_WITHIN: Duration = Duration::from_secs(15);

pub(super) fn register(router: &mut Router) {
    router.on(method::TaskSend, World::send);
    router.on(method::QueueList, World::queue_list);
    router.on(method::QueueDrop, World::queue_drop);
}

/// The task whose queue is meant; all tasks if it is `None`.
impl Argument<World, QueueListParams> for Option<TaskKey> {
    type Prepared = Option<NamedTask>;

    async fn prepare(params: QueueListParams) -> Result<Option<NamedTask>, Failure> {
        match params.task {
            Some(task) => open_task(task).await.map(Some),
            None => Ok(None),
        }
    }

    fn resolve(world: &mut World, task: Option<NamedTask>) -> Result<Option<TaskKey>, Failure> {
        task.map(|task| world.find(task)).transpose()
    }
}

impl World {
    fn send(&mut self, (key, params): (TaskKey, TaskSendParams)) -> Result<Later<Receipt>, Failure> {
        let plan_send = self.plan_send(&key, params)?;
        Ok(Later::new(async move {
            match plan_send {
                SendPlan::Send(commands, what, images) => send_to_run(commands, what, images).await,
                SendPlan::Held(receipt) => Ok(receipt),
            }
        }))
    }

    fn plan_send(&mut self, key: &TaskKey, params: TaskSendParams) -> Result<SendPlan, Failure> {
        if !params.images.is_empty() {
            return self.plan_images(key, params);
        }
        if params.queue {
            return Ok(SendPlan::Held(self.queue_text(key, params.text)?));
        }
        let live = self.live_run(key)?;
        let commands = live.handle.commands.clone();
        let (is_message, is_at_prompt) = (params.keys.is_empty() && params.enter, is_at_prompt(live));
        // An ACP agent takes one message at a time. The next one waits in the queue, where it cannot get lost.
        let is_busy = live.meta.acp.is_some() && !is_at_prompt;
        let will_be_sent = is_at_prompt && self.must_hold_texts(key);
        if is_message && (is_busy || will_be_sent) {
            return Ok(SendPlan::Held(self.queue_text(key, params.text)?));
        }
        self.may(key, Operation::Send)?;
        let what = match params.keys.as_slice() {
            [] => SendOrder::Text { text: params.text.0, enter: params.enter, anyway: params.anyway },
            keys => {
                let strokes: Result<_, _> = keys.iter().map(|name| Keystroke::parse(name)).collect();
                SendOrder::Keys(
                    strokes
                        .map_err(|err| Failure::new(err.to_string()).code(FailureCode::InvalidArgument))?,
                )
            }
        };
        Ok(SendPlan::Send(commands, what, Vec::new()))
    }

    /// A message with images goes to an agent with a conversation, at once: the queue holds texts only.
    fn plan_images(&mut self, key: &TaskKey, params: TaskSendParams) -> Result<SendPlan, Failure> {
        let live = self.live_run(key)?;
        if !is_conversation(&live.meta) {
            return Err(Failure::new("images need an agent with a conversation")
                .code(FailureCode::Unsupported)
                .because("the agent runs in a terminal, which takes only text")
                .hint("name the file in the message: an agent can often read it itself"));
        }
        if params.queue || self.must_hold_texts(key) || (live.meta.acp.is_some() && !is_at_prompt(live)) {
            return Err(Failure::new("the message was not sent")
                .code(FailureCode::NotDelivered)
                .because("the agent is at work, and a message with images cannot wait in the queue")
                .hint(format!("send it when the agent has finished: agency wait {}", key.task)));
        }
        let commands = live.handle.commands.clone();
        self.may(key, Operation::Send)?;
        let what = SendOrder::Text { text: params.text.0, enter: true, anyway: params.anyway };
        Ok(SendPlan::Send(commands, what, params.images))
    }

    pub(super) fn queue_text(&mut self, key: &TaskKey, text: Bytes) -> Result<Receipt, Failure> {
        let bytes = text.0.len() as u64;
        let id = self.queue.push(key, text).map_err(|err| {
            Failure::new("cannot queue the message").code(FailureCode::IoError).caused_by(&err)
        })?;
        let before = self.queue.of(key).count() - 1;
        self.announce(Some(key), None, QueuedEvent { id, bytes });
        self.deliver_next(key);
        let why = match before {
            _ if self.live_run(key).is_err() => {
                format!("number {id}; its agent is not running: agency start {}", key.task)
            }
            _ if self.must_hold_texts(key) => {
                format!("number {id}; its files are being changed, and it is sent after that")
            }
            0 => format!("number {id}, next at its prompt"),
            1 => format!("number {id}, behind another"),
            many => format!("number {id}, behind {many} others"),
        };
        Ok(Receipt { receipt: ReceiptKind::Queued, bytes, why: Some(why), screen: None })
    }

    /// Sends queued texts after the boot: an agent that reached its prompt while no daemon ran reports no further change.
    pub(super) fn deliver_queued_texts(&mut self) {
        let mut keys: Vec<TaskKey> = self.queue.all().map(QueuedMessage::key).collect();
        keys.dedup();
        keys.iter().for_each(|key| self.deliver_next(key));
    }

    /// Sends the next queued text, if the agent is at its prompt.
    pub(super) fn deliver_next(&mut self, key: &TaskKey) {
        if self.may(key, Operation::Send).is_err() {
            return;
        }
        let Ok(live) = self.live_run(key) else { return };
        // Not while the reason of the wait is unknown: the agent may show an editor, which would take the text.
        let Some(waiting) = self.queue.next(key).filter(|_| is_at_prompt(live)).cloned() else { return };
        let commands = live.handle.commands.clone();
        let reporter = self.context.reporter.clone();
        // Recorded before the text is sent: if the daemon dies after this line, the next one knows that it may have
        // been sent.
        if let Err(cause) = self.queue.set(waiting.id, DeliveryStep::Leaving) {
            return tracing::warn!(task = %key, %cause, "a message stays in the queue");
        }
        let (key, id) = (key.clone(), waiting.id);
        tokio::spawn(async move {
            let what = SendOrder::Text { text: waiting.text.0, enter: true, anyway: false };
            let outcome = send_to_run(commands, what, Vec::new()).await;
            reporter.report(LoopEvent::TextSent { key, id, outcome }).await;
        });
    }

    pub(super) fn on_text_sent(&mut self, key: &TaskKey, id: u64, outcome: Result<Receipt, Failure>) {
        let sent = match &outcome {
            Ok(Receipt { receipt, bytes, why, .. }) => {
                SentEvent { id, receipt: *receipt, bytes: Some(*bytes), why: why.clone() }
            }
            Err(failure) => SentEvent {
                id,
                receipt: ReceiptKind::Refused,
                bytes: None,
                why: Some(failure.message.clone()),
            },
        };
        let is_typed = outcome.as_ref().is_ok_and(|receipt| receipt.receipt == ReceiptKind::Typed);
        let stays = match is_typed && self.is_at_work_on_message(key) {
            true => None,
            false => step_after(&outcome),
        };
        let kept = match stays {
            None => self.queue.take(|waiting| waiting.id == id).map(drop),
            Some(step) => self.queue.set(id, step),
        };
        if let Err(cause) = kept {
            tracing::warn!(task = %key, %cause, "cannot write the queue of messages");
        }
        self.announce(Some(key), None, sent);
        match stays {
            None => self.deliver_next(key),
            Some(_) if self.live_run(key).is_err() => self.announce_unsent_texts(key),
            Some(_) => {}
        }
    }

    /// Whether a turn is in progress: the agent has the message, and only thinks for long before it says something.
    fn is_at_work_on_message(&self, key: &TaskKey) -> bool {
        let live = self.live_run(key);
        live.is_ok_and(|live| is_conversation(&live.meta) && live.standing.state == AgentState::Running)
    }

    /// Tells the user that the agent ended while texts for it were queued. Does not quote them: events and notices may
    /// leave this machine.
    pub(super) fn announce_unsent_texts(&mut self, key: &TaskKey) {
        let is_there = |waiting: &&QueuedMessage| waiting.step != DeliveryStep::Leaving;
        let Some(first) = self.queue.of(key).find(is_there) else { return };
        let number = first.id;
        let (message, cause) = match first.step {
            DeliveryStep::Uncertain => (
                format!("the agent ended, and it is not known whether it took the queued message {number}"),
                format!("it is kept: agency queue {}", key.task),
            ),
            DeliveryStep::Held | DeliveryStep::Leaving => (
                format!("the agent ended before it took the queued message {number}"),
                format!("it is kept, and sent when the agent is started: agency start {}", key.task),
            ),
        };
        self.append_error(key, &message, &cause);
        self.announce(Some(key), None, ErrorEvent::new(message, cause));
    }

    pub(super) fn queue_list(&mut self, key: Option<TaskKey>) -> Queue {
        let is_meant = |waiting: &&QueuedMessage| key.as_ref().is_none_or(|key| waiting.key() == *key);
        Queue {
            queued: self
                .queue
                .all()
                .filter(is_meant)
                .filter_map(|waiting| self.queued_view(waiting))
                .collect(),
        }
    }

    fn queue_drop(&mut self, (key, params): (TaskKey, QueueDropParams)) -> Result<Queue, Failure> {
        let id = params.id;
        let is_meant = |waiting: &QueuedMessage| {
            waiting.key() == key
                && waiting.step != DeliveryStep::Leaving
                && id.is_none_or(|id| waiting.id == id)
        };
        let taken = self.queue.take(is_meant);
        let taken = taken.map_err(|err| {
            Failure::new("the queue cannot be written").code(FailureCode::IoError).caused_by(&err)
        })?;
        if let (true, Some(id)) = (taken.is_empty(), id) {
            return Err(Failure::new(format!("task {} has no queued message {id}", key.task))
                .code(FailureCode::NotFound)
                .because("it was sent, or it never existed")
                .hint(format!("agency queue {}", key.task)));
        }
        for waiting in &taken {
            self.announce(Some(&key), None, DroppedEvent { id: waiting.id });
        }
        Ok(Queue { queued: taken.iter().filter_map(|waiting| self.queued_view(waiting)).collect() })
    }

    /// `None` if the task is gone.
    fn queued_view(&self, waiting: &QueuedMessage) -> Option<Queued> {
        let task = self.view(&waiting.key()).ok()?;
        Some(Queued {
            id: waiting.id,
            task: task.id,
            slug: task.slug,
            project: task.project,
            text: waiting.text.clone(),
            time: waiting.time.clone(),
            uncertain: waiting.step == DeliveryStep::Uncertain,
            stranded: self.live_run(&waiting.key()).is_err(),
        })
    }
}

fn is_at_prompt(live: &LiveRun) -> bool {
    let waiting = live.standing.state.waiting();
    waiting.is_some_and(|(_, why)| matches!(why, Why::Prompt | Why::Finished | Why::Error))
}

enum SendPlan {
    Send(RunCommands, SendOrder, Vec<Image>),
    Held(Receipt),
}

/// The step of a text in the queue after the daemon tried to send it; `None` if it has arrived.
fn step_after(outcome: &Result<Receipt, Failure>) -> Option<DeliveryStep> {
    match outcome {
        Ok(Receipt { receipt: ReceiptKind::Refused, bytes: 0, .. }) => Some(DeliveryStep::Held),
        // The text is at the prompt, or will be once the agent reads. Typed again, it would be there twice.
        Ok(Receipt { receipt: ReceiptKind::Refused | ReceiptKind::Typed, .. }) | Err(_) => {
            Some(DeliveryStep::Uncertain)
        }
        Ok(_) => None,
    }
}

async fn send_to_run(commands: RunCommands, what: SendOrder, images: Vec<Image>) -> Result<Receipt, Failure> {
    let (receipt, sent) = oneshot::channel();
    let gone = || Failure::new("the run ended before it took the message").code(FailureCode::NotDelivered);
    let taken = async {
        let request = SendRequest { order: what, images, receipt };
        commands.send(RunCommand::Send(request)).await.map_err(|_| gone())?;
        sent.await.unwrap_or_else(|_| Err(gone()))
    };
    tokio::time::timeout(TAKEN_WITHIN, taken).await.unwrap_or_else(|_| Err(text_not_taken()))
}

fn text_not_taken() -> Failure {
    Failure::new(format!("the agent has not taken the message within {} s", TAKEN_WITHIN.as_secs()))
        .code(FailureCode::NotDelivered)
        .because("the agent is not reading, or its keeper is suspended; Agency types the message when it continues")
        .hint("`agency attach` shows what it does")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_may_have_been_typed_is_not_typed_again() {
        let receipt = |receipt, bytes| Ok(Receipt { receipt, bytes, why: None, screen: None });
        for (outcome, step) in [
            (receipt(ReceiptKind::Delivered, 9), None),
            (receipt(ReceiptKind::Typed, 9), Some(DeliveryStep::Uncertain)),
            (receipt(ReceiptKind::Refused, 0), Some(DeliveryStep::Held)),
            (receipt(ReceiptKind::Refused, 9), Some(DeliveryStep::Uncertain)),
            (Err(text_not_taken()), Some(DeliveryStep::Uncertain)),
        ] {
            assert_eq!(step_after(&outcome), step, "{outcome:?}");
        }
    }
}
