//! The record of each task's workspace in the state directory: its ports, how far it is set up, and the user's flags.
//!
//! It does not say whether the workspace exists. It never contains environment variables.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use agency_api::paths::{StateDir, WorkspaceDir, create_private};
use agency_core::ids::{ProjectId, TaskId, TaskKey};
use agency_core::tokens::Ports;
use serde::{Deserialize, Serialize};

use crate::{atomic, ports};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceRecord {
    #[serde(default)]
    port: Option<u16>,
    #[serde(default)]
    ports: u16,
    #[serde(default)]
    pub setup: SetupProgress,
    /// The `AGENCY_RUN_ID` of all processes that its setup and teardown commands start.
    #[serde(default)]
    pub run: Option<String>,
    /// A daemon started commands and has not recorded their end.
    #[serde(default)]
    pub at_work: bool,
    /// A daemon began to merge the work and has not recorded the end.
    #[serde(default)]
    pub merging: bool,
    /// A daemon began to sync the workspace, or to restore its files, and has not recorded the end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub syncing: bool,
    /// When a daemon found an interrupted merge and undid it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_cut_off: Option<String>,
    /// The branch that the work was merged into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<String>,
    /// The agent ended although no caller asked for it, and was not started again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub agent_cut_off: bool,
    /// When the daemon found that the directory was gone while the agent ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vanished: Option<String>,
    /// When a user last looked at the task, in RFC 3339. Written at most once a minute while the user looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looked_at: Option<String>,
    /// The user wants the task at the top of lists.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// Until when the user has put the task off, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snoozed_until: Option<String>,
    /// When the user put it off, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snoozed_at: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetupProgress {
    /// There is nothing to set up: the project has neither setup commands nor files to copy, or there is no workspace.
    #[default]
    None,
    /// The setup has not run, or was interrupted.
    Pending,
    Failed,
    Skipped,
    Done,
}

impl SetupProgress {
    pub fn is_owed(self) -> bool {
        matches!(self, SetupProgress::Pending | SetupProgress::Failed)
    }
}

impl WorkspaceRecord {
    pub fn ports(&self) -> Option<Ports> {
        self.port.filter(|_| self.ports > 0).map(|first| Ports { first, count: self.ports })
    }
}

/// The records of all tasks of all projects. Projects that cannot be opened are included, because they keep their
/// ports.
pub struct WorkspaceRecords {
    state: StateDir,
    known: BTreeMap<TaskKey, WorkspaceRecord>,
}

impl WorkspaceRecords {
    pub fn load(state: &StateDir) -> WorkspaceRecords {
        let mut known = BTreeMap::new();
        for (project, directory) in entries(&state.projects()) {
            for (task, directory) in entries(&directory.join("w")) {
                let record = read(&WorkspaceDir(directory));
                if let (Ok(task), Some(record)) = (task.parse(), record) {
                    known.insert(TaskKey { project: ProjectId(project.clone()), task: TaskId(task) }, record);
                }
            }
        }
        WorkspaceRecords { state: state.clone(), known }
    }

    pub fn get(&self, key: &TaskKey) -> WorkspaceRecord {
        self.known.get(key).cloned().unwrap_or_default()
    }

    pub fn all(&self) -> impl Iterator<Item = (&TaskKey, &WorkspaceRecord)> {
        self.known.iter()
    }

    pub fn directory(&self, key: &TaskKey) -> WorkspaceDir {
        self.state.workspace(&key.project.0, key.task.0)
    }

    /// Changes a record on disk first, then in memory.
    pub fn change(&mut self, key: &TaskKey, change: impl FnOnce(&mut WorkspaceRecord)) -> io::Result<()> {
        let before = self.get(key);
        let mut record = before.clone();
        change(&mut record);
        if record == before {
            return Ok(());
        }
        let directory = self.directory(key);
        create_private(directory.path())?;
        atomic::write(&directory.record(), &serde_json::to_vec_pretty(&record)?)?;
        self.known.insert(key.clone(), record);
        Ok(())
    }

    /// Returns the workspace's ports, and chooses them if it has none. A later change of configuration does not change
    /// them.
    pub fn ports(&mut self, key: &TaskKey, base: u32, count: u32) -> io::Result<Option<Ports>> {
        if let Some(ports) = self.get(key).ports() {
            return Ok(Some(ports));
        }
        let taken: Vec<Ports> = self.known.values().filter_map(WorkspaceRecord::ports).collect();
        let Some(chosen) = ports::choose(base, count, &taken, &ports::ephemeral(), ports::is_free) else {
            return Ok(None);
        };
        self.change(key, |record| {
            record.port = Some(chosen.first);
            record.ports = chosen.count;
        })?;
        Ok(Some(chosen))
    }

    /// The task is removed: frees its ports and moves the record to `aside`.
    pub fn move_record(&mut self, key: &TaskKey, aside: &Path) {
        let directory = self.directory(key);
        self.known.remove(key);
        if !directory.path().exists() {
            return;
        }
        if let Err(cause) = std::fs::rename(directory.path(), aside) {
            tracing::warn!(task = %key, %cause, "the record of a workspace could not be moved to the trash");
        }
    }

