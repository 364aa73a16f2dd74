//! The user's consent to configuration and commands of a repository.
//!
//! Consent is for one exact content. A later change needs consent again.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use agency_api::Bytes;
use agency_api::paths::StateDir;
use agency_core::ids::ProjectId;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{atomic, clock};

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct TrustBook {
    #[serde(default)]
    projects: BTreeMap<ProjectId, Agreement>,
}

/// The user's consent for one project.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Agreement {
    pub root: Option<Bytes>,
    pub agreed_at: Option<String>,
    /// Digests of the files and commands that the user agreed to.
    pub digests: BTreeSet<String>,
    /// The configuration that the user saw when they last agreed. Shows them later what has changed.
    pub shown: Vec<String>,
}

/// The forms that the file may have.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    /// The form of versions up to 0.1.0.
    Digests(BTreeSet<String>),
    Whole {
        #[serde(default)]
        root: Option<Bytes>,
        #[serde(default)]
        agreed_at: Option<String>,
        #[serde(default)]
        digests: BTreeSet<String>,
        #[serde(default)]
        shown: Vec<String>,
    },
}

impl From<Written> for Agreement {
    fn from(written: Written) -> Agreement {
        match written {
            Written::Digests(digests) => Agreement { digests, ..Agreement::default() },
            Written::Whole { root, agreed_at, digests, shown } => {
                Agreement { root, agreed_at, digests, shown }
            }
        }
    }
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
        self.projects.get(project).is_some_and(|agreed| agreed.digests.contains(digest))
    }

    pub fn agreements(&self) -> impl Iterator<Item = (&ProjectId, &Agreement)> {
        self.projects.iter()
    }

    /// Returns the configuration that the user saw when they last agreed; none before the first time.
    pub fn shown(&self, project: &ProjectId) -> Option<&[String]> {
        self.projects.get(project).map(|agreed| agreed.shown.as_slice()).filter(|shown| !shown.is_empty())
    }

    pub fn agree(
        &mut self,
        state: &StateDir,
        project: &ProjectId,
        root: &Path,
        digest: String,
    ) -> io::Result<()> {
        if self.trusts(project, &digest) {
            return Ok(());
        }
        let agreed = self.projects.entry(project.clone()).or_default();
        agreed.root = Some(root.into());
        agreed.agreed_at = Some(clock::timestamp());
        agreed.digests.insert(digest);
        self.save(state)
    }

    /// Stores the configuration that the user saw when they agreed.
    pub fn remember_shown(
        &mut self,
        state: &StateDir,
        project: &ProjectId,
        shown: Vec<String>,
    ) -> io::Result<()> {
        match self.projects.get_mut(project) {
            Some(agreed) if agreed.shown != shown => agreed.shown = shown,
            _ => return Ok(()),
        }
        self.save(state)
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

/// Returns the digest of a content. SHA-256, so that the author of a repository cannot make two contents with one
/// digest.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consent_given_to_an_older_version_still_counts() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::at(home.path().to_path_buf());
        std::fs::write(state.trust(), br#"{"projects": {"p1": ["d1", "d2"]}}"#).unwrap();
        let mut book = TrustBook::load(&state).unwrap();
        let project = ProjectId("p1".to_owned());
        assert!(book.trusts(&project, "d1") && !book.trusts(&project, "d3"));
        book.agree(&state, &project, Path::new("/r"), "d3".to_owned()).unwrap();
        book.remember_shown(&state, &project, vec!["a".to_owned()]).unwrap();
        let again = TrustBook::load(&state).unwrap();
        assert!(["d1", "d2", "d3"].iter().all(|digest| again.trusts(&project, digest)));
        assert_eq!(again.shown(&project), Some(["a".to_owned()].as_slice()));
        book.revoke(&state, &project).unwrap();
        assert_eq!(TrustBook::load(&state).unwrap().agreements().count(), 0);
    }
}
