//! Commands of the user's in a workspace, one after another: a setup or a teardown.
//!
//! Children of the daemon, each in a process group of its own. All that they start carries the chore's
//! `AGENCY_RUN_ID`, so a chore is ended like an orphaned run, by this daemon or by the next one. What they
//! print goes to the workspace's log and, in pieces, to whoever listens. They have no terminal and no input.
//! Not here: when they run, and what follows.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agency_run::environment::Environment;
use agency_run::process_tree::end_tree;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout, timeout_at};

/// Nobody reads faster, and each piece is an event.
const TOLD_EVERY: Duration = Duration::from_millis(100);

/// A command that prints without end fills neither the disk nor the memory.
const LONGEST_LOG: u64 = 32 << 20;
const LONGEST_PIECE: usize = 32 << 10;

/// Too much at once for whoever watches.
const LEFT_OUT: &str = "[… lines are left out here: `agency logs TASK --setup` has them …]\n";

/// What a failure shows of the output.
const LAST_LINES: usize = 10;

/// What is in the pipe when the command has ended is read at once; a process that it left behind may hold the
/// pipe open for ever.
const DRAINED_WITHIN: Duration = Duration::from_millis(500);

/// Pieces wait here while the loop is busy.
const PIECES_WAITING: usize = 64;

/// Everything that is needed to run it.
#[derive(Debug)]
pub struct Chore {
    pub commands: Vec<Vec<OsString>>,
    pub env: Environment,
    pub cwd: PathBuf,
    pub log: PathBuf,
    /// For all commands together.
    pub limit: Option<Duration>,
    /// The `AGENCY_RUN_ID` in `env`.
    pub run: String,
}

/// Why it did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub why: String,
    /// The last lines it printed.
    pub last_lines: Vec<String>,
    /// Somebody asked for it.
    pub stopped: bool,
}

/// What one chore prints.
pub struct Log {
    file: Option<File>,
    written: u64,
    /// All that is kept of it is written, and that there was more.
    is_full: bool,
    last: VecDeque<String>,
    /// The line that has no end yet.
    open: Vec<u8>,
    /// Whole lines that nobody was told of.
    untold: String,
    pieces: mpsc::Sender<String>,
}

impl Log {
    /// Written anew, or behind what is there. A log that cannot be written keeps nothing from being done.
    pub fn open(path: &Path, anew: bool) -> (Log, mpsc::Receiver<String>) {
        let mut options = OpenOptions::new();
        options.create(true).mode(0o600).write(true).truncate(anew).append(!anew);
        let file = options.open(path).inspect_err(|cause| {
            tracing::warn!(log = %path.display(), %cause, "the log of a setup cannot be written");
        });
        let (pieces, told) = mpsc::channel(PIECES_WAITING);
        let log = Log {
            file: file.ok(),
            written: 0,
            is_full: false,
            last: VecDeque::new(),
            open: Vec::new(),
            untold: String::new(),
            pieces,
        };
        (log, told)
    }

