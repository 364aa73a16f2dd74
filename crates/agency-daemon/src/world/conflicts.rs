//! Finds in the background which workspaces conflict, while they change.
//!
//! It scans one project at a time and uses only a small share of a processor: after a long scan it waits longer.
//! `agency-workspace` remembers earlier merges, so that work that has not changed is not merged again, and it starts no
//! process while no workspace has changed.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use agency_api::event::{ConflictsEvent, Event};
use agency_api::view::Conflict;
use agency_api::work::{Conflicts, TaskConflict};
use agency_api::{Bytes, Failure, FailureCode, method};
use agency_core::ids::{ProjectId, TaskId, TaskKey};
use agency_core::task_status::TaskStatus;
use agency_server::Reply;
use agency_store::{clock, saved_conflicts};
use agency_work::failure::AsFailure;
use agency_workspace::{ConflictScanner, ConflictWith, TakenBack, WorkspaceConflict, WorkspaceName};

use super::World;
use super::argument::MERGE_CHECKS;
use super::loop_event::LoopEvent;
use super::router::Router;

/// Changes come in bursts, and users need no fresher result.
const SCAN_DELAY: Duration = Duration::from_secs(2);

/// After a scan that took *t*, the next one waits at least this many times *t*.
const PAUSE_FACTOR: u32 = 10;

pub(super) fn register(router: &mut Router) {
    router.on_reply(method::ConflictList, World::conflicts);
}

#[derive(Default)]
pub(super) struct ConflictScans {
    projects: HashMap<ProjectId, ProjectConflicts>,
    is_scanning: bool,
}

/// The conflicts of one project.
#[derive(Default)]
struct ProjectConflicts {
    /// `None` during a scan.
    scanner: Option<ConflictScanner>,
    found: Vec<WorkspaceConflict>,
    due: Option<Duration>,
    /// The earliest time of the next scan, unless a caller asks for the conflicts.
    earliest: Duration,
    /// Callers that asked after the current scan began. They get the result of the next one.
    asking: Vec<Reply<Conflicts>>,
    /// Callers that get the result of the current scan.
    served: Vec<Reply<Conflicts>>,
}

impl ConflictScans {
    pub(super) fn deadline(&self) -> Option<Duration> {
        if self.is_scanning { None } else { self.projects.values().filter_map(|scan| scan.due).min() }
    }
}

impl World {
    /// Plans a scan, because something in the workspaces may have changed.
    pub(super) fn plan_conflict_scan(&mut self, project: &ProjectId) {
        let now = clock::now();
        let scan = self.workspaces.conflicts.projects.entry(project.clone()).or_default();
        let due = scan.earliest.max(now);
        scan.due = Some(scan.due.map_or(due, |known| known.min(due)));
    }

    /// Files also change while no agent works, so each list of tasks plans a scan.
    pub(super) fn plan_conflict_scans(&mut self, projects: &[ProjectId]) {
        for id in projects {
            if !self.live_workspaces(id).is_empty() || self.has_merged_tasks(id) {
                self.plan_conflict_scan(id);
            }
        }
    }

    /// A scan also finds merges that the user has taken back.
    fn has_merged_tasks(&self, project: &ProjectId) -> bool {
        let mut ids = self.store.project(project).into_iter().flat_map(|known| known.tasks.keys());
        ids.any(|task| self.is_merged(project, task.0))
    }

    /// Plans the first scans, a moment after the boot so that callers do not wait for them. Until then the last known
    /// conflicts are shown.
    pub(super) fn plan_first_scans(&mut self) {
        let projects = self.store.projects().map(|(id, _)| id.clone());
        let busy: Vec<ProjectId> = projects.filter(|id| !self.live_workspaces(id).is_empty()).collect();
        let later = clock::now() + SCAN_DELAY;
        for id in busy {
            let found = saved_conflicts::read(&self.context.state, &id.0);
            self.workspaces
                .conflicts
                .projects
                .insert(id, ProjectConflicts { found, due: Some(later), ..ProjectConflicts::default() });
        }
    }

