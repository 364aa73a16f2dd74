//! The user's commands of a setup or a teardown, run one after another in a workspace.
//!
//! Each command is a child of the daemon in a process group of its own, without a terminal and without input. Every
//! process that it starts carries the same `AGENCY_RUN_ID`, so this daemon or the next one can find and end them all.
//! The output goes to the workspace's setup log and, in pieces, to the caller.
//! Not here: when the commands run, and what follows.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout, timeout_at};

use agency_run::environment::Environment;
use agency_run::process_tree::end_tree;

/// No person reads faster, and each piece is an event.
const REPORTED_EVERY: Duration = Duration::from_millis(100);

/// A command that prints without end must fill neither the disk nor the memory.
const LONGEST_LOG: u64 = 32 << 20;
const LONGEST_PIECE: usize = 32 << 10;

/// Replaces lines that come too fast for a person who watches.
const LEFT_OUT: &str = "[… lines are left out here: `agency logs TASK --setup` has them …]\n";

/// How many lines of output a failure shows.
const LAST_LINES: usize = 10;

/// After a command has ended, its output is in the pipe already. Do not wait for the pipe to close: a process that the
/// command left behind may hold it open for ever.
const DRAINED_WITHIN: Duration = Duration::from_millis(500);

/// Pieces wait here while the loop is busy.
const PIECES_WAITING: usize = 64;

/// The commands, with everything that is needed to run them.
#[derive(Debug)]
pub struct SetupCommands {
    /// Program and arguments of each command, in order.
    pub commands: Vec<Vec<OsString>>,
    /// Their whole environment.
    pub env: Environment,
    /// The directory they run in.
    pub cwd: PathBuf,
    /// The file that gets their output.
    pub log: PathBuf,
    /// For all commands together.
    pub limit: Option<Duration>,
    /// The `AGENCY_RUN_ID` in `env`.
    pub run: String,
}

/// Why the commands did not all succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupError {
    /// The reason, as a sentence for the user.
    pub why: String,
    /// The last lines that the failed command printed.
    pub last_lines: Vec<String>,
    /// A user stopped it.
    pub stopped: bool,
}

/// Whether a log that exists already is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldContent {
    /// Truncate the log first.
    Replace,
    /// Append to the log.
    Keep,
}

/// Everything that the commands print.
pub struct SetupLog {
    file: Option<File>,
    written: u64,
    /// The file has reached its limit, and its last line says so.
    is_full: bool,
    last: VecDeque<String>,
    /// The line that has no end yet.
    open: Vec<u8>,
    /// Whole lines that were not sent to `pieces` yet.
    unreported: String,
    pieces: mpsc::Sender<String>,
}

impl SetupLog {
    /// Opens the log. If the file cannot be written, the commands run without it.
    pub fn open(path: &Path, content: OldContent) -> (SetupLog, mpsc::Receiver<String>) {
        let mut options = OpenOptions::new();
        match content {
            OldContent::Replace => options.truncate(true),
            OldContent::Keep => options.append(true),
        };
        options.create(true).mode(0o600).write(true);
        let file = options.open(path).inspect_err(|cause| {
            tracing::warn!(log = %path.display(), %cause, "the log of a setup cannot be written");
        });
        let (pieces, reports) = mpsc::channel(PIECES_WAITING);
        let log = SetupLog {
            file: file.ok(),
            written: 0,
            is_full: false,
            last: VecDeque::new(),
            open: Vec::new(),
            unreported: String::new(),
            pieces,
        };
        (log, reports)
    }

    /// Writes a line of the daemon's own.
    pub async fn write_line(&mut self, line: &str) {
        self.take(format!("{line}\n").as_bytes());
        self.report().await;
    }

