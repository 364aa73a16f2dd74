//! What the user agreed to run from a repository's own files: exactly that content, nothing later.

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

/// The user's word on one project.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Agreement {
    pub root: Option<Bytes>,
    pub agreed_at: Option<String>,
    /// Of contents and commands.
    pub digests: BTreeSet<String>,
    /// What of the configuration was shown when the last one was agreed to, to tell what has changed since.
    pub shown: Vec<String>,
}

/// As it may stand in the file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    /// Up to 0.1.0.
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

    /// What was last shown and agreed to; nothing before the first time.
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

    /// Remembers what was on the screen when the user agreed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_given_to_an_older_version_still_counts() {
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
