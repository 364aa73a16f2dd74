//! One task's session on a connection: to the run above it, what a keeper is to a process.
//!
//! Speaks the keeper's protocol on one end of a socket pair and writes the session's own journal: the lines of this session
//! alone, in both directions, with the times of the connection's journal. That journal is a copy. A new daemon looks at the
//! time of its last line to see how much of it is there, and copies what an earlier daemon did not live to copy.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use agency_api::keeper::{Frame, FromKeeper, ToKeeper, VERSION, Welcome};
use agency_api::paths::RunDir;
use agency_api::{Bytes, ProcessIdentity};
use agency_core::ids::RunId;
use agency_journal::{Body, ExitStatus, Limits, Reader, Record, Source, StopSignal, Stream, Writer, records};
use agency_keeper::anchor::Clocks;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::conversation::CONNECTION;
use crate::fold::unseal;
use crate::keeper_socket::Frames;
use crate::run_meta::RunMeta;

/// The tag of notes that say how many lines before them could not be written.
const UNWRITTEN_TAG: &str = "unwritten";

/// The tag of the first note of a session: the content of its `run.json`. A session has no keeper that could repeat it.
const OWNER_TAG: &str = "owner";

/// Lines that wait for a run that is behind. An agent sends fewer in a busy second.
const LINES_WAITING: usize = 4096;

/// A note in a session's journal about its connection. The driver reads the parts that it needs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum SessionNote {
    Connected {
        connection: String,
    },
    Lost {
        cause: String,
    },
    /// Lines may be lost. Gaps of the connection's journal before record `until_seq` are known.
    Gap {
        cause: String,
        until_seq: u64,
    },
    GivenUp {
        message: String,
        cause: Option<String>,
    },
}

/// A message from the connection to a session.
#[derive(Debug, Clone)]
pub enum ToSession {
    /// A process has answered `initialize` with this line.
    Connected {
        connection: String,
        answer: Vec<u8>,
        /// The time of the last record of the connection's journal. Lines of the session come after it.
        at_ns: u64,
    },
    /// The process is gone.
    Lost {
        cause: String,
    },
    /// Lines of the session may be lost.
    Gap {
        cause: String,
        until_seq: u64,
    },
    Line(SessionLine),
    Taken {
        id: u64,
    },
    Refused {
        id: u64,
        reason: String,
    },
    /// There will be no process any more.
    Over {
        /// The reason, unless the user ended the connection.
        why: Option<GiveUpReason>,
    },
}

/// Why the daemon does not connect again.
#[derive(Debug, Clone)]
pub struct GiveUpReason {
    /// The failure.
    pub message: String,
    /// Its cause.
    pub cause: Option<String>,
}

/// A line of the protocol that belongs to the session.
#[derive(Debug, Clone)]
pub struct SessionLine {
    pub from_agent: bool,
    pub bytes: Vec<u8>,
    pub at_ns: u64,
}

/// A message from a session to its connection.
#[derive(Debug)]
pub enum FromSession {
    /// A whole line for the agent.
    Write { id: u64, line: Vec<u8> },
    /// The run has let go of the session.
    Detached,
}

/// The keeper and process behind a session. The session names them to its run, as a keeper does.
#[derive(Debug, Clone)]
pub struct Host {
    pub keeper: ProcessIdentity,
    pub child: Option<ProcessIdentity>,
    pub environment: Vec<(Bytes, Bytes)>,
}

/// How much of the connection's journal a session's journal holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct JournalProgress {
    /// The connection whose lines came last.
    pub connection: Option<String>,
    /// The last line of it.
    pub last_line: LinePosition,
    /// The session knows of every gap in the connection's journal before this record.
    pub knows_gaps_until: u64,
    /// Lines of it are missing here, and the session does not know that.
    pub has_unknown_gap: bool,
    /// The journal says that this connection is gone.
    pub is_lost: bool,
    /// The session has ended.
    pub is_over: bool,
    /// The agent's answer to `initialize`.
    pub greeting: Option<Vec<u8>>,
}

impl JournalProgress {
    /// Blocking. Reads a session's journal.
    pub fn read(journal: &Path) -> io::Result<JournalProgress> {
        let mut progress = JournalProgress::default();
        let mut reader = Reader::open(journal, unseal)?;
        while let Some(record) = reader.next()? {
            progress.record(&record);
        }
        Ok(progress)
    }

