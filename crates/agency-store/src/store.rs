//! Projects and their task files on disk.
//!
//! The files are the truth: the store reads a file again after the user edited it. It knows nothing about processes.
//! Not here: how lost files are rebuilt, task files from their mirrors (see `task_mirrors`) and records of projects from
//! their runs (see `project_record`).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use agency_api::paths::{StateDir, create_private, project_id};
use agency_core::ids::{ProjectId, TaskId, TaskKey};
use agency_core::slug::{MAX_ID, Slug, TaskName};
use agency_core::task_file::{Field, TaskFile, TaskFileError};
use agency_workspace::{Project, Vcs, WorkspaceName};

use crate::atomic;
use crate::project_record::{self, DirectoryIdentity, ProjectHint, ProjectRecord};
use crate::task_directory::{self, Files, file_name, read};
use crate::task_mirrors::{LostFile, TaskMirrors};

pub struct Store {
    state: StateDir,
    projects: BTreeMap<ProjectId, StoredProject>,
    /// Projects that could not be opened: they are gone, moved, or out of reach.
    unopened: Vec<ProjectRecord>,
}

/// A project at the place where it was before the user moved it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerPlace {
    pub id: ProjectId,
    pub root: PathBuf,
    next_id: u64,
}

pub struct StoredProject {
    pub project: Project,
    pub tasks: BTreeMap<TaskId, StoredTask>,
    /// Files that look like tasks but are not used, each with the reason.
    pub unused: Vec<String>,
    directory: PathBuf,
    mirrors: TaskMirrors,
    next_id: u64,
    /// The root itself, wherever the user moves it.
    identity: Option<DirectoryIdentity>,
    /// The record on disk, if it is there and can be read.
    written: Option<ProjectRecord>,
    is_forgotten: bool,
}

pub struct StoredTask {
    pub name: TaskName,
    pub path: PathBuf,
    /// The content of the file, or why it cannot be read.
    pub content: Result<TaskFile, String>,
    /// The mirror of a file that cannot be read: the last content that could.
    pub mirrored: Option<TaskFile>,
    /// None if the next refresh must read the file again.
    stamp: Option<Stamp>,
}

/// Metadata that changes when the file does. A program can reset the modification time, but not the change time.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    len: u64,
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
    #[error("{name} has the same id: {}", path.display())]
    IdTaken { name: TaskName, path: PathBuf },
    #[error("the tasks of {} already have workspaces of kind `{vcs}`", root.display())]
    OtherVcs { root: PathBuf, vcs: Vcs },
}

impl Store {
    /// Opens every known project. Skips one whose directory is gone, and keeps its record: the directory may return.
    /// Returns also what was wrong with records of projects. `hints` say where a project is whose record is lost.
    pub fn load(state: &StateDir, hints: &[ProjectHint]) -> (Store, Vec<String>) {
        let mut store = Store { state: state.clone(), projects: BTreeMap::new(), unopened: Vec::new() };
        let (records, problems) = project_record::read_or_rebuild(state, hints);
        for record in records {
            store.load_project(record);
        }
        (store, problems)
    }

    fn load_project(&mut self, record: ProjectRecord) {
        let vcs = record.vcs.parse::<Vcs>().ok();
        let opened = Project::open_with(&record.root, vcs, agency_workspace::Environment::inherited());
        let root = record.root.display().to_string();
        match opened {
            Ok(project) => {
                let id = ProjectId(project_id(project.root()));
                if let Err(cause) = self.open(project) {
                    tracing::warn!(root, %cause, "a project cannot be read");
                }
                if let Some(known) = self.projects.get_mut(&id) {
                    known.next_id = known.next_id.max(record.next_id);
                    known.try_save_record();
                }
            }
            Err(cause) => {
                tracing::warn!(root, %cause, "a project cannot be opened");
                self.unopened.push(record);
            }
        }
    }

    /// Returns the id of a project that the store knows already.
    pub fn id_of(&self, project: &Project) -> Option<ProjectId> {
        let id = ProjectId(project_id(project.root()));
        self.projects.contains_key(&id).then_some(id)
    }

