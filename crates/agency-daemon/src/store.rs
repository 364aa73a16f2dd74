//! Projects and their task files, as they are on disk, with a mirror of each in the state directory.
//!
//! Files are the truth: a file edited by hand is picked up, one that was deleted comes back from
//! its mirror. What the daemon knows about processes is not here.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use agency_api::paths::{StateDir, create_private, project_id};
use agency_core::ids::{ProjectId, TaskId, TaskKey};
use agency_core::slug::{ResolveError, Slug, TaskName};
use agency_core::task_file::{Field, TaskFile, TaskFileError};
use agency_workspace::{Project, Vcs, WorkspaceName};
use serde::{Deserialize, Serialize};

use crate::atomic;

pub struct Store {
    state: StateDir,
    projects: BTreeMap<ProjectId, StoredProject>,
}

pub struct StoredProject {
    pub project: Project,
    pub tasks: BTreeMap<TaskId, StoredTask>,
    directory: PathBuf,
    next_id: u64,
}

pub struct StoredTask {
    pub name: TaskName,
    pub path: PathBuf,
    /// What the file says, or why it cannot be read.
    pub content: Result<TaskFile, String>,
    stamp: Stamp,
}

/// Whether a file may have changed since it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    len: u64,
}

/// `project.json`: what cannot be found out by looking at the directory.
#[derive(Debug, Serialize, Deserialize)]
struct Remembered {
    root: PathBuf,
    vcs: String,
    /// Ids are never given twice, also after the task is gone.
    next_id: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Content { path: PathBuf, source: TaskFileError },
    #[error("the task file {} cannot be read: {problem}", path.display())]
    Broken { path: PathBuf, problem: String },
    #[error("there is no task {0}")]
    NoTask(TaskKey),
    #[error("the tasks of {} already have workspaces of kind `{vcs}`", root.display())]
    OtherVcs { root: PathBuf, vcs: Vcs },
}

impl Store {
    /// Every project the daemon knows. A project whose directory is gone is left for when it returns.
    pub fn load(state: &StateDir) -> Store {
        let mut store = Store { state: state.clone(), projects: BTreeMap::new() };
        for remembered in remembered_projects(state) {
            let vcs = remembered.vcs.parse::<Vcs>().ok();
            match Project::open_with(&remembered.root, vcs, agency_workspace::Environment::inherited()) {
                Ok(project) => {
                    if let Err(cause) = store.open(project) {
                        tracing::warn!(root = %remembered.root.display(), %cause, "a project cannot be read");
                    }
                }
                Err(cause) => {
                    tracing::warn!(root = %remembered.root.display(), %cause, "a project cannot be opened")
                }
            }
        }
        store
    }

    /// Makes the project known, or refreshes what is known of it. Returns the tasks that changed by hand.
    pub fn open(&mut self, project: Project) -> Result<(ProjectId, Vec<TaskId>), StoreError> {
        let id = ProjectId(project_id(project.root()));
        if !self.projects.contains_key(&id) {
            let directory = self.state.project(&id.0);
            create_private(&directory.join("tasks")).map_err(|source| write_error(&directory, source))?;
            let next_id = read_remembered(&directory).map_or(1, |remembered| remembered.next_id);
            let known = StoredProject { project, tasks: BTreeMap::new(), directory, next_id };
            known.remember()?;
            self.projects.insert(id.clone(), known);
        }
        let changed = self.refresh(&id)?;
        Ok((id, changed))
    }

    /// The kind of workspace that the user asked for. One kind per project: tasks that are there keep theirs.
    pub fn choose_vcs(&mut self, id: &ProjectId, wanted: Project) -> Result<(), StoreError> {
        let Some(known) = self.projects.get_mut(id) else { return Ok(()) };
        if known.project.vcs() == wanted.vcs() {
            return Ok(());
        }
        if !known.tasks.is_empty() {
            return Err(StoreError::OtherVcs { root: known.root().to_path_buf(), vcs: known.project.vcs() });
        }
        known.project = wanted;
        known.remember()
    }

    pub fn projects(&self) -> impl Iterator<Item = (&ProjectId, &StoredProject)> {
        self.projects.iter()
    }

    pub fn project(&self, id: &ProjectId) -> Option<&StoredProject> {
        self.projects.get(id)
    }

    pub fn task(&self, key: &TaskKey) -> Option<&StoredTask> {
        self.projects.get(&key.project)?.tasks.get(&key.task)
    }

    /// The readable content of a task.
    pub fn file(&self, key: &TaskKey) -> Result<&TaskFile, StoreError> {
        let task = self.task(key).ok_or_else(|| StoreError::NoTask(key.clone()))?;
        let broken =
            |problem: &String| StoreError::Broken { path: task.path.clone(), problem: problem.clone() };
        task.content.as_ref().map_err(broken)
    }

