//! The output of a task's runs as text, as raw bytes or as a recording, up to now or for as long as the newest run lives.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use agency_api::keeper::{Frame, FromKeeper, OLDEST_VERSION, ToKeeper, VERSION};
use agency_api::method::LogForm;
use agency_api::paths::RunDir;
use agency_driver::terminal::SEPARATOR;
use agency_journal::{Body, Decoded, Reader, Record};
use agency_keeper::pidfile::PidFile;
use agency_keeper::platform;
use agency_store::clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};

use crate::cast::Cast;
use crate::fold::unseal;
use crate::text_log::TextLog;

/// The disk waits for a slow reader.
const CHUNKS_WAITING: usize = 16;

/// Which log a caller wants.
#[derive(Debug)]
pub struct LogRequest {
    /// The runs, oldest first.
    pub runs: Vec<RunDir>,
    /// The form of the log.
    pub form: LogForm,
    /// Follow the newest run while it lives.
    pub follow: bool,
}

/// Reads a log. The channel closes at its end.
pub fn read(request: LogRequest) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(CHUNKS_WAITING);
    tokio::spawn(async move {
        match write_all(request, sender).await {
            Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => {
                tracing::warn!(%cause, "cannot read a log to its end");
            }
            _ => {}
        }
    });
    receiver
}

/// Reads the log of a workspace's setup, for as long as it grows.
pub fn read_setup(path: PathBuf, mut grows: Option<watch::Receiver<u64>>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(CHUNKS_WAITING);
    tokio::spawn(async move {
        let Ok(mut file) =
            tokio::task::spawn_blocking(move || File::open(path)).await.map_err(io::Error::other).flatten()
        else {
            return;
        };
        loop {
            // Check this before reading, so that the next pass reads what arrives meanwhile.
            let is_over = match &mut grows {
                Some(grows) => grows.has_changed().is_err(),
                None => true,
            };
            let (back, rest) = match tokio::task::spawn_blocking(move || rest_of(file)).await {
                Ok(Ok(read)) => read,
                _ => return,
            };
            file = back;
            if (!rest.is_empty() && sender.send(rest).await.is_err()) || is_over {
                return;
            }
            if let Some(grows) = &mut grows {
                // An error means that the setup has ended; the next pass sees that.
                tokio::select! {
                    changed = grows.changed() => changed.unwrap_or_default(),
                    () = sender.closed() => return,
                }
            }
        }
    });
    receiver
}

/// Blocking.
fn rest_of(mut file: File) -> io::Result<(File, Vec<u8>)> {
    let mut rest = Vec::new();
    file.read_to_end(&mut rest)?;
    Ok((file, rest))
}

async fn write_all(request: LogRequest, sink: mpsc::Sender<Vec<u8>>) -> io::Result<()> {
    let newest = request.runs.last().cloned();
    let follow = request.follow;
    let past_sink = sink.clone();
    let (mut out, next_seq) = tokio::task::spawn_blocking(move || read_past(&request, &past_sink))
        .await
        .map_err(io::Error::other)??;
    if let (Some(newest), true) = (newest, follow) {
        out.settle();
        read_live(&mut out, &newest, next_seq, &sink).await?;
    }
    out.finish();
    out.send_ready(&sink).await
}

/// Blocking. Reads what the journals hold now. Returns the number of the next record.
fn read_past(request: &LogRequest, sink: &mpsc::Sender<Vec<u8>>) -> io::Result<(Output, u64)> {
    let mut out = Output { rendering: Rendering::new(request.form), ready: Vec::new() };
    let mut next_seq = 0;
    let asked_at = clock::now();
    for (at, run) in request.runs.iter().enumerate() {
        if at > 0 {
            out.end_of_run();
        }
        next_seq = 0;
        // Stop at the time of the request: an agent may print faster than we read. Only the times of a live run are
        // comparable; another run may be from an earlier boot, and the end of that boot leaves its pid file behind.
        let pid_file = PidFile::read(&run.pid_file()).ok().flatten();
        let is_live = pid_file.is_some_and(|file| platform::is_alive(&file.keeper));
        let mut reader = Reader::open(&run.journal(), unseal)?;
        while let Some(record) = reader.next()? {
            if is_live && Duration::from_nanos(record.at_ns) > asked_at {
                break;
            }
            next_seq = record.seq + 1;
            out.record(&record);
            if !out.ready.is_empty() {
                sink.blocking_send(std::mem::take(&mut out.ready)).map_err(|_| reader_left())?;
            }
        }
    }
    Ok((out, next_seq))
}

/// Follows the keeper until the run is gone or the reader has left.
async fn read_live(
    out: &mut Output,
    run: &RunDir,
    next_seq: u64,
    sink: &mpsc::Sender<Vec<u8>>,
) -> io::Result<()> {
    let mut next_seq = next_seq;
    if let Ok(mut reader) = KeeperReader::connect(run, next_seq).await {
        follow(out, run, &mut reader, &mut next_seq, sink).await?;
    }
    // The keeper is gone now, or was gone before. The journal holds the rest.
    read_on(out, run, &mut next_seq, u64::MAX)
}