    fn take(&mut self, bytes: &[u8]) {
        self.write(bytes);
        for byte in bytes {
            match byte {
                b'\n' => self.end_line(),
                byte if self.open.len() < LONGEST_PIECE => self.open.push(*byte),
                _ => {}
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.is_full {
            return;
        }
        let room = LONGEST_LOG.saturating_sub(self.written);
        let fits = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        self.written += fits as u64;
        self.put(&bytes[..fits]);
        if fits < bytes.len() {
            self.is_full = true;
            let most = LONGEST_LOG >> 20;
            self.put(format!("\n[cut off here: no more than {most} MiB are kept]\n").as_bytes());
        }
    }

    /// Writes how it ended, also into a log that is full.
    fn conclude(&mut self, line: &str) {
        self.put(format!("[{line}]\n").as_bytes());
    }

    fn put(&mut self, bytes: &[u8]) {
        let Some(Err(cause)) = self.file.as_mut().map(|file| file.write_all(bytes)) else { return };
        tracing::warn!(%cause, "the log of a setup cannot be written any more");
        self.file = None;
    }

    /// A progress bar overwrites its line many times. Keep what the line shows in the end.
    fn end_line(&mut self) {
        let text = String::from_utf8_lossy(&std::mem::take(&mut self.open)).into_owned();
        let line = text.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line.to_owned());
        match self.unreported.len() {
            len if len < LONGEST_PIECE => {
                self.unreported.push_str(line);
                self.unreported.push('\n');
            }
            _ if self.unreported.ends_with(LEFT_OUT) => {}
            _ => self.unreported.push_str(LEFT_OUT),
        }
    }

    /// Ends a last line that the command did not end.
    async fn close_line(&mut self) {
        if !self.open.is_empty() {
            self.take(b"\n");
        }
        self.report().await;
    }

    async fn report(&mut self) {
        if !self.unreported.is_empty() {
            // If no receiver is left, the text is still in the log.
            self.pieces.send(std::mem::take(&mut self.unreported)).await.unwrap_or_default();
        }
    }

    fn last_lines(&self) -> Vec<String> {
        self.last.iter().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
    }
}

/// Marks the log of a setup whose daemon was killed, so that half a log does not look like a whole one.
pub fn end_cut_off_log(path: &Path) {
    let written = OpenOptions::new()
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(b"\n[cut off here: the daemon ended before it]\n"));
    match written {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(log = %path.display(), %cause, "the log of a setup cannot be written");
        }
        _ => {}
    }
}

type SharedLog = Arc<Mutex<Option<SetupLog>>>;

/// Runs the commands to their end, or until `stop` is set. After an error no process of them is left.
pub async fn run(
    setup: &SetupCommands,
    log: SetupLog,
    mut stop: watch::Receiver<bool>,
) -> Result<SetupLog, (SetupError, SetupLog)> {
    let deadline = setup.limit.map(|limit| Instant::now() + limit);
    let mut log = log;
    for command in &setup.commands {
        log.write_line(&format!("$ {}", format_command(command))).await;
        log.last.clear();
        let (outcome, after) = run_one(setup, command, log, deadline, &mut stop).await;
        log = after;
        log.close_line().await;
        if let Err((why, stopped)) = outcome {
            let last_lines = log.last_lines();
            // Only the file needs this line: callers get the failure itself.
            log.conclude(&why);
            return Err((SetupError { why, last_lines, stopped }, log));
        }
    }
    Ok(log)
}

/// The command as a user would type it into a shell, for people.
pub fn format_command(command: &[OsString]) -> String {
    let word = |word: &OsString| {
        let word = word.to_string_lossy();
        match word.is_empty() || word.contains(|c: char| c.is_whitespace() || "'\"\\$`".contains(c)) {
            true => format!("'{}'", word.replace('\'', "'\\''")),
            false => word.into_owned(),
        }
    };
    command.iter().map(word).collect::<Vec<_>>().join(" ")
}

async fn run_one(
    setup: &SetupCommands,
    command: &[OsString],
    log: SetupLog,
    deadline: Option<Instant>,
    stop: &mut watch::Receiver<bool>,
) -> (Result<(), (String, bool)>, SetupLog) {
    let (mut child, output) = match spawn(setup, command) {
        Ok(spawned) => spawned,
        Err(cause) => {
            return (Err((format!("cannot run `{}`: {cause}", format_command(command)), false)), log);
        }
    };
    let shared: SharedLog = Arc::new(Mutex::new(Some(log)));
    let mut reader = tokio::spawn(read_output(output, shared.clone()));
    let outcome = tokio::select! {
        ended = wait_until(&mut child, deadline) => match ended {
            Some(status) => check_status(command, status),
            None => Err((took_too_long(setup.limit), false)),
        },
        () = wait_for_stop(stop) => Err(("it was stopped".to_owned(), true)),
    };
    if outcome.is_err() {
        end(setup, &mut child).await;
    }
    // A process that the command left behind can go on printing: the reader stays and drops its output.
    drop(timeout(DRAINED_WITHIN, &mut reader).await);
    let log = lock(&shared).take();
    (outcome, log.unwrap_or_else(|| SetupLog::open(&setup.log, OldContent::Keep).0))
}

fn spawn(setup: &SetupCommands, command: &[OsString]) -> io::Result<(Child, pipe::Receiver)> {
    let (program, arguments) =
        command.split_first().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it is empty"))?;
    let (reader, writer) = io::pipe()?;
    let mut child = Command::new(program);
    child.args(arguments).env_clear().envs(&setup.env).current_dir(&setup.cwd).process_group(0);
    child.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).kill_on_drop(true);
    let child = child.spawn()?;
    Ok((child, pipe::Receiver::from_owned_fd(reader.into())?))
}