    /// Adds a project, or reads its tasks again. Returns the tasks that the user changed by hand.
    pub fn open(&mut self, project: Project) -> Result<(ProjectId, Vec<TaskId>), StoreError> {
        let id = ProjectId(project_id(project.root()));
        refuse_links(project.root())?;
        if !self.projects.contains_key(&id) {
            let directory = self.state.project(&id.0);
            let mirrors = TaskMirrors::of(&directory);
            if let Err(cause) = mirrors.make_directory() {
                tracing::warn!(%cause, directory = %directory.display(), "task files of a project cannot be mirrored");
            }
            let written = ProjectRecord::read(&directory).ok();
            let next_id = written
                .as_ref()
                .map_or_else(|| project_record::first_free_id(&directory), |record| record.next_id);
            let (tasks, unused) = (BTreeMap::new(), Vec::new());
            let identity = None;
            let is_forgotten = written.as_ref().is_some_and(|record| record.forgotten);
            let known = StoredProject {
                project,
                tasks,
                unused,
                directory,
                mirrors,
                next_id,
                identity,
                written,
                is_forgotten,
            };
            self.projects.insert(id.clone(), known);
        }
        let changed = self.refresh(&id)?;
        if let Some(known) = self.projects.get_mut(&id) {
            let identity = DirectoryIdentity::of(known.root(), self.state.host());
            known.identity = identity.or(known.identity.take());
            known.try_save_record();
        }
        Ok((id, changed))
    }

    /// Returns the places where this project was before the user moved it, if the state directory has something of it
    /// there.
    pub fn former_places(&self, id: &ProjectId) -> Vec<FormerPlace> {
        let Some(here) = self.projects.get(id).map(|known| &known.identity).filter(|here| here.is_some())
        else {
            return Vec::new();
        };
        let opened = self.projects.values().filter(|known| known.identity == *here);
        let unopened = self.unopened.iter().filter(|record| record.directory == *here);
        let records = opened.map(StoredProject::record).chain(unopened.cloned());
        records
            .map(|record| FormerPlace {
                id: ProjectId(project_id(&record.root)),
                root: record.root,
                next_id: record.next_id,
            })
            .filter(|place| place.id != *id && DirectoryIdentity::of(&place.root, self.state.host()) != *here)
            .collect()
    }

    /// Returns the tasks that have a workspace record or a trash entry at the former place.
    pub fn tasks_left(&self, former: &FormerPlace) -> BTreeSet<TaskId> {
        let directory = self.state.project(&former.id.0);
        ["w", "trash"]
            .into_iter()
            .flat_map(|part| project_record::named_ids(&directory.join(part)))
            .map(|(id, _)| TaskId(id))
            .collect()
    }

    /// Moves the trash entries of a task from the former place of its project to the present one. Replaces nothing.
    pub fn bring_trash(&self, former: &FormerPlace, id: &ProjectId, task: TaskId) -> io::Result<()> {
        let trash = self.state.project(&id.0).join("trash");
        for (of, entry) in project_record::named_ids(&self.state.project(&former.id.0).join("trash")) {
            let to = entry.file_name().map(|name| trash.join(name)).filter(|to| !to.exists());
            if let Some(to) = to.filter(|_| of == task.0) {
                create_private(&trash)?;
                std::fs::rename(entry, to)?;
            }
        }
        Ok(())
    }

    /// The ids of tasks stay unique after a move.
    pub fn continue_ids(&mut self, former: &FormerPlace, id: &ProjectId) {
        if let Some(known) = self.projects.get_mut(id) {
            known.next_id = known.next_id.max(former.next_id);
            known.try_save_record();
        }
    }

    /// Forgets the former place of a project, and deletes its directory. Fails if something of the project is still there;
    /// then the next daemon tries again.
    pub fn forget_place(&mut self, former: &FormerPlace, id: &ProjectId) -> io::Result<()> {
        self.projects.remove(&former.id);
        self.unopened.retain(|record| record.root != former.root);
        project_record::delete_emptied(&self.state.project(&former.id.0), &self.state.project(&id.0))
    }

