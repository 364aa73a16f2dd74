//! `remarks.json` of a task: the user's remarks about its work. It is beside the record of the task's workspace.
//!
//! A file that cannot be read is never overwritten.

use std::io;
use std::path::PathBuf;

use agency_api::paths::{WorkspaceDir, create_private};
use agency_core::remark::Remark;
use serde::{Deserialize, Serialize};

use crate::atomic;

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedRemarks {
    last_id: u64,
    pub remarks: Vec<Remark>,
}

impl SavedRemarks {
    /// A number that no remark of the task had before.
    pub fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }
}

pub fn read(directory: &WorkspaceDir) -> io::Result<SavedRemarks> {
    match std::fs::read(path(directory)) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(SavedRemarks::default()),
        text => Ok(serde_json::from_slice(&text?)?),
    }
}

pub fn write(directory: &WorkspaceDir, saved: &SavedRemarks) -> io::Result<()> {
    create_private(directory.path())?;
    atomic::write(&path(directory), &serde_json::to_vec_pretty(saved)?)
}

pub fn path(directory: &WorkspaceDir) -> PathBuf {
    directory.path().join("remarks.json")
}

#[cfg(test)]
mod tests {
    use agency_core::remark::{Anchor, Delivery, Side, number_lines};

    use super::*;

    #[test]
    fn saved_remarks_are_read_back_and_a_broken_file_is_a_failure() {
        let home = tempfile::tempdir().unwrap();
        let directory = WorkspaceDir(home.path().join("w"));
        let mut saved = read(&directory).unwrap();
        let anchor = Anchor::at(Side::Old, &number_lines("a\nb\n"), 2);
        let (file, text, time) = (Some("ü".to_owned()), "why?".to_owned(), "t".to_owned());
        let id = saved.next_id();
        saved.remarks.push(Remark { id, file, anchor, text, time, delivery: Delivery::Leaving(3) });
        write(&directory, &saved).unwrap();
        let mut again = read(&directory).unwrap();
        assert_eq!(again, saved);
        assert_eq!(again.next_id(), 2);
        std::fs::write(path(&directory), "{").unwrap();
        assert!(read(&directory).is_err());
    }
}
