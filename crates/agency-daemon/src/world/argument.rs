//! The arguments of handlers: the task or the project that a call is about, instead of bare parameters.

use std::path::Path;
use std::sync::LazyLock;

use agency_api::method::{NamesProject, NamesTask, ProjectRef, TaskRef};
use agency_api::{Bytes, Failure};
use agency_core::ids::{ProjectId, TaskKey};
use agency_run::blocking::blocking;
use agency_server::Argument;
use agency_work::failure::AsFailure;
use agency_workspace::{Environment, MergeChecks, Project, Vcs};

use super::World;
use super::loop_event::{NamedTask, OpenedProject};

/// The daemon opens projects before a call enters the loop, so the answers do not belong to the world.
pub(super) static MERGE_CHECKS: LazyLock<MergeChecks> = LazyLock::new(MergeChecks::default);

impl Argument<World, TaskRef> for TaskKey {
    type Prepared = NamedTask;

    async fn prepare(task: TaskRef) -> Result<NamedTask, Failure> {
        open_task(task).await
    }

    fn resolve(world: &mut World, task: NamedTask) -> Result<TaskKey, Failure> {
        world.find(task)
    }
}

impl<P: NamesTask + Send + 'static> Argument<World, P> for (TaskKey, P) {
    type Prepared = (NamedTask, P);

    async fn prepare(params: P) -> Result<(NamedTask, P), Failure> {
        Ok((open_task(params.task().clone()).await?, params))
    }

    fn resolve(world: &mut World, (task, params): (NamedTask, P)) -> Result<(TaskKey, P), Failure> {
        Ok((world.find(task)?, params))
    }
}

impl Argument<World, ProjectRef> for ProjectId {
    type Prepared = OpenedProject;

    async fn prepare(project: ProjectRef) -> Result<OpenedProject, Failure> {
        open_project(project.cwd).await
    }

    fn resolve(world: &mut World, project: OpenedProject) -> Result<ProjectId, Failure> {
        world.open_project(project)
    }
}

impl<P: NamesProject + Send + 'static> Argument<World, P> for (ProjectId, P) {
    type Prepared = (OpenedProject, P);

    async fn prepare(params: P) -> Result<(OpenedProject, P), Failure> {
        Ok((open_project(params.cwd().clone()).await?, params))
    }

    fn resolve(world: &mut World, (project, params): (OpenedProject, P)) -> Result<(ProjectId, P), Failure> {
        Ok((world.open_project(project)?, params))
    }
}

/// Opens the project of a caller who names a task. The task may be in another project, so a directory that is in no
/// project is no failure yet.
pub(super) async fn open_task(task: TaskRef) -> Result<NamedTask, Failure> {
    Ok(NamedTask { project: open_project(task.cwd).await, name: task.name })
}

/// Opens the project that the caller's directory is in.
pub(super) async fn open_project(cwd: Bytes) -> Result<OpenedProject, Failure> {
    open_project_as(cwd, None, Environment::inherited()).await
}

/// Opens the project that the caller's directory is in, as one of that kind and with that environment.
pub(super) async fn open_project_as(
    cwd: Bytes,
    vcs: Option<Vcs>,
    environment: Environment,
) -> Result<OpenedProject, Failure> {
    blocking(move || {
        let path: &Path = cwd.as_path();
        let project = Project::open_with(path, vcs, environment).map_err(|err| err.as_failure())?;
        agency_workspace::repair_moved(&project);
        // Only plain directories ask git for the file, and earlier versions wrote it when they made a workspace.
        if project.vcs() != Vcs::Plain
            && let Err(cause) = agency_workspace::update_exclude_lines(&project)
        {
            tracing::warn!(%cause, root = %project.root().display(), "cannot update the exclude file");
        }
        Ok(OpenedProject { taken_back: MERGE_CHECKS.find_taken_back(&project), project })
    })
    .await
}