/// `None`: the deadline has passed.
async fn wait_until(child: &mut Child, deadline: Option<Instant>) -> Option<io::Result<ExitStatus>> {
    match deadline {
        Some(deadline) => timeout_at(deadline, child.wait()).await.ok(),
        None => Some(child.wait().await),
    }
}

fn check_status(command: &[OsString], status: io::Result<ExitStatus>) -> Result<(), (String, bool)> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err((format!("`{}` ended with {status}", format_command(command)), false)),
        Err(cause) => Err((format!("`{}` cannot be waited for: {cause}", format_command(command)), false)),
    }
}

fn took_too_long(limit: Option<Duration>) -> String {
    format!("it took longer than {:?}, which is workspace.setup_timeout", limit.unwrap_or_default())
}

async fn wait_for_stop(stop: &mut watch::Receiver<bool>) {
    // The sender lives as long as the daemon.
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending().await
    }
}

/// Ends the command and every process that it started.
async fn end(setup: &SetupCommands, child: &mut Child) {
    let run = setup.run.clone();
    if let Err(cause) = tokio::task::spawn_blocking(move || end_tree(&run)).await {
        tracing::warn!(%cause, "the processes of a setup cannot be looked for");
    }
    // The daemon has not reaped the child yet, so its pid still belongs to it.
    if let Some(Err(cause)) = child
        .id()
        .and_then(|id| Pid::from_raw(id as i32))
        .map(|group| kill_process_group(group, Signal::KILL))
    {
        tracing::debug!(%cause, "the group of a setup's command is gone already");
    }
    if let Err(cause) = child.wait().await {
        tracing::warn!(%cause, "a setup's command cannot be waited for");
    }
}

/// Reads to the end of the output. After `run_one` has taken the log away, drops the rest.
async fn read_output(mut output: pipe::Receiver, shared: SharedLog) {
    let mut buffer = vec![0; 16 << 10];
    let mut report_at: Option<Instant> = None;
    loop {
        let due = report_at.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        let read = tokio::select! {
            read = output.read(&mut buffer) => Some(read),
            () = tokio::time::sleep_until(due), if report_at.is_some() => None,
        };
        match read {
            Some(Ok(count)) if count > 0 => {
                if let Some(log) = lock(&shared).as_mut() {
                    log.take(&buffer[..count]);
                }
                report_at.get_or_insert_with(|| Instant::now() + REPORTED_EVERY);
            }
            Some(_) => return report_pieces(&shared).await,
            None => {
                report_at = None;
                report_pieces(&shared).await;
            }
        }
    }
}

async fn report_pieces(shared: &SharedLog) {
    let piece = lock(shared).as_mut().map(|log| (log.pieces.clone(), std::mem::take(&mut log.unreported)));
    if let Some((pieces, unreported)) = piece.filter(|(_, unreported)| !unreported.is_empty()) {
        pieces.send(unreported).await.unwrap_or_default();
    }
}

