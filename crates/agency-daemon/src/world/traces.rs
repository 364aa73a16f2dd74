//! What a look for traces on the disk needs to know: every project, its tasks, what lives there.

use std::path::{Path, PathBuf};

use agency_api::view::RunElsewhere;
use agency_core::ids::{ProjectId, RunId, TaskId, TaskKey};

use super::World;
use crate::run_meta;
use crate::traces::{Known, KnownProject, KnownTask};

impl World {
    pub(super) fn known_projects(&self) -> Known {
        let projects = self.store.projects().map(|(id, known)| KnownProject {
            root: known.root().to_path_buf(),
            vcs: known.project.vcs().to_string(),
            tasks: known.tasks.keys().map(|task| self.known_task(id, *task)).collect(),
            live_runs: self.supervisor.live_runs().filter(|(key, _)| key.project == *id).count() as u64,
        });
        let unreachable = self.store.out_of_reach();
        Known {
            projects: projects.collect(),
            forgotten_runs: self.forgotten_runs(&unreachable),
            unreachable,
            elsewhere: self.runs_elsewhere(),
        }
    }

    fn known_task(&self, project: &ProjectId, task: TaskId) -> KnownTask {
        let key = TaskKey { project: project.clone(), task };
        let name = self.store.task(&key).map(|task| task.name.to_string()).unwrap_or_default();
        let base = self.base_of(&key);
        KnownTask { id: task.0, name, base }
    }

    /// Whatever their projects and tasks are: their files are in the same state directory.
    fn runs_elsewhere(&self) -> Vec<RunElsewhere> {
        run_meta::all(&self.ground.state)
            .into_iter()
            .filter(|(dir, meta)| meta.host != self.ground.state.host() && dir.pid_file().exists())
            .map(|(dir, meta)| RunElsewhere { host: meta.host_name, pid_file: dir.pid_file().into() })
            .collect()
    }

    /// Runs whose task is gone, of projects that could be looked at.
    fn forgotten_runs(&self, unreachable: &[PathBuf]) -> Vec<PathBuf> {
        let reachable = |root: &Path| !unreachable.iter().any(|known| known == root);
        let lives = |run: &RunId| self.runs.contains_key(run) || self.orphans.contains_key(run);
        run_meta::all(&self.ground.state)
            .into_iter()
            .filter(|(_, meta)| meta.host == self.ground.state.host() && reachable(&meta.root))
            .filter(|(_, meta)| !lives(&meta.run) && self.store.task(&super::boot::key_of(meta)).is_none())
            .map(|(dir, _)| dir.path().to_path_buf())
            .collect()
    }
}