    /// Sets the kind of workspaces that the user asked for. Fails if the project already has tasks of another kind.
    pub fn choose_vcs(&mut self, id: &ProjectId, wanted: Project) -> Result<(), StoreError> {
        let Some(known) = self.projects.get_mut(id) else { return Ok(()) };
        if known.project.vcs() == wanted.vcs() {
            return Ok(());
        }
        if !known.tasks.is_empty() {
            return Err(StoreError::OtherVcs { root: known.root().to_path_buf(), vcs: known.project.vcs() });
        }
        known.project = wanted;
        known.save_record()
    }

    pub fn projects(&self) -> impl Iterator<Item = (&ProjectId, &StoredProject)> {
        self.projects.iter()
    }

    /// Returns the projects that the user wants to see in lists: all but the forgotten ones.
    pub fn listed_projects(&self) -> impl Iterator<Item = (&ProjectId, &StoredProject)> {
        self.projects.iter().filter(|(_, known)| !known.is_forgotten)
    }

    /// Returns the roots of projects that could not be opened and that the user has not forgotten.
    pub fn unopened_roots(&self) -> impl Iterator<Item = &Path> {
        self.unopened.iter().filter(|record| !record.forgotten).map(|record| record.root.as_path())
    }

    /// Leaves a project out of lists, or lists it again. Nothing else of it changes.
    pub fn set_forgotten(&mut self, root: &Path, is_forgotten: bool) -> Result<(), StoreError> {
        let id = ProjectId(project_id(root));
        if let Some(known) = self.projects.get_mut(&id) {
            if known.is_forgotten == is_forgotten {
                return Ok(());
            }
            known.is_forgotten = is_forgotten;
            return known.save_record();
        }
        let directory = self.state.project(&id.0);
        for record in self.unopened.iter_mut().filter(|record| record.root == root) {
            record.forgotten = is_forgotten;
            record
                .write(&directory)
                .map_err(|source| write_error(&directory.join(project_record::FILE), source))?;
        }
        Ok(())
    }

    /// Returns the roots of known projects that could not be opened.
    pub fn out_of_reach(&self) -> Vec<PathBuf> {
        let records = project_record::directories(&self.state)
            .into_iter()
            .filter_map(|dir| ProjectRecord::read(&dir).ok());
        let roots = records.map(|record| record.root);
        roots.filter(|root| !self.projects.contains_key(&ProjectId(project_id(root)))).collect()
    }

    pub fn project(&self, id: &ProjectId) -> Option<&StoredProject> {
        self.projects.get(id)
    }

    pub fn task(&self, key: &TaskKey) -> Option<&StoredTask> {
        self.projects.get(&key.project)?.tasks.get(&key.task)
    }

    /// Returns the projects whose record cannot be written.
    pub fn unwritten_records(&self) -> Vec<PathBuf> {
        let unwritten =
            self.projects.values().filter(|known| known.written.as_ref() != Some(&known.record()));
        unwritten.map(|known| known.directory.join(project_record::FILE)).collect()
    }

    /// Returns the content of a task file, or of its mirror if the file cannot be read.
    pub fn last_content(&self, key: &TaskKey) -> Option<&TaskFile> {
        self.task(key).and_then(StoredTask::last_content)
    }

    /// Returns the content of a task file that can be read.
    pub fn file(&self, key: &TaskKey) -> Result<&TaskFile, StoreError> {
        let task = self.task(key).ok_or_else(|| StoreError::NoTask(key.clone()))?;
        let broken =
            |problem: &String| StoreError::Broken { path: task.path.clone(), problem: problem.clone() };
        task.content.as_ref().map_err(broken)
    }