fn lock(shared: &SharedLog) -> std::sync::MutexGuard<'_, Option<SetupLog>> {
    shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use agency_run::environment;

    fn setup(dir: &Path, lines: &[&str], limit: Option<Duration>) -> SetupCommands {
        let run = format!("test-{}-{}", std::process::id(), dir.display());
        let mut env: Environment = std::env::vars_os().collect();
        env.insert(environment::RUN_ID.into(), run.clone().into());
        let command = |line: &&str| ["sh", "-c", line].map(OsString::from).to_vec();
        let commands = lines.iter().map(command).collect();
        SetupCommands { commands, env, cwd: dir.to_owned(), log: dir.join("log"), limit, run }
    }

    /// The outcome, the content of the log, and the pieces that the caller got.
    async fn run_all(
        setup: &SetupCommands,
        stop: watch::Receiver<bool>,
    ) -> (Result<(), SetupError>, String, String) {
        let (log, mut pieces) = SetupLog::open(&setup.log, OldContent::Replace);
        let reports = tokio::spawn(async move {
            let mut reports = String::new();
            while let Some(piece) = pieces.recv().await {
                reports.push_str(&piece);
            }
            reports
        });
        let outcome = run(setup, log, stop).await.map(drop).map_err(|(error, _)| error);
        let reports = reports.await.expect("the receiver ends");
        (outcome, std::fs::read_to_string(&setup.log).expect("a log"), reports)
    }

    #[tokio::test]
    async fn commands_run_one_after_another_and_what_they_print_is_kept_and_pieces() {
        let dir = tempfile::tempdir().unwrap();
        let (_stop, stopped) = watch::channel(false);
        let lines = ["echo one; echo two >&2; printf 'a\\rb\\n'", "pwd >> out; printf end"];
        let (outcome, log, reports) = run_all(&setup(dir.path(), &lines, None), stopped).await;
        assert_eq!(outcome, Ok(()));
        assert!(log.contains("\none\ntwo\na\rb\n$ sh -c 'pwd >> out; printf end'\nend"), "{log}");
        assert!(reports.contains("one\ntwo\nb\n"), "{reports}");
        assert!(dir.path().join("out").exists());
    }

    #[test]
    fn a_log_that_grows_too_long_says_where_it_was_cut_off_and_how_it_ended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let (mut log, _pieces) = SetupLog::open(&path, OldContent::Replace);
        log.written = LONGEST_LOG - 5;
        log.take(b"123456789\nmore\n");
        log.conclude("it failed");
        end_cut_off_log(&path);
        let expected = "12345\n[cut off here: no more than 32 MiB are kept]\n[it failed]\n\n[cut off here: the daemon ended before it]\n";
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    }

    #[test]
    fn too_much_at_once_is_not_pieces_silently() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, _pieces) = SetupLog::open(&dir.path().join("log"), OldContent::Replace);
        log.take("0123456789\n".repeat(LONGEST_PIECE / 5).as_bytes());
        assert!(log.unreported.ends_with(LEFT_OUT) && log.unreported.matches(LEFT_OUT).count() == 1);
    }

    #[tokio::test]
    async fn the_first_command_that_fails_ends_the_setup_with_its_last_lines() {
        let dir = tempfile::tempdir().unwrap();
        let (_stop, stopped) = watch::channel(false);
        let lines = ["seq 100; echo broken >&2; exit 3", "touch never"];
        let (outcome, log, _) = run_all(&setup(dir.path(), &lines, None), stopped).await;
        let error = outcome.expect_err("it failed");
        assert_eq!(error.why, "`sh -c 'seq 100; echo broken >&2; exit 3'` ended with exit status: 3");
        assert_eq!((error.last_lines.len(), error.stopped), (LAST_LINES, false));
        assert_eq!(error.last_lines.last().map(String::as_str), Some("broken"));
        assert!(log.contains("\n1\n2\n") && log.ends_with("ended with exit status: 3]\n"), "{log}");
        assert!(!dir.path().join("never").exists());
    }

    #[tokio::test]
    async fn a_missing_program_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (_stop, stopped) = watch::channel(false);
        let setup =
            SetupCommands { commands: vec![vec!["no-such-program".into()]], ..setup(dir.path(), &[], None) };
        let error = run_all(&setup, stopped).await.0.expect_err("there is none");
        assert!(error.why.starts_with("cannot run `no-such-program`: "), "{error:?}");
    }

    #[tokio::test]
    async fn a_stop_ends_every_process_of_the_setup() {
        let dir = tempfile::tempdir().unwrap();
        let (stop, stopped) = watch::channel(false);
        // The second leaves the group.
        let setup = setup(dir.path(), &["sleep 1000 & setsid sleep 1000 & echo up; wait"], None);
        let run = setup.run.clone();
        let log = setup.log.clone();
        let stopping = tokio::spawn(async move {
            while !std::fs::read_to_string(&log).unwrap_or_default().ends_with("up\n") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            stop.send(true)
        });
        let (outcome, _, _) = run_all(&setup, stopped).await;
        assert!(outcome.expect_err("it was stopped").stopped);
        assert_eq!(stopping.await.expect("it was asked for"), Ok(()));
        let left = agency_keeper::platform::processes_with_environment(environment::RUN_ID, &run);
        assert!(left.iter().all(agency_keeper::platform::Process::has_ended), "{left:?}");
    }

    #[tokio::test]
    async fn a_setup_that_takes_too_long_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let (_stop, stopped) = watch::channel(false);
        let setup = setup(dir.path(), &["sleep 1000"], Some(Duration::from_millis(10)));
        let error = run_all(&setup, stopped).await.0.expect_err("its time is over");
        assert_eq!(error.why, "it took longer than 10ms, which is workspace.setup_timeout");
    }

    #[tokio::test]
    async fn a_process_that_a_command_leaves_behind_holds_nothing_up() {
        let dir = tempfile::tempdir().unwrap();
        let (_stop, stopped) = watch::channel(false);
        let setup = setup(dir.path(), &["sleep 1000 & echo up"], None);
        let (outcome, log, _) = run_all(&setup, stopped).await;
        assert_eq!(outcome, Ok(()));
        assert!(log.ends_with("up\n"), "{log}");
        assert_eq!(end_tree(&setup.run), 1, "it lives on, and can be found");
    }
}
