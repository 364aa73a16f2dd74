//! The pid file of a run: the identities of the keeper and of the agent.
//!
//! Written atomically. A reader must compare identities, because the file can outlive both processes.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use agency_api::ProcessIdentity;
use serde::{Deserialize, Serialize};

/// The contents of the pid file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PidFile {
    /// The keeper's own process.
    pub keeper: ProcessIdentity,
    /// The agent. `None` until it is started, or if a rescue did not find it.
    #[serde(default)]
    pub child: Option<ProcessIdentity>,
}

impl PidFile {
    /// Reads the file. `Ok(None)` if there is none: no keeper runs here, and none was killed.
    pub fn read(path: &Path) -> io::Result<Option<PidFile>> {
        match fs::read(path) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// Replaces the file.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let unfinished = path.with_extension("tmp");
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        fs::rename(&unfinished, path)
    }

    /// Removes the file if it still names this keeper.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        match PidFile::read(path)? {
            Some(found) if found.keeper == self.keeper => fs::remove_file(path),
            _ => Ok(()),
        }
    }
}
