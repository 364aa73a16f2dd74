//! Finds everything that Agency has made in repositories, and removes it.
//!
//! Runs git and blocks, so the loop only says which projects, tasks and runs it knows, and a task of its own does the
//! rest.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agency_api::method::{Erased, ProjectEraseParams, ProjectTracesParams, Traces};
use agency_api::paths::{RunDir, StateDir, project_id};
use agency_api::view::{ProjectTraces, RunElsewhere, WorkspaceTraces};
use agency_api::{Bytes, Failure, FailureCode};
use agency_core::ids::RunId;
use agency_run::run_meta::{self, RunMeta};
use agency_workspace::{Environment, Project, RemoveOptions, Vcs, WorkspaceName};

use crate::failure::AsFailure;

/// The user's file in `.agency`.
const CONFIGURATION: &str = "config.toml";

/// The projects, tasks and runs that the loop knows.
#[derive(Debug)]
pub struct Known {
    pub projects: Vec<KnownProject>,
    /// Roots of projects that could not be opened.
    pub unreachable: Vec<PathBuf>,
    /// The directory of the state.
    pub state: PathBuf,
    /// All live runs, those of orphans included.
    pub live: Vec<RunId>,
}

impl Known {
    /// Runs of other hosts that share the state directory, of all projects and tasks.
    fn runs_elsewhere(state: &StateDir, runs: &[(RunDir, RunMeta)]) -> Vec<RunElsewhere> {
        let elsewhere =
            runs.iter().filter(|(dir, meta)| meta.host != state.host() && dir.pid_file().exists());
        elsewhere
            .map(|(dir, meta)| RunElsewhere { host: meta.host_name.clone(), pid_file: dir.pid_file().into() })
            .collect()
    }

    /// Runs whose task is gone, of projects that could be opened.
    fn forgotten_runs(&self, state: &StateDir, runs: &[(RunDir, RunMeta)]) -> Vec<Bytes> {
        let (tasks, live) = (self.tasks(), self.live.iter().collect::<HashSet<&RunId>>());
        let is_forgotten = |meta: &RunMeta| {
            meta.host == state.host()
                && !self.unreachable.contains(&meta.root)
                && !live.contains(&meta.run)
                && !tasks.contains(&(project_id(&meta.root), meta.task))
        };
        let forgotten = runs.iter().filter(|(_, meta)| is_forgotten(meta));
        forgotten.map(|(dir, _)| Bytes::from(dir.path())).collect()
    }

    fn tasks(&self) -> HashSet<(String, u64)> {
        let of_project = |known: &KnownProject| {
            let project = project_id(&known.root);
            known.tasks.iter().map(move |task| (project.clone(), task.id)).collect::<Vec<_>>()
        };
        self.projects.iter().flat_map(of_project).collect()
    }
}

#[derive(Debug)]
pub struct KnownProject {
    pub root: PathBuf,
    pub vcs: String,
    pub tasks: Vec<KnownTask>,
    pub live_runs: u64,
    pub open_shells: u64,
}

#[derive(Debug)]
pub struct KnownTask {
    pub id: u64,
    /// `{id}-{slug}`
    pub name: String,
    pub base: Option<String>,
}

/// Blocking. Looks at every project, and at the files of every run.
pub fn find(known: &Known, params: &ProjectTracesParams) -> Traces {
    let with_work = !params.without_work;
    let mut projects: Vec<ProjectTraces> =
        known.projects.iter().map(|project| of_project(project, with_work)).collect();
    let gone = |root: &PathBuf| unreachable(root, "it is not there, or cannot be opened".to_owned());
    projects.extend(known.unreachable.iter().map(gone));
    let state = StateDir::at(known.state.clone());
    let runs = run_meta::all(&state);
    Traces {
        projects,
        forgotten_runs: known.forgotten_runs(&state, &runs),
        elsewhere: Known::runs_elsewhere(&state, &runs),
    }
}

fn of_project(known: &KnownProject, with_work: bool) -> ProjectTraces {
    let looked = open(known).and_then(|project| {
        let traces = agency_workspace::find_traces(&project).map_err(|err| err.as_failure())?;
        Ok((project, traces))
    });
    let (project, traces) = match looked {
        Ok(looked) => looked,
        Err(failure) => return unreachable(&known.root, failure.message),
    };
    let workspaces = traces.workspaces.iter().map(|name| match with_work {
        true => of_workspace(&project, name, known),
        false => without_work(&project, name),
    });
    ProjectTraces {
        root: known.root.as_path().into(),
        unreachable: None,
        directory: Some(known.root.join(".agency")).filter(|dir| dir.is_dir()).map(Bytes::from),
        tasks: known.tasks.iter().map(|task| task.id).collect(),
        workspaces: workspaces.collect(),
        kept: traces.hidden_refs,
        exclude: traces.exclude.map(Bytes::from),
        stays: Some(known.root.join(".agency").join(CONFIGURATION))
            .filter(|file| file.exists())
            .map(Bytes::from),
        live_runs: known.live_runs,
        open_shells: known.open_shells,
    }
}