    fn record(&mut self, record: &Record) {
        match &record.body {
            Body::Output { bytes, .. } | Body::Input { bytes, .. } => {
                let is_first = self.connection.is_some() && self.last_line == LinePosition::default();
                if is_first && is_greeting(bytes) {
                    // It is not a line of the session itself.
                    self.last_line = LinePosition { at_ns: record.at_ns, lines: 0 };
                    self.greeting = Some(bytes.clone());
                    return;
                }
                self.last_line.count(record.at_ns);
            }
            Body::Exit { .. } => self.is_over = true,
            Body::Gap { .. } => self.has_unknown_gap = true,
            Body::Note { tag, .. } if tag == UNWRITTEN_TAG => self.has_unknown_gap = true,
            Body::Note { tag, bytes } if tag == CONNECTION => match serde_json::from_slice(bytes) {
                Ok(SessionNote::Connected { connection }) => {
                    *self = JournalProgress { connection: Some(connection), ..JournalProgress::default() };
                }
                Ok(SessionNote::Gap { until_seq, .. }) => {
                    (self.knows_gaps_until, self.has_unknown_gap) = (until_seq, false);
                }
                Ok(SessionNote::Lost { .. } | SessionNote::GivenUp { .. }) => self.is_lost = true,
                Err(_) => {}
            },
            _ => {}
        }
    }
}

/// A place among the lines of a session: the time of a line, and how many lines of that time there are up to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinePosition {
    at_ns: u64,
    lines: u64,
}

impl LinePosition {
    fn count(&mut self, at_ns: u64) {
        let before = if at_ns == self.at_ns { self.lines } else { 0 };
        *self = LinePosition { at_ns, lines: before + 1 };
    }

    /// Whether the next line is at this place or before it. Takes all lines of the connection's journal, in order.
    pub(super) fn covers(&mut self, at_ns: u64) -> bool {
        if at_ns == self.at_ns {
            let covers = self.lines > 0;
            self.lines = self.lines.saturating_sub(1);
            return covers;
        }
        at_ns < self.at_ns
    }
}

/// The facts about a session that routing needs, from the session's own journal.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RoutingFacts {
    /// The agent's id of the session.
    pub session_id: Option<String>,
    /// The ids of the agent's requests that the session has not answered.
    pub open_requests: Vec<Value>,
}

impl RoutingFacts {
    /// Blocking. Reads a session's journal.
    pub fn read(journal: &Path) -> io::Result<RoutingFacts> {
        let (mut facts, mut reader) = (RoutingFacts::default(), Reader::open(journal, unseal)?);
        while let Some(record) = reader.next()? {
            match &record.body {
                Body::Output { bytes, .. } => facts.read_line(bytes, true),
                Body::Input { bytes, .. } => facts.read_line(bytes, false),
                Body::Note { tag, bytes } if tag == CONNECTION => {
                    if let Ok(SessionNote::Connected { .. }) = serde_json::from_slice(bytes) {
                        // Another process numbers its requests from the beginning.
                        facts = RoutingFacts::default();
                    }
                }
                _ => {}
            }
        }
        Ok(facts)
    }

    fn read_line(&mut self, line: &[u8], from_agent: bool) {
        let Ok(mut line) = serde_json::from_slice::<Value>(line) else { return };
        let named = [&line["params"]["sessionId"], &line["result"]["sessionId"]];
        if let Some(session) = named.into_iter().find_map(Value::as_str) {
            self.session_id = Some(session.to_owned());
        }
        let (id, is_request) = (line["id"].take(), line["method"].is_string());
        match (from_agent, is_request) {
            (true, true) if !id.is_null() => self.open_requests.push(id),
            (false, false) => self.open_requests.retain(|known| *known != id),
            _ => {}
        }
    }
}

/// Whether a line is an answer to `initialize`.
fn is_greeting(line: &[u8]) -> bool {
    let line = serde_json::from_slice::<Value>(line).unwrap_or_default();
    line["result"]["protocolVersion"].is_number()
}

/// The connection's end of a session.
pub struct Session {
    pub inbox: mpsc::Sender<ToSession>,
    /// The session's journal holds the lines of the connection's journal up to this one.
    pub held: LinePosition,
    /// The session knows of every gap in the connection's journal before this record.
    pub knows_gaps_until: u64,
}