async fn follow(
    out: &mut Output,
    run: &RunDir,
    reader: &mut KeeperReader,
    next_seq: &mut u64,
    sink: &mpsc::Sender<Vec<u8>>,
) -> io::Result<()> {
    loop {
        out.send_ready(sink).await?;
        let settled = sleep_until_settled(out.settles_after());
        let frame = tokio::select! {
            frame = reader.next() => frame?,
            () = settled => {
                out.settle();
                continue;
            }
            () = sink.closed() => return Err(reader_left()),
        };
        match frame {
            Some(Frame::Record(bytes)) => {
                if let Decoded::Complete(record, _) = Record::decode(&bytes) {
                    *next_seq = (record.seq + 1).max(*next_seq);
                    out.record(&record);
                }
                if reader.buffer.is_empty() {
                    out.settle();
                }
            }
            Some(Frame::Control(json)) => match serde_json::from_slice(&json) {
                Ok(FromKeeper::Gone { .. }) => return Ok(()),
                Ok(FromKeeper::Sealed { until_seq, .. }) => read_on(out, run, next_seq, until_seq)?,
                _ => {}
            },
            Some(_) => {}
            None => return Ok(()),
        }
    }
}

async fn sleep_until_settled(after: Option<Duration>) {
    match after {
        Some(after) => tokio::time::sleep(after).await,
        None => std::future::pending().await,
    }
}

/// Blocking. Reads the records from `next_seq` up to but not including `until_seq`.
fn read_on(out: &mut Output, run: &RunDir, next_seq: &mut u64, until_seq: u64) -> io::Result<()> {
    for record in crate::fold::records(&run.journal(), *next_seq, until_seq)? {
        *next_seq = record.seq + 1;
        out.record(&record);
    }
    Ok(())
}

fn reader_left() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the reader of the log has left")
}

struct Output {
    rendering: Rendering,
    /// Rendered, but not sent yet.
    ready: Vec<u8>,
}

enum Rendering {
    Raw,
    Text(Box<TextLog>),
    Cast(Cast),
}

impl Rendering {
    fn new(form: LogForm) -> Rendering {
        match form {
            // The output of a setup is in no journal; see `read_setup`.
            LogForm::Raw | LogForm::Setup => Rendering::Raw,
            LogForm::Text => Rendering::Text(Box::default()),
            LogForm::Cast => Rendering::Cast(Cast::new(false)),
            LogForm::CastWithInput => Rendering::Cast(Cast::new(true)),
        }
    }
}

impl Output {
    fn record(&mut self, record: &Record) {
        match (&mut self.rendering, &record.body) {
            (Rendering::Cast(cast), _) => cast.record(record, &mut self.ready),
            (Rendering::Raw, Body::Output { bytes, .. }) => self.ready.extend_from_slice(bytes),
            (Rendering::Raw, _) => {}
            (Rendering::Text(log), _) => {
                log.record(record);
                write_lines(&mut self.ready, log);
            }
        }
    }

    /// In a log that is followed, a line is printed once it no longer changes.
    fn settle(&mut self) {
        if let Rendering::Text(log) = &mut self.rendering {
            log.settle(clock::now());
            write_lines(&mut self.ready, log);
        }
    }

    /// How long until [`Self::settle`] has something to print, if no record comes.
    fn settles_after(&self) -> Option<Duration> {
        let Rendering::Text(log) = &self.rendering else { return None };
        log.settles_at().map(|at| at.saturating_sub(clock::now()))
    }

    fn end_of_run(&mut self) {
        self.finish();
        match &mut self.rendering {
            Rendering::Raw => self.ready.extend_from_slice(format!("\r\n{SEPARATOR}\r\n").as_bytes()),
            Rendering::Text(log) => {
                self.ready.extend_from_slice(format!("{SEPARATOR}\n").as_bytes());
                **log = TextLog::default();
            }
            Rendering::Cast(cast) => cast.end_of_run(&mut self.ready),
        }
    }

    /// Prints the rest of the screen.
    fn finish(&mut self) {
        if let Rendering::Text(log) = &mut self.rendering {
            log.finish();
            write_lines(&mut self.ready, log);
        }
    }

    async fn send_ready(&mut self, sink: &mpsc::Sender<Vec<u8>>) -> io::Result<()> {
        if self.ready.is_empty() {
            return Ok(());
        }
        sink.send(std::mem::take(&mut self.ready)).await.map_err(|_| reader_left())
    }
}

fn write_lines(out: &mut Vec<u8>, log: &mut TextLog) {
    for line in log.take() {
        out.extend_from_slice(line.text.as_bytes());
        out.push(b'\n');
    }
}

/// A connection to a keeper that only reads.
struct KeeperReader {
    stream: UnixStream,
    buffer: Vec<u8>,
}

impl KeeperReader {
    async fn connect(run: &RunDir, from_seq: u64) -> io::Result<KeeperReader> {
        let stream = agency_api::socket::connect(&run.socket())?;
        stream.set_nonblocking(true)?;
        let mut stream = UnixStream::from_std(stream)?;
        let hello = ToKeeper::Hello {
            min: OLDEST_VERSION,
            max: VERSION,
            epoch: 0,
            peer: "agency logs".to_string(),
            lifeline: false,
        };
        stream.write_all(&Frame::control(&hello)?.encoded()).await?;
        stream.write_all(&Frame::control(&ToKeeper::Follow { from_seq })?.encoded()).await?;
        Ok(KeeperReader { stream, buffer: Vec::new() })
    }

    async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            let decoded =
                Frame::decode(&self.buffer).map_err(|err| io::Error::new(io::ErrorKind::InvalidData, err))?;
            if let Some((frame, used)) = decoded {
                self.buffer.drain(..used);
                return Ok(Some(frame));
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }
}
