//! Decides when to notify the user that agents need them: once for each real change, never in a storm.
//!
//! Not here: what an agent waits for (the caller passes it), and the channels (the daemon sends notifications).
//!
//! Invariant: no notification for a task that a user is viewing, nor for a state that already held when the daemon started.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Time;
use crate::ids::{RunId, TaskKey};

/// How long changes are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A change that is undone within this time was a flicker.
    pub settle: Duration,
    /// Changes within this time go into one notification. At least as long as `settle`.
    pub gather: Duration,
    /// The shortest time between two notifications about one task.
    pub apart: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            settle: Duration::from_millis(700),
            gather: Duration::from_secs(2),
            apart: Duration::from_secs(10),
        }
    }
}

/// The reason for a notification about a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The run that it is about.
    pub run: RunId,
    /// The event.
    pub occasion: Occasion,
}

/// An event that a user may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The agent waits for the user.
    NeedsInput {
        /// A word for programs; may be empty.
        why: String,
        /// A line for people; may be empty.
        detail: String,
    },
    /// The agent ended without a request.
    Exited {
        /// A line for people.
        detail: String,
    },
}

impl Occasion {
    /// The word in `notify.on`.
    pub fn why(&self) -> &str {
        match self {
            Occasion::NeedsInput { why, .. } => why,
            Occasion::Exited { .. } => "exited",
        }
    }

    /// A line for people.
    pub fn detail(&self) -> &str {
        match self {
            Occasion::NeedsInput { detail, .. } | Occasion::Exited { detail } => detail,
        }
    }

    /// Whether the user must know this too, or it is only another word for the last occasion.
    fn is_news_after(&self, before: &Occasion) -> bool {
        match (before, self) {
            (Occasion::NeedsInput { why: before, .. }, Occasion::NeedsInput { why, .. }) => {
                is_pressing(why) && before != why
            }
            (Occasion::Exited { .. }, Occasion::Exited { .. }) => false,
            (Occasion::NeedsInput { .. }, Occasion::Exited { .. })
            | (Occasion::Exited { .. }, Occasion::NeedsInput { .. }) => true,
        }
    }
}

/// Whether the agent needs an answer. The other reasons (done, at its prompt, silent) all mean that it rests.
fn is_pressing(why: &str) -> bool {
    matches!(why, "permission" | "question" | "error")
}

/// The tasks of one notification, the longest wait first. Never empty.
pub type Notice = Vec<(TaskKey, Cause)>;

/// The user's knowledge of every task.
#[derive(Clone, Debug, Default)]
pub struct Notifier {
    timing: Timing,
    tasks: BTreeMap<TaskKey, Watched>,
}

#[derive(Clone, Debug, Default)]
struct Watched {
    viewed: bool,
    /// The daemon found the run without its state. Treat the next state as if it had been found with it.
    unread: bool,
    wait: Option<Wait>,
    last_notified: Option<Time>,
}

#[derive(Clone, Debug)]
struct Wait {
    cause: Cause,
    since: Time,
    /// The user knows of it: notified, or looked at the task.
    known: bool,
}

impl Notifier {
    /// A notifier that knows no task.
    pub fn new(timing: Timing) -> Notifier {
        Notifier { timing, tasks: BTreeMap::new() }
    }

    /// A run that lived before the daemon started, in this state. The user has been notified of it already.
    pub fn record_found(&mut self, key: &TaskKey, cause: Option<Cause>) {
        let wait = cause.map(|cause| Wait { cause, since: Time::ZERO, known: true });
        let last_notified = self.watched(key).last_notified;
        self.tasks.insert(key.clone(), Watched { wait, last_notified, ..Watched::default() });
    }

    /// The state of a run that was found without one will arrive now.
    pub fn expect_late_state(&mut self, key: &TaskKey) {
        self.watched(key).unread = true;
    }

    /// The agent needs the user, or has ended without a request.
    pub fn record_need(&mut self, key: &TaskKey, cause: Cause, now: Time) {
        let watched = self.watched(key);
        let unread = std::mem::take(&mut watched.unread);
        match &mut watched.wait {
            Some(wait) if !wait.known || !cause.occasion.is_news_after(&wait.cause.occasion) => {
                wait.cause = cause;
            }
            wait => *wait = Some(Wait { cause, since: now, known: unread || watched.viewed }),
        }
    }

    /// The agent works or starts again.
    pub fn clear_need(&mut self, key: &TaskKey) {
        let watched = self.watched(key);
        watched.wait = None;
        watched.unread = false;
    }

    /// The run is over: its wait and its viewers are gone. The caller reports a crash before this, with `record_need`.
    pub fn end_run(&mut self, key: &TaskKey) {
        let watched = self.watched(key);
        watched.viewed = false;
        watched.wait.take_if(|wait| matches!(wait.cause.occasion, Occasion::NeedsInput { .. }));
    }

    /// The user knows every state up to now.
    pub fn mark_all_known(&mut self) {
        for wait in self.tasks.values_mut().filter_map(|watched| watched.wait.as_mut()) {
            wait.known = true;
        }
    }

    /// Sets whether a user views the task now. A user who has seen a state needs no notification of it, then or later.
    pub fn set_viewed(&mut self, key: &TaskKey, viewed: bool) {
        let watched = self.watched(key);
        watched.viewed = viewed;
        if let (true, Some(wait)) = (viewed, &mut watched.wait) {
            wait.known = true;
        }
    }

    /// The task was removed.
    pub fn forget(&mut self, key: &TaskKey) {
        self.tasks.remove(key);
    }

    /// When to call `take_due`.
    pub fn deadline(&self) -> Option<Time> {
        let starts = self.tasks.values().filter_map(|watched| watched.starts(self.timing));
        starts.min().map(|start| start.saturating_add(self.timing.gather))
    }

    /// The notification that is due now. It counts as sent.
    pub fn take_due(&mut self, now: Time) -> Option<Notice> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return None;
        }
        let timing = self.timing;
        let ripe = self.tasks.iter_mut().filter(|(_, watched)| watched.is_ripe(timing, now));
        let mut due: Vec<_> = ripe.filter_map(|(key, watched)| Some((watched.notify(now)?, key))).collect();
        due.sort_by_key(|((since, _), _)| *since);
        let notice: Notice = due.into_iter().map(|((_, cause), key)| (key.clone(), cause)).collect();
        (!notice.is_empty()).then_some(notice)
    }

    fn watched(&mut self, key: &TaskKey) -> &mut Watched {
        self.tasks.entry(key.clone()).or_default()
    }
}

impl Watched {
    /// When a notification may be sent at the earliest, if the task needs one.
    fn starts(&self, timing: Timing) -> Option<Time> {
        let wait = self.wait.as_ref().filter(|wait| !wait.known)?;
        let again = self.last_notified.map(|last| last.saturating_add(timing.apart));
        Some(wait.since.max(again.unwrap_or_default()))
    }

    fn is_ripe(&self, timing: Timing, now: Time) -> bool {
        let settled = self.wait.as_ref().is_some_and(|wait| wait.since.saturating_add(timing.settle) <= now);
        settled && self.starts(timing).is_some_and(|start| start <= now)
    }

    fn notify(&mut self, now: Time) -> Option<(Time, Cause)> {
        let wait = self.wait.as_mut()?;
        wait.known = true;
        self.last_notified = Some(now);
        Some((wait.since, wait.cause.clone()))
    }
}

#[cfg(test)]
mod tests;
