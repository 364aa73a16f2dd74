//! The process of a connection, and what the daemon knows about it.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use agency_api::Failure;
use agency_core::ids::RunId;
use agency_core::plain::one_line;
use agency_driver::acp::router::{Capabilities, Router};
use agency_journal::{Body, ExitStatus, GapCause, Record};
use serde_json::Value;
use tokio::sync::oneshot;

use super::left_over::AdoptedSession;
use super::session::{RoutingFacts, ToSession};
use crate::keeper_link::KeeperLink;
use crate::line_queue::LineQueue;

/// The end of its standard error, to explain why it ended.
const STDERR_TAIL_BYTES: usize = 2_000;

pub(super) struct Process {
    pub(super) attempt: u64,
    pub(super) link: KeeperLink,
    pub(super) router: Router,
    pub(super) lines: LineQueue<LineSender>,
    pub(super) next_seq: u64,
    /// The time of the last record.
    last_at_ns: u64,
    /// Bytes of output that the disk did not take and the keeper has shown to this daemon. `None` while the daemon reads
    /// the journal of an earlier daemon.
    pub(super) shown_unwritten: Option<u64>,
    /// The journal lacks lines.
    pub(super) has_gap: bool,
    pub(super) greeting: Greeting,
    pub(super) kill: Option<Kill>,
    /// It has closed its input or its output, and its end has not been reported.
    pub(super) is_closed: bool,
    stderr_tail: Vec<u8>,
    pub(super) exit: Option<ExitStatus>,
    /// Callers that wait for the agent's answer, by the id of the request.
    pub(super) requests: BTreeMap<String, oneshot::Sender<Result<Value, Failure>>>,
    /// The keys of owed lines that are on their way.
    owed_keys: Vec<String>,
}

/// How far the ACP handshake (`initialize`) is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Greeting {
    Pending,
    Accepted,
    Failed,
}

/// A process that did not end by itself gets SIGTERM at a time, and SIGKILL after the grace.
pub(super) struct Kill {
    pub(super) at: Duration,
    pub(super) grace: Duration,
}

/// The sender of a line, which waits until the line is written.
pub(super) enum LineSender {
    /// The connection itself: it does not wait.
    Connection,
    Session {
        run: RunId,
        id: u64,
    },
}

impl Process {
    pub(super) fn new(attempt: u64, link: KeeperLink) -> Process {
        Process {
            attempt,
            link,
            router: Router::default(),
            lines: LineQueue::default(),
            next_seq: 0,
            last_at_ns: 0,
            shown_unwritten: Some(0),
            has_gap: false,
            greeting: Greeting::Pending,
            kill: None,
            is_closed: false,
            stderr_tail: Vec::new(),
            exit: None,
            requests: BTreeMap::new(),
            owed_keys: Vec::new(),
        }
    }

    pub(super) fn is_greeted(&self) -> bool {
        self.greeting == Greeting::Accepted
    }

    /// Whether the agent offers a list of its sessions.
    pub(super) fn lists_sessions(&self) -> bool {
        matches!(self.router.greeting(), Some(Ok(greeting)) if greeting.capabilities.list)
    }

    /// The handshake as the router has read it.
    pub(super) fn read_greeting(&self) -> Greeting {
        match self.router.greeting() {
            None => Greeting::Pending,
            Some(Ok(_)) => Greeting::Accepted,
            Some(Err(_)) => Greeting::Failed,
        }
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.kill.as_ref().map(|kill| kill.at)
    }

    /// The first message to a session: the agent has answered `initialize`. `at` is when the session learns it, because the
    /// time limit of its opening begins then.
    pub(super) fn connected_message(&self, at: Duration) -> Option<ToSession> {
        let Some(Ok(greeted)) = self.router.greeting() else { return None };
        Some(ToSession::Connected {
            connection: self.link.context.id.0.clone(),
            answer: greeted.line.clone(),
            at_ns: at.as_nanos() as u64,
        })
    }

    /// The time of the newest record.
    pub(super) fn last_record_at(&self) -> Duration {
        Duration::from_nanos(self.last_at_ns)
    }

