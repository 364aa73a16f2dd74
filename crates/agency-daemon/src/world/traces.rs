//! What a look for traces on the disk needs to know: every project, its tasks, what lives there.

use agency_core::ids::{ProjectId, TaskId, TaskKey};

use super::World;
use crate::traces::{Known, KnownProject, KnownTask};

impl World {
    pub(super) fn known_projects(&self) -> Known {
        let projects = self.store.projects().map(|(id, known)| KnownProject {
            root: known.root().to_path_buf(),
            vcs: known.project.vcs().to_string(),
            tasks: known.tasks.keys().map(|task| self.known_task(id, *task)).collect(),
            live_runs: self.supervisor.live_runs().filter(|(key, _)| key.project == *id).count() as u64,
        });
        Known {
            projects: projects.collect(),
            unreachable: self.store.out_of_reach(),
            state: self.ground.state.root().to_path_buf(),
            live: self.runs.keys().chain(self.orphans.keys()).cloned().collect(),
        }
    }

    fn known_task(&self, project: &ProjectId, task: TaskId) -> KnownTask {
        let key = TaskKey { project: project.clone(), task };
        let name = self.store.task(&key).map(|task| task.name.to_string()).unwrap_or_default();
        let base = self.base_of(&key);
        KnownTask { id: task.0, name, base }
    }
}