    fn conflicts(&mut self, project: ProjectId, reply: Reply<Conflicts>) {
        let scan = self.workspaces.conflicts.projects.entry(project).or_default();
        scan.asking.push(reply);
        scan.due = Some(clock::now());
        self.begin_due_scan();
    }

    /// Begins the scan that is due, unless another one is running.
    pub(super) fn begin_due_scan(&mut self) {
        let now = clock::now();
        if self.workspaces.conflicts.is_scanning {
            return;
        }
        let due = self
            .workspaces
            .conflicts
            .projects
            .iter()
            .filter(|(_, scan)| scan.due.is_some_and(|due| due <= now));
        let Some(id) = due.min_by_key(|(_, scan)| scan.due).map(|(id, _)| id.clone()) else { return };
        let mut workspaces = self.live_workspaces(&id);
        let Some(project) = self.store.project(&id).map(|known| known.project.clone()) else {
            self.workspaces.conflicts.projects.remove(&id);
            return;
        };
        let Some(scan) = self.workspaces.conflicts.projects.get_mut(&id) else { return };
        scan.due = None;
        scan.served.append(&mut scan.asking);
        let mut scanner = scan.scanner.take().unwrap_or_default();
        // A caller that asks for the conflicts gets an answer of git's, and not of the clock of the file system.
        let is_asked_for = !scan.served.is_empty();
        self.workspaces.conflicts.is_scanning = true;
        let reporter = self.context.reporter.clone();
        tokio::spawn(async move {
            let begun = Instant::now();
            let scanned = tokio::task::spawn_blocking(move || {
                agency_workspace::remove_trial_worktrees(&project);
                workspaces.retain(|(name, _)| agency_workspace::workspace_path(&project, name).is_dir());
                let found = match is_asked_for {
                    true => scanner.scan(&project, &workspaces).map(Some),
                    false => scanner.scan_changes(&project, &workspaces),
                };
                let taken_back = MERGE_CHECKS.find_taken_back(&project);
                (scanner, taken_back, found.map_err(|err| err.as_failure()))
            });
            let (scanner, taken_back, found) = scanned.await.unwrap_or_else(|cause| {
                (
                    ConflictScanner::default(),
                    TakenBack::default(),
                    Err(Failure::new("the scan for conflicts crashed inside Agency (a bug)")
                        .code(FailureCode::Internal)
                        .caused_by(&cause)),
                )
            });
            let (scanner, took) = (Box::new(scanner), begun.elapsed());
            let scanned = LoopEvent::ConflictsFound { project: id, scanner, took, taken_back, found };
            reporter.report(scanned).await;
        });
    }

    pub(super) fn on_conflicts_found(
        &mut self,
        project: &ProjectId,
        scanner: ConflictScanner,
        took: Duration,
        found: Result<Option<Vec<WorkspaceConflict>>, Failure>,
    ) {
        self.workspaces.conflicts.is_scanning = false;
        let Some(scan) = self.workspaces.conflicts.projects.get_mut(project) else { return };
        scan.scanner = Some(scanner);
        scan.earliest = clock::now() + SCAN_DELAY.max(took * PAUSE_FACTOR);
        let served = std::mem::take(&mut scan.served);
        let outcome = found.map(|found| {
            // Nothing has changed since the last scan.
            let Some(found) = found else { return false };
            let is_new = scan.found != found;
            scan.found = found;
            is_new
        });
        match &outcome {
            Ok(true) => {
                self.store_conflicts(project);
                self.announce_conflicts(project);
            }
            Ok(false) => {}
            Err(failure) => {
                tracing::warn!(%project, cause = %failure, "the scan for conflicts failed")
            }
        }
        for reply in served {
            reply.send(outcome.clone().map(|_| Conflicts { conflicts: self.conflicts_in(project) }));
        }
        self.begin_due_scan();
    }

    fn store_conflicts(&self, project: &ProjectId) {
        let Some(scan) = self.workspaces.conflicts.projects.get(project) else { return };
        if let Err(cause) = saved_conflicts::write(&self.context.state, &project.0, &scan.found) {
            tracing::warn!(%project, %cause, "the conflicts cannot be stored");
        }
    }

