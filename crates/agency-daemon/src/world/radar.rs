//! Which workspaces would collide, found out in the background while they change.
//!
//! One look at a time, and never more than a small share of a processor: a look that took long makes the next one
//! wait. What did not change is not merged again: `agency-workspace` remembers.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use agency_api::event::{ConflictsEvent, Event};
use agency_api::view::Conflict;
use agency_api::work::{Colliding, Conflicts};
use agency_api::{Bytes, Failure, method};
use agency_core::ids::{ProjectId, TaskId, TaskKey};
use agency_core::task_status::TaskStatus;
use agency_store::{clock, sighting};
use agency_workspace::{ConflictScanner, ConflictWith, WorkspaceConflict, WorkspaceName};

use super::World;
use crate::loop_event::LoopEvent;
use crate::reply::Reply;
use crate::router::Router;

/// Changes come in bursts, and a second later is soon enough.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// So many times as long as the last look took, nobody looks again.
const REST: u32 = 10;

pub(super) fn register(router: &mut Router) {
    router.on_reply(method::ConflictList, World::conflicts);
}

#[derive(Default)]
pub(super) struct Radars {
    sights: HashMap<ProjectId, Sight>,
    looking: bool,
}

/// What is known of one project.
#[derive(Default)]
struct Sight {
    /// Away while somebody looks.
    radar: Option<ConflictScanner>,
    found: Vec<WorkspaceConflict>,
    due: Option<Duration>,
    /// No earlier, unless somebody asks.
    earliest: Duration,
    /// Those who ask get what a look finds that begins after they asked.
    asking: Vec<Reply<Conflicts>>,
    served: Vec<Reply<Conflicts>>,
}

impl Radars {
    pub(super) fn deadline(&self) -> Option<Duration> {
        if self.looking { None } else { self.sights.values().filter_map(|sight| sight.due).min() }
    }
}

impl World {
    /// Something in its workspaces may have changed.
    pub(super) fn look_at(&mut self, project: &ProjectId) {
        let now = clock::now();
        let sight = self.radars.sights.entry(project.clone()).or_default();
        let due = sight.earliest.max(now);
        sight.due = Some(sight.due.map_or(due, |known| known.min(due)));
    }

    /// Files also change while no agent does anything: whoever asks for the tasks has them looked at.
    pub(super) fn look_for_whoever_asks(&mut self, projects: &[ProjectId]) {
        for id in projects {
            if !self.live_workspaces(id).is_empty() {
                self.look_at(id);
            }
        }
    }

    /// After the boot, when those who wait for us have been served. Until then, what was seen last is shown.
    pub(super) fn look_around(&mut self) {
        let projects = self.store.projects().map(|(id, _)| id.clone());
        let busy: Vec<ProjectId> = projects.filter(|id| !self.live_workspaces(id).is_empty()).collect();
        let later = clock::now() + LOOK_EVERY;
        for id in busy {
            let found = sighting::read(&self.ground.state, &id.0);
            self.radars.sights.insert(id, Sight { found, due: Some(later), ..Sight::default() });
        }
    }

    fn conflicts(&mut self, project: ProjectId, reply: Reply<Conflicts>) {
        let sight = self.radars.sights.entry(project).or_default();
        sight.asking.push(reply);
        sight.due = Some(clock::now());
        self.look_when_due();
    }

    /// Begins the look that is due, if nobody looks.
    pub(super) fn look_when_due(&mut self) {
        let now = clock::now();
        if self.radars.looking {
            return;
        }
        let due = self.radars.sights.iter().filter(|(_, sight)| sight.due.is_some_and(|due| due <= now));
        let Some(id) = due.min_by_key(|(_, sight)| sight.due).map(|(id, _)| id.clone()) else { return };
        let mut workspaces = self.live_workspaces(&id);
        let Some(project) = self.store.project(&id).map(|known| known.project.clone()) else {
            self.radars.sights.remove(&id);
            return;
        };
        let Some(sight) = self.radars.sights.get_mut(&id) else { return };
        sight.due = None;
        sight.served.append(&mut sight.asking);
        let mut radar = sight.radar.take().unwrap_or_default();
        self.radars.looking = true;
        let reporter = self.ground.reporter.clone();
        tokio::spawn(async move {
            let begun = Instant::now();
            let looked = tokio::task::spawn_blocking(move || {
                workspaces.retain(|(name, _)| agency_workspace::workspace_path(&project, name).is_dir());
                let found =
                    radar.scan(&project, &workspaces).map_err(|err| Failure::from_error(&err, err.hint()));
                (radar, found)
            });
            let (radar, found) = looked.await.unwrap_or_else(|cause| {
                (
                    ConflictScanner::default(),
                    Err(Failure::new("the look for collisions failed badly").caused_by(&cause)),
                )
            });
            let (radar, took) = (Box::new(radar), begun.elapsed());
            reporter.report(LoopEvent::CollisionsFound { project: id, radar, took, found }).await;
        });
    }

