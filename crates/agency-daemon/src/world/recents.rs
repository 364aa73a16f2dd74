//! `desk.recent`: everything that happened since a time, in short.
//!
//! Not here: what counts (`agency_api::recent_events`).

use agency_api::recent::{Recent, RecentParams};
use agency_api::recent_events::summarize;
use agency_api::{Failure, FailureCode, method};
use agency_core::ids::ProjectId;
use agency_run::blocking::blocking;
use agency_store::clock;
use agency_store::event_log::EventLog;

use super::World;
use super::router::{Later, Router};

/// For a user who never looked at a task.
const A_DAY: std::time::Duration = std::time::Duration::from_secs(86_400);

pub(super) fn register(router: &mut Router) {
    router.on(method::DeskRecent, World::recent);
}

impl World {
    fn recent(&mut self, params: RecentParams) -> Result<Later<Recent>, Failure> {
        let since = match params.since {
            Some(since) if clock::at(&since).is_none() => {
                return Err(Failure::new(format!("`{since}` is not a time of RFC 3339"))
                    .code(FailureCode::InvalidArgument));
            }
            Some(since) => since,
            None => self.last_look(),
        };
        let projects: Vec<ProjectId> = self.store.projects().map(|(id, _)| id.clone()).collect();
        let tasks = self.listing_of(&projects, false)?.tasks;
        let conflicts = projects.iter().flat_map(|id| self.project_conflicts(id)).collect();
        let log = EventLog::of(&self.context.state);
        Ok(Later::new(blocking(move || {
            let events = log.all().map_err(|cause| {
                Failure::new("cannot read what happened before").code(FailureCode::IoError).caused_by(&cause)
            })?;
            let is_recent = |time: &str| !clock::is_before(time, &since);
            let events: Vec<_> = events.into_iter().map(|event| (is_recent(&event.time), event)).collect();
            Ok(summarize(since.clone(), &events, &tasks, conflicts))
        })))
    }

    /// When a user last looked at a task of any project.
    fn last_look(&self) -> String {
        let looks = self.workspaces.records.all().filter_map(|(_, record)| record.looked_at.clone());
        // The machine may have started again since, so the journals' clock does not order them.
        let last = looks.max_by_key(|look| look.parse::<jiff::Timestamp>().ok());
        last.unwrap_or_else(|| clock::timestamp_before(A_DAY))
    }
}
