//! From the launch spec on standard input to a keeper that holds its agent, or a clear failure.
//!
//! A sequence: read, detach from whoever started us, prepare the run directory, start or adopt the
//! agent, answer on standard output. What failed has been undone when the answer is written.

use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use agency_api::keeper::{Frame, LaunchAnswer, LaunchSpec, MAX_FRAME_BYTES, RESCUE_FD, Start, Stdio};
use agency_api::{Bytes, ProcessIdentity};
use agency_journal::{BodyRef, ExitStatus, GapCause, Limits};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::process::{Pid, WaitOptions};

use crate::child::{self, Recipe};
use crate::clients::Clients;
use crate::hold::{Hold, PID_FILE, State};
use crate::ledger::Ledger;
use crate::life::Exit;
use crate::orders::{MAX_RECORD_BYTES, resize_body};
use crate::pidfile::PidFile;
use crate::platform::{self, Process, Watch};
use crate::port::Port;
use crate::signals::Signals;
use crate::socket::Socket;
use crate::terminal::Terminal;
use crate::tree::{RUN_ID_VARIABLE, Tree};

const JOURNAL: &str = "j";

/// Left in the directory of a run that must not begin any more.
pub const ABANDONED_FILE: &str = "abandoned";

/// Times must not overflow.
const LONGEST_LINGER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Which step failed, and the kernel's word on it.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    cause: io::Error,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>, cause: io::Error) -> Failure {
        Failure { what: what.into(), cause }
    }

    pub(crate) fn at(what: impl Into<String>) -> impl FnOnce(io::Error) -> Failure {
        move |cause| Failure { what: what.into(), cause }
    }

    fn answer(&self) -> LaunchAnswer {
        let errno = self.cause.raw_os_error();
        // Without a number the words are all there is.
        let what = match errno {
            Some(_) => self.what.clone(),
            None => format!("{}: {}", self.what, self.cause),
        };
        LaunchAnswer::Failed { what, errno: errno.unwrap_or(libc::EINVAL) }
    }
}

/// The whole life of the process.
pub fn main() -> ExitCode {
    // Half a state is worse than none: the daemon holds a lifeline and starts another keeper.
    std::panic::set_hook(Box::new(|_| std::process::abort()));
    match launch() {
        Ok(Launched::Parent) => ExitCode::SUCCESS,
        Ok(Launched::Keeper(hold)) => {
            hold.run();
            ExitCode::SUCCESS
        }
        Err(failure) => {
            answer(&failure.answer());
            ExitCode::FAILURE
        }
    }
}

enum Launched {
    /// The process that was started; its grandchild is the keeper.
    Parent,
    Keeper(Box<Hold>),
}

fn launch() -> Result<Launched, Failure> {
    let (spec, checkpoint) = read_spec().map_err(Failure::at("read the launch spec"))?;
    let master = match spec.start {
        Start::Rescue { .. } => Some(take_master().map_err(Failure::at("take over the terminal"))?),
        Start::Spawn { .. } => None,
    };
    close_strangers(if master.is_some() { RESCUE_FD + 1 } else { RESCUE_FD });
    if !detach().map_err(Failure::at("detach"))? {
        return Ok(Launched::Parent);
    }
    let nowhere = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|err| Failure::new("open /dev/null", err.into()))?;
    let hold = prepare(spec, checkpoint, master)?;
    let keeper = hold.tree.keeper.clone();
    let child = hold.tree.child.clone().unwrap_or_else(|| nobody(&keeper));
    answer(&LaunchAnswer::Ready { keeper, child });
    leave_stdio(&nowhere);
    Ok(Launched::Keeper(Box::new(hold)))
}

/// A rescue that found a terminal but no agent says so with a pid that no process has.
fn nobody(keeper: &ProcessIdentity) -> ProcessIdentity {
    ProcessIdentity { pid: 0, start_time: 0, boot_id: keeper.boot_id.clone() }
}

struct Checkpoint {
    at_seq: u64,
    bytes: Vec<u8>,
}

/// To the end of the stream: only that tells whether a checkpoint follows.
fn read_spec() -> io::Result<(LaunchSpec, Option<Checkpoint>)> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(2 * MAX_FRAME_BYTES as u64).read_to_end(&mut bytes)?;
    let (spec, used) = match next_frame(&bytes)? {
        Some((Frame::Control(json), used)) => (parse_spec(&json)?, used),
        _ => return Err(invalid("no launch spec came")),
    };
    let rest = bytes.get(used..).unwrap_or_default();
    match next_frame(rest)? {
        Some((Frame::Checkpoint { bytes, .. }, _)) if bytes.len() > MAX_RECORD_BYTES => {
            Err(invalid("the checkpoint is too large"))
        }
        Some((Frame::Checkpoint { at_seq, bytes }, _)) => Ok((spec, Some(Checkpoint { at_seq, bytes }))),
        None if rest.is_empty() => Ok((spec, None)),
        _ => Err(invalid("only a whole checkpoint may follow the spec")),
    }
}