    /// Reads the task files again. Returns those that are new or changed.
    pub fn refresh(&mut self, id: &ProjectId) -> Result<Vec<TaskId>, StoreError> {
        match self.projects.get_mut(id) {
            Some(known) => known.refresh(),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the name that the next task of the project would get.
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
        let path = known.task_path(&name);
        if name.id.0 > MAX_ID {
            return Err(write_error(
                &path,
                io::Error::other("a task file with the highest id is there already"),
            ));
        }
        known.make_tasks_directory()?;
        known.next_id = known.next_id.max(name.id.0 + 1);
        known.save_record()?;
        known.write(&name, &path, &file)?;
        let stamp = stamp(&path);
        known.tasks.insert(name.id, StoredTask { name, path, content: Ok(file), mirrored: None, stamp });
        Ok(key)
    }

    /// Changes keys of a task file, and keeps what the user changed in it.
    pub fn set(&mut self, key: &TaskKey, fields: Vec<Field>) -> Result<(), StoreError> {
        self.change(key, |file| fields.into_iter().try_for_each(|field| file.set(field)))
    }

    /// Replaces the text of a task, and keeps its front matter.
    pub fn set_text(&mut self, key: &TaskKey, text: Vec<u8>) -> Result<(), StoreError> {
        self.change(key, |file| {
            file.set_body(text);
            Ok(())
        })
    }

    fn change(
        &mut self,
        key: &TaskKey,
        change: impl FnOnce(&mut TaskFile) -> Result<(), TaskFileError>,
    ) -> Result<(), StoreError> {
        self.refresh(&key.project)?;
        let mut file = self.file(key)?.clone();
        let known = self.projects.get_mut(&key.project).ok_or_else(|| StoreError::NoTask(key.clone()))?;
        let task = known.tasks.get(&key.task).ok_or_else(|| StoreError::NoTask(key.clone()))?;
        let (name, path) = (task.name.clone(), task.path.clone());
        change(&mut file).map_err(|source| StoreError::Content { path: path.clone(), source })?;
        if task.content.as_ref() == Ok(&file) {
            return Ok(());
        }
        known.write(&name, &path, &file)?;
        let stamp = stamp(&path);
        known.tasks.insert(key.task, StoredTask { name, path, content: Ok(file), mirrored: None, stamp });
        Ok(())
    }

    /// Gives a task another slug: renames its file. If the daemon is killed before the mirror has the new name too, the next
    /// one renames the mirror.
    pub fn rename(&mut self, key: &TaskKey, slug: Slug) -> Result<(), StoreError> {
        self.refresh(&key.project)?;
        let known = self.projects.get_mut(&key.project).ok_or_else(|| StoreError::NoTask(key.clone()))?;
        let task = known.tasks.get(&key.task).ok_or_else(|| StoreError::NoTask(key.clone()))?;
        let name = TaskName { id: key.task, slug };
        let path = known.task_path(&name);
        if path == task.path {
            return Ok(());
        }
        if path.symlink_metadata().is_ok() {
            return Err(StoreError::IdTaken { name, path });
        }
        std::fs::rename(&task.path, &path).map_err(|source| write_error(&path, source))?;
        known.refresh()?;
        Ok(())
    }

    /// Removes a task that the same call created.
    pub fn undo_create(&mut self, key: &TaskKey) -> Result<(), StoreError> {
        let Some(known) = self.projects.get_mut(&key.project) else { return Ok(()) };
        let Some(task) = known.tasks.remove(&key.task) else { return Ok(()) };
        if known.next_id == key.task.0 + 1 {
            known.next_id = key.task.0;
            known.save_record()?;
        }
        remove_if_exists(&known.mirrors.path(&task.name))?;
        remove_if_exists(&task.path)
    }

    /// Removes a task, after copying its file to `kept`.
    pub fn remove(&mut self, key: &TaskKey, kept: &Path) -> Result<(), StoreError> {
        let Some(known) = self.projects.get_mut(&key.project) else { return Ok(()) };
        let Some(task) = known.tasks.get(&key.task) else { return Ok(()) };
        let bytes = read(&task.path).map_err(|source| read_error(&task.path, source))?;
        atomic::write(kept, &bytes).map_err(|source| write_error(kept, source))?;
        remove_if_exists(&known.mirrors.path(&task.name))?;
        remove_if_exists(&task.path)?;
        known.tasks.remove(&key.task);
        Ok(())
    }

    /// Restores a removed task with its file. Overwrites nothing.
    pub fn restore(
        &mut self,
        project: &ProjectId,
        name: &TaskName,
        bytes: &[u8],
    ) -> Result<TaskKey, StoreError> {
        let key = TaskKey { project: project.clone(), task: name.id };
        self.refresh(project)?;
        let known = self.projects.get_mut(project).ok_or_else(|| StoreError::NoTask(key.clone()))?;
        if let Some(task) = known.tasks.get(&name.id) {
            // An earlier daemon may have restored the file before it was killed.
            return match task.name == *name {
                true => Ok(key),
                false => Err(StoreError::IdTaken { name: task.name.clone(), path: task.path.clone() }),
            };
        }
        known.make_tasks_directory()?;
        let path = known.task_path(name);
        atomic::write_with_mode(&path, bytes, 0o644).map_err(|source| write_error(&path, source))?;
        known.refresh()?;
        Ok(key)
    }
}

impl StoredTask {
    /// The content of the file, or of its mirror if the file cannot be read.
    pub fn last_content(&self) -> Option<&TaskFile> {
        self.content.as_ref().ok().or(self.mirrored.as_ref())
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

    fn make_tasks_directory(&self) -> Result<(), StoreError> {
        refuse_links(self.root())?;
        let tasks = self.tasks_directory();
        std::fs::create_dir_all(&tasks).map_err(|source| write_error(&tasks, source))
    }

    fn record(&self) -> ProjectRecord {
        ProjectRecord {
            root: self.root().to_path_buf(),
            vcs: self.project.vcs().to_string(),
            next_id: self.next_id,
            directory: self.identity.clone(),
            forgotten: self.is_forgotten,
        }
    }

    /// Writes the record if it has changed.
    fn save_record(&mut self) -> Result<(), StoreError> {
        let record = self.record();
        if self.written.as_ref() == Some(&record) {
            return Ok(());
        }
        self.mirrors
            .make_directory()
            .and_then(|()| record.write(&self.directory))
            .map_err(|source| write_error(&self.directory.join(project_record::FILE), source))?;
        self.written = Some(record);
        Ok(())
    }

    /// The tasks can be read without the record, so failing here must not hide them. The next call tries again.
    fn try_save_record(&mut self) {
        if let Err(cause) = self.save_record() {
            tracing::warn!(cause = %cause, source = ?std::error::Error::source(&cause), "the record of a project cannot be written");
        }
    }

    fn write(&self, name: &TaskName, path: &Path, file: &TaskFile) -> Result<(), StoreError> {
        let bytes = file.to_bytes();
        // The user's editor and tools use the file, so it gets the usual mode.
        let mode = path.symlink_metadata().map_or(0o644, |meta| meta.mode() & 0o777);
        atomic::write_with_mode(path, &bytes, mode).map_err(|source| write_error(path, source))?;
        self.mirrors.write(name, &bytes);
        Ok(())
    }

    /// Fails only before anything has changed. A problem in one file concerns only that task.
    fn refresh(&mut self) -> Result<Vec<TaskId>, StoreError> {
        refuse_links(self.root())?;
        // The user has moved or deleted the project. Its agents may still live, so its tasks stay known.
        if !self.root().is_dir() {
            return Ok(Vec::new());
        }
        let tasks = self.tasks_directory();
        let found = task_directory::list(&tasks).map_err(|source| read_error(&tasks, source))?;
        let (mut files, unused) = self.keep_one_per_id(found);
        let lost = self.mirrors.restore_deleted(&tasks, &mut files);
        self.unused = unused;
        let mut before = std::mem::take(&mut self.tasks);
        let mut changed = Vec::new();
        for (name, path) in files.into_values() {
            let stamp = stamp(&path);
            let task = match before.remove(&name.id) {
                Some(known) if stamp.is_some() && known.stamp == stamp && known.path == path => known,
                known => {
                    let task = self.read(name, path, stamp);
                    // A file that was restored from its mirror is not an edit of the user's: it is older than
                    // what the daemon is about to write.
                    if known.is_none_or(|known| known.content != task.content || known.path != task.path) {
                        changed.push(task.name.id);
                    }
                    task
                }
            };
            self.insert_task(task);
        }
        for LostFile { name, path, problem } in lost {
            self.insert_task(StoredTask { name, path, content: Err(problem), mirrored: None, stamp: None });
        }
        Ok(changed)
    }

    fn insert_task(&mut self, task: StoredTask) {
        let id = task.name.id;
        self.next_id = self.next_id.max(id.0 + 1);
        self.tasks.insert(id, task);
    }

    fn read(&self, name: TaskName, path: PathBuf, stamp: Option<Stamp>) -> StoredTask {
        match read(&path) {
            Ok(bytes) => {
                let content = TaskFile::parse(&bytes).map_err(|err| err.to_string());
                // A broken file must not replace a good mirror.
                if content.is_ok() {
                    self.mirrors.write(&name, &bytes);
                }
                let mirrored = if content.is_ok() { None } else { self.mirrors.read(&name) };
                StoredTask { name, path, content, mirrored, stamp }
            }
            // The problem may be temporary, so read the file again at the next refresh.
            Err(cause) => {
                let mirrored = self.mirrors.read(&name);
                StoredTask { name, path, content: Err(cause.to_string()), mirrored, stamp: None }
            }
        }
    }

    /// Chooses one file for each id. A second file must not replace the task that has the id.
    fn keep_one_per_id(&self, found: Vec<(TaskName, PathBuf)>) -> (Files, Vec<String>) {
        let (mut files, mut unused) = (Files::new(), Vec::new());
        for (name, path) in found {
            let loser = match files.entry(name.id) {
                Entry::Vacant(place) => {
                    place.insert((name, path));
                    continue;
                }
                Entry::Occupied(mut place)
                    if self.precedence(&name, &path) > self.precedence_of(place.get()) =>
                {
                    place.insert((name, path))
                }
                Entry::Occupied(_) => (name, path),
            };
            let (winner, _) = &files[&loser.0.id];
            unused.push(format!(
                "{} is not used: {winner} has the same id; give it another one",
                loser.1.display()
            ));
        }
        (files, unused)
    }

    fn precedence_of(&self, (name, path): &(TaskName, PathBuf)) -> Precedence {
        self.precedence(name, path)
    }

    fn precedence(&self, name: &TaskName, path: &Path) -> Precedence {
        if self.tasks.get(&name.id).is_some_and(|known| known.path == path) {
            Precedence::Known
        } else if self.mirrors.path(name).is_file() {
            Precedence::Mirrored
        } else {
            Precedence::New
        }
    }
}

/// Decides which of two files with one id is the task: the greater one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Precedence {
    New,
    Mirrored,
    Known,
}

/// Refuses symbolic links: a repository could make the daemon write anywhere.
fn refuse_links(root: &Path) -> Result<(), StoreError> {
    for name in [".agency", ".agency/tasks"] {
        let path = root.join(name);
        if path.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
            let problem = "it is a symbolic link, which is not followed: make it a directory";
            return Err(read_error(&path, io::Error::other(problem)));
        }
    }
    Ok(())
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = path.symlink_metadata().ok()?;
    Some(Stamp {
        inode: meta.ino(),
        modified: (meta.mtime(), meta.mtime_nsec()),
        changed: (meta.ctime(), meta.ctime_nsec()),
        len: meta.len(),
    })
}

