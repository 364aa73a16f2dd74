//! Workspaces that disappear while their agent is running: the daemon stops the agent and notifies the user. If the user
//! has moved the whole project, the agent goes on at the new place, and its task is listed there.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use agency_api::event::ErrorEvent;
use agency_api::{Failure, view};
use agency_core::config::Config;
use agency_core::ids::{ProjectId, TaskKey};
use agency_core::supervisor::{Event, Outcome, Refusal};
use agency_store::clock;
use agency_workspace::{Project, Vcs, WorkspaceName};
use rustix::fs::{Mode, OFlags};

use super::{Pending, World};

/// Where the workspaces of live agents are, even if the user moves them.
#[derive(Default)]
pub(super) struct Places {
    /// The directories themselves. The kernel knows the present path of each.
    directories: HashMap<TaskKey, OwnedFd>,
    /// Tasks whose project was moved as a whole, and its new root.
    moved: HashMap<TaskKey, PathBuf>,
}

impl Places {
    fn hold(&mut self, key: &TaskKey, path: &Path) {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(directory) => drop(self.directories.insert(key.clone(), directory)),
            Err(cause) => {
                tracing::debug!(task = %key, %cause, "the workspace cannot be followed if it is moved")
            }
        }
    }

    /// The agent of that task is over.
    pub(super) fn forget(&mut self, key: &TaskKey) {
        self.directories.remove(key);
        self.moved.remove(key);
    }

    /// The present root of the project, if the user has moved it together with this workspace.
    fn new_root(&self, key: &TaskKey, old_root: &Path, old_path: &Path) -> Option<PathBuf> {
        let directory = self.directories.get(key)?;
        let path = std::fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd())).ok()?;
        let below = old_path.strip_prefix(old_root).ok()?;
        let root: PathBuf = match below.as_os_str().is_empty() {
            true => path.clone(),
            false => path.ancestors().nth(below.components().count())?.to_owned(),
        };
        // A deleted directory has a path that does not exist.
        (root.join(below) == path && path.is_dir()).then_some(root)
    }
}

impl World {
    /// From now on the daemon learns of deletions in the directory that holds the workspace.
    pub(super) fn watch_workspace(&mut self, key: &TaskKey) {
        let Ok((project, name)) = self.workspace_of(key) else { return };
        let path = agency_workspace::workspace_path(&project, &name);
        self.workspaces.places.hold(key, &path);
        if let Some(parent) = path.parent().filter(|_| project.vcs() != Vcs::Plain) {
            self.workspaces.watch.add(parent);
        }
        self.workspaces.watch.add_itself(project.root());
    }

    pub(super) fn check_workspaces(&mut self) {
        let live: Vec<TaskKey> = self.supervisor.live_runs().map(|(key, _)| key.clone()).collect();
        live.iter().for_each(|key| self.check_workspace(key));
    }

    /// Stops the agent if its workspace is gone. Looks only if an agent is running and nothing else is under way.
    pub(super) fn check_workspace(&mut self, key: &TaskKey) {
        let Some(run) = self.supervisor.live_run(key).cloned() else { return };
        let Ok((project, name)) = self.workspace_of(key) else { return };
        if !agency_workspace::is_gone(&project, &name) {
            self.workspaces.places.moved.remove(key);
            return;
        }
        if self.supervisor.occupation(key).is_busy() || self.follow_moved_project(key, &project, &name) {
            return;
        }
        tracing::error!(task = %key, %run, "the workspace is gone; its agent is stopped");
        let now = clock::timestamp();
        if let Err(cause) = self.workspaces.records.change(key, |record| record.vanished = Some(now)) {
            tracing::warn!(task = %key, %cause, "cannot record that a workspace is gone");
        }
        let error =
            ErrorEvent::new("the workspace is gone", "its directory disappeared; the agent is stopped");
        self.announce(Some(key), Some(&run), error);
        let ticket = self.ticket(Pending::StopWithoutWorkspace { key: key.clone() });
        self.decide(Event::Stop { key: key.clone(), ticket });
    }

    /// Whether the user has moved the whole project. Then its agent goes on, and the next call from the new place
    /// finds it.
    fn follow_moved_project(&mut self, key: &TaskKey, project: &Project, name: &WorkspaceName) -> bool {
        if project.root().is_dir() {
            return false;
        }
        let path = agency_workspace::workspace_path(project, name);
        let Some(root) = self.workspaces.places.new_root(key, project.root(), &path) else { return false };
        if self.workspaces.places.moved.get(key) != Some(&root) {
            tracing::warn!(task = %key, root = %root.display(), "the project was moved; its agent goes on");
            let words = format!("it is in {} now, and its agent goes on there", root.display());
            self.announce(Some(key), None, ErrorEvent::new("the project was moved", words));
            self.workspaces.places.moved.insert(key.clone(), root);
        }
        true
    }

    /// The task under which the agent of `key` lives, if the user has moved the project since the agent began.
    pub(super) fn before_move(&self, key: &TaskKey) -> Option<TaskKey> {
        let known = self.store.project(&key.project)?;
        let name = &known.tasks.get(&key.task)?.name;
        let is_it = |(old, root): &(&TaskKey, &PathBuf)| {
            old.task == key.task
                && root.as_path() == known.root()
                && self.supervisor.live_run(old).is_some()
                && self.store.task(old).is_some_and(|task| task.name == *name)
        };
        self.workspaces.places.moved.iter().find(is_it).map(|(old, _)| old.clone())
    }

    /// Whether the agent of a task in a project that is gone is running, and the task is not known at a new place.
    pub(super) fn is_only_here(&self, key: &TaskKey) -> bool {
        let new_root = self.workspaces.places.moved.get(key);
        let is_known_there =
            new_root.is_some_and(|root| self.store.projects().any(|(_, known)| known.root() == root));
        self.supervisor.live_run(key).is_some() && !is_known_there
    }

    /// Shows a task. If its project was moved, its agent is known under the old place, and its files are at the new one.
    pub(super) fn view_where_it_is(&self, key: &TaskKey, config: &Config) -> Result<view::Task, Failure> {
        let here = self.view_with(key, config)?;
        let Some(old) = self.before_move(key) else { return Ok(here) };
        let agent = self.view_with(&old, config)?;
        let view::Task { project, worktree, file, .. } = here;
        Ok(view::Task { project, worktree, file, ..agent })
    }

    /// Whether the project is gone, and nothing of it can be shown but tasks whose agents are running.
    pub(super) fn is_project_gone(&self, id: &ProjectId) -> bool {
        self.store.project(id).is_some_and(|known| !known.root().is_dir())
    }

    /// Whether the project could not be opened: the user has moved it, or has deleted it.
    pub(super) fn is_out_of_reach(&self, key: &TaskKey) -> bool {
        self.store.project(&key.project).is_none()
    }

    pub(super) fn answer_stop_without_workspace(&mut self, key: &TaskKey, outcome: Result<Outcome, Refusal>) {
        match outcome {
            Ok(_) => {
                self.record_unexpected_end(key, None, "its workspace is gone, and it was stopped".to_owned())
            }
            Err(cause) => tracing::error!(task = %key, %cause, "an agent without a workspace is not stopped"),
        }
    }

    /// Records that the directory is there again.
    pub(super) fn record_presence(&mut self, key: &TaskKey) {
        if let Err(cause) = self.workspaces.records.change(key, |record| record.vanished = None) {
            tracing::warn!(task = %key, %cause, "cannot record that a workspace is there again");
        }
    }
}
