//! What a task's runs printed, as text, as the very bytes or as a recording, to the end or for as long as it goes on.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use agency_api::keeper::{Frame, FromKeeper, OLDEST_VERSION, ToKeeper, VERSION};
use agency_api::method::LogForm;
use agency_api::paths::RunDir;
use agency_driver::terminal::SEPARATOR;
use agency_journal::{Body, Decoded, GapCause, Reader, Record};
use agency_terminal::{Screen, Size};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};

use crate::cast::Cast;
use crate::fold::unseal;

/// A reader that is slower than the disk makes the disk wait.
const CHUNKS_WAITING: usize = 16;

#[derive(Debug)]
pub struct LogRequest {
    /// Oldest first.
    pub runs: Vec<RunDir>,
    pub form: LogForm,
    /// Go on with the newest run while it lives.
    pub follow: bool,
}

/// The log as it is read; the receiver's end is the log's.
pub fn read(request: LogRequest) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(CHUNKS_WAITING);
    tokio::spawn(async move {
        match write_all(request, sender).await {
            Err(cause) if cause.kind() != io::ErrorKind::BrokenPipe => {
                tracing::warn!(%cause, "a log cannot be read to its end");
            }
            _ => {}
        }
    });
    receiver
}

/// The log of a workspace's setup, for as long as it grows.
pub fn read_setup(path: PathBuf, mut grows: Option<watch::Receiver<u64>>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(CHUNKS_WAITING);
    tokio::spawn(async move {
        let Ok(mut file) =
            tokio::task::spawn_blocking(move || File::open(path)).await.map_err(io::Error::other).flatten()
        else {
            return;
        };
        loop {
            // Asked before it is read, so that what comes meanwhile is read the next time.
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
                // An error says that it has ended, which the next look sees.
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
    let (mut out, next_seq) =
        tokio::task::spawn_blocking(move || past(&request, &past_sink)).await.map_err(io::Error::other)??;
    if let (Some(newest), true) = (newest, follow) {
        out.flush_complete_lines();
        live(&mut out, &newest, next_seq, &sink).await?;
    }
    out.rest_of_screen();
    out.hand_over(&sink).await
}

/// What the journals hold by now; returns the record that comes after it.
fn past(request: &LogRequest, sink: &mpsc::Sender<Vec<u8>>) -> io::Result<(Output, u64)> {
    let mut out = Output { rendering: Rendering::new(request.form), ready: Vec::new() };
    let mut next_seq = 0;
    let asked = agency_store::clock::now();
    for (at, run) in request.runs.iter().enumerate() {
        if at > 0 {
            out.end_of_run();
        }
        next_seq = 0;
        // An agent that prints without end would never let go of us. Times of earlier boots mean nothing now.
        let is_live = run.pid_file().exists();
        let mut reader = Reader::open(&run.journal(), unseal)?;
        while let Some(record) = reader.next()? {
            if is_live && Duration::from_nanos(record.at_ns) > asked {
                break;
            }
            next_seq = record.seq + 1;
            out.record(&record);
            if !out.ready.is_empty() {
                sink.blocking_send(std::mem::take(&mut out.ready)).map_err(|_| nobody_reads())?;
            }
        }
    }
    Ok((out, next_seq))
}

/// Follows the keeper itself, as a guest, until the run is gone or nobody reads.
async fn live(out: &mut Output, run: &RunDir, next_seq: u64, sink: &mpsc::Sender<Vec<u8>>) -> io::Result<()> {
    let mut next_seq = next_seq;
    if let Ok(mut guest) = Guest::connect(run, next_seq).await {
        follow(out, run, &mut guest, &mut next_seq, sink).await?;
    }
    // The keeper is gone, or was before we came: the journal has the rest.
    read_on(out, run, &mut next_seq, u64::MAX)
}

async fn follow(
    out: &mut Output,
    run: &RunDir,
    guest: &mut Guest,
    next_seq: &mut u64,
    sink: &mpsc::Sender<Vec<u8>>,
) -> io::Result<()> {
    loop {
        out.hand_over(sink).await?;
        let frame = tokio::select! {
            frame = guest.next() => frame?,
            () = sink.closed() => return Err(nobody_reads()),
        };
        match frame {
            Some(Frame::Record(bytes)) => {
                if let Decoded::Complete(record, _) = Record::decode(&bytes) {
                    *next_seq = (record.seq + 1).max(*next_seq);
                    out.record(&record);
                }
                if guest.buffer.is_empty() {
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

/// What the journal holds from `next_seq` up to but not including `until_seq`.
fn read_on(out: &mut Output, run: &RunDir, next_seq: &mut u64, until_seq: u64) -> io::Result<()> {
    for record in crate::fold::records(&run.journal(), *next_seq, until_seq)? {
        *next_seq = record.seq + 1;
        out.record(&record);
    }
    Ok(())
}

fn nobody_reads() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "nobody reads the log any more")
}

struct Output {
    rendering: Rendering,
    /// Not handed over yet.
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
            // What a setup printed is in no journal; see `read_setup`.
            LogForm::Raw | LogForm::Setup => Rendering::Raw,
            LogForm::Text => Rendering::Text { screen: Box::new(fresh_screen()), printed: 0 },
            LogForm::Cast => Rendering::Cast(Cast::new(false)),
            LogForm::CastWithInput => Rendering::Cast(Cast::new(true)),
        }
    }
}

/// Lines are taken out of the scrollback as they arrive there, so it may be as small as it likes to be.
fn fresh_screen() -> Screen {
    Screen::new(Size { cols: 80, rows: 24, x_pixels: 0, y_pixels: 0 }, SCROLLBACK)
}

/// More than one record can scroll off, and no more than memory is worth.
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

    /// In a log that goes on, a line is printed once the cursor has left it.
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

    async fn hand_over(&mut self, sink: &mpsc::Sender<Vec<u8>>) -> io::Result<()> {
        if self.ready.is_empty() {
            return Ok(());
        }
        sink.send(std::mem::take(&mut self.ready)).await.map_err(|_| nobody_reads())
    }
}

/// A keeper that was killed may have lost something or not; the others know.
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

/// A keeper's reader that may look and nothing else.
struct Guest {
    stream: UnixStream,
    buffer: Vec<u8>,
}

impl Guest {
    async fn connect(run: &RunDir, from_seq: u64) -> io::Result<Guest> {
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
        Ok(Guest { stream, buffer: Vec::new() })
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
