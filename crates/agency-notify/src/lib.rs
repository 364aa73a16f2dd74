//! Sends notifications to the user through the desktop, a command and a webhook.
//!
//! `agency-core` decides whether to send one. Every delivery has a time limit, their number is limited, and the
//! daemon's loop waits for none of them.

mod desktop;
mod program;
mod webhook;
pub mod words;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use agency_api::notify::{ChannelOutcome, ChannelState, Notice};
use agency_core::config::Notify;
use tokio::sync::Semaphore;

use program::Stderr;

/// Deliveries that may run at the same time. More than this means that a channel always hangs.
const MAX_PENDING: usize = 6;

/// The log repeats the same failure of a channel only after this time.
const LOG_AGAIN_AFTER: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Channel {
    Desktop,
    Command,
    Webhook,
}

const CHANNELS: [Channel; 3] = [Channel::Desktop, Channel::Command, Channel::Webhook];

impl Channel {
    fn name(self) -> &'static str {
        match self {
            Channel::Desktop => "desktop",
            Channel::Command => "command",
            Channel::Webhook => "webhook",
        }
    }
}

/// The outcome, and the target or the reason of the failure.
type Delivery = (ChannelOutcome, String);

#[derive(Clone)]
pub struct NotificationSender {
    slots: Arc<Semaphore>,
    /// The last delivery through each channel, and when the log last mentioned it.
    last: Arc<Mutex<BTreeMap<Channel, (Delivery, Instant)>>>,
}

impl Default for NotificationSender {
    fn default() -> NotificationSender {
        NotificationSender { slots: Arc::new(Semaphore::new(MAX_PENDING)), last: Arc::default() }
    }
}

impl NotificationSender {
    /// Starts the delivery through every channel that is set up, and returns at once.
    pub fn send(&self, settings: &Notify, notice: &Notice) {
        for channel in CHANNELS {
            let (sender, settings, notice) = (self.clone(), settings.clone(), notice.clone());
            tokio::spawn(async move { sender.send_through(channel, &settings, &notice).await });
        }
    }

    /// Sends through one channel after the other, and returns how each delivery went.
    pub async fn send_test(&self, settings: &Notify, notice: &Notice) -> Vec<ChannelState> {
        let mut ways = Vec::new();
        for channel in CHANNELS {
            ways.push(channel_view(channel, self.send_through(channel, settings, notice).await));
        }
        ways
    }

    /// Returns each channel: whether it is set up, and how its last delivery went.
    pub fn channel_states(&self, settings: &Notify) -> Vec<ChannelState> {
        let last = self.last();
        let of = |channel: Channel| match (find_target(channel, settings), last.get(&channel)) {
            (Ok(_), Some((sent, _))) => channel_view(channel, sent.clone()),
            (Ok(through), None) => channel_view(channel, (ChannelOutcome::Unused, through)),
            (Err(why), _) => channel_view(channel, (outcome_without_target(channel, settings), why)),
        };
        CHANNELS.into_iter().map(of).collect()
    }

    async fn send_through(&self, channel: Channel, settings: &Notify, notice: &Notice) -> Delivery {
        let through = match find_target(channel, settings) {
            Ok(through) => through,
            Err(why) => return (outcome_without_target(channel, settings), why),
        };
        let sent = match self.slots.try_acquire() {
            Ok(_slot) => deliver(channel, settings, notice).await,
            Err(_) => Err("too many notifications are still being sent".to_owned()),
        };
        let sent = match (sent, channel, settings.desktop) {
            (Ok(()), ..) => (ChannelOutcome::Sent, through),
            // The user did not ask for the desktop, so a machine without one is no failure.
            (Err(why), Channel::Desktop, None) => (ChannelOutcome::Off, format!("{through}: {why}")),
            (Err(why), ..) => (ChannelOutcome::Failed, format!("{through}: {why}")),
        };
        self.record_delivery(channel, sent.clone());
        sent
    }

    fn record_delivery(&self, channel: Channel, sent: Delivery) {
        let (now, mut last) = (Instant::now(), self.last());
        let said = last.get(&channel).filter(|(before, at)| *before == sent && now < *at + LOG_AGAIN_AFTER);
        let said = said.map(|(_, at)| *at);
        if said.is_none() && sent.0 == ChannelOutcome::Failed {
            tracing::warn!(way = channel.name(), cause = sent.1, "a notification could not be sent");
        }
        last.insert(channel, (sent, said.unwrap_or(now)));
    }

    fn last(&self) -> MutexGuard<'_, BTreeMap<Channel, (Delivery, Instant)>> {
        self.last.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn channel_view(channel: Channel, (outcome, detail): Delivery) -> ChannelState {
    ChannelState { way: channel.name().to_owned(), outcome, detail }
}

/// A channel without a target is a failure only if the user asked for it.
fn outcome_without_target(channel: Channel, settings: &Notify) -> ChannelOutcome {
    match (channel, settings.desktop) {
        (Channel::Desktop, Some(true)) => ChannelOutcome::Failed,
        _ => ChannelOutcome::Off,
    }
}

/// Returns the program or the host behind the channel, or why there is none.
fn find_target(channel: Channel, settings: &Notify) -> Result<String, String> {
    let unset = |key: &str| format!("notify.{key} is not set");
    match channel {
        Channel::Desktop if settings.desktop == Some(false) => Err("notify.desktop is false".to_owned()),
        Channel::Desktop => desktop::find_tool_name(),
        Channel::Command => match settings.command.as_deref() {
            Some([program, ..]) => Ok(words::clean(program)),
            _ => Err(unset("command")),
        },
        Channel::Webhook => settings.webhook.as_deref().map(webhook::origin).ok_or_else(|| unset("webhook")),
    }
}

async fn deliver(channel: Channel, settings: &Notify, notice: &Notice) -> Result<(), String> {
    let json = serde_json::to_vec(notice).map_err(|err| err.to_string())?;
    match (channel, &settings.command, &settings.webhook) {
        (Channel::Desktop, ..) => desktop::show(&words::title(notice), &words::body(notice)).await,
        (Channel::Command, Some(command), _) => program::run(command, &[], &json, Stderr::Dropped).await,
        (Channel::Webhook, _, Some(address)) => webhook::post(address.clone(), json).await,
        (Channel::Command, None, _) | (Channel::Webhook, _, None) => Ok(()),
    }
}