    /// A line of our own.
    pub async fn say(&mut self, line: &str) {
        self.take(format!("{line}\n").as_bytes());
        self.tell().await;
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

    /// Whatever was said before: how it ended is always worth a line.
    fn conclude(&mut self, line: &str) {
        self.put(format!("[{line}]\n").as_bytes());
    }

    fn put(&mut self, bytes: &[u8]) {
        let Some(Err(cause)) = self.file.as_mut().map(|file| file.write_all(bytes)) else { return };
        tracing::warn!(%cause, "the log of a setup cannot be written any more");
        self.file = None;
    }

    /// Progress bars overwrite their line; how it looks in the end is what counts.
    fn end_line(&mut self) {
        let text = String::from_utf8_lossy(&std::mem::take(&mut self.open)).into_owned();
        let line = text.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
        if self.last.len() == LAST_LINES {
            self.last.pop_front();
        }
        self.last.push_back(line.to_owned());
        match self.untold.len() {
            len if len < LONGEST_PIECE => {
                self.untold.push_str(line);
                self.untold.push('\n');
            }
            _ if self.untold.ends_with(LEFT_OUT) => {}
            _ => self.untold.push_str(LEFT_OUT),
        }
    }

    /// A last line need not have an end of its own.
    async fn close_line(&mut self) {
        if !self.open.is_empty() {
            self.take(b"\n");
        }
        self.tell().await;
    }

    async fn tell(&mut self) {
        if !self.untold.is_empty() {
            // Nobody listens any more, which is fine: the log has it.
            self.pieces.send(std::mem::take(&mut self.untold)).await.unwrap_or_default();
        }
    }

    fn last_lines(&self) -> Vec<String> {
        self.last.iter().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
    }
}

/// Of a chore whose daemon was killed: half a log must not look like a whole one.
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

type Shared = Arc<Mutex<Option<Log>>>;

/// Runs it to its end, or until `stop` says so. When it returns an error, no process of it is left.
pub async fn run(chore: &Chore, log: Log, mut stop: watch::Receiver<bool>) -> Result<Log, (Trouble, Log)> {
    let deadline = chore.limit.map(|limit| Instant::now() + limit);
    let mut log = log;
    for command in &chore.commands {
        log.say(&format!("$ {}", shown(command))).await;
        log.last.clear();
        let (outcome, after) = run_one(chore, command, log, deadline, &mut stop).await;
        log = after;
        log.close_line().await;
        if let Err((why, stopped)) = outcome {
            let last_lines = log.last_lines();
            // Whoever waits is told by the failure itself.
            log.conclude(&why);
            return Err((Trouble { why, last_lines, stopped }, log));
        }
    }
    Ok(log)
}

/// As one would type it, more or less.
pub fn shown(command: &[OsString]) -> String {
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
    chore: &Chore,
    command: &[OsString],
    log: Log,
    deadline: Option<Instant>,
    stop: &mut watch::Receiver<bool>,
) -> (Result<(), (String, bool)>, Log) {
    let (mut child, output) = match spawn(chore, command) {
        Ok(spawned) => spawned,
        Err(cause) => return (Err((format!("cannot run `{}`: {cause}", shown(command)), false)), log),
    };
    let shared: Shared = Arc::new(Mutex::new(Some(log)));
    let mut reader = tokio::spawn(read_on(output, shared.clone()));
    let outcome = tokio::select! {
        ended = ended_by(&mut child, deadline) => match ended {
            Some(status) => judged(command, status),
            None => Err((took_too_long(chore.limit), false)),
        },
        () = asked(stop) => Err(("it was stopped".to_owned(), true)),
    };
    if outcome.is_err() {
        end(chore, &mut child).await;
    }
    // What a process that was left behind prints later goes nowhere, but it can print it.
    drop(timeout(DRAINED_WITHIN, &mut reader).await);
    let log = lock(&shared).take();
    (outcome, log.unwrap_or_else(|| Log::open(&chore.log, false).0))
}

fn spawn(chore: &Chore, command: &[OsString]) -> io::Result<(Child, pipe::Receiver)> {
    let (program, arguments) =
        command.split_first().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it is empty"))?;
    let (reader, writer) = io::pipe()?;
    let mut child = Command::new(program);
    child.args(arguments).env_clear().envs(&chore.env).current_dir(&chore.cwd).process_group(0);
    child.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).kill_on_drop(true);
    let child = child.spawn()?;
    Ok((child, pipe::Receiver::from_owned_fd(reader.into())?))
}

/// `None`: its time is over.
async fn ended_by(child: &mut Child, deadline: Option<Instant>) -> Option<io::Result<ExitStatus>> {
    match deadline {
        Some(deadline) => timeout_at(deadline, child.wait()).await.ok(),
        None => Some(child.wait().await),
    }
}

fn judged(command: &[OsString], status: io::Result<ExitStatus>) -> Result<(), (String, bool)> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err((format!("`{}` ended with {status}", shown(command)), false)),
        Err(cause) => Err((format!("`{}` cannot be waited for: {cause}", shown(command)), false)),
    }
}