struct SessionTask {
    run: RunId,
    dir: RunDir,
    journal: Writer,
    frames: Frames,
    host: Host,
    connection: mpsc::Sender<(RunId, FromSession)>,
    is_followed: bool,
    /// The beginning of a line to the agent whose last piece has not arrived.
    partial_line: Vec<u8>,
    /// How many lines the disk did not take.
    unwritten: u64,
    is_over: bool,
}

impl Session {
    /// Blocking. Returns the session, and the other end for its run.
    pub fn open(
        run: RunId,
        dir: RunDir,
        host: Host,
        connection: mpsc::Sender<(RunId, FromSession)>,
        is_adopted: bool,
    ) -> io::Result<(Session, UnixStream)> {
        let (own_end, run_end) = UnixStream::pair()?;
        let mut writer = recover_journal(&dir)?;
        match begin_journal(&mut writer, &dir) {
            // The session must go on. Its lines are counted until there is room again.
            Err(cause) if is_adopted => {
                tracing::warn!(%run, %cause, "the journal of a session cannot be written")
            }
            begun => begun?,
        }
        let (sender, inbox) = mpsc::channel(LINES_WAITING);
        let task = SessionTask {
            frames: Frames::over(own_end, Vec::new())?,
            journal: writer,
            host,
            connection,
            is_followed: false,
            partial_line: Vec::new(),
            unwritten: 0,
            is_over: false,
            dir,
            run,
        };
        tokio::spawn(task.run(inbox));
        Ok((Session { inbox: sender, held: LinePosition::default(), knows_gaps_until: 0 }, run_end))
    }

    /// Passes a line on, unless the session's journal holds it already.
    pub async fn pass_line(&mut self, line: SessionLine) {
        if !self.held.covers(line.at_ns) {
            // A session that has ended meanwhile needs no line.
            drop(self.inbox.send(ToSession::Line(line)).await);
        }
    }

    /// Says that the connection's journal lacks records before this one, unless the session has the lines or knows it.
    /// `until_at_ns` is the time of that record.
    pub async fn pass_gap(&mut self, until_seq: u64, until_at_ns: u64) {
        if until_at_ns <= self.held.at_ns || until_seq <= self.knows_gaps_until {
            return;
        }
        self.knows_gaps_until = until_seq;
        let cause = "the journal of the connection is damaged, or the disk was full".to_owned();
        // A session that has ended meanwhile needs no message.
        drop(self.inbox.send(ToSession::Gap { cause, until_seq }).await);
    }
}

impl SessionTask {
    async fn run(mut self, inbox: mpsc::Receiver<ToSession>) {
        if let Err(cause) = self.serve(inbox).await {
            // Most sessions end because their run let go.
            tracing::debug!(run = %self.run, %cause, "session detached");
        }
        // A connection that is gone needs no message.
        drop(self.connection.send((self.run, FromSession::Detached)).await);
    }

    async fn serve(&mut self, mut inbox: mpsc::Receiver<ToSession>) -> io::Result<()> {
        loop {
            while let Some(frame) = self.frames.take()? {
                if self.on_frame(frame).await?.is_break() {
                    return Ok(());
                }
            }
            tokio::select! {
                message = inbox.recv() => match message {
                    Some(message) => self.on_message(message).await?,
                    None => return Ok(()),
                },
                filled = self.frames.fill() => filled?,
            }
        }
    }

    async fn on_frame(&mut self, frame: Frame) -> io::Result<std::ops::ControlFlow<()>> {
        match frame {
            Frame::Control(json) => return self.on_order(&json).await,
            Frame::Input { id, bytes, .. } => self.on_input(id, bytes).await?,
            Frame::Note { tag, bytes } => self.append(now(), Body::Note { tag, bytes }).await?,
            Frame::Record(_) | Frame::Checkpoint { .. } => {}
        }
        Ok(std::ops::ControlFlow::Continue(()))
    }

    async fn on_order(&mut self, json: &[u8]) -> io::Result<std::ops::ControlFlow<()>> {
        match serde_json::from_slice(json)? {
            ToKeeper::Hello { .. } => self.send_message(&FromKeeper::Welcome(self.welcome())).await?,
            ToKeeper::Environment { id } => {
                let env = self.host.environment.clone();
                self.send_message(&FromKeeper::Environment { id, env }).await?;
            }
            ToKeeper::Follow { from_seq } => self.follow(from_seq).await?,
            ToKeeper::Stop { .. } => self.end(ExitStatus::Code(0), Some(StopSignal::Term)).await?,
            ToKeeper::Dismiss => return Ok(std::ops::ControlFlow::Break(())),
            // There is no terminal, and other runs share the process.
            ToKeeper::Resize { .. } | ToKeeper::Probe { .. } | ToKeeper::CloseInput | ToKeeper::Unknown => {}
        }
        Ok(std::ops::ControlFlow::Continue(()))
    }

