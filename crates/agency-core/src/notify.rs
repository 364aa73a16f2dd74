//! Decides when a person is told that agents need them: once for each real change, never in a storm.
//!
//! Not here: what an agent waits for (it is told), and how people are reached (the daemon's business).
//!
//! Invariant: what somebody looks at is not told, nor what was so already when it was found.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Time;
use crate::ids::{RunId, TaskKey};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A change that is taken back within this time was a flicker.
    pub settle: Duration,
    /// Changes of this long are told together. At least as long as `settle`.
    pub gather: Duration,
    /// The shortest time between two notices about one task.
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

/// Why a person is told about a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub run: RunId,
    pub occasion: Occasion,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// It waits for the user; `why` is a word for programs, `detail` a line for people. Both may be empty.
    NeedsInput { why: String, detail: String },
    /// It ended, and nobody had asked for that.
    Exited { detail: String },
}

impl Occasion {
    /// One word, as `notify.on` has them.
    pub fn why(&self) -> &str {
        match self {
            Occasion::NeedsInput { why, .. } => why,
            Occasion::Exited { .. } => "exited",
        }
    }

    pub fn detail(&self) -> &str {
        match self {
            Occasion::NeedsInput { detail, .. } | Occasion::Exited { detail } => detail,
        }
    }

    /// Something else than what was told before, not another word for it.
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

/// That an agent is done, sits at its prompt or is silent is all one: it rests.
fn is_pressing(why: &str) -> bool {
    matches!(why, "permission" | "question" | "error")
}

/// What is told in one go, the longest wait first. Never empty.
pub type Notice = Vec<(TaskKey, Cause)>;

#[derive(Clone, Debug, Default)]
pub struct Notifier {
    timing: Timing,
    tasks: BTreeMap<TaskKey, Watched>,
}

#[derive(Clone, Debug, Default)]
struct Watched {
    viewed: bool,
    /// Found, but its state was not known then: the next one is as good as found.
    unread: bool,
    wait: Option<Wait>,
    last_told: Option<Time>,
}

#[derive(Clone, Debug)]
struct Wait {
    cause: Cause,
    since: Time,
    told: bool,
}

impl Notifier {
    pub fn new(timing: Timing) -> Notifier {
        Notifier { timing, tasks: BTreeMap::new() }
    }

    /// A run that was there before us, in this state: whoever should know of it does.
    pub fn found(&mut self, key: &TaskKey, cause: Option<Cause>) {
        let wait = cause.map(|cause| Wait { cause, since: Time::ZERO, told: true });
        let last_told = self.watched(key).last_told;
        self.tasks.insert(key.clone(), Watched { wait, last_told, ..Watched::default() });
    }

    /// A run that was found without its state can be read now.
    pub fn read_late(&mut self, key: &TaskKey) {
        self.watched(key).unread = true;
    }

    /// The agent needs somebody, or has ended unasked.
    pub fn needs(&mut self, key: &TaskKey, cause: Cause, now: Time) {
        let watched = self.watched(key);
        let unread = std::mem::take(&mut watched.unread);
        match &mut watched.wait {
            Some(wait) if !wait.told || !cause.occasion.is_news_after(&wait.cause.occasion) => {
                wait.cause = cause;
            }
            wait => *wait = Some(Wait { cause, since: now, told: unread || watched.viewed }),
        }
    }

    /// The agent works or begins anew.
    pub fn needs_nobody(&mut self, key: &TaskKey) {
        let watched = self.watched(key);
        watched.wait = None;
        watched.unread = false;
    }

    /// The run is over, and with it what it waited for and the stream of every viewer. That it ended unasked is
    /// told before.
    pub fn over(&mut self, key: &TaskKey) {
        let watched = self.watched(key);
        watched.viewed = false;
        watched.wait.take_if(|wait| matches!(wait.cause.occasion, Occasion::NeedsInput { .. }));
    }

    /// What is so until now is known to whoever should know it.
    pub fn all_known(&mut self) {
        for wait in self.tasks.values_mut().filter_map(|watched| watched.wait.as_mut()) {
            wait.told = true;
        }
    }

    /// Whether somebody looks at it now. What is on a screen needs no telling, then or later.
    pub fn viewed(&mut self, key: &TaskKey, viewed: bool) {
        let watched = self.watched(key);
        watched.viewed = viewed;
        if let (true, Some(wait)) = (viewed, &mut watched.wait) {
            wait.told = true;
        }
    }

    /// The task is gone.
    pub fn forget(&mut self, key: &TaskKey) {
        self.tasks.remove(key);
    }

    /// When `due` is worth calling.
    pub fn deadline(&self) -> Option<Time> {
        let starts = self.tasks.values().filter_map(|watched| watched.starts(self.timing));
        starts.min().map(|start| start.saturating_add(self.timing.gather))
    }

    /// What is to be told now.
    pub fn due(&mut self, now: Time) -> Option<Notice> {
        if self.deadline().is_none_or(|deadline| now < deadline) {
            return None;
        }
        let timing = self.timing;
        let ripe = self.tasks.iter_mut().filter(|(_, watched)| watched.is_ripe(timing, now));
        let mut told: Vec<_> = ripe.filter_map(|(key, watched)| Some((watched.tell(now)?, key))).collect();
        told.sort_by_key(|((since, _), _)| *since);
        let notice: Notice = told.into_iter().map(|((_, cause), key)| (key.clone(), cause)).collect();
        (!notice.is_empty()).then_some(notice)
    }

    fn watched(&mut self, key: &TaskKey) -> &mut Watched {
        self.tasks.entry(key.clone()).or_default()
    }
}

impl Watched {
    /// From when on it may be told, if it is to be told at all.
    fn starts(&self, timing: Timing) -> Option<Time> {
        let wait = self.wait.as_ref().filter(|wait| !wait.told)?;
        let again = self.last_told.map(|told| told.saturating_add(timing.apart));
        Some(wait.since.max(again.unwrap_or_default()))
    }

    fn is_ripe(&self, timing: Timing, now: Time) -> bool {
        let settled = self.wait.as_ref().is_some_and(|wait| wait.since.saturating_add(timing.settle) <= now);
        settled && self.starts(timing).is_some_and(|start| start <= now)
    }

    fn tell(&mut self, now: Time) -> Option<(Time, Cause)> {
        let wait = self.wait.as_mut()?;
        wait.told = true;
        self.last_told = Some(now);
        Some((wait.since, wait.cause.clone()))
    }
}

#[cfg(test)]
mod tests;
