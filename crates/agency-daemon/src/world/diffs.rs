//! `task.diff`: the changes in the workspace of a task, as callers see them.

use agency_api::{Failure, method, work};
use agency_core::ids::TaskKey;
use agency_core::task_status::TaskStatus;
use agency_run::blocking::blocking;
use agency_work::diff::DiffRequest;

use super::World;
use super::router::{Later, Router};

pub(super) fn register(router: &mut Router) {
    router.on(method::TaskDiff, World::diff);
}

impl World {
    fn diff(&mut self, (key, params): (TaskKey, work::DiffParams)) -> Result<Later<work::Diff>, Failure> {
        self.record_look(&key);
        let (request, lock) = (self.diff_request(&key, params.turn, params.stat)?, self.snapshot_lock(&key));
        Ok(Later::new(async move {
            // A turn that has just ended counts: wait until its snapshot is taken.
            let _alone = if params.turn.is_some() { Some(lock.lock().await) } else { None };
            blocking(move || request.compute()).await
        }))
    }

    pub(super) fn diff_request(
        &self,
        key: &TaskKey,
        turn: Option<u64>,
        stat: bool,
    ) -> Result<DiffRequest, Failure> {
        let (project, name) = self.workspace_of(key)?;
        let slug = self.store.task(key).map(|task| task.name.slug.as_str().to_owned()).unwrap_or_default();
        let is_final = self.supervisor.status(key) == Some(TaskStatus::Merged);
        Ok(DiffRequest { id: key.task.0, slug, project, name, base: self.base_of(key), turn, stat, is_final })
    }

    /// The branch or revision that the task's work will be merged into.
    pub(super) fn base_of(&self, key: &TaskKey) -> Option<String> {
        self.store.file(key).ok().and_then(|file| file.fields().base_branch.clone())
    }
}