    /// Keeps the time of a record, and counts output that is in no file.
    pub(super) fn note_record(&mut self, record: &Record) {
        self.last_at_ns = self.last_at_ns.max(record.at_ns);
        let output_bytes = match &record.body {
            Body::Output { bytes, .. } if record.seq == 0 => bytes.len() as u64,
            _ => 0,
        };
        self.shown_unwritten = self.shown_unwritten.map(|shown| shown + output_bytes);
    }

    /// Begins to count shown output again. Returns whether the keeper has shown everything that the journal lacks here
    /// because the disk was full.
    pub(super) fn take_shown(&mut self, gap: &Record) -> bool {
        let Body::Gap { output_bytes, cause: GapCause::DiskFull } = gap.body else { return false };
        let shown = self.shown_unwritten.as_mut().map(std::mem::take);
        shown.is_some_and(|shown| shown >= output_bytes)
    }

    /// Adds what the journal has lost and a session's journal has.
    pub(super) async fn remember(&mut self, adopted: &AdoptedSession) {
        let run = &adopted.run;
        adopted.progress.greeting.iter().for_each(|line| self.router.remember_greeting(line));
        if !self.has_gap {
            return;
        }
        let journal = adopted.dir.journal();
        let read = tokio::task::spawn_blocking(move || RoutingFacts::read(&journal)).await;
        match read.map_err(io::Error::other).and_then(|read| read) {
            Ok(RoutingFacts { session_id, open_requests }) => {
                session_id.iter().for_each(|session| self.router.remember_session(session, &run.0));
                open_requests.iter().for_each(|id| self.router.remember_request(id, &run.0));
            }
            Err(cause) => tracing::warn!(%run, %cause, "cannot read which session a run is in"),
        }
    }

    /// Prepares the input for new lines, after the journal of an earlier daemon was read.
    pub(super) fn repair_input(&mut self) {
        if self.router.is_half_written() {
            // An earlier daemon died in the middle of a line. End it, so that the next line is not a part of it.
            self.lines.push(b"\n".to_vec(), LineSender::Connection);
        }
        if self.router.greeting().is_none() && !self.router.awaits_greeting() {
            // The earlier daemon did not send it, or the journal has lost the answer.
            let greeting = self.router.initialize();
            self.lines.push(greeting, LineSender::Connection);
        }
        self.greeting = self.read_greeting();
    }

    /// Refuses requests of the agent that belong to no session. Without an answer it would wait for ever.
    pub(super) fn queue_owed_lines(&mut self) {
        let owed = self.router.owed_lines();
        self.owed_keys.retain(|key| owed.iter().any(|(owed, _)| owed == key));
        for (key, bytes) in owed {
            if !self.owed_keys.contains(&key) {
                self.owed_keys.push(key);
                self.lines.push(bytes, LineSender::Connection);
            }
        }
    }

    pub(super) fn keep_stderr(&mut self, bytes: &[u8]) {
        self.stderr_tail.extend_from_slice(bytes);
        let too_many = self.stderr_tail.len().saturating_sub(STDERR_TAIL_BYTES);
        self.stderr_tail.drain(..too_many);
    }

    /// Why the process ended, as far as the daemon knows.
    pub(super) fn exit_summary(&self) -> String {
        let ended = match self.exit {
            Some(ExitStatus::Signal(signal)) => return format!("its process was ended by signal {signal}"),
            Some(ExitStatus::Code(code)) => format!("its process ended with code {code}"),
            Some(ExitStatus::Unknown) => "its process ended".to_owned(),
            None => "it closed its output".to_owned(),
        };
        let stderr = String::from_utf8_lossy(&self.stderr_tail);
        match stderr.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(last) => format!("{ended}: {}", one_line(last.trim(), STDERR_TAIL_BYTES)),
            None => ended,
        }
    }
}

/// The agent's own name and version.
pub(super) fn agent_version(agent: &Capabilities) -> Option<String> {
    let words: Vec<&str> = [&agent.name, &agent.version].into_iter().flatten().map(String::as_str).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The agent can resume a session of another process.
pub(super) fn can_resume(agent: &Capabilities) -> bool {
    agent.resume || agent.load
}