    /// The task is restored: moves the record back. It loses its ports if another workspace has them now.
    pub fn restore_record(&mut self, key: &TaskKey, aside: &Path) -> io::Result<()> {
        let directory = self.directory(key);
        if aside.is_dir() {
            create_private(&self.state.project(&key.project.0).join("w"))?;
            std::fs::rename(aside, directory.path())?;
        }
        let Some(mut record) = read(&directory) else { return Ok(()) };
        let overlaps = |ports: Ports| {
            let others = self.known.values().filter_map(WorkspaceRecord::ports);
            let ends = |ports: Ports| u32::from(ports.first) + u32::from(ports.count);
            others
                .into_iter()
                .any(|other| u32::from(ports.first) < ends(other) && u32::from(other.first) < ends(ports))
        };
        if record.ports().is_some_and(overlaps) {
            (record.port, record.ports) = (None, 0);
        }
        record.at_work = false;
        atomic::write(&directory.record(), &serde_json::to_vec_pretty(&record)?)?;
        self.known.insert(key.clone(), record);
        Ok(())
    }

    /// The user has moved the project: the record goes with the task, unless the task has a new one already.
    pub fn follow_move(&mut self, from: &TaskKey, to: &TaskKey) -> io::Result<()> {
        if self.known.contains_key(to) {
            self.forget(from);
        }
        if !self.directory(from).path().exists() {
            return Ok(());
        }
        create_private(&self.state.project(&to.project.0).join("w"))?;
        std::fs::rename(self.directory(from).path(), self.directory(to).path())?;
        if let Some(record) = self.known.remove(from) {
            self.known.insert(to.clone(), record);
        }
        Ok(())
    }

    /// The task is gone: frees its ports and deletes the record.
    pub fn forget(&mut self, key: &TaskKey) {
        self.known.remove(key);
        let directory = self.directory(key);
        match std::fs::remove_dir_all(directory.path()) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(task = %key, %cause, "the record of a workspace cannot be deleted");
            }
            _ => {}
        }
    }
}

fn entries(directory: &std::path::Path) -> Vec<(String, std::path::PathBuf)> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let named = |entry: std::fs::DirEntry| Some((entry.file_name().into_string().ok()?, entry.path()));
    entries.flatten().filter_map(named).collect()
}

fn read(directory: &WorkspaceDir) -> Option<WorkspaceRecord> {
    let bytes = std::fs::read(directory.record()).ok()?;
    match serde_json::from_slice(&bytes) {
        Ok(record) => Some(record),
        Err(cause) => {
            tracing::warn!(record = %directory.record().display(), %cause, "the record of a workspace cannot be read");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(task: u64) -> TaskKey {
        TaskKey { project: ProjectId("p1".to_owned()), task: TaskId(task) }
    }

    #[test]
    fn ports_outlive_the_daemon_and_are_free_after_the_task() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::at(home.path().to_path_buf());
        let mut records = WorkspaceRecords::load(&state);
        let first = records.ports(&key(1), 20_000, 4).unwrap().unwrap();
        let second = records.ports(&key(2), 20_000, 4).unwrap().unwrap();
        assert!(second.first >= first.first + 4);
        let mut again = WorkspaceRecords::load(&state);
        assert_eq!(
            again.ports(&key(1), 30_000, 9).unwrap(),
            Some(first),
            "a later configuration changes nothing"
        );
        again.forget(&key(1));
        assert_eq!(again.get(&key(1)), WorkspaceRecord::default());
        assert!(!again.directory(&key(1)).path().exists());
        assert_eq!(WorkspaceRecords::load(&state).all().count(), 1);
        assert_eq!(records.ports(&key(3), 20_000, 0).unwrap(), None);
    }

    #[test]
    fn a_moved_record_comes_back_with_its_ports_unless_another_task_has_them() {
        let home = tempfile::tempdir().unwrap();
        let (state, aside) = (StateDir::at(home.path().to_path_buf()), home.path().join("aside"));
        let mut records = WorkspaceRecords::load(&state);
        let first = records.ports(&key(1), 20_000, 4).unwrap().unwrap();
        records.change(&key(1), |record| record.setup = SetupProgress::Done).unwrap();
        records.move_record(&key(1), &aside);
        assert_eq!(records.get(&key(1)), WorkspaceRecord::default());
        records.restore_record(&key(1), &aside).unwrap();
        assert_eq!(
            (records.get(&key(1)).ports(), records.get(&key(1)).setup),
            (Some(first), SetupProgress::Done)
        );
        records.move_record(&key(1), &aside);
        assert_eq!(records.ports(&key(2), 20_000, 4).unwrap(), Some(first));
        records.restore_record(&key(1), &aside).unwrap();
        assert_eq!((records.get(&key(1)).ports(), records.get(&key(1)).setup), (None, SetupProgress::Done));
        records.restore_record(&key(3), &aside).unwrap();
    }

    #[test]
    fn a_record_that_cannot_be_moved_stays_and_its_ports_are_free() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::at(home.path().to_path_buf());
        let mut records = WorkspaceRecords::load(&state);
        let ports = records.ports(&key(1), 20_000, 4).unwrap();
        records.move_record(&key(1), &home.path().join("nowhere").join("aside"));
        assert!(records.directory(&key(1)).record().exists());
        assert_eq!(records.ports(&key(2), 20_000, 4).unwrap(), ports);
    }

    #[test]
    fn a_change_is_on_disk_at_once_and_a_broken_record_is_ignored() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::at(home.path().to_path_buf());
        let mut records = WorkspaceRecords::load(&state);
        records.change(&key(1), |record| record.setup = SetupProgress::Pending).unwrap();
        assert_eq!(WorkspaceRecords::load(&state).get(&key(1)).setup, SetupProgress::Pending);
        std::fs::write(records.directory(&key(1)).record(), "{").unwrap();
        assert_eq!(WorkspaceRecords::load(&state).get(&key(1)), WorkspaceRecord::default());
    }
}