    fn welcome(&self) -> Welcome {
        Welcome {
            version: VERSION,
            build: env!("CARGO_PKG_VERSION").to_owned(),
            run_id: self.run.0.clone(),
            keeper: self.host.keeper.clone(),
            child: self.host.child.clone(),
            oldest_seq: 1,
            next_seq: self.journal.next_seq(),
            gone: self.is_over,
            lifeline: false,
            ended: Vec::new(),
            owner: None,
            epoch: 0,
        }
    }

    async fn follow(&mut self, from_seq: u64) -> io::Result<()> {
        let (journal, until) = (self.journal.dir().to_path_buf(), self.journal.next_seq());
        let read = tokio::task::spawn_blocking(move || crate::fold::records(&journal, from_seq, until));
        for record in read.await.map_err(io::Error::other)?? {
            let mut encoded = Vec::new();
            record.encode_into(&mut encoded);
            self.frames.send(&Frame::Record(encoded)).await?;
        }
        self.is_followed = true;
        if self.is_over { self.send_message(&FromKeeper::Gone { ended: Vec::new() }).await } else { Ok(()) }
    }

    /// Gathers the pieces of a line, so that no line of another session comes between them.
    async fn on_input(&mut self, id: u64, bytes: Vec<u8>) -> io::Result<()> {
        if self.is_over {
            return self
                .send_message(&FromKeeper::InputRefused { id, reason: "the session is over".to_owned() })
                .await;
        }
        self.partial_line.extend_from_slice(&bytes);
        if !bytes.ends_with(b"\n") {
            return self.send_message(&FromKeeper::InputTaken { id }).await;
        }
        let line = std::mem::take(&mut self.partial_line);
        self.connection
            .send((self.run.clone(), FromSession::Write { id, line }))
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }

    async fn on_message(&mut self, message: ToSession) -> io::Result<()> {
        match message {
            ToSession::Connected { connection, answer, at_ns } => {
                self.note(&SessionNote::Connected { connection }).await?;
                self.append(at_ns, Body::Output { stream: Stream::Stdout, bytes: answer }).await
            }
            ToSession::Lost { cause } => self.note(&SessionNote::Lost { cause }).await,
            ToSession::Gap { cause, until_seq } => self.note(&SessionNote::Gap { cause, until_seq }).await,
            ToSession::Line(SessionLine { from_agent, bytes, at_ns }) => {
                self.append(at_ns, line_body(from_agent, bytes)).await
            }
            ToSession::Taken { id } => self.send_message(&FromKeeper::InputTaken { id }).await,
            ToSession::Refused { id, reason } => {
                self.send_message(&FromKeeper::InputRefused { id, reason }).await
            }
            ToSession::Over { why } => {
                if let Some(GiveUpReason { message, cause }) = why.filter(|_| !self.is_over) {
                    self.note(&SessionNote::GivenUp { message, cause }).await?;
                }
                self.end(ExitStatus::Unknown, None).await
            }
        }
    }

    async fn note(&mut self, note: &SessionNote) -> io::Result<()> {
        let bytes = serde_json::to_vec(note)?;
        self.append(now(), Body::Note { tag: CONNECTION.to_owned(), bytes }).await
    }

