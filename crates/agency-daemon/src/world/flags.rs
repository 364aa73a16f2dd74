//! The user's flags of a task: pinned, put off until a time, and when the user last looked at it.
//!
//! They are in the record of the task's workspace, which follows the task to the trash and back.

use std::time::Duration;

use agency_api::method::{self, TaskPinParams, TaskSnoozeParams};
use agency_api::{Failure, FailureCode, view};
use agency_core::ids::TaskKey;
use agency_core::snooze::Snooze;
use agency_core::task_file::LastExit;
use agency_store::clock;
use agency_store::workspace_record::WorkspaceRecord;

use super::World;
use super::router::Router;

pub(super) fn register(router: &mut Router) {
    router.on(method::TaskPin, World::pin);
    router.on(method::TaskSnooze, World::snooze);
}

impl World {
    fn pin(&mut self, (key, params): (TaskKey, TaskPinParams)) -> Result<view::Task, Failure> {
        self.change_flags(&key, |record| record.pinned = params.pinned)?;
        self.view(&key)
    }

    fn snooze(&mut self, (key, params): (TaskKey, TaskSnoozeParams)) -> Result<view::Task, Failure> {
        if let Some(until) = &params.until {
            let is_later = clock::is_before(&clock::timestamp(), until);
            if !is_later {
                return Err(Failure::new(format!("`{until}` is not a time in the future"))
                    .code(FailureCode::InvalidArgument)
                    .hint("give a later time, or a span: agency snooze TASK --for 2h"));
            }
        }
        let asked_at = params.until.is_some().then(|| clock::timestamp_of(clock::now()));
        self.change_flags(&key, |record| {
            record.snoozed_until = params.until;
            record.snoozed_at = asked_at;
        })?;
        self.view(&key)
    }

    fn change_flags(
        &mut self,
        key: &TaskKey,
        change: impl FnOnce(&mut WorkspaceRecord),
    ) -> Result<(), Failure> {
        self.workspaces.records.change(key, change).map_err(|cause| {
            Failure::new("the flag cannot be written").code(FailureCode::IoError).caused_by(&cause)
        })
    }

    /// Until when the task is put off; `None` if it is not, or no more.
    pub(super) fn snoozed_until(&self, key: &TaskKey, exit: Option<&LastExit>) -> Option<String> {
        let record = self.workspaces.records.get(key);
        let snooze = snooze_of(&record)?;
        let live = self.runs.live.values().find(|live| live.key == *key);
        let waits_since = live.and_then(|live| live.standing.state.waiting()).map(|(since, _)| since);
        let ended_at = || exit.filter(|exit| !exit.asked)?.at.as_deref().and_then(clock::at);
        let needed_since = if live.is_some() { waits_since } else { ended_at() };
        snooze.holds(clock::now(), needed_since).then_some(record.snoozed_until).flatten()
    }

    /// When the next task comes back that was put off.
    pub(super) fn snooze_deadline(&self) -> Option<Duration> {
        let snoozes = self.workspaces.records.all().filter_map(|(_, record)| snooze_of(record));
        let now = clock::now();
        snoozes.map(|snooze| snooze.until).filter(|until| *until > now).min()
    }
}

fn snooze_of(record: &WorkspaceRecord) -> Option<Snooze> {
    let asked_at = clock::at(record.snoozed_at.as_deref()?)?;
    let until = clock::at(record.snoozed_until.as_deref()?)?;
    Some(Snooze { asked_at, until })
}
