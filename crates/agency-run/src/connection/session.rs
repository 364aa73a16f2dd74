//! One task's place at a connection: to the run above it, what a keeper is to a process.
//!
//! Speaks the keeper's frames on one end of a socket pair and writes the session's own journal: the lines of this
//! session alone, both directions, with the times of the connection's journal. That journal is a projection; how
//! much of it is there is found by counting lines, so that a daemon that died in the middle is made up for.

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
use tokio::sync::mpsc;

use crate::conversation::CONNECTION;
use crate::fold::unseal;
use crate::keeper_socket::Frames;

/// Says how many lines could not be written before this one.
const UNWRITTEN_TAG: &str = "unwritten";

/// Lines that wait for a run which is behind; more than a busy second of an agent.
const LINES_WAITING: usize = 4096;

/// What a session's journal says of its connection. The driver reads it too, as far as it needs to.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum SessionNote {
    Connected { connection: String },
    Lost { cause: String },
    GivenUp { message: String, cause: Option<String> },
}

#[derive(Debug)]
pub enum ToSession {
    /// A process is there and has answered `initialize` with this line.
    Connected {
        connection: String,
        answer: Vec<u8>,
    },
    /// The process is gone.
    Lost {
        cause: String,
    },
    Line(SessionLine),
    Taken {
        id: u64,
    },
    Refused {
        id: u64,
        reason: String,
    },
    /// There will be no process any more; why, where nobody asked for it.
    Over {
        why: Option<GiveUpReason>,
    },
}

/// Why a connection is not made again.
#[derive(Debug, Clone)]
pub struct GiveUpReason {
    pub message: String,
    pub cause: Option<String>,
}

#[derive(Debug)]
pub struct SessionLine {
    pub from_agent: bool,
    pub bytes: Vec<u8>,
    pub at_ns: u64,
}

#[derive(Debug)]
pub enum FromSession {
    /// A whole line for the agent.
    Write { id: u64, line: Vec<u8> },
    /// Nobody sits there any more.
    Detached,
}

/// Who holds the process, for who asks the seat as if it were a keeper.
#[derive(Debug, Clone)]
pub struct Host {
    pub keeper: ProcessIdentity,
    pub child: Option<ProcessIdentity>,
    pub environment: Vec<(Bytes, Bytes)>,
}

/// How much of a session's journal is there already.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct JournalProgress {
    /// The connection whose lines came last, and how many of them there are, its greeting included.
    pub connection: Option<String>,
    pub lines: u64,
    /// That connection is gone, and the journal says so.
    pub is_lost: bool,
    pub is_over: bool,
}

impl JournalProgress {
    /// Blocking.
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
            Body::Output { .. } | Body::Input { .. } => self.lines += 1,
            Body::Exit { .. } => self.is_over = true,
            Body::Note { tag, bytes } if tag == UNWRITTEN_TAG => {
                let text = String::from_utf8_lossy(bytes);
                self.lines += text.parse::<u64>().unwrap_or(0);
            }
            Body::Note { tag, bytes } if tag == CONNECTION => match serde_json::from_slice(bytes) {
                Ok(SessionNote::Connected { connection }) => {
                    *self = JournalProgress { connection: Some(connection), ..JournalProgress::default() };
                }
                Ok(SessionNote::Lost { .. } | SessionNote::GivenUp { .. }) => self.is_lost = true,
                Err(_) => {}
            },
            _ => {}
        }
    }
}

pub struct Session {
    pub inbox: mpsc::Sender<ToSession>,
    /// Lines of the connection's journal that the session's has already.
    pub skip: u64,
}

struct SessionTask {
    run: RunId,
    dir: RunDir,
    journal: Writer,
    frames: Frames,
    host: Host,
    connection: mpsc::Sender<(RunId, FromSession)>,
    follows: bool,
    /// A line to the agent that came in pieces, without its end.
    begun: Vec<u8>,
    /// Lines that the disk did not take.
    unwritten: u64,
    over: bool,
}

