//! `run.json`: whose run this is. Written before the keeper starts; holds no prompt and no environment.

use std::io;
use std::path::PathBuf;

use agency_api::Bytes;
use agency_api::paths::{RunDir, StateDir};
use agency_core::ids::RunId;
use agency_driver::acp::{AcpTerms, McpServer};
use agency_driver::protocol_run::ConversationTerms;
use agency_store::atomic;
use serde::{Deserialize, Serialize};

/// The facts about a run that a later daemon needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunMeta {
    /// The run.
    pub run: RunId,
    /// Which machine it runs on. With a shared home, other machines see this file too.
    pub host: String,
    /// The machine's name for people.
    pub host_name: String,
    /// The root of the project.
    pub root: PathBuf,
    /// Its version control.
    pub vcs: String,
    /// The id of the task.
    pub task: u64,
    /// Its slug.
    pub slug: String,
    /// The name of the agent.
    pub agent: String,
    /// How Agency talks to the agent.
    pub driver: String,
    /// The name of the agent's program.
    #[serde(default)]
    pub program: String,
    /// The branch that the workspace started from.
    pub base_branch: Option<String>,
    /// For a session on a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acp: Option<AcpMeta>,
    /// For a terminal beside the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<ShellMeta>,
    /// RFC 3339.
    pub started_at: String,
    /// Counts the runs of a task.
    pub order: u64,
}

/// How a terminal beside the agent was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellMeta {
    /// Its name.
    pub name: String,
    /// Its command; `None` for the user's own shell.
    #[serde(default)]
    pub command: Option<Vec<Bytes>>,
}

/// How a session on a connection was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcpMeta {
    /// The name of its connection.
    #[serde(rename = "wire")]
    pub connection: String,
    /// The working directory.
    pub cwd: PathBuf,
    /// The session that it resumes.
    pub session_id: Option<String>,
    /// The session comes from another driver: the agent must resume it and must not open a new one.
    #[serde(default)]
    pub must_resume: bool,
    /// The mode of the agent.
    pub mode: Option<String>,
    /// The mode is the usual one of a built-in agent: the session may go on if the agent has no modes.
    #[serde(default)]
    pub is_mode_usual: bool,
    /// MCP servers that the agent may use.
    #[serde(default)]
    pub servers: Vec<McpServer>,
}

impl RunMeta {
    /// The connection that the session is on.
    pub fn connection_name(&self) -> Option<&str> {
        self.acp.as_ref().map(|acp| acp.connection.as_str())
    }

    /// The terms for the driver of the conversation.
    pub fn conversation_terms(&self) -> ConversationTerms {
        match &self.acp {
            None => ConversationTerms::Stream,
            Some(acp) => ConversationTerms::Acp(AcpTerms {
                run: self.run.0.clone(),
                cwd: acp.cwd.clone(),
                session_id: acp.session_id.clone(),
                must_resume: acp.must_resume,
                mode: acp.mode.clone(),
                is_mode_usual: acp.is_mode_usual,
                model: None,
                servers: acp.servers.clone(),
            }),
        }
    }

    /// Writes `run.json`.
    pub fn write(&self, dir: &RunDir) -> io::Result<()> {
        atomic::write(&dir.meta(), &serde_json::to_vec_pretty(self)?)
    }

    /// Reads `run.json`. `None` if there is no such file.
    pub fn load(dir: &RunDir) -> io::Result<Option<RunMeta>> {
        match std::fs::read(dir.meta()) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(err) => Err(err),
        }
    }

    /// `None` if the file is missing or invalid.
    pub fn read(dir: &RunDir) -> Option<RunMeta> {
        RunMeta::load(dir).ok().flatten()
    }

    /// The name of the task: `1-fix-login`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.task, self.slug)
    }

    /// The name that `ps` shows: `1-fix-login`, and `1-fix-login:server` for a terminal beside the agent.
    pub fn process_name(&self) -> String {
        match &self.shell {
            Some(shell) => format!("{}:{}", self.name(), shell.name),
            None => self.name(),
        }
    }
}

/// Every run that has a directory, oldest first.
pub fn all(state: &StateDir) -> Vec<(RunDir, RunMeta)> {
    let Ok(entries) = std::fs::read_dir(state.runs()) else { return Vec::new() };
    let mut runs: Vec<(RunDir, RunMeta)> = entries
        .flatten()
        .map(|entry| RunDir(entry.path()))
        .filter_map(|dir| RunMeta::read(&dir).map(|meta| (dir, meta)))
        .collect();
    runs.sort_by_key(|(_, meta)| meta.order);
    runs
}

/// The machine's name for people.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A random name, short enough for a socket path.
pub fn new_run_id() -> io::Result<RunId> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(|err| io::Error::other(err.to_string()))?;
    Ok(RunId(random.iter().map(|byte| LETTERS[usize::from(byte % 32)] as char).collect()))
}