fn parse_spec(json: &[u8]) -> io::Result<LaunchSpec> {
    // Where it is wrong and not what stands there: that may be a prompt or a password.
    serde_json::from_slice(json)
        .map_err(|err| invalid(format!("it makes no sense at column {}", err.column())))
}

fn next_frame(bytes: &[u8]) -> io::Result<Option<(Frame, usize)>> {
    Frame::decode(bytes).map_err(|err| invalid(err.to_string()))
}

fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

#[allow(unsafe_code)]
fn take_master() -> io::Result<OwnedFd> {
    // SAFETY: nothing else in this process knows descriptor 3, and it is checked before it is owned.
    unsafe {
        rustix::io::fcntl_getfd(std::os::fd::BorrowedFd::borrow_raw(RESCUE_FD))?;
        Ok(OwnedFd::from_raw_fd(RESCUE_FD))
    }
}

/// What we did not open we do not hold, least of all for as long as an agent lives.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn close_strangers(from: i32) {
    // SAFETY: at this point no descriptor from here on belongs to anything in this process.
    // Where the call is missing (before Linux 5.9) whoever started us is trusted to have closed its own.
    unsafe { libc::syscall(libc::SYS_close_range, from as libc::c_uint, libc::c_uint::MAX, 0) };
}

#[cfg(not(target_os = "linux"))]
fn close_strangers(_from: i32) {}

/// Fork, new session, fork: no terminal, no parent, nobody's job. `false` in the processes that stay behind.
fn detach() -> io::Result<bool> {
    if let Some(between) = fork()? {
        // It ends at once. Left to an init that does not reap, it would stay for ever.
        rustix::process::waitpid(Some(between), WaitOptions::empty())?;
        return Ok(false);
    }
    rustix::process::setsid()?;
    Ok(fork()?.is_none())
}

/// The child's pid, or `None` in the child.
#[allow(unsafe_code)]
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: there is one thread, so the child may go on as if nothing happened.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

fn prepare(
    spec: LaunchSpec,
    checkpoint: Option<Checkpoint>,
    master: Option<OwnedFd>,
) -> Result<Hold, Failure> {
    let mut house = House::open(&spec)?;
    if let Some(Checkpoint { at_seq, bytes }) = checkpoint {
        house.ledger.record_first(BodyRef::Checkpoint { at_seq, bytes: &bytes }, &mut house.clients);
    }
    let agent = begin(&spec, master, &mut house).inspect_err(|_| house.undo())?;
    house.pid_file.child = agent.child.clone();
    // The agent runs: a file that does not name it yet is no reason to end it again.
    write_pid_file(&house.pid_file).ok();
    Ok(house.with(spec, agent))
}

/// What a keeper has before it has an agent.
struct House {
    lock: OwnedFd,
    signals: Signals,
    ledger: Ledger,
    clients: Clients,
    socket: Socket,
    pid_file: PidFile,
}

impl House {
    fn open(spec: &LaunchSpec) -> Result<House, Failure> {
        let signals = Signals::install().map_err(Failure::at("handle signals"))?;
        platform::become_subreaper().map_err(Failure::at("become a subreaper"))?;
        let run_dir = spec.run_dir.as_path();
        std::env::set_current_dir(run_dir).map_err(Failure::at(format!("enter {}", run_dir.display())))?;
        let lock = lock_run()?;
        let ledger = open_journal(spec)?;
        let socket = Socket::bind(run_dir).map_err(Failure::at("bind the socket"))?;
        let pid_file = PidFile { keeper: platform::own_identity(), child: None };
        let house = House { lock, signals, ledger, clients: Clients::default(), socket, pid_file };
        write_pid_file(&house.pid_file).inspect_err(|_| house.undo())?;
        Ok(house)
    }

    /// Takes back what this launch made and others could stumble over.
    fn undo(&self) {
        // The failure that led here is the one to tell.
        self.socket.remove().ok();
        self.pid_file.remove(Path::new(PID_FILE)).ok();
    }

    fn with(self, spec: LaunchSpec, agent: Agent) -> Hold {
        let mut state = State::new();
        if let Some(status) = agent.exit {
            state.life.exited(Exit { status, asked: None }, Instant::now());
        }
        let is_rescue = matches!(spec.start, Start::Rescue { .. });
        Hold {
            tree: Tree {
                keeper: self.pid_file.keeper.clone(),
                child: agent.child,
                run_id_to_search: is_rescue.then(|| spec.run_id.clone()),
                spare: spec.spare,
            },
            run_id: spec.run_id,
            env: environment(spec.start),
            linger: Duration::from_millis(spec.linger_ms).min(LONGEST_LINGER),
            signals: self.signals,
            socket: self.socket,
            port: agent.port,
            ledger: self.ledger,
            clients: self.clients,
            pid_file: self.pid_file,
            watch: agent.watch,
            state,
            _lock: self.lock,
        }
    }
}

