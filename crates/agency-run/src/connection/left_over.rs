//! The processes of connections that earlier daemons left, live and dead, and their sessions.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use agency_api::Bytes;
use agency_api::paths::{RunDir, StateDir};
use agency_core::ids::RunId;
use agency_core::tokens;
use agency_driver::acp::router::{Recipient, RoutedLine, Router};
use agency_journal::{Body, Limits, Reader, Stream, Writer};
use agency_keeper::keeper_search::FoundKeeper;
use agency_keeper::pidfile::PidFile;
use agency_keeper::platform;
use agency_keeper::run_lock::{LockState, lock_state};
use agency_store::clock;
use agency_store::epoch::DaemonEpoch;
use serde_json::Value;

use super::meta::{ConnectionMeta, ConnectionPlan};
use super::session::{self, JournalProgress, LinePosition};
use crate::fold;
use crate::keeper_socket::KeeperSocket;
use crate::run_meta::AcpMeta;

/// A session that an earlier daemon had opened.
#[derive(Debug)]
pub struct AdoptedSession {
    /// The run of the session.
    pub run: RunId,
    /// The directory of the run.
    pub dir: RunDir,
    /// How much of the connection's journal the session's journal holds.
    pub progress: JournalProgress,
}

/// A process of this host that left a directory.
#[derive(Debug)]
pub struct FoundConnection {
    /// Its directory.
    pub dir: RunDir,
    /// Whose process it is.
    pub meta: ConnectionMeta,
    /// Whether its keeper lives.
    pub lives: bool,
    /// The problem with its file, if there was one.
    pub problem: Option<String>,
}

/// Blocking. Every process of this host that left a directory, oldest first. `keepers` are the live keepers.
pub fn find_processes(
    state: &StateDir,
    epoch: &DaemonEpoch,
    keepers: &[FoundKeeper],
) -> Vec<FoundConnection> {
    let Ok(entries) = std::fs::read_dir(state.connections()) else { return Vec::new() };
    let dirs = entries.flatten().map(|entry| RunDir(entry.path()));
    let mut found: Vec<_> = dirs.filter_map(|dir| find_process(state, epoch, keepers, dir)).collect();
    found.sort_by(|one, other| one.meta.started_at.cmp(&other.meta.started_at));
    found
}

fn find_process(
    state: &StateDir,
    epoch: &DaemonEpoch,
    keepers: &[FoundKeeper],
    dir: RunDir,
) -> Option<FoundConnection> {
    let read = ConnectionMeta::load(&dir);
    if read.as_ref().is_ok_and(|meta| meta.as_ref().is_some_and(|meta| meta.host != state.host())) {
        return None;
    }
    let id = connection_id(&dir);
    let process = keepers.iter().find(|found| found.run_id == id);
    let pid_file = PidFile::read(&dir.pid_file()).ok().flatten();
    // The lock decides. Keepers of earlier versions do not lock a directory that was deleted and made again.
    let lives = matches!(lock_state(dir.path()), Ok(LockState::Held))
        || process.is_some()
        || pid_file.is_some_and(|pid_file| platform::is_alive(&pid_file.keeper));
    let unreadable = match read {
        Ok(Some(meta)) => return Some(FoundConnection { dir, meta, lives, problem: None }),
        Ok(None) => "it is missing".to_owned(),
        Err(cause) => cause.to_string(),
    };
    // The sessions of a dead process have journals of their own, so nothing is lost with its file.
    let meta = identify(state, epoch, &dir, process).filter(|_| lives)?;
    if let Err(cause) = meta.write(&dir) {
        tracing::warn!(%cause, connection = id, "cannot write the file of a connection again");
    }
    let path = ConnectionMeta::path(&dir);
    let problem =
        format!("{} could not be read: {unreadable}; it is written again from its keeper", path.display());
    tracing::warn!(connection = id, "{problem}");
    Some(FoundConnection { dir, meta, lives, problem: Some(problem) })
}

/// Asks a keeper whose file cannot be read. Keepers of earlier versions do not say it, but their name and the process do.
fn identify(
    state: &StateDir,
    epoch: &DaemonEpoch,
    dir: &RunDir,
    process: Option<&FoundKeeper>,
) -> Option<ConnectionMeta> {
    let socket = KeeperSocket::connect(dir, epoch)
        .inspect_err(|cause| tracing::warn!(%cause, "a keeper does not say which connection it holds"))
        .ok();
    let said = socket.as_ref().and_then(|socket| serde_json::from_value(socket.welcome.owner.clone()?).ok());
    said.or_else(|| {
        let name = process?.name.clone();
        let agent = name.split('@').next().unwrap_or(&name).to_owned();
        let child = socket.and_then(|socket| socket.welcome.child)?;
        let env = platform::environment_of(child.pid);
        let is_own = env.iter().any(|(variable, _)| variable == tokens::TASK_ID);
        let plan = ConnectionPlan { name, display_name: agent.clone(), agent, is_own };
        let argv = platform::arguments(child.pid).into_iter().map(Bytes).collect();
        let cwd = platform::working_directory(child.pid).unwrap_or_else(|| "/".into()).into();
        let (host, started_at) = (state.host().to_owned(), clock::timestamp());
        Some(ConnectionMeta { plan, host, started_at, argv, cwd, spare: Vec::new() })
    })
}

