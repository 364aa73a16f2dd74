//! `project.traces` and `project.erase`: the loop says which projects, tasks and live runs it knows, and a task of its
//! own looks at the disk.

use agency_api::Failure;
use agency_api::method::{self, Erased, ProjectEraseParams, ProjectTracesParams, Traces};
use agency_core::ids::{ProjectId, TaskId, TaskKey};
use agency_run::blocking::blocking;
use agency_work::traces::{self, Known, KnownProject, KnownTask};

use super::World;
use super::router::{Later, Router};

pub(super) fn register(router: &mut Router) {
    router.on(method::ProjectTraces, World::traces);
    router.on(method::ProjectErase, World::erase_project);
}

impl World {
    fn traces(&mut self, params: ProjectTracesParams) -> Result<Later<Traces>, Failure> {
        let known = self.known_projects();
        Ok(Later::new(blocking(move || Ok(traces::find(&known, &params)))))
    }

    fn erase_project(&mut self, params: ProjectEraseParams) -> Result<Later<Erased>, Failure> {
        let project = traces::to_erase(self.known_projects(), params.root.as_path())?;
        Ok(Later::new(blocking(move || traces::erase(&project, &params))))
    }

    fn known_projects(&self) -> Known {
        let projects = self.store.projects().map(|(id, known)| KnownProject {
            root: known.root().to_path_buf(),
            vcs: known.project.vcs().to_string(),
            tasks: known.tasks.keys().map(|task| self.known_task(id, *task)).collect(),
            live_runs: self.supervisor.live_runs().filter(|(key, _)| key.project == *id).count() as u64,
            open_shells: self.runs.shells.live().filter(|shell| shell.key.project == *id).count() as u64,
        });
        Known {
            projects: projects.collect(),
            unreachable: self.store.out_of_reach(),
            state: self.context.state.root().to_path_buf(),
            live: self
                .runs
                .live
                .keys()
                .chain(self.runs.orphans.keys())
                .chain(self.runs.shells.runs())
                .cloned()
                .collect(),
        }
    }

    fn known_task(&self, project: &ProjectId, task: TaskId) -> KnownTask {
        let key = TaskKey { project: project.clone(), task };
        let name = self.store.task(&key).map(|task| task.name.to_string()).unwrap_or_default();
        let base = self.base_of(&key);
        KnownTask { id: task.0, name, base }
    }
}