    pub fn resolve(&self, project: &ProjectId, word: &str) -> Result<TaskKey, ResolveError> {
        let names: Vec<TaskName> = match self.projects.get(project) {
            Some(known) => known.tasks.values().map(|task| task.name.clone()).collect(),
            None => Vec::new(),
        };
        let name = agency_core::slug::resolve(word, &names)?;
        Ok(TaskKey { project: project.clone(), task: name.id })
    }

    /// Looks at the task files again. Returns those that are new or changed.
    pub fn refresh(&mut self, id: &ProjectId) -> Result<Vec<TaskId>, StoreError> {
        match self.projects.get_mut(id) {
            Some(known) => known.refresh(),
            None => Ok(Vec::new()),
        }
    }

    /// The name the next task of the project would have.
    pub fn next_name(&self, project: &ProjectId, slug: Slug) -> TaskName {
        let id = self.projects.get(project).map_or(1, |known| known.next_id);
        TaskName { id: TaskId(id), slug }
    }

    /// Writes a new task under that name.
    pub fn create(
        &mut self,
        project: &ProjectId,
        name: TaskName,
        file: TaskFile,
    ) -> Result<TaskKey, StoreError> {
        let key = TaskKey { project: project.clone(), task: name.id };
        let known = self.projects.get_mut(project).ok_or_else(|| StoreError::NoTask(key.clone()))?;
        let tasks = known.tasks_directory();
        std::fs::create_dir_all(&tasks).map_err(|source| write_error(&tasks, source))?;
        known.next_id = known.next_id.max(name.id.0 + 1);
        known.remember()?;
        let path = known.task_path(&name);
        known.write(&name, &path, &file)?;
        let stamp = stamp(&path);
        known.tasks.insert(name.id, StoredTask { name, path, content: Ok(file), stamp });
        Ok(key)
    }

    /// Changes keys of a task file, on top of what it says right now.
    pub fn set(&mut self, key: &TaskKey, fields: Vec<Field>) -> Result<(), StoreError> {
        self.refresh(&key.project)?;
        let mut file = self.file(key)?.clone();
        let known = self.projects.get_mut(&key.project).ok_or_else(|| StoreError::NoTask(key.clone()))?;
        let task = known.tasks.get(&key.task).ok_or_else(|| StoreError::NoTask(key.clone()))?;
        let (name, path) = (task.name.clone(), task.path.clone());
        for field in fields {
            file.set(field).map_err(|source| StoreError::Content { path: path.clone(), source })?;
        }
        known.write(&name, &path, &file)?;
        let stamp = stamp(&path);
        known.tasks.insert(key.task, StoredTask { name, path, content: Ok(file), stamp });
        Ok(())
    }

    /// Takes a task away that this very call made.
    pub fn undo_create(&mut self, key: &TaskKey) -> Result<(), StoreError> {
        let Some(known) = self.projects.get_mut(&key.project) else { return Ok(()) };
        let Some(task) = known.tasks.remove(&key.task) else { return Ok(()) };
        if known.next_id == key.task.0 + 1 {
            known.next_id = key.task.0;
            known.remember()?;
        }
        remove_if_there(&known.mirror_path(&task.name))?;
        remove_if_there(&task.path)
    }

    /// Takes a task away; its file is kept in the state directory.
    pub fn remove(&mut self, key: &TaskKey) -> Result<(), StoreError> {
        let Some(known) = self.projects.get_mut(&key.project) else { return Ok(()) };
        let Some(task) = known.tasks.remove(&key.task) else { return Ok(()) };
        let trash = known.directory.join("trash");
        create_private(&trash).map_err(|source| write_error(&trash, source))?;
        let kept = trash.join(file_name(&task.name));
        let bytes = std::fs::read(&task.path).map_err(|source| read_error(&task.path, source))?;
        atomic::write(&kept, &bytes).map_err(|source| write_error(&kept, source))?;
        remove_if_there(&known.mirror_path(&task.name))?;
        remove_if_there(&task.path)
    }
}

impl StoredProject {
    pub fn root(&self) -> &Path {
        self.project.root()
    }

    pub fn workspace_name(&self, name: &TaskName) -> Result<WorkspaceName, agency_workspace::NameError> {
        WorkspaceName::new(name.id.0, name.slug.as_str())
    }

    fn tasks_directory(&self) -> PathBuf {
        self.root().join(".agency/tasks")
    }

    fn task_path(&self, name: &TaskName) -> PathBuf {
        self.tasks_directory().join(file_name(name))
    }

    fn mirror_path(&self, name: &TaskName) -> PathBuf {
        self.directory.join("tasks").join(file_name(name))
    }

