//! The facts behind the first words about a task: what a user has not looked at, and what matters more than the agent.
//!
//! Not here: the words and the order (`agency_core::headline`).

use std::time::Duration;

use agency_api::view::SetupState;
use agency_core::exit::LastRunExit;
use agency_core::headline::{Circumstance, TaskFacts};
use agency_core::ids::{RunId, TaskKey};
use agency_core::task_file::{Fields, LastExit};
use agency_core::task_status::TaskStatus;
use agency_store::clock;

use super::{LiveRun, World};

/// A user who reads a conversation looks many times a second.
const LOOK_PRECISION: Duration = Duration::from_secs(60);

impl World {
    pub(super) fn task_facts(&self, key: &TaskKey, status: TaskStatus, fields: &Fields) -> TaskFacts {
        let live = self.runs.live.values().find(|live| live.key == *key);
        let unadopted = self.runs.unadopted.as_ref().and_then(|runs| runs.get(key));
        let standing = live.map(|live| &live.standing).or(unadopted.map(|run| &run.standing));
        let unread = match (live, unadopted) {
            (Some(live), _) => live.is_unread(),
            (None, Some(found)) => match found.standing.state.waiting() {
                Some((since, _)) => self.seen_at(&found.run).is_none_or(|seen| seen < since),
                None => false,
            },
            (None, None) => self.is_end_unread(key, status, fields.last_exit.as_ref()),
        };
        TaskFacts {
            status,
            state: standing.map(|standing| standing.state),
            last_exit: fields.last_exit.as_ref().map(last_run_exit),
            unread,
            snoozed: self.snoozed_until(key, fields.last_exit.as_ref()).is_some(),
            circumstance: self.circumstance(key, fields.last_exit.is_some()),
        }
    }

    /// Whether the last run ended by itself, and no user has looked at its work since.
    fn is_end_unread(&self, key: &TaskKey, status: TaskStatus, exit: Option<&LastExit>) -> bool {
        let Some(exit) = exit.filter(|exit| status == TaskStatus::Stopped && !exit.asked) else {
            return false;
        };
        let Some(ended) = exit.at.as_deref() else { return false };
        let looked = self.workspaces.records.get(key).looked_at;
        looked.is_none_or(|looked| clock::is_before(&looked, ended))
    }

    fn circumstance(&self, key: &TaskKey, has_ended: bool) -> Option<Circumstance> {
        let record = self.workspaces.records.get(key);
        if self.store.task(key).is_some_and(|task| task.content.is_err()) {
            return Some(Circumstance::Broken);
        }
        if self.runs.elsewhere.contains_key(key) {
            return Some(Circumstance::Elsewhere);
        }
        if record.vanished.is_some() {
            return Some(Circumstance::WorkspaceMissing);
        }
        if record.merge_cut_off.is_some() {
            return Some(Circumstance::MergeInterrupted);
        }
        match self.setup_view(key)? {
            SetupState::Running => Some(Circumstance::SettingUp),
            SetupState::Failed => Some(Circumstance::SetupFailed),
            SetupState::Pending if !has_ended => Some(Circumstance::NotSetUp),
            SetupState::Pending | SetupState::Skipped | SetupState::Done => None,
        }
    }

    /// When a user last looked at a run, as an earlier daemon may have written it down.
    pub(super) fn seen_at(&self, run: &RunId) -> Option<Duration> {
        let seen = std::fs::read_to_string(self.context.state.run(&run.0).seen_file()).ok()?;
        seen.parse().ok().map(Duration::from_nanos)
    }

    /// A user looks at a task. Writes that down at most once a minute.
    pub(super) fn record_minute_of_look(&mut self, key: &TaskKey) {
        let looked = self.workspaces.records.get(key).looked_at;
        let is_recent = looked.as_deref().and_then(clock::age).is_some_and(|age| age < LOOK_PRECISION);
        if !is_recent {
            self.write_look(key);
        }
    }

    fn write_look(&mut self, key: &TaskKey) {
        let now = Some(clock::timestamp());
        if let Err(cause) = self.workspaces.records.change(key, |record| record.looked_at = now) {
            tracing::warn!(task = %key, %cause, "cannot record that a user looked at a task");
        }
    }

    /// A user looks at the work of a task whose last run has ended. Writes that down if it is news.
    pub(super) fn record_look(&mut self, key: &TaskKey) {
        let fields = self.store.last_content(key).map(|file| file.fields().clone()).unwrap_or_default();
        let status = self.supervisor.status(key).unwrap_or(fields.status);
        let is_live = self.supervisor.live_run(key).is_some();
        if is_live || !self.is_end_unread(key, status, fields.last_exit.as_ref()) {
            return;
        }
        self.write_look(key);
    }
}

impl LiveRun {
    /// The agent waits, and no user has looked at it since.
    fn is_unread(&self) -> bool {
        self.standing.state.waiting().is_some() && !self.is_seen()
    }
}

pub(super) fn last_run_exit(exit: &LastExit) -> LastRunExit {
    LastRunExit { code: exit.code, asked: exit.asked }
}