fn environment(start: Start) -> Vec<(Bytes, Bytes)> {
    match start {
        Start::Spawn { env, .. } | Start::Rescue { env, .. } => env,
    }
}

/// Two keepers on one journal would destroy it.
fn lock_run() -> Result<OwnedFd, Failure> {
    let opened = rustix::fs::open(".", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let directory = opened.map_err(|err| Failure::new("open the run directory", err.into()))?;
    match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Err(err @ rustix::io::Errno::WOULDBLOCK) => {
            Err(Failure::new("lock the run: another keeper holds it", err.into()))
        }
        // Whoever started us died meanwhile, and its successor has told everyone that this run never was.
        _ if Path::new(ABANDONED_FILE).exists() => {
            Err(Failure::new("begin: the run was abandoned", rustix::io::Errno::CANCELED.into()))
        }
        // File systems without locks exist, and a run there is better than none.
        _ => Ok(directory),
    }
}

fn open_journal(spec: &LaunchSpec) -> Result<Ledger, Failure> {
    let limits = Limits { segment_bytes: spec.segment_bytes, max_bytes: spec.max_journal_bytes };
    let opened = match spec.start {
        Start::Spawn { .. } => Ledger::create(Path::new(JOURNAL), limits),
        Start::Rescue { .. } => Ledger::recover(Path::new(JOURNAL), limits),
    };
    opened.map_err(Failure::at("open the journal"))
}

fn write_pid_file(pid_file: &PidFile) -> Result<(), Failure> {
    pid_file.write(Path::new(PID_FILE)).map_err(Failure::at("write the pid file"))
}

/// The agent, started or found.
struct Agent {
    child: Option<ProcessIdentity>,
    port: Port,
    watch: Option<Watch>,
    /// It ended before we came.
    exit: Option<ExitStatus>,
}

fn begin(spec: &LaunchSpec, master: Option<OwnedFd>, house: &mut House) -> Result<Agent, Failure> {
    let House { ledger, clients, .. } = house;
    match (&spec.start, master) {
        (Start::Spawn { argv, env, cwd, stdio }, _) => {
            let recipe = Recipe { argv, env, cwd, stdio: *stdio, open_files: spec.open_files };
            let (child, port) = child::spawn(&recipe)?;
            ledger.record_anchor(clients);
            if let Stdio::Pty { size } = stdio {
                ledger.record(resize_body(*size), clients);
            }
            Ok(Agent { child: Some(child), port, watch: None, exit: None })
        }
        (Start::Rescue { child, .. }, Some(master)) => {
            ledger.record_first(BodyRef::Gap { output_bytes: 0, cause: GapCause::KeeperLost }, clients);
            ledger.record_anchor(clients);
            rescue(spec, child.as_ref(), master)
        }
        (Start::Rescue { .. }, None) => {
            Err(Failure::new("take over the terminal", rustix::io::Errno::BADF.into()))
        }
    }
}

fn rescue(spec: &LaunchSpec, child: Option<&ProcessIdentity>, master: OwnedFd) -> Result<Agent, Failure> {
    let mut terminal = Terminal::adopt(master).map_err(Failure::at("take over the terminal"))?;
    let found = find_agent(&spec.run_id, terminal.device());
    let child = child.cloned().or_else(|| found.map(|process| process.identity()));
    let watched = child.as_ref().map(Watch::open);
    let has_ended = matches!(watched, Some(Ok(None)));
    let watch = watched.and_then(|watched| watched.ok().flatten());
    if watch.is_none() {
        // Then only a hangup tells of its end, and it shows only when we do not hold the terminal ourselves.
        terminal.release_slave();
    }
    Ok(Agent { child, port: Port::terminal(terminal), watch, exit: has_ended.then_some(ExitStatus::Unknown) })
}

/// The leader of the session on this terminal, among those who inherited the run's id.
fn find_agent(run_id: &str, terminal: u64) -> Option<Process> {
    let heirs = platform::with_environment(RUN_ID_VARIABLE, run_id);
    heirs.into_iter().find(|process| process.session == process.pid && process.terminal == terminal)
}

/// One line of JSON on standard output. If nobody listens any more, nobody needs it.
fn answer(answer: &LaunchAnswer) {
    if let Ok(mut line) = serde_json::to_vec(answer) {
        line.push(b'\n');
        io::stdout().lock().write_all(&line).ok();
        io::stdout().lock().flush().ok();
    }
}

/// Whoever started us sees its pipes closed; stray output goes nowhere.
fn leave_stdio(nowhere: &OwnedFd) {
    // The agent runs by now: a descriptor that stays open is not worth its life.
    rustix::stdio::dup2_stdin(nowhere).ok();
    rustix::stdio::dup2_stdout(nowhere).ok();
    rustix::stdio::dup2_stderr(nowhere).ok();
}