fn remove_if_exists(path: &Path) -> Result<(), StoreError> {
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use agency_core::task_file::Fields;

    use super::*;

    const TEXT: &str = "---\nstatus: draft\n---\nx\n";

    struct TestStore {
        dir: tempfile::TempDir,
        store: Store,
    }

    impl TestStore {
        fn new() -> TestStore {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(dir.path().join("project/.agency/tasks")).unwrap();
            let store = Store::load(&StateDir::at(dir.path().join("state")), &[]).0;
            TestStore { dir, store }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.dir.path().join("project/.agency/tasks").join(name)
        }

        fn write(&self, name: &str) {
            std::fs::write(self.path(name), TEXT).unwrap();
        }

        fn open(&mut self) -> Result<(ProjectId, Vec<TaskId>), StoreError> {
            let root = self.dir.path().join("project");
            let plain = agency_workspace::Environment::inherited();
            self.store.open(Project::open_with(&root, Some(Vcs::Plain), plain).unwrap())
        }

        /// Returns every task, with its problem.
        fn tasks(&mut self) -> Vec<String> {
            let (id, _) = self.open().unwrap();
            let describe = |task: &StoredTask| match &task.content {
                Ok(_) => task.name.to_string(),
                Err(problem) => format!("{}: {problem}", task.name),
            };
            self.store.project(&id).unwrap().tasks.values().map(describe).collect()
        }

        fn unused(&self) -> Vec<String> {
            self.store.projects().flat_map(|(_, known)| known.unused.clone()).collect()
        }

        fn mirrors(&self) -> PathBuf {
            let (_, known) = self.store.projects().next().unwrap();
            known.directory.join("tasks")
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_breaks_only_its_task() {
        let mut test = TestStore::new();
        for name in ["1-one.md", "9-nine.md"] {
            test.write(name);
        }
        assert_eq!(test.tasks(), ["1-one", "9-nine"]);
        std::fs::create_dir(test.path("5-x.md")).unwrap();
        symlink("/dev/zero", test.path("6-x.md")).unwrap();
        symlink("/nowhere", test.path("7-x.md")).unwrap();
        let link = "it is a symbolic link, which is not followed";
        let expected = [
            "1-one".to_owned(),
            "5-x: it is not a regular file".to_owned(),
            format!("6-x: {link}"),
            format!("7-x: {link}"),
            "9-nine".to_owned(),
        ];
        assert_eq!(test.tasks(), expected);
        std::fs::remove_dir(test.path("5-x.md")).unwrap();
        test.write("5-x.md");
        assert_eq!(test.tasks()[1], "5-x");
    }

    #[test]
    fn a_mirror_that_cannot_be_written_or_read_stops_nothing() {
        let mut test = TestStore::new();
        assert!(test.tasks().is_empty());
        std::fs::create_dir(test.mirrors().join("1-one.md")).unwrap();
        test.write("1-one.md");
        test.write("2-two.md");
        assert_eq!(test.tasks(), ["1-one", "2-two"]);
        std::fs::remove_file(test.path("1-one.md")).unwrap();
        let gone = "it was deleted, and cannot be restored from its mirror: it is not a regular file";
        assert_eq!(test.tasks(), [format!("1-one: {gone}"), "2-two".to_owned()]);
    }

    #[test]
    fn a_directory_that_cannot_be_listed_loses_no_task() {
        let mut test = TestStore::new();
        test.write("1-one.md");
        test.tasks();
        let tasks = test.path("");
        std::fs::rename(&tasks, test.dir.path().join("aside")).unwrap();
        std::fs::write(test.dir.path().join("project/.agency/tasks"), "").unwrap();
        assert!(matches!(test.open(), Err(StoreError::Read { .. })));
        assert_eq!(test.store.projects().next().unwrap().1.tasks.len(), 1);
    }

    #[test]
    fn a_deleted_file_comes_back_and_a_renamed_one_does_not() {
        let mut test = TestStore::new();
        test.write("1-a.md");
        test.write("2-b.md");
        test.tasks();
        std::fs::remove_file(test.path("2-b.md")).unwrap();
        std::fs::rename(test.path("1-a.md"), test.path("1-renamed.md")).unwrap();
        assert_eq!(test.tasks(), ["1-renamed", "2-b"]);
        assert!(!test.path("1-a.md").exists());
        std::fs::remove_file(test.path("1-renamed.md")).unwrap();
        assert_eq!(test.tasks(), ["1-renamed", "2-b"]);
        assert_eq!(test.unused(), Vec::<String>::new());
    }

    #[test]
    fn a_renamed_task_keeps_its_new_name_in_the_next_daemon() {
        let mut test = TestStore::new();
        test.write("1-a.md");
        test.write("2-b.md");
        let (project, _) = test.open().unwrap();
        let key = TaskKey { project, task: TaskId(1) };
        test.store.rename(&key, Slug::new("c").unwrap()).unwrap();
        for _ in 0..2 {
            assert_eq!(test.tasks(), ["1-c", "2-b"]);
            assert!(!test.path("1-a.md").exists() && test.path("1-c.md").is_file());
            assert!(!test.mirrors().join("1-a.md").exists() && test.mirrors().join("1-c.md").is_file());
            test.store = Store::load(&StateDir::at(test.dir.path().join("state")), &[]).0;
        }
        test.write("1-d.md");
        let taken = test.store.rename(&key, Slug::new("d").unwrap());
        assert!(matches!(taken, Err(StoreError::IdTaken { .. })));
        assert_eq!(test.tasks(), ["1-c", "2-b"]);
    }

    #[test]
    fn a_second_file_with_an_id_is_reported_and_not_used() {
        let mut test = TestStore::new();
        test.write("1-mine.md");
        test.tasks();
        test.write("1-alien.md");
        let expected = format!(
            "{} is not used: 1-mine has the same id; give it another one",
            test.path("1-alien.md").display()
        );
        for _ in 0..2 {
            assert_eq!(test.tasks(), ["1-mine"]);
            assert_eq!(test.unused().as_slice(), std::slice::from_ref(&expected));
            // The next daemon finds the mirror of the known task.
            test.store = Store::load(&StateDir::at(test.dir.path().join("state")), &[]).0;
        }
        std::fs::remove_file(test.path("1-alien.md")).unwrap();
        assert_eq!(test.tasks(), ["1-mine"]);
        assert_eq!(test.unused(), Vec::<String>::new());
    }

    #[test]
    fn a_too_large_id_is_no_task_and_no_task_follows_the_largest_id() {
        let mut test = TestStore::new();
        test.write("18446744073709551615-x.md");
        assert!(test.tasks().is_empty());
        test.write("9007199254740992-x.md");
        assert_eq!(test.tasks(), ["9007199254740992-x"]);
        let (id, _) = test.open().unwrap();
        let name = test.store.next_name(&id, Slug::new("next").unwrap());
        let file = TaskFile::create(Fields::default(), Vec::new());
        assert!(matches!(test.store.create(&id, name, file), Err(StoreError::Write { .. })));
    }

    #[test]
    fn a_project_whose_directory_is_a_link_is_refused_and_not_written_through() {
        for linked in [".agency", ".agency/tasks"] {
            let mut test = TestStore::new();
            let (path, target) =
                (test.dir.path().join("project").join(linked), test.dir.path().join("elsewhere"));
            std::fs::remove_dir_all(&path).unwrap();
            std::fs::create_dir(&target).unwrap();
            symlink(&target, &path).unwrap();
            let err = test.open().expect_err("refused");
            assert!(matches!(&err, StoreError::Read { path: at, .. } if *at == path), "{err}");
            assert_eq!(std::fs::read_dir(&target).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_removed_task_that_cannot_be_kept_stays() {
        let mut test = TestStore::new();
        std::fs::create_dir(test.path("5-x.md")).unwrap();
        let (project, _) = test.open().unwrap();
        let key = TaskKey { project, task: TaskId(5) };
        let kept = test.path("kept");
        assert!(test.store.remove(&key, &kept).is_err());
        assert!(test.store.task(&key).is_some());
    }
}