    pub(super) fn on_collisions_found(
        &mut self,
        project: &ProjectId,
        radar: ConflictScanner,
        took: Duration,
        found: Result<Vec<WorkspaceConflict>, Failure>,
    ) {
        self.radars.looking = false;
        let Some(sight) = self.radars.sights.get_mut(project) else { return };
        sight.radar = Some(radar);
        sight.earliest = clock::now() + LOOK_EVERY.max(took * REST);
        let served = std::mem::take(&mut sight.served);
        let outcome = found.map(|found| {
            let is_new = sight.found != found;
            sight.found = found;
            is_new
        });
        match &outcome {
            Ok(true) => {
                self.keep_sighting(project);
                self.announce_conflicts(project);
            }
            Ok(false) => {}
            Err(failure) => {
                tracing::warn!(%project, cause = %failure, "nobody knows which workspaces collide")
            }
        }
        for reply in served {
            reply.send(outcome.clone().map(|_| Conflicts { conflicts: self.colliding(project) }));
        }
        self.look_when_due();
    }

    fn keep_sighting(&self, project: &ProjectId) {
        let Some(sight) = self.radars.sights.get(project) else { return };
        if let Err(cause) = sighting::write(&self.ground.state, &project.0, &sight.found) {
            tracing::warn!(%project, %cause, "which workspaces collide is not kept");
        }
    }

    fn announce_conflicts(&mut self, project: &ProjectId) {
        let conflicts = self.colliding(project);
        let root = self.store.project(project).map(|known| Bytes::from(known.root()));
        self.announce_event(Event {
            seq: 0,
            time: clock::timestamp_of(clock::now()),
            project: root,
            task: None,
            agent: None,
            run: None,
            data: ConflictsEvent { conflicts }.into(),
        });
    }

    /// Those whose work may be merged one day.
    fn live_workspaces(&self, project: &ProjectId) -> Vec<(WorkspaceName, Option<String>)> {
        let Some(known) = self.store.project(project) else { return Vec::new() };
        let keys = known.tasks.keys().map(|task| TaskKey { project: project.clone(), task: *task });
        let live = keys.filter(|key| self.supervisor.status(key).is_some_and(may_land_one_day));
        let named = live.filter_map(|key| {
            let (_, name) = self.workspace_of(&key).ok()?;
            Some((name, self.base_of(&key)))
        });
        named.collect()
    }

    fn colliding(&self, project: &ProjectId) -> Vec<Colliding> {
        let found = self.radars.sights.get(project).map(|sight| sight.found.as_slice()).unwrap_or_default();
        let colliding = found.iter().filter_map(|collision| {
            let (id, slug) = self.named(project, &collision.workspace)?;
            if self.is_merged(project, id) {
                return None;
            }
            let conflict = self.conflict(project, &collision.with, collision)?;
            Some(Colliding { task: id, slug, conflict })
        });
        colliding.collect()
    }

    /// Its work has arrived, and collides with nothing.
    fn is_merged(&self, project: &ProjectId, id: u64) -> bool {
        let key = TaskKey { project: project.clone(), task: TaskId(id) };
        self.supervisor.status(&key) == Some(TaskStatus::Merged)
    }

    /// ConflictWith what a task's work collides, as far as it was looked at.
    pub(super) fn conflicts_of(&self, key: &TaskKey, name: &WorkspaceName) -> Vec<Conflict> {
        let Some(sight) = self.radars.sights.get(&key.project) else { return Vec::new() };
        if self.is_merged(&key.project, key.task.0) {
            return Vec::new();
        }
        let seen_from_here = |collision: &WorkspaceConflict| match &collision.with {
            _ if collision.workspace == *name => self.conflict(&key.project, &collision.with, collision),
            ConflictWith::Workspace(other) if other == name => {
                self.conflict(&key.project, &ConflictWith::Workspace(collision.workspace.clone()), collision)
            }
            ConflictWith::Workspace(_) | ConflictWith::Base(_) => None,
        };
        sight.found.iter().filter_map(seen_from_here).collect()
    }

    /// None with a task that has gone since, or is merged: then it is the base's.
    fn conflict(
        &self,
        project: &ProjectId,
        with: &ConflictWith,
        collision: &WorkspaceConflict,
    ) -> Option<Conflict> {
        let files = collision.files.iter().map(|file| Bytes::from(file.as_path())).collect();
        match with {
            ConflictWith::Base(base) => Some(Conflict { with: base.clone(), task: None, files }),
            ConflictWith::Workspace(other) => {
                let (id, _) = self.named(project, other).filter(|(id, _)| !self.is_merged(project, *id))?;
                Some(Conflict { with: other.to_string(), task: Some(id), files })
            }
        }
    }

    fn named(&self, project: &ProjectId, name: &WorkspaceName) -> Option<(u64, String)> {
        let id = name.task_id().parse().ok()?;
        let task = self.store.task(&TaskKey { project: project.clone(), task: TaskId(id) })?;
        Some((id, task.name.slug.as_str().to_owned()))
    }
}

fn may_land_one_day(status: TaskStatus) -> bool {
    match status {
        TaskStatus::Running
        | TaskStatus::Idle
        | TaskStatus::Stopped
        | TaskStatus::Completed
        | TaskStatus::Reviewed => true,
        TaskStatus::Draft | TaskStatus::Failed | TaskStatus::Merged => false,
    }
}