    async fn end(&mut self, status: ExitStatus, stopped_by: Option<StopSignal>) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_over, true) {
            self.append(now(), Body::Exit { status, stopped_by }).await?;
            remove_pid_file(&self.dir);
        }
        self.send_message(&FromKeeper::Gone { ended: Vec::new() }).await
    }

    /// Writes a record to the journal, then shows it to the run. A record that the disk does not take is counted and shown
    /// without a number.
    async fn append(&mut self, at_ns: u64, body: Body) -> io::Result<()> {
        let encoded = match self.write(at_ns, &body) {
            Ok(encoded) => encoded,
            Err(cause) => {
                if self.unwritten == 0 {
                    self.send_message(&FromKeeper::Journal { cause: Some(cause.to_string()) }).await?;
                }
                self.unwritten += u64::from(matches!(body, Body::Output { .. } | Body::Input { .. }));
                let mut encoded = Vec::new();
                let output_offset = self.journal.output_offset();
                Record { seq: 0, output_offset, at_ns, body }.encode_into(&mut encoded);
                encoded
            }
        };
        if self.is_followed {
            for record in records(&encoded) {
                self.frames.send(&Frame::Record(record.bytes.to_vec())).await?;
            }
        }
        Ok(())
    }

    fn write(&mut self, at_ns: u64, body: &Body) -> io::Result<Vec<u8>> {
        let mut encoded = Vec::new();
        if self.unwritten > 0 {
            let bytes = self.unwritten.to_string().into_bytes();
            let note = Body::Note { tag: UNWRITTEN_TAG.to_owned(), bytes };
            encoded.extend_from_slice(self.journal.append(at_ns, &note)?.encoded);
            self.unwritten = 0;
        }
        encoded.extend_from_slice(self.journal.append(at_ns, body)?.encoded);
        Ok(encoded)
    }

    async fn send_message(&mut self, message: &FromKeeper) -> io::Result<()> {
        self.frames.send(&Frame::control(message)?).await
    }
}

/// Ties the journal to the wall clock, and says in a new one whose session it is.
fn begin_journal(writer: &mut Writer, dir: &RunDir) -> io::Result<()> {
    let (now, is_new) = (Clocks::now(), writer.next_seq() == 1);
    writer.append(now.monotonic_ns, now.anchor())?;
    if let Some(bytes) = std::fs::read(dir.meta()).ok().filter(|_| is_new) {
        writer.append(now.monotonic_ns, &Body::Note { tag: OWNER_TAG.to_owned(), bytes })?;
    }
    Ok(())
}

/// Continues the journal of a session. If it is damaged beyond that, puts it aside: the session must go on.
fn recover_journal(dir: &RunDir) -> io::Result<Writer> {
    Writer::recover(&dir.journal(), Limits::PIPES).or_else(|cause| {
        let aside = dir.path().join("j.unreadable");
        tracing::warn!(%cause, aside = %aside.display(), "the journal of a session cannot be continued; a new one begins");
        std::fs::rename(dir.journal(), aside)?;
        Writer::recover(&dir.journal(), Limits::PIPES)
    })
}

/// Blocking. Whose session it is, as the first note of its journal says.
pub fn owner_in_journal(journal: &Path) -> Option<RunMeta> {
    let mut reader = Reader::open(journal, unseal).ok()?;
    while let Ok(Some(record)) = reader.next() {
        match record.body {
            Body::Note { tag, bytes } if tag == OWNER_TAG => return serde_json::from_slice(&bytes).ok(),
            // The note comes before the first line.
            Body::Output { .. } | Body::Input { .. } => return None,
            _ => {}
        }
    }
    None
}

/// Shows other hosts that no keeper holds the run any more.
fn remove_pid_file(dir: &RunDir) {
    match std::fs::remove_file(dir.pid_file()) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%cause, "cannot delete the pid file of a session");
        }
        _ => {}
    }
}

/// A line as a record of the session's journal.
pub fn line_body(from_agent: bool, bytes: Vec<u8>) -> Body {
    match from_agent {
        true => Body::Output { stream: Stream::Stdout, bytes },
        false => Body::Input { source: Source::Send, bytes },
    }
}

fn now() -> u64 {
    Clocks::now().monotonic_ns
}

