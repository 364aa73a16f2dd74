//! The processes of connections that earlier daemons left, live and dead, and their sessions.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use agency_api::paths::{RunDir, StateDir};
use agency_core::ids::RunId;
use agency_driver::acp::router::{Recipient, RoutedLine, Router};
use agency_journal::{Body, Limits, Reader, Stream, Writer};
use agency_keeper::pidfile::PidFile;
use agency_keeper::platform;

use super::meta::ConnectionMeta;
use super::session::{self, JournalProgress};
use crate::fold;

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

/// Every process of this host that left a directory: the directory, whose process it is, and whether it lives.
pub fn find_processes(state: &StateDir) -> Vec<(RunDir, ConnectionMeta, bool)> {
    let Ok(entries) = std::fs::read_dir(state.connections()) else { return Vec::new() };
    let dirs = entries.flatten().map(|entry| RunDir(entry.path()));
    let known = dirs.filter_map(|dir| ConnectionMeta::read(&dir).map(|meta| (dir, meta)));
    let ours = known.filter(|(_, meta)| meta.host == state.host());
    let mut found: Vec<_> = ours
        .map(|(dir, meta)| {
            let pid_file = PidFile::read(&dir.pid_file()).ok().flatten();
            let lives = pid_file.is_some_and(|pid_file| platform::is_alive(&pid_file.keeper));
            (dir, meta, lives)
        })
        .collect();
    found.sort_by(|(_, one, _), (_, other, _)| one.started_at.cmp(&other.started_at));
    found
}

/// Blocking. Copies the last lines of a dead process to the journals of its sessions.
pub fn recover_lines<'a>(dir: &RunDir, sessions: impl Iterator<Item = &'a AdoptedSession>) -> io::Result<()> {
    let id = connection_id(dir);
    let is_here = |adopted: &&AdoptedSession| adopted.progress.connection.as_deref() == Some(&id);
    let mut journals: HashMap<String, (Writer, u64)> = HashMap::new();
    for adopted in sessions.filter(is_here).filter(|adopted| !adopted.progress.is_lost) {
        let writer = Writer::recover(&adopted.dir.journal(), Limits::PIPES)?;
        journals.insert(adopted.run.0.clone(), (writer, adopted.progress.lines.saturating_sub(1)));
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
            match journals.get_mut(&run) {
                Some((_, skip)) if *skip > 0 => *skip -= 1,
                Some((writer, _)) => {
                    writer.append(record.at_ns, &session::line_body(from_agent, line))?;
                }
                None => {}
            }
        }
    }
    Ok(())
}

/// Blocking. Ends the journals of sessions whose connection is gone for good.
pub fn close_sessions(sessions: &[AdoptedSession]) -> io::Result<()> {
    sessions.iter().try_for_each(|adopted| session::close(&adopted.dir, "the connection was gone"))
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
