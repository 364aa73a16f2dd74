//! Finds the task that a caller names: in the project of the caller's directory, or in any other one.
//!
//! `agency_core::task_reference` decides which task a word means.

use agency_api::{Failure, FailureCode};
use agency_core::ids::{ProjectId, TaskKey};
use agency_core::task_reference::{self, ProjectTasks, ResolveError};
use agency_core::task_status::TaskStatus;

use super::World;
use super::loop_event::NamedTask;

impl World {
    pub(super) fn find(&mut self, task: NamedTask) -> Result<TaskKey, Failure> {
        let NamedTask { project, name } = task;
        let (here, failure) = match project {
            Ok(project) => (Some(self.open_project(project)?), None),
            Err(failure) if failure.code == FailureCode::NotAProject => (None, Some(failure)),
            Err(failure) => return Err(failure),
        };
        let found = match here.as_ref().map(|here| self.find_in(here, &name)) {
            Some(Err(failure)) if failure.code == FailureCode::TaskNotFound => {
                self.find_anywhere(here.as_ref(), &name)
            }
            Some(found) => found,
            None => self.find_anywhere(None, &name),
        };
        let key = found.map_err(|unknown| match failure {
            Some(failure) => Failure { causes: vec![failure.message], ..unknown },
            None => unknown,
        })?;
        // Its agent may have begun before the user moved the project.
        if self.supervisor.live_run(&key).is_none() {
            self.check_workspaces();
        }
        Ok(self.before_move(&key).unwrap_or(key))
    }

    /// The task of that name in a project that was just opened.
    pub(super) fn find_in(&self, project: &ProjectId, name: &str) -> Result<TaskKey, Failure> {
        self.resolve(name, Some(project), std::slice::from_ref(project))
    }

    fn find_anywhere(&mut self, here: Option<&ProjectId>, name: &str) -> Result<TaskKey, Failure> {
        self.read_edited_files();
        let projects: Vec<ProjectId> = self.store.listed_projects().map(|(id, _)| id.clone()).collect();
        self.resolve(name, here, &projects)
    }

    fn resolve(
        &self,
        name: &str,
        here: Option<&ProjectId>,
        projects: &[ProjectId],
    ) -> Result<TaskKey, Failure> {
        let known: Vec<ProjectTasks> = projects.iter().map(|id| self.named_tasks(id)).collect();
        let here = here.and_then(|here| projects.iter().position(|id| id == here));
        match task_reference::resolve(name, here, &known) {
            Ok(found) => Ok(TaskKey { project: projects[found.project].clone(), task: found.task }),
            Err(error) => Err(unresolved(&error)),
        }
    }

    /// The tasks of a project that callers can name. Of a project that is gone, only live ones.
    fn named_tasks(&self, project: &ProjectId) -> ProjectTasks {
        let Some(known) = self.store.project(project) else {
            return ProjectTasks { root: String::new(), tasks: Vec::new() };
        };
        let is_gone = self.is_project_gone(project);
        let key = |task| TaskKey { project: project.clone(), task };
        let tasks = known.tasks.values().filter(|task| !is_gone || self.is_only_here(&key(task.name.id)));
        let tasks = tasks.map(|task| task_reference::NamedTask {
            name: task.name.clone(),
            is_merged: self.supervisor.status(&key(task.name.id)) == Some(TaskStatus::Merged),
        });
        ProjectTasks { root: known.root().to_string_lossy().into_owned(), tasks: tasks.collect() }
    }
}

pub(super) fn unresolved(error: &ResolveError) -> Failure {
    let code = match error {
        ResolveError::Unknown { .. } | ResolveError::UnknownProject { .. } => FailureCode::TaskNotFound,
        ResolveError::Ambiguous { .. } | ResolveError::AmbiguousProject { .. } => FailureCode::AmbiguousName,
    };
    Failure::new(error.to_string()).code(code).hint(error.hint())
}