fn took_too_long(limit: Option<Duration>) -> String {
    format!("it took longer than {:?}, which is workspace.setup_timeout", limit.unwrap_or_default())
}

async fn asked(stop: &mut watch::Receiver<bool>) {
    // Whoever could ask is gone only with the daemon.
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending().await
    }
}

/// With everything it started.
async fn end(chore: &Chore, child: &mut Child) {
    let run = chore.run.clone();
    if let Err(cause) = tokio::task::spawn_blocking(move || end_tree(&run)).await {
        tracing::warn!(%cause, "the processes of a setup cannot be looked for");
    }
    // Not waited for yet, so the number is still its own.
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

/// To the end of the output, whoever holds it open. Once the log is taken away, what comes is dropped.
async fn read_on(mut output: pipe::Receiver, shared: Shared) {
    let mut buffer = vec![0; 16 << 10];
    let mut tell_at: Option<Instant> = None;
    loop {
        let due = tell_at.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        let read = tokio::select! {
            read = output.read(&mut buffer) => Some(read),
            () = tokio::time::sleep_until(due), if tell_at.is_some() => None,
        };
        match read {
            Some(Ok(count)) if count > 0 => {
                if let Some(log) = lock(&shared).as_mut() {
                    log.take(&buffer[..count]);
                }
                tell_at.get_or_insert_with(|| Instant::now() + TOLD_EVERY);
            }
            Some(_) => return hand_over(&shared).await,
            None => {
                tell_at = None;
                hand_over(&shared).await;
            }
        }
    }
}

async fn hand_over(shared: &Shared) {
    let piece = lock(shared).as_mut().map(|log| (log.pieces.clone(), std::mem::take(&mut log.untold)));
    if let Some((pieces, untold)) = piece.filter(|(_, untold)| !untold.is_empty()) {
        pieces.send(untold).await.unwrap_or_default();
    }
}

fn lock(shared: &Shared) -> std::sync::MutexGuard<'_, Option<Log>> {
    shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use agency_run::environment;

    fn chore(dir: &Path, lines: &[&str], limit: Option<Duration>) -> Chore {
        let run = format!("test-{}-{}", std::process::id(), dir.display());
        let mut env: Environment = std::env::vars_os().collect();
        env.insert(environment::RUN_ID.into(), run.clone().into());
        let command = |line: &&str| ["sh", "-c", line].map(OsString::from).to_vec();
        let commands = lines.iter().map(command).collect();
        Chore { commands, env, cwd: dir.to_owned(), log: dir.join("log"), limit, run }
    }

    /// Its outcome, what the log holds and what was told.
    async fn ran(chore: &Chore, stop: watch::Receiver<bool>) -> (Result<(), Trouble>, String, String) {
        let (log, mut pieces) = Log::open(&chore.log, true);
        let told = tokio::spawn(async move {
            let mut told = String::new();
            while let Some(piece) = pieces.recv().await {
                told.push_str(&piece);
            }
            told
        });
        let outcome = run(chore, log, stop).await.map(drop).map_err(|(trouble, _)| trouble);
        let told = told.await.expect("told to its end");
        (outcome, std::fs::read_to_string(&chore.log).expect("a log"), told)
    }

    #[tokio::test]
    async fn commands_run_one_after_another_and_what_they_print_is_kept_and_told() {
        let dir = tempfile::tempdir().unwrap();
        let (_stop, stopped) = watch::channel(false);
        let lines = ["echo one; echo two >&2; printf 'a\\rb\\n'", "pwd >> out; printf end"];
        let (outcome, log, told) = ran(&chore(dir.path(), &lines, None), stopped).await;
        assert_eq!(outcome, Ok(()));
        assert!(log.contains("\none\ntwo\na\rb\n$ sh -c 'pwd >> out; printf end'\nend"), "{log}");
        assert!(told.contains("one\ntwo\nb\n"), "{told}");
        assert!(dir.path().join("out").exists());
    }

    #[test]
    fn a_log_that_grows_too_long_says_where_it_was_cut_off_and_how_it_ended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let (mut log, _told) = Log::open(&path, true);
        log.written = LONGEST_LOG - 5;
        log.take(b"123456789\nmore\n");
        log.conclude("it failed");
        end_cut_off_log(&path);
        let expected = "12345\n[cut off here: no more than 32 MiB are kept]\n[it failed]\n\n[cut off here: the daemon ended before it]\n";
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    }

    #[test]
    fn too_much_at_once_is_not_told_silently() {
        let dir = tempfile::tempdir().unwrap();
        let (mut log, _told) = Log::open(&dir.path().join("log"), true);
        log.take("0123456789\n".repeat(LONGEST_PIECE / 5).as_bytes());
        assert!(log.untold.ends_with(LEFT_OUT) && log.untold.matches(LEFT_OUT).count() == 1);
    }

    #[tokio::test]
    async fn the_first_that_fails_ends_it_with_its_last_lines() {
        let dir = tempfile::tempdir().unwrap();
        let (_stop, stopped) = watch::channel(false);
        let lines = ["seq 100; echo broken >&2; exit 3", "touch never"];
        let (outcome, log, _) = ran(&chore(dir.path(), &lines, None), stopped).await;
        let trouble = outcome.expect_err("it failed");
        assert_eq!(trouble.why, "`sh -c 'seq 100; echo broken >&2; exit 3'` ended with exit status: 3");
        assert_eq!((trouble.last_lines.len(), trouble.stopped), (LAST_LINES, false));
        assert_eq!(trouble.last_lines.last().map(String::as_str), Some("broken"));
        assert!(log.contains("\n1\n2\n") && log.ends_with("ended with exit status: 3]\n"), "{log}");
        assert!(!dir.path().join("never").exists());
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let (_stop, stopped) = watch::channel(false);
        let chore = Chore { commands: vec![vec!["no-such-program".into()]], ..chore(dir.path(), &[], None) };
        let trouble = ran(&chore, stopped).await.0.expect_err("there is none");
        assert!(trouble.why.starts_with("cannot run `no-such-program`: "), "{trouble:?}");
    }

    #[tokio::test]
    async fn a_stop_ends_all_that_was_started() {
        let dir = tempfile::tempdir().unwrap();
        let (stop, stopped) = watch::channel(false);
        // The second leaves the group.
        let chore = chore(dir.path(), &["sleep 1000 & setsid sleep 1000 & echo up; wait"], None);
        let run = chore.run.clone();
        let log = chore.log.clone();
        let stopping = tokio::spawn(async move {
            while !std::fs::read_to_string(&log).unwrap_or_default().ends_with("up\n") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            stop.send(true)
        });
        let (outcome, _, _) = ran(&chore, stopped).await;
        assert!(outcome.expect_err("it was stopped").stopped);
        assert_eq!(stopping.await.expect("it was asked for"), Ok(()));
        let left = agency_keeper::platform::processes_with_environment(environment::RUN_ID, &run);
        assert!(left.iter().all(agency_keeper::platform::Process::has_ended), "{left:?}");
    }

    #[tokio::test]
    async fn one_that_takes_too_long_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let (_stop, stopped) = watch::channel(false);
        let chore = chore(dir.path(), &["sleep 1000"], Some(Duration::from_millis(10)));
        let trouble = ran(&chore, stopped).await.0.expect_err("its time is over");
        assert_eq!(trouble.why, "it took longer than 10ms, which is workspace.setup_timeout");
    }

    #[tokio::test]
    async fn one_that_is_left_behind_holds_nothing_up() {
        let dir = tempfile::tempdir().unwrap();
        let (_stop, stopped) = watch::channel(false);
        let chore = chore(dir.path(), &["sleep 1000 & echo up"], None);
        let (outcome, log, _) = ran(&chore, stopped).await;
        assert_eq!(outcome, Ok(()));
        assert!(log.ends_with("up\n"), "{log}");
        assert_eq!(end_tree(&chore.run), 1, "it lives on, and can be found");
    }
}