    fn remember(&self) -> Result<(), StoreError> {
        let remembered = Remembered {
            root: self.root().to_path_buf(),
            vcs: self.project.vcs().to_string(),
            next_id: self.next_id,
        };
        let path = self.directory.join("project.json");
        let write = || atomic::write(&path, &serde_json::to_vec_pretty(&remembered)?);
        write().map_err(|source| write_error(&path, source))
    }

    fn write(&self, name: &TaskName, path: &Path, file: &TaskFile) -> Result<(), StoreError> {
        let bytes = file.to_bytes();
        // Shared with the user's editor and tools, like any file of theirs.
        let mode = std::fs::metadata(path).map_or(0o644, |meta| {
            use std::os::unix::fs::MetadataExt;
            meta.mode() & 0o777
        });
        atomic::write_with_mode(path, &bytes, mode).map_err(|source| write_error(path, source))?;
        self.mirror(name, &bytes)
    }

    fn mirror(&self, name: &TaskName, bytes: &[u8]) -> Result<(), StoreError> {
        let mirror = self.mirror_path(name);
        atomic::write(&mirror, bytes).map_err(|source| write_error(&mirror, source))
    }

    fn refresh(&mut self) -> Result<Vec<TaskId>, StoreError> {
        if self.root().is_dir() {
            self.bring_back_deleted()?;
        }
        let mut changed = Vec::new();
        let mut there = BTreeMap::new();
        for (name, path) in task_files(&self.tasks_directory()) {
            let stamp = stamp(&path);
            match self.tasks.remove(&name.id) {
                Some(known) if known.stamp == stamp && known.path == path => {
                    there.insert(name.id, known);
                }
                _ => {
                    changed.push(name.id);
                    self.next_id = self.next_id.max(name.id.0 + 1);
                    there.insert(name.id, self.read(name, path, stamp)?);
                }
            }
        }
        self.tasks = there;
        Ok(changed)
    }

    fn read(&self, name: TaskName, path: PathBuf, stamp: Stamp) -> Result<StoredTask, StoreError> {
        let bytes = std::fs::read(&path).map_err(|source| read_error(&path, source))?;
        let content = TaskFile::parse(&bytes).map_err(|err| err.to_string());
        // A broken file must not take the place of a whole mirror.
        if content.is_ok() {
            self.mirror(&name, &bytes)?;
        }
        Ok(StoredTask { name, path, content, stamp })
    }

    /// `git clean -fdx` takes ignored files; the mirror has them all.
    fn bring_back_deleted(&self) -> Result<(), StoreError> {
        for (name, mirror) in task_files(&self.directory.join("tasks")) {
            let path = self.task_path(&name);
            if path.exists() {
                continue;
            }
            let bytes = std::fs::read(&mirror).map_err(|source| read_error(&mirror, source))?;
            let tasks = self.tasks_directory();
            std::fs::create_dir_all(&tasks).map_err(|source| write_error(&tasks, source))?;
            atomic::write_with_mode(&path, &bytes, 0o644).map_err(|source| write_error(&path, source))?;
            tracing::info!(task = %name, "a task file that was deleted is back from its mirror");
        }
        Ok(())
    }
}

fn file_name(name: &TaskName) -> String {
    format!("{name}.md")
}

/// The task files in a directory, by id. Other files are none of ours.
fn task_files(directory: &Path) -> Vec<(TaskName, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let named = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_suffix(".md")?.parse().ok()?;
        Some((name, path))
    };
    let mut files: Vec<_> = entries.flatten().filter_map(|entry| named(entry.path())).collect();
    files.sort_by_key(|(name, _): &(TaskName, PathBuf)| name.id);
    files
}

fn stamp(path: &Path) -> Stamp {
    match std::fs::metadata(path) {
        Ok(meta) => Stamp { modified: meta.modified().ok(), len: meta.len() },
        Err(_) => Stamp { modified: None, len: 0 },
    }
}

fn remembered_projects(state: &StateDir) -> Vec<Remembered> {
    let Ok(entries) = std::fs::read_dir(state.projects()) else { return Vec::new() };
    entries.flatten().filter_map(|entry| read_remembered(&entry.path())).collect()
}

fn read_remembered(directory: &Path) -> Option<Remembered> {
    serde_json::from_slice(&std::fs::read(directory.join("project.json")).ok()?).ok()
}

fn remove_if_there(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(write_error(path, source)),
        _ => Ok(()),
    }
}

fn write_error(path: &Path, source: io::Error) -> StoreError {
    StoreError::Write { path: path.to_path_buf(), source }
}

fn read_error(path: &Path, source: io::Error) -> StoreError {
    StoreError::Read { path: path.to_path_buf(), source }
}
