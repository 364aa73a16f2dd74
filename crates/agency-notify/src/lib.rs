//! Tells people that agents need them: through the desktop, a command of theirs, an address they named.
//!
//! Whether something is worth telling is decided in `agency-core`. Everything here is bounded in time and number,
//! and the loop waits for none of it.

mod desktop;
mod program;
mod webhook;
pub mod words;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use agency_api::notify::{Notice, Way, WayOutcome};
use agency_core::config::Notify;
use tokio::sync::Semaphore;

use program::Complaints;

/// A way that hangs has its time; this many of them at once are a way that always hangs.
const UNDER_WAY: usize = 6;

/// The same trouble is in the log once in this time.
const SAID_AGAIN_AFTER: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Road {
    Desktop,
    Command,
    Webhook,
}

const ROADS: [Road; 3] = [Road::Desktop, Road::Command, Road::Webhook];

impl Road {
    fn name(self) -> &'static str {
        match self {
            Road::Desktop => "desktop",
            Road::Command => "command",
            Road::Webhook => "webhook",
        }
    }
}

/// How it went, and through what or why not.
type Sent = (WayOutcome, String);

#[derive(Clone)]
pub struct Herald {
    slots: Arc<Semaphore>,
    /// How the last notice fared on each road, and when that was logged.
    last: Arc<Mutex<BTreeMap<Road, (Sent, Instant)>>>,
}

impl Default for Herald {
    fn default() -> Herald {
        Herald { slots: Arc::new(Semaphore::new(UNDER_WAY)), last: Arc::default() }
    }
}

impl Herald {
    /// Sends it on its way by every road that is set up.
    pub fn tell(&self, settings: &Notify, notice: &Notice) {
        for road in ROADS {
            let (herald, settings, notice) = (self.clone(), settings.clone(), notice.clone());
            tokio::spawn(async move { herald.go(road, &settings, &notice).await });
        }
    }

    /// Tells by every road, one after the other, and says how that went.
    pub async fn test(&self, settings: &Notify, notice: &Notice) -> Vec<Way> {
        let mut ways = Vec::new();
        for road in ROADS {
            ways.push(way(road, self.go(road, settings, notice).await));
        }
        ways
    }

    /// The roads as they are set up, and how the last notice fared.
    pub fn ways(&self, settings: &Notify) -> Vec<Way> {
        let last = self.last();
        let of = |road: Road| match (standing(road, settings), last.get(&road)) {
            (Ok(_), Some((sent, _))) => way(road, sent.clone()),
            (Ok(through), None) => way(road, (WayOutcome::Unused, through)),
            (Err(why), _) => way(road, (missing(road, settings), why)),
        };
        ROADS.into_iter().map(of).collect()
    }

    async fn go(&self, road: Road, settings: &Notify, notice: &Notice) -> Sent {
        let through = match standing(road, settings) {
            Ok(through) => through,
            Err(why) => return (missing(road, settings), why),
        };
        let sent = match self.slots.try_acquire() {
            Ok(_slot) => send(road, settings, notice).await,
            Err(_) => Err("too many notices are still on their way".to_owned()),
        };
        let sent = match (sent, road, settings.desktop) {
            (Ok(()), ..) => (WayOutcome::Sent, through),
            // Nobody asked for it: a machine without a desktop is no trouble.
            (Err(why), Road::Desktop, None) => (WayOutcome::Off, format!("{through}: {why}")),
            (Err(why), ..) => (WayOutcome::Failed, format!("{through}: {why}")),
        };
        self.note(road, sent.clone());
        sent
    }

    fn note(&self, road: Road, sent: Sent) {
        let (now, mut last) = (Instant::now(), self.last());
        let said = last.get(&road).filter(|(before, at)| *before == sent && now < *at + SAID_AGAIN_AFTER);
        let said = said.map(|(_, at)| *at);
        if said.is_none() && sent.0 == WayOutcome::Failed {
            tracing::warn!(way = road.name(), cause = sent.1, "a notice could not be sent");
        }
        last.insert(road, (sent, said.unwrap_or(now)));
    }

    fn last(&self) -> MutexGuard<'_, BTreeMap<Road, (Sent, Instant)>> {
        self.last.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn way(road: Road, (outcome, detail): Sent) -> Way {
    Way { way: road.name().to_owned(), outcome, detail }
}

/// Whether a road that leads nowhere is missed.
fn missing(road: Road, settings: &Notify) -> WayOutcome {
    match (road, settings.desktop) {
        (Road::Desktop, Some(true)) => WayOutcome::Failed,
        _ => WayOutcome::Off,
    }
}

/// Through what this road leads, or why it leads nowhere.
fn standing(road: Road, settings: &Notify) -> Result<String, String> {
    let unset = |key: &str| format!("notify.{key} is not set");
    match road {
        Road::Desktop if settings.desktop == Some(false) => Err("notify.desktop is false".to_owned()),
        Road::Desktop => desktop::through(),
        Road::Command => match settings.command.as_deref() {
            Some([program, ..]) => Ok(words::clean(program)),
            _ => Err(unset("command")),
        },
        Road::Webhook => settings.webhook.as_deref().map(webhook::origin).ok_or_else(|| unset("webhook")),
    }
}

async fn send(road: Road, settings: &Notify, notice: &Notice) -> Result<(), String> {
    let json = serde_json::to_vec(notice).map_err(|err| err.to_string())?;
    match (road, &settings.command, &settings.webhook) {
        (Road::Desktop, ..) => desktop::show(&words::title(notice), &words::body(notice)).await,
        (Road::Command, Some(command), _) => program::run(command, &[], &json, Complaints::Dropped).await,
        (Road::Webhook, _, Some(address)) => webhook::post(address.clone(), json).await,
        (Road::Command, None, _) | (Road::Webhook, _, None) => Ok(()),
    }
}