/// Blocking. Ends the journal of a session whose connection is gone for good.
pub fn close(dir: &RunDir, progress: &JournalProgress, cause: &str) -> io::Result<()> {
    let mut writer = recover_journal(dir)?;
    if !progress.is_lost {
        let note = serde_json::to_vec(&SessionNote::Lost { cause: cause.to_owned() })?;
        writer.append(now(), &Body::Note { tag: CONNECTION.to_owned(), bytes: note })?;
    }
    writer.append(now(), &Body::Exit { status: ExitStatus::Unknown, stopped_by: None })?;
    remove_pid_file(dir);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_in_journals_keep_their_names() {
        let check = |note: SessionNote, json: &str| {
            assert_eq!(serde_json::to_string(&note).unwrap(), json);
        };
        check(
            SessionNote::Connected { connection: "c".to_owned() },
            r#"{"event":"connected","connection":"c"}"#,
        );
        check(SessionNote::Lost { cause: "gone".to_owned() }, r#"{"event":"lost","cause":"gone"}"#);
        check(
            SessionNote::Gap { cause: "damaged".to_owned(), until_seq: 7 },
            r#"{"event":"gap","cause":"damaged","until_seq":7}"#,
        );
        check(
            SessionNote::GivenUp { message: "m".to_owned(), cause: None },
            r#"{"event":"given_up","message":"m","cause":null}"#,
        );
    }

    fn note(note: &SessionNote) -> Body {
        Body::Note { tag: CONNECTION.to_owned(), bytes: serde_json::to_vec(note).unwrap() }
    }

    fn line(from_agent: bool, json: &str) -> Body {
        line_body(from_agent, format!("{json}\n").into_bytes())
    }

    fn journal(bodies: &[(u64, Body)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::create(&dir.path().join("j"), Limits::PIPES).unwrap();
        for (at_ns, body) in bodies {
            writer.append(*at_ns, body).unwrap();
        }
        dir
    }

    fn read(bodies: &[(u64, Body)]) -> JournalProgress {
        JournalProgress::read(&journal(bodies).path().join("j")).unwrap()
    }

    const GREETING: &str = r#"{"id":"agency:1","result":{"protocolVersion":1}}"#;
    const PROMPT: &str = r#"{"id":"r:1","method":"session/prompt","params":{"sessionId":"s"}}"#;
    const UPDATE: &str = r#"{"method":"session/update","params":{"sessionId":"s"}}"#;
    const ASKS: &str = r#"{"id":7,"method":"session/request_permission","params":{"sessionId":"s"}}"#;

    fn connected(rest: &[(u64, Body)]) -> Vec<(u64, Body)> {
        let note = note(&SessionNote::Connected { connection: "c".to_owned() });
        [&[(90, note), (5, line(true, GREETING))], rest].concat()
    }

    #[test]
    fn a_session_gets_the_lines_after_its_last_one_although_the_connection_lost_earlier_ones() {
        let mut held = read(&connected(&[
            (10, line(false, PROMPT)),
            (20, line(true, UPDATE)),
            (20, line(true, UPDATE)),
        ]))
        .last_line;
        // Of the connection's journal, the record of time 10 is lost. The third line of time 20 was not copied.
        let copied: Vec<bool> = [8, 20, 20, 20, 30].map(|at_ns| held.covers(at_ns)).into();
        assert_eq!(copied, [true, true, true, false, false]);
        let mut held = read(&connected(&[])).last_line;
        assert_eq!([4, 6].map(|at_ns| held.covers(at_ns)), [true, false], "its lines follow the greeting");
        assert!(!LinePosition::default().covers(1), "a session without a journal gets every line");
    }

    #[test]
    fn a_session_knows_a_gap_once_its_note_is_written() {
        let unwritten = Body::Note { tag: UNWRITTEN_TAG.to_owned(), bytes: b"2".to_vec() };
        let progress = read(&connected(&[(10, unwritten.clone())]));
        assert!(progress.has_unknown_gap);
        let known = note(&SessionNote::Gap { cause: String::new(), until_seq: 9 });
        let progress = read(&connected(&[(10, unwritten), (11, known)]));
        assert_eq!((progress.has_unknown_gap, progress.knows_gaps_until), (false, 9));
    }

    #[test]
    fn a_line_is_no_greeting_although_the_disk_did_not_take_the_greeting() {
        let note = note(&SessionNote::Connected { connection: "c".to_owned() });
        let progress = read(&[(1, note), (10, line(false, PROMPT))]);
        assert_eq!((progress.connection.as_deref(), progress.greeting), (Some("c"), None));
    }

    #[test]
    fn a_sessions_journal_says_which_requests_are_open() {
        let answer = r#"{"id":7,"result":{}}"#;
        let facts =
            |rest: &[(u64, Body)]| RoutingFacts::read(&journal(&connected(rest)).path().join("j")).unwrap();
        let open = facts(&[(10, line(false, PROMPT)), (20, line(true, ASKS))]);
        assert_eq!((open.session_id.as_deref(), open.open_requests), (Some("s"), vec![Value::from(7)]));
        let answered = facts(&[(20, line(true, ASKS)), (30, line(false, answer))]);
        assert_eq!(answered.open_requests, Vec::<Value>::new());
    }
}