fn unreachable(root: &Path, why: String) -> ProjectTraces {
    ProjectTraces {
        root: root.into(),
        unreachable: Some(why),
        directory: None,
        tasks: Vec::new(),
        workspaces: Vec::new(),
        kept: Vec::new(),
        exclude: None,
        stays: None,
        live_runs: 0,
        open_shells: 0,
    }
}

fn of_workspace(project: &Project, name: &WorkspaceName, known: &KnownProject) -> WorkspaceTraces {
    let base = known.tasks.iter().find(|task| task.name == name.as_str()).and_then(|task| task.base.clone());
    let path = agency_workspace::workspace_path(project, name);
    let branch = agency_workspace::state(project, name, base.as_deref()).ok().and_then(|state| state.branch);
    let at_risk = agency_workspace::check_remove(project, name, base.as_deref(), Default::default()).err();
    WorkspaceTraces {
        name: name.to_string(),
        directory: path.exists().then(|| path.into()),
        branch,
        at_risk: at_risk.map(|err| err.cause.to_string()),
    }
}

fn without_work(project: &Project, name: &WorkspaceName) -> WorkspaceTraces {
    let path = agency_workspace::workspace_path(project, name);
    let directory = path.exists().then(|| path.into());
    WorkspaceTraces { name: name.to_string(), directory, branch: None, at_risk: None }
}

/// The project at `root`, if Agency can be taken out of it: no task and no agent is left there.
pub fn to_erase(known: Known, root: &Path) -> Result<KnownProject, Failure> {
    let found = known.projects.into_iter().find(|project| project.root == root);
    let unknown =
        || Failure::new(format!("no project is known at {}", root.display())).code(FailureCode::NotAProject);
    let project = found.ok_or_else(unknown)?;
    refuse_what_is_in_use(&project)?;
    Ok(project)
}

fn refuse_what_is_in_use(project: &KnownProject) -> Result<(), Failure> {
    let refused = || {
        Failure::new(format!("cannot take Agency out of {}", project.root.display()))
            .code(FailureCode::ProjectInUse)
    };
    if project.open_shells > 0 {
        return Err(refused()
            .code(FailureCode::ProgramRunning)
            .because("terminals beside its agents are open")
            .hint("close them first: agency daemon stop --agents"));
    }
    match (project.live_runs, project.tasks.len()) {
        (0, 0) => Ok(()),
        (0, tasks) => Err(refused().because(format!("{tasks} of its tasks are still there"))),
        (live, _) => Err(refused()
            .code(FailureCode::AgentRunning)
            .because(match live {
                1 => "its agent is running".to_owned(),
                live => format!("{live} of its agents are running"),
            })
            .hint("end them first: agency daemon stop --agents")),
    }
}

/// Blocking. Removes everything that Agency made there.
pub fn erase(known: &KnownProject, params: &ProjectEraseParams) -> Result<Erased, Failure> {
    let project = open(known)?;
    let before = agency_workspace::find_traces(&project).map_err(|err| err.as_failure())?;
    let mut erased = Erased { removed: Vec::new(), left: Vec::new() };
    for name in &before.workspaces {
        let removal = RemoveOptions { discard: params.discard, ..RemoveOptions::default() };
        let removed =
            agency_workspace::remove(&project, name, None, removal).map_err(|err| err.as_failure())?;
        erased.removed.extend(removed.directory.map(|dir| dir.display().to_string()));
        erased.removed.extend(removed.branch.map(|branch| format!("branch {branch}")));
    }
    let kept = agency_workspace::find_traces(&project).map_err(|err| err.as_failure())?.hidden_refs;
    let (left, gone): (Vec<String>, Vec<String>) =
        kept.into_iter().partition(|name| params.spare.contains(name));
    agency_workspace::erase_traces(&project, &gone).map_err(|err| err.as_failure())?;
    erased.removed.extend(gone);
    erased.left.extend(left.into_iter().map(|name| format!("{name}: it keeps work that was discarded")));
    erased.removed.extend(before.exclude.map(|path| format!("the lines in {}", path.display())));
    empty_directory(&known.root.join(".agency"), before.tracked, &mut erased);
    Ok(erased)
}

/// Removes the files that Agency made. Files of others stay, and then the directory stays, too.
fn empty_directory(directory: &Path, tracked: bool, erased: &mut Erased) {
    for dir in [directory.join("tasks"), directory.join("worktrees")] {
        note(fs::remove_dir(&dir), &dir, erased);
    }
    if tracked {
        return erased.left.push(format!("{}: the repository holds files of it", directory.display()));
    }
    let config = directory.join(CONFIGURATION);
    if config.exists() {
        return erased.left.push(format!("{}: your configuration of this project", config.display()));
    }
    note(fs::remove_dir(directory), directory, erased);
}

fn note(removed: io::Result<()>, path: &Path, erased: &mut Erased) {
    match removed {
        Ok(()) => erased.removed.push(path.display().to_string()),
        Err(err) if err.kind() == io::ErrorKind::NotFound => {}
        Err(err) => erased.left.push(format!("{}: {err}", path.display())),
    }
}

fn open(known: &KnownProject) -> Result<Project, Failure> {
    let vcs = known.vcs.parse::<Vcs>().ok();
    Project::open_with(&known.root, vcs, Environment::inherited()).map_err(|err| err.as_failure())
}
