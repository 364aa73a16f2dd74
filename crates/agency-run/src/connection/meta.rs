//! `wire.json`: whose process this is, and how it was started. Holds no environment.

use std::io;
use std::path::PathBuf;

use agency_api::Bytes;
use agency_api::paths::RunDir;
use agency_store::atomic;
use serde::{Deserialize, Serialize};

/// Which connection a process serves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionPlan {
    /// The agent's name, with a suffix if not all tasks share its process.
    pub name: String,
    /// The name of the agent.
    pub agent: String,
    /// The name of the agent for people.
    pub display_name: String,
    /// The connection serves one task and ends with it.
    pub is_own: bool,
}

/// The facts that a later daemon needs to adopt the process of a connection.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConnectionMeta {
    /// Which connection it is.
    #[serde(flatten)]
    pub plan: ConnectionPlan,
    /// Which machine it runs on.
    pub host: String,
    /// RFC 3339.
    pub started_at: String,
    pub(super) argv: Vec<Bytes>,
    pub(super) cwd: Bytes,
    pub(super) spare: Vec<String>,
}

impl ConnectionMeta {
    pub(super) fn path(dir: &RunDir) -> PathBuf {
        dir.path().join("wire.json")
    }

    /// `None` if there is no such file.
    pub(super) fn load(dir: &RunDir) -> io::Result<Option<ConnectionMeta>> {
        match std::fs::read(ConnectionMeta::path(dir)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(err) => Err(err),
        }
    }

    pub(super) fn write(&self, dir: &RunDir) -> io::Result<()> {
        atomic::write(&ConnectionMeta::path(dir), &serde_json::to_vec_pretty(self)?)
    }
}
