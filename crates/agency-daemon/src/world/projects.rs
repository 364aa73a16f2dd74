//! The list of projects: shows them, adds one, and leaves one out.

use std::path::{Path, PathBuf};

use agency_api::project::{ProjectAddParams, ProjectForgetParams, ProjectView, Projects};
use agency_api::{Failure, FailureCode, method};
use agency_core::ids::ProjectId;
use agency_core::task_reference::{project_label, resolve_project};
use agency_server::Argument;

use super::World;
use super::argument::open_project;
use super::loop_event::OpenedProject;
use super::router::Router;
use super::task_names::unresolved;
use super::tasks::store_failure;

pub(super) fn register(router: &mut Router) {
    router.on(method::ProjectList, World::list_projects);
    router.on(method::ProjectAdd, World::add_project);
    router.on(method::ProjectForget, World::forget_project);
}

/// A project that the user wants to add.
struct AddedProject(OpenedProject);

impl Argument<World, ProjectAddParams> for AddedProject {
    type Prepared = AddedProject;

    async fn prepare(params: ProjectAddParams) -> Result<AddedProject, Failure> {
        let path = params.path.as_path();
        if !path.is_dir() {
            let why = match path.exists() {
                true => format!("{} is not a directory", path.display()),
                false => format!("there is no {}", path.display()),
            };
            return Err(Failure::new("Directory does not exist").code(FailureCode::NotFound).because(why));
        }
        Ok(AddedProject(open_project(params.path).await?))
    }

    fn resolve(_world: &mut World, project: AddedProject) -> Result<AddedProject, Failure> {
        Ok(project)
    }
}

impl World {
    fn list_projects(&mut self, _: method::Nothing) -> Result<Projects, Failure> {
        let roots = self.listed_roots();
        let texts: Vec<String> = roots.iter().map(|root| root.to_string_lossy().into_owned()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let view = |(index, root): (usize, &PathBuf)| self.project_view(root, project_label(index, &texts));
        Ok(Projects { projects: roots.iter().enumerate().map(view).collect() })
    }

    fn add_project(&mut self, AddedProject(opened): AddedProject) -> Result<ProjectView, Failure> {
        let root = opened.project.root().to_path_buf();
        if self.listed_roots().contains(&root) {
            return Err(Failure::new("Project already added")
                .code(FailureCode::AlreadyExists)
                .because(format!("{} is in the list", root.display()))
                .hint("`agency projects` lists all projects"));
        }
        self.open_project(opened)?;
        self.view_of_project(&root)
    }

    fn forget_project(&mut self, params: ProjectForgetParams) -> Result<ProjectView, Failure> {
        let root = self.named_root(&params)?;
        let view = self.view_of_project(&root)?;
        if view.live_agents > 0 {
            let agents = if view.live_agents == 1 {
                "1 agent is".to_owned()
            } else {
                format!("{} agents are", view.live_agents)
            };
            return Err(Failure::new(format!("cannot forget {}", root.display()))
                .code(FailureCode::ProjectInUse)
                .because(format!("{agents} running in it"))
                .hint("stop them first: `agency ls --all` lists them"));
        }
        self.store.set_forgotten(&root, true).map_err(store_failure)?;
        Ok(view)
    }

    fn named_root(&self, params: &ProjectForgetParams) -> Result<PathBuf, Failure> {
        let roots = self.listed_roots();
        let path = params.cwd.as_path().join(&params.name);
        let path = path.canonicalize().unwrap_or(path);
        if let Some(root) = roots.iter().find(|root| **root == path) {
            return Ok(root.clone());
        }
        let texts: Vec<String> = roots.iter().map(|root| root.to_string_lossy().into_owned()).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        resolve_project(&params.name, &texts)
            .map(|index| roots[index].clone())
            .map_err(|error| unresolved(&error))
    }

    fn view_of_project(&mut self, root: &Path) -> Result<ProjectView, Failure> {
        let listed = self.list_projects(method::Nothing {})?.projects;
        let found = listed.into_iter().find(|view| view.root.as_path() == root);
        found.ok_or_else(|| {
            Failure::new(format!("{} is not a project", root.display())).code(FailureCode::NotAProject)
        })
    }

    /// By path.
    fn listed_roots(&self) -> Vec<PathBuf> {
        let opened = self.store.listed_projects().map(|(_, known)| known.root());
        let mut roots: Vec<PathBuf> =
            opened.chain(self.store.unopened_roots()).map(Path::to_path_buf).collect();
        roots.sort();
        roots.dedup();
        roots
    }

    fn project_view(&self, root: &Path, name: String) -> ProjectView {
        let id = ProjectId(agency_api::paths::project_id(root));
        let known = self.store.project(&id);
        ProjectView {
            name,
            root: root.into(),
            vcs: known.map(|known| known.project.vcs().to_string()).unwrap_or_default(),
            tasks: known.map_or(0, |known| known.tasks.len() as u64),
            live_agents: self.supervisor.live_runs().filter(|(key, _)| key.project == id).count() as u64,
            missing: known.is_none() || !root.is_dir(),
        }
    }
}
