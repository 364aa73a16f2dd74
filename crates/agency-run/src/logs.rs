//! The output of a task's runs as text, as raw bytes or as a recording, up to now or for as long as the newest run lives.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use agency_api::keeper::{Frame, FromKeeper, OLDEST_VERSION, ToKeeper, VERSION};
use agency_api::method::LogForm;
use agency_api::paths::RunDir;
use agency_driver::terminal::SEPARATOR;
use agency_journal::{Body, Decoded, GapCause, Reader, Record};
use agency_keeper::pidfile::PidFile;
use agency_keeper::platform;
use agency_terminal::{Screen, Size};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};

use crate::cast::Cast;
use crate::fold::unseal;

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
        out.flush_complete_lines();
        read_live(&mut out, &newest, next_seq, &sink).await?;
    }
    out.rest_of_screen();
    out.send_ready(&sink).await
}

/// Blocking. Reads what the journals hold now. Returns the number of the next record.
fn read_past(request: &LogRequest, sink: &mpsc::Sender<Vec<u8>>) -> io::Result<(Output, u64)> {
    let mut out = Output { rendering: Rendering::new(request.form), ready: Vec::new() };
    let mut next_seq = 0;
    let asked_at = agency_store::clock::now();
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
        let frame = tokio::select! {
            frame = reader.next() => frame?,
            () = sink.closed() => return Err(reader_left()),
        };
        match frame {
            Some(Frame::Record(bytes)) => {
                if let Decoded::Complete(record, _) = Record::decode(&bytes) {
                    *next_seq = (record.seq + 1).max(*next_seq);
                    out.record(&record);
                }
                if reader.buffer.is_empty() {
                    out.flush_complete_lines();
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
    Text { screen: Box<Screen>, printed: usize },
    Cast(Cast),
}

impl Rendering {
    fn new(form: LogForm) -> Rendering {
        match form {
            // The output of a setup is in no journal; see `read_setup`.
            LogForm::Raw | LogForm::Setup => Rendering::Raw,
            LogForm::Text => Rendering::Text { screen: Box::new(fresh_screen()), printed: 0 },
            LogForm::Cast => Rendering::Cast(Cast::new(false)),
            LogForm::CastWithInput => Rendering::Cast(Cast::new(true)),
        }
    }
}

/// Lines leave the scrollback as soon as they arrive there, so it can be small.
fn fresh_screen() -> Screen {
    Screen::new(Size { cols: 80, rows: 24, x_pixels: 0, y_pixels: 0 }, SCROLLBACK)
}

/// More lines than one record can scroll off the screen.
const SCROLLBACK: usize = 100_000;

impl Output {
    fn record(&mut self, record: &Record) {
        match (&mut self.rendering, &record.body) {
            (Rendering::Cast(cast), _) => cast.record(record, &mut self.ready),
            (Rendering::Raw, Body::Output { bytes, .. }) => self.ready.extend_from_slice(bytes),
            (Rendering::Text { screen, .. }, Body::Output { bytes, .. }) => {
                screen.feed(bytes);
                self.take_history();
            }
            (Rendering::Text { screen, .. }, Body::Gap { output_bytes, cause })
                if is_loss(*cause, *output_bytes) =>
            {
                screen.feed(
                    format!("\r\n─── {output_bytes} bytes are missing here: {} ───\r\n", reason(*cause))
                        .as_bytes(),
                );
            }
            (Rendering::Text { screen, .. }, Body::Resize { cols, rows, .. }) => {
                screen.resize(Size { cols: *cols, rows: *rows, x_pixels: 0, y_pixels: 0 });
            }
            _ => {}
        }
    }

    fn take_history(&mut self) {
        let Rendering::Text { screen, printed } = &mut self.rendering else { return };
        let lines = screen.drain_history();
        let already = (*printed).min(lines.len());
        *printed -= already;
        write_lines(&mut self.ready, lines.iter().skip(already).map(String::as_str));
    }

    /// In a log that is followed, a line is printed once the cursor has left it.
    fn flush_complete_lines(&mut self) {
        let Rendering::Text { screen, printed } = &mut self.rendering else { return };
        let complete = screen.lines_above_cursor();
        write_lines(&mut self.ready, complete.iter().skip(*printed).map(String::as_str));
        *printed = complete.len().max(*printed);
    }

    fn end_of_run(&mut self) {
        self.rest_of_screen();
        match &mut self.rendering {
            Rendering::Raw => self.ready.extend_from_slice(format!("\r\n{SEPARATOR}\r\n").as_bytes()),
            Rendering::Text { screen, printed } => {
                self.ready.extend_from_slice(format!("{SEPARATOR}\n").as_bytes());
                **screen = fresh_screen();
                *printed = 0;
            }
            Rendering::Cast(cast) => cast.end_of_run(&mut self.ready),
        }
    }

    fn rest_of_screen(&mut self) {
        let Rendering::Text { screen, printed } = &mut self.rendering else { return };
        let text = screen.text();
        write_lines(&mut self.ready, text.trim_end().lines().skip(*printed));
    }

    async fn send_ready(&mut self, sink: &mpsc::Sender<Vec<u8>>) -> io::Result<()> {
        if self.ready.is_empty() {
            return Ok(());
        }
        sink.send(std::mem::take(&mut self.ready)).await.map_err(|_| reader_left())
    }
}

/// A killed keeper may have lost output without knowing how much. All other causes know the amount.
fn is_loss(cause: GapCause, output_bytes: u64) -> bool {
    output_bytes > 0 || cause == GapCause::KeeperLost
}

fn reason(cause: GapCause) -> &'static str {
    match cause {
        GapCause::DiskFull => "the disk was full",
        GapCause::KeeperLost => "the keeper was killed",
        GapCause::Retention => "the journal was too long",
        GapCause::Corrupt => "the journal is damaged",
    }
}

fn write_lines<'a>(out: &mut Vec<u8>, lines: impl Iterator<Item = &'a str>) {
    for line in lines {
        out.extend_from_slice(line.as_bytes());
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
