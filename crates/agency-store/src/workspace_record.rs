//! What is kept of each task's workspace beside the repository: its ports, and how far it is set up.
//!
//! Not the workspace itself, nor whether it is there. No environment is ever written here.

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
    /// The `AGENCY_RUN_ID` of all that its commands start.
    #[serde(default)]
    pub run: Option<String>,
    /// Commands were started, and nobody has seen their end.
    #[serde(default)]
    pub at_work: bool,
    /// A merge of its work was begun, and nobody has written down its end.
    #[serde(default)]
    pub merging: bool,
    /// A sync of it was begun, and nobody has written down its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub syncing: bool,
    /// When a merge of its work was found to be cut off, and was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_cut_off: Option<String>,
    /// The branch that its work was merged into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<String>,
    /// When its directory was found gone under its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vanished: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SetupProgress {
    /// There was never anything to do.
    #[default]
    None,
    /// Still to be done, or cut short.
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

/// Of every task of every project, those out of reach included: their ports are theirs.
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

    /// Written before it counts.
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

    /// The workspace's own ports, given to it now if it has none. Those it has stay, whatever is configured since.
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

    /// The task is removed: its ports may be given to another, and the rest is kept as `aside`.
    pub fn move_record(&mut self, key: &TaskKey, aside: &Path) {
        let directory = self.directory(key);
        self.known.remove(key);
        if !directory.path().exists() {
            return;
        }
        if let Err(cause) = std::fs::rename(directory.path(), aside) {
            tracing::warn!(task = %key, %cause, "what was kept of a workspace is not kept with its task");
        }
    }

    /// The task is back. Ports that others were given meanwhile are theirs.
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

    /// The task is gone: its ports may be given to another.
    pub fn forget(&mut self, key: &TaskKey) {
        self.known.remove(key);
        let directory = self.directory(key);
        match std::fs::remove_dir_all(directory.path()) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(task = %key, %cause, "what was kept of a workspace stays behind");
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
            tracing::warn!(record = %directory.record().display(), %cause, "a workspace's record is unreadable");
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
    fn ports_outlive_the_daemon_and_are_given_back_with_the_task() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::at(home.path().to_path_buf());
        let mut records = WorkspaceRecords::load(&state);
        let first = records.ports(&key(1), 20_000, 4).unwrap().unwrap();
        let second = records.ports(&key(2), 20_000, 4).unwrap().unwrap();
        assert!(second.first >= first.first + 4);
        let mut again = WorkspaceRecords::load(&state);
        assert_eq!(again.ports(&key(1), 30_000, 9).unwrap(), Some(first), "whatever is configured since");
        again.forget(&key(1));
        assert_eq!(again.get(&key(1)), WorkspaceRecord::default());
        assert!(!again.directory(&key(1)).path().exists());
        assert_eq!(WorkspaceRecords::load(&state).all().count(), 1);
        assert_eq!(records.ports(&key(3), 20_000, 0).unwrap(), None);
    }

    #[test]
    fn what_was_move_record_comes_back_with_its_ports_unless_they_were_given_away() {
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
    fn what_cannot_be_move_record_stays_and_its_ports_are_free() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::at(home.path().to_path_buf());
        let mut records = WorkspaceRecords::load(&state);
        let ports = records.ports(&key(1), 20_000, 4).unwrap();
        records.move_record(&key(1), &home.path().join("nowhere").join("aside"));
        assert!(records.directory(&key(1)).record().exists());
        assert_eq!(records.ports(&key(2), 20_000, 4).unwrap(), ports);
    }

    #[test]
    fn a_mark_is_written_before_it_counts() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::at(home.path().to_path_buf());
        let mut records = WorkspaceRecords::load(&state);
        records.change(&key(1), |record| record.setup = SetupProgress::Pending).unwrap();
        assert_eq!(WorkspaceRecords::load(&state).get(&key(1)).setup, SetupProgress::Pending);
        std::fs::write(records.directory(&key(1)).record(), "{").unwrap();
        assert_eq!(WorkspaceRecords::load(&state).get(&key(1)), WorkspaceRecord::default());
    }
}
