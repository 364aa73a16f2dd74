//! The pid file of a run: who keeps it and who is kept.
//!
//! Written whole or not at all. Whoever reads it must compare identities: the file can outlive both.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use agency_api::ProcessIdentity;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PidFile {
    pub keeper: ProcessIdentity,
    /// `None` until the agent is started, or when a rescue did not find it.
    #[serde(default)]
    pub child: Option<ProcessIdentity>,
}

impl PidFile {
    /// `Ok(None)`: there is no such file, so no keeper has not cleaned up.
    pub fn read(path: &Path) -> io::Result<Option<PidFile>> {
        match fs::read(path) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(err) => Err(err),
        }
    }

    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let unfinished = path.with_extension("tmp");
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        fs::rename(&unfinished, path)
    }

    /// Removes the file if it still speaks of this keeper.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        match PidFile::read(path)? {
            Some(found) if found.keeper == self.keeper => fs::remove_file(path),
            _ => Ok(()),
        }
    }
}