/// Blocking. How the session of a run was opened, from the lines on live connections.
pub fn find_session(state: &StateDir, keepers: &HashMap<String, FoundKeeper>, run: &str) -> Option<AcpMeta> {
    let entries = std::fs::read_dir(state.connections()).ok()?;
    let dirs = entries.flatten().map(|entry| RunDir(entry.path()));
    dirs.filter_map(|dir| session_on(&dir, keepers.get(&connection_id(&dir))?, run)).next()
}

fn session_on(dir: &RunDir, keeper: &FoundKeeper, run: &str) -> Option<AcpMeta> {
    let (mut router, mut reader) = (Router::default(), Reader::open(&dir.journal(), fold::unseal).ok()?);
    let mut found = None;
    while let Ok(Some(record)) = reader.next() {
        let Body::Input { bytes, .. } = &record.body else { continue };
        for RoutedLine { to, line, .. } in router.on_input(bytes, Duration::from_nanos(record.at_ns)) {
            let Ok(line) = serde_json::from_slice::<Value>(&line) else { continue };
            if to == Recipient::Run(run.to_owned())
                && let Some(cwd) = line["params"]["cwd"].as_str()
            {
                let session_id = line["params"]["sessionId"].as_str().map(str::to_owned);
                let (connection, cwd) = (keeper.name.clone(), cwd.into());
                let (must_resume, mode, servers) = (false, None, Vec::new());
                let is_mode_usual = false;
                found =
                    Some(AcpMeta { connection, cwd, session_id, must_resume, mode, is_mode_usual, servers });
            }
        }
    }
    found
}

/// Blocking. Copies the last lines of a dead process to the journals of its sessions.
pub fn recover_lines<'a>(dir: &RunDir, sessions: impl Iterator<Item = &'a AdoptedSession>) -> io::Result<()> {
    let id = connection_id(dir);
    let is_here = |adopted: &&AdoptedSession| adopted.progress.connection.as_deref() == Some(&id);
    let mut journals: HashMap<String, (Writer, LinePosition)> = HashMap::new();
    for adopted in sessions.filter(is_here).filter(|adopted| !adopted.progress.is_lost) {
        let writer = Writer::recover(&adopted.dir.journal(), Limits::PIPES)?;
        journals.insert(adopted.run.0.clone(), (writer, adopted.progress.last_line));
    }
    if journals.is_empty() {
        return Ok(());
    }
    let (mut router, mut reader) = (Router::default(), Reader::open(&dir.journal(), fold::unseal)?);
    while let Some(record) = reader.next()? {
        let at = Duration::from_nanos(record.at_ns);
        let (routed, from_agent) = match &record.body {
            Body::Output { stream: Stream::Stderr, .. } => continue,
            Body::Output { bytes, .. } => (router.on_output(bytes, at), true),
            Body::Input { bytes, .. } => (router.on_input(bytes, at), false),
            _ => continue,
        };
        for RoutedLine { to, line, .. } in routed {
            let Recipient::Run(run) = to else { continue };
            if let Some((writer, held)) = journals.get_mut(&run)
                && !held.covers(record.at_ns)
            {
                writer.append(record.at_ns, &session::line_body(from_agent, line))?;
            }
        }
    }
    Ok(())
}

/// Blocking. Ends the journals of sessions whose connection is gone for good.
pub fn close_sessions(sessions: &[AdoptedSession]) {
    for AdoptedSession { run, dir, progress } in sessions {
        if let Err(cause) = session::close(dir, progress, "the connection was gone") {
            tracing::error!(%run, %cause, "a session without a connection stays open");
        }
    }
}

/// Blocking. Deletes the directories of all but the newest dead processes. Their sessions' own journals hold every line.
pub fn delete_oldest(dead: &[RunDir]) {
    for dir in &dead[..dead.len().saturating_sub(DEAD_KEPT)] {
        if let Err(cause) = std::fs::remove_dir_all(dir.path()) {
            tracing::warn!(%cause, dir = %dir.path().display(), "cannot delete the directory of an old connection");
        }
    }
}

/// Enough to see why the last processes ended.
const DEAD_KEPT: usize = 5;

/// The id of a process is the name of its directory.
pub(super) fn connection_id(dir: &RunDir) -> String {
    dir.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
}
