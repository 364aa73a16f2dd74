//! Tasks that are finished: `agency gc` may remove them.
//!
//! Not here: the removal itself (see `removals`).

use agency_api::trash::FinishedTasks;
use agency_api::{Failure, method};
use agency_core::ids::{ProjectId, TaskKey};
use agency_core::supervisor::Occupation;
use agency_core::task_status::TaskStatus;
use agency_run::blocking::blocking;
use agency_work::finished::Candidate;

use super::World;
use super::router::{Later, Router};

pub(super) fn register(router: &mut Router) {
    router.on(method::TaskFinished, World::finished_tasks);
}

impl World {
    /// Finds out beside the loop which tasks of a project are finished.
    fn finished_tasks(&mut self, id: ProjectId) -> Result<Later<FinishedTasks>, Failure> {
        let ids = self.store.project(&id).into_iter().flat_map(|known| known.tasks.keys().copied());
        let keys: Vec<TaskKey> = ids.map(|task| TaskKey { project: id.clone(), task }).collect();
        let candidates: Vec<Candidate> = keys.iter().filter_map(|key| self.candidate(key)).collect();
        let decide = || Ok(FinishedTasks { tasks: candidates.into_iter().map(Candidate::decide).collect() });
        Ok(Later::new(blocking(decide)))
    }

    fn candidate(&self, key: &TaskKey) -> Option<Candidate> {
        let task = self.store.task(key)?;
        let file = task.content.as_ref().map_err(|problem| format!("its file cannot be read: {problem}"));
        let status = file.map(|file| file.fields().status);
        let stays = match (&status, self.supervisor.occupation(key)) {
            (Err(why), _) => Some(why.clone()),
            (Ok(_), Occupation::Elsewhere) => Some("it runs on another host".to_owned()),
            (Ok(_), Occupation::Live) => Some("its agent is running".to_owned()),
            (Ok(_), Occupation::Orphaned) => {
                Some("a process of an earlier run is still running: agency orphans".to_owned())
            }
            (Ok(_), Occupation::Unsettled) => Some("its removal was interrupted".to_owned()),
            (Ok(_), occupation) if occupation.is_busy() => Some(format!("it is {occupation}")),
            (Ok(TaskStatus::Draft), _) => Some("it is a draft".to_owned()),
            (Ok(status @ (TaskStatus::Running | TaskStatus::Idle)), _) => {
                Some(format!("it is {}", status.as_str()))
            }
            (Ok(_), _) => self.running_programs(|shell| shell.key == *key).into_iter().next(),
        };
        Some(Candidate {
            id: key.task.0,
            slug: task.name.slug.as_str().to_owned(),
            status: status.unwrap_or(TaskStatus::Draft),
            stays,
            base: self.base_of(key),
            merged_into: self.workspaces.records.get(key).merged_into,
            workspace: self.workspace_of(key).ok(),
        })
    }
}