impl Session {
    /// Blocking. The seat, and the other end for the run that sits there.
    pub fn open(
        run: RunId,
        dir: RunDir,
        host: Host,
        connection: mpsc::Sender<(RunId, FromSession)>,
    ) -> io::Result<(Session, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut writer = Writer::recover(&dir.journal(), Limits::PIPES)?;
        let now = Clocks::now();
        writer.append(now.monotonic_ns, now.anchor())?;
        let (sender, inbox) = mpsc::channel(LINES_WAITING);
        let task = SessionTask {
            frames: Frames::over(ours, Vec::new())?,
            journal: writer,
            host,
            connection,
            follows: false,
            begun: Vec::new(),
            unwritten: 0,
            over: false,
            dir,
            run,
        };
        tokio::spawn(task.live(inbox));
        Ok((Session { inbox: sender, skip: 0 }, theirs))
    }
}

impl SessionTask {
    async fn live(mut self, inbox: mpsc::Receiver<ToSession>) {
        if let Err(cause) = self.serve(inbox).await {
            // The run above has let go, which is what most seats end with.
            tracing::debug!(run = %self.run, %cause, "session detached");
        }
        // A switchboard that is gone needs no word.
        drop(self.connection.send((self.run, FromSession::Detached)).await);
    }

    async fn serve(&mut self, mut inbox: mpsc::Receiver<ToSession>) -> io::Result<()> {
        loop {
            while let Some(frame) = self.frames.take()? {
                if self.frame(frame).await?.is_break() {
                    return Ok(());
                }
            }
            tokio::select! {
                told = inbox.recv() => match told {
                    Some(told) => self.told(told).await?,
                    None => return Ok(()),
                },
                filled = self.frames.fill() => filled?,
            }
        }
    }

    async fn frame(&mut self, frame: Frame) -> io::Result<std::ops::ControlFlow<()>> {
        match frame {
            Frame::Control(json) => return self.order(&json).await,
            Frame::Input { id, bytes, .. } => self.input(id, bytes).await?,
            Frame::Note { tag, bytes } => self.append(now(), Body::Note { tag, bytes }).await?,
            Frame::Record(_) | Frame::Checkpoint { .. } => {}
        }
        Ok(std::ops::ControlFlow::Continue(()))
    }