    fn announce_conflicts(&mut self, project: &ProjectId) {
        let conflicts = self.conflicts_in(project);
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

    /// The workspaces whose work may be merged later.
    fn live_workspaces(&self, project: &ProjectId) -> Vec<(WorkspaceName, Option<String>)> {
        let Some(known) = self.store.project(project) else { return Vec::new() };
        let keys = known.tasks.keys().map(|task| TaskKey { project: project.clone(), task: *task });
        let live = keys.filter(|key| self.supervisor.status(key).is_some_and(may_be_merged_later));
        let named = live.filter_map(|key| {
            let (_, name) = self.workspace_of(&key).ok()?;
            Some((name, self.base_of(&key)))
        });
        named.collect()
    }

    pub(super) fn conflicts_in(&self, project: &ProjectId) -> Vec<TaskConflict> {
        let found = self
            .workspaces
            .conflicts
            .projects
            .get(project)
            .map(|scan| scan.found.as_slice())
            .unwrap_or_default();
        let conflicts = found.iter().filter_map(|found| {
            let (id, slug) = self.task_of_workspace(project, &found.workspace)?;
            if self.is_merged(project, id) {
                return None;
            }
            let conflict = self.conflict(project, &found.with, found)?;
            Some(TaskConflict { task: id, slug, conflict })
        });
        conflicts.collect()
    }

    /// The work of a merged task conflicts with nothing.
    fn is_merged(&self, project: &ProjectId, id: u64) -> bool {
        let key = TaskKey { project: project.clone(), task: TaskId(id) };
        self.supervisor.status(&key) == Some(TaskStatus::Merged)
    }

    /// The conflicts of a task, as the last scan found them.
    pub(super) fn conflicts_of(&self, key: &TaskKey, name: &WorkspaceName) -> Vec<Conflict> {
        let Some(scan) = self.workspaces.conflicts.projects.get(&key.project) else { return Vec::new() };
        if self.is_merged(&key.project, key.task.0) {
            return Vec::new();
        }
        let seen_from_here = |found: &WorkspaceConflict| match &found.with {
            _ if found.workspace == *name => self.conflict(&key.project, &found.with, found),
            ConflictWith::Workspace(other) if other == name => {
                self.conflict(&key.project, &ConflictWith::Workspace(found.workspace.clone()), found)
            }
            ConflictWith::Workspace(_) | ConflictWith::Base(_) => None,
        };
        scan.found.iter().filter_map(seen_from_here).collect()
    }

    /// `None` if the other task is gone, or is merged: then the conflict is with the base.
    fn conflict(
        &self,
        project: &ProjectId,
        with: &ConflictWith,
        found: &WorkspaceConflict,
    ) -> Option<Conflict> {
        let files = found.files.iter().map(|file| Bytes::from(file.as_path())).collect();
        match with {
            ConflictWith::Base(base) => Some(Conflict { with: base.clone(), task: None, files }),
            ConflictWith::Workspace(other) => {
                let (id, _) =
                    self.task_of_workspace(project, other).filter(|(id, _)| !self.is_merged(project, *id))?;
                Some(Conflict { with: other.to_string(), task: Some(id), files })
            }
        }
    }

    fn task_of_workspace(&self, project: &ProjectId, name: &WorkspaceName) -> Option<(u64, String)> {
        let id = name.task_id().parse().ok()?;
        let task = self.store.task(&TaskKey { project: project.clone(), task: TaskId(id) })?;
        Some((id, task.name.slug.as_str().to_owned()))
    }
}

fn may_be_merged_later(status: TaskStatus) -> bool {
    match status {
        TaskStatus::Running
        | TaskStatus::Idle
        | TaskStatus::Stopped
        | TaskStatus::Completed
        | TaskStatus::Reviewed => true,
        TaskStatus::Draft | TaskStatus::Failed | TaskStatus::Merged => false,
    }
}
