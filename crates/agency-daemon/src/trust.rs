//! What the user agreed to run from a repository's own files: exactly that content, nothing later.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use agency_api::paths::StateDir;
use agency_core::ids::ProjectId;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::atomic;

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TrustBook {
    /// Digests of agreed contents, by project.
    #[serde(default)]
    projects: BTreeMap<ProjectId, BTreeSet<String>>,
}

impl TrustBook {
    pub fn load(state: &StateDir) -> io::Result<TrustBook> {
        match std::fs::read(state.trust()) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(TrustBook::default()),
            Err(err) => Err(err),
        }
    }

    pub fn trusts(&self, project: &ProjectId, digest: &str) -> bool {
        self.projects.get(project).is_some_and(|agreed| agreed.contains(digest))
    }

    pub fn agree(&mut self, state: &StateDir, project: &ProjectId, digest: String) -> io::Result<()> {
        if self.projects.entry(project.clone()).or_default().insert(digest) {
            self.save(state)?;
        }
        Ok(())
    }

    pub fn revoke(&mut self, state: &StateDir, project: &ProjectId) -> io::Result<()> {
        if self.projects.remove(project).is_some() {
            self.save(state)?;
        }
        Ok(())
    }

    fn save(&self, state: &StateDir) -> io::Result<()> {
        atomic::write(&state.trust(), &serde_json::to_vec_pretty(self)?)
    }
}

/// Names a content. A collision must be out of reach for whoever writes the repository.
pub fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digest of a command that a task file asks to run.
pub fn command_digest(command: &[String]) -> String {
    let mut content = b"command\0".to_vec();
    for word in command {
        content.extend_from_slice(word.as_bytes());
        content.push(0);
    }
    digest(&content)
}