    async fn order(&mut self, json: &[u8]) -> io::Result<std::ops::ControlFlow<()>> {
        match serde_json::from_slice(json)? {
            ToKeeper::Hello { .. } => self.say(&FromKeeper::Welcome(self.welcome())).await?,
            ToKeeper::Environment { id } => {
                let env = self.host.environment.clone();
                self.say(&FromKeeper::Environment { id, env }).await?;
            }
            ToKeeper::Follow { from_seq } => self.follow(from_seq).await?,
            ToKeeper::Stop { .. } => self.end(ExitStatus::Code(0), Some(StopSignal::Term)).await?,
            ToKeeper::Dismiss => return Ok(std::ops::ControlFlow::Break(())),
            // There is no terminal, and the process is not this run's alone.
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
            gone: self.over,
            lifeline: false,
            ended: Vec::new(),
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
        self.follows = true;
        if self.over { self.say(&FromKeeper::Gone { ended: Vec::new() }).await } else { Ok(()) }
    }

    /// Pieces are gathered: a line of another session must not come in between.
    async fn input(&mut self, id: u64, bytes: Vec<u8>) -> io::Result<()> {
        if self.over {
            return self
                .say(&FromKeeper::InputRefused { id, reason: "the session is over".to_owned() })
                .await;
        }
        self.begun.extend_from_slice(&bytes);
        if !bytes.ends_with(b"\n") {
            return self.say(&FromKeeper::InputTaken { id }).await;
        }
        let line = std::mem::take(&mut self.begun);
        self.connection
            .send((self.run.clone(), FromSession::Write { id, line }))
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }

    async fn told(&mut self, told: ToSession) -> io::Result<()> {
        match told {
            ToSession::Connected { connection, answer } => {
                self.note(&SessionNote::Connected { connection }).await?;
                self.append(now(), Body::Output { stream: Stream::Stdout, bytes: answer }).await
            }
            ToSession::Lost { cause } => self.note(&SessionNote::Lost { cause }).await,
            ToSession::Line(SessionLine { from_agent, bytes, at_ns }) => {
                self.append(at_ns, body(from_agent, bytes)).await
            }
            ToSession::Taken { id } => self.say(&FromKeeper::InputTaken { id }).await,
            ToSession::Refused { id, reason } => self.say(&FromKeeper::InputRefused { id, reason }).await,
            ToSession::Over { why } => {
                if let Some(GiveUpReason { message, cause }) = why.filter(|_| !self.over) {
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

    async fn end(&mut self, status: ExitStatus, asked: Option<StopSignal>) -> io::Result<()> {
        if !std::mem::replace(&mut self.over, true) {
            self.append(now(), Body::Exit { status, stopped_by: asked }).await?;
            let_go(&self.dir);
        }
        self.say(&FromKeeper::Gone { ended: Vec::new() }).await
    }

    /// Written, then shown. What the disk does not take is shown all the same, under no number, and counted.
    async fn append(&mut self, at_ns: u64, body: Body) -> io::Result<()> {
        let encoded = match self.write(at_ns, &body) {
            Ok(encoded) => encoded,
            Err(cause) => {
                if self.unwritten == 0 {
                    self.say(&FromKeeper::Journal { cause: Some(cause.to_string()) }).await?;
                }
                self.unwritten += u64::from(matches!(body, Body::Output { .. } | Body::Input { .. }));
                let mut encoded = Vec::new();
                let output_offset = self.journal.output_offset();
                Record { seq: 0, output_offset, at_ns, body }.encode_into(&mut encoded);
                encoded
            }
        };
        self.show(&encoded).await
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

    async fn show(&mut self, encoded: &[u8]) -> io::Result<()> {
        if !self.follows {
            return Ok(());
        }
        for record in records(encoded) {
            self.frames.send(&Frame::Record(record.bytes.to_vec())).await?;
        }
        Ok(())
    }

    async fn say(&mut self, message: &FromKeeper) -> io::Result<()> {
        self.frames.send(&Frame::control(message)?).await
    }
}

/// Nobody holds the run any more.
fn let_go(dir: &RunDir) {
    match std::fs::remove_file(dir.pid_file()) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%cause, "the pid file of a session stays behind");
        }
        _ => {}
    }
}

/// A line of a session as its journal has it.
pub fn body(from_agent: bool, bytes: Vec<u8>) -> Body {
    match from_agent {
        true => Body::Output { stream: Stream::Stdout, bytes },
        false => Body::Input { source: Source::Send, bytes },
    }
}

fn now() -> u64 {
    Clocks::now().monotonic_ns
}

/// Blocking. Ends the journal of a session whose connection is gone for good.
pub fn close(dir: &RunDir, cause: &str) -> io::Result<()> {
    let progress = JournalProgress::read(&dir.journal())?;
    if progress.is_over {
        return Ok(());
    }
    let mut writer = Writer::recover(&dir.journal(), Limits::PIPES)?;
    if !progress.is_lost {
        let note = serde_json::to_vec(&SessionNote::Lost { cause: cause.to_owned() })?;
        writer.append(now(), &Body::Note { tag: CONNECTION.to_owned(), bytes: note })?;
    }
    writer.append(now(), &Body::Exit { status: ExitStatus::Unknown, stopped_by: None })?;
    let_go(dir);
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
            SessionNote::GivenUp { message: "m".to_owned(), cause: None },
            r#"{"event":"given_up","message":"m","cause":null}"#,
        );
    }
}
