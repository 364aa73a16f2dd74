//! Launches a keeper: reads the launch spec from standard input and starts or adopts the agent.
//!
//! The steps: read the spec, detach from the starting process, prepare the run directory, start or adopt the
//! agent, answer on standard output. If a step fails, everything is undone before the answer is written.

use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use agency_api::keeper::{Frame, LaunchAnswer, LaunchSpec, MAX_FRAME_BYTES, RESCUE_FD, Start, Stdio};
use agency_api::{Bytes, ProcessIdentity};
use agency_journal::{BodyRef, ExitStatus, GapCause, Limits};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, WaitOptions};

use crate::child::{self, SpawnSpec};
use crate::failure::Failure;
use crate::holder::{self, Next, fork};
use crate::keeper::{Keeper, KeeperState, PID_FILE};
use crate::keeper_search::PROGRAM;
use crate::life::Exit;
use crate::peers::Peers;
use crate::pidfile::PidFile;
use crate::platform::{self, Process, Watch};
use crate::port::Port;
use crate::requests::{MAX_RECORD_BYTES, resize_body};
use crate::run_journal::RunJournal;
use crate::run_lock;
use crate::signals::Signals;
use crate::socket::Socket;
use crate::terminal::Terminal;
use crate::tree::{RUN_ID_VARIABLE, Tree};

const JOURNAL: &str = "j";

/// A limit, so that adding it to a time cannot overflow.
const LONGEST_LINGER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Runs the keeper from launch to exit.
pub fn main() -> ExitCode {
    // A keeper in a broken state is worse than none: the daemon holds a lifeline and starts a new keeper.
    std::panic::set_hook(Box::new(|_| std::process::abort()));
    match launch() {
        Ok(Launched::Parent) => ExitCode::SUCCESS,
        Ok(Launched::Keeper(keeper)) => {
            keeper.run();
            holder::wake();
            ExitCode::SUCCESS
        }
        Err(failure) => {
            write_answer(&failure.answer());
            ExitCode::FAILURE
        }
    }
}

enum Launched {
    /// A process that is not the keeper and has nothing more to do.
    Parent,
    Keeper(Box<Keeper>),
}

fn launch() -> Result<Launched, Failure> {
    let (spec, checkpoint) = read_spec().map_err(Failure::at("read the launch spec"))?;
    let terminal = open_terminal(&spec.start)?;
    let dev_null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|err| Failure::new("open /dev/null", err.into()))?;
    let (agent, to_holder) = io::pipe().map_err(Failure::at("open a pipe to the holder"))?;
    let (keeper, to_holder) = match detach(terminal.is_some()).map_err(Failure::at("detach"))? {
        Detached::Parent => return Ok(Launched::Parent),
        Detached::Middle { keeper } => {
            // Only the keeper may hold the pipes to the daemon.
            redirect_stdio(&dev_null);
            drop(to_holder);
            let Some(terminal) = terminal else { return Ok(Launched::Parent) };
            let held = holder::hold(keeper, spec, terminal.into_master(), agent);
            match held.map_err(Failure::at("hold the terminal"))? {
                Next::Exit => return Ok(Launched::Parent),
                Next::Keep { spec, master } => {
                    let keeper = prepare(*spec, None, Some(adopt(master)?))?;
                    // Not earlier: a keeper that can be found by its name must survive the signals of a daemon.
                    platform::set_own_name(PROGRAM);
                    (keeper, None)
                }
            }
        }
        Detached::Keeper => (prepare(spec, checkpoint, terminal)?, Some(to_holder)),
    };
    let identity = keeper.tree.keeper.clone();
    let child = keeper.tree.child.clone().unwrap_or_else(|| no_process(&identity));
    if let Some(pipe) = to_holder {
        // Before the answer: from then on the agent must survive this process. A keeper without a holder is still a
        // keeper.
        holder::write_agent(pipe, keeper.tree.child.as_ref()).ok();
    }
    write_answer(&LaunchAnswer::Ready { keeper: identity, child });
    redirect_stdio(&dev_null);
    Ok(Launched::Keeper(Box::new(keeper)))
}

/// Opens a terminal for the agent, or takes over the one that it has. `None` if it talks through pipes.
fn open_terminal(start: &Start) -> Result<Option<Terminal>, Failure> {
    match start {
        Start::Rescue { .. } => {
            let master = take_master().map_err(Failure::at("take over the terminal"))?;
            close_inherited_descriptors(RESCUE_FD + 1);
            adopt(master).map(Some)
        }
        Start::Spawn { stdio, .. } => {
            close_inherited_descriptors(RESCUE_FD);
            let Stdio::Pty { size } = stdio else { return Ok(None) };
            Terminal::open(*size).map(Some).map_err(Failure::at("open a terminal"))
        }
    }
}

fn adopt(master: OwnedFd) -> Result<Terminal, Failure> {
    Terminal::adopt(master).map_err(Failure::at("take over the terminal"))
}

/// Pid 0, which no process has: a rescue found a terminal but no agent.
fn no_process(keeper: &ProcessIdentity) -> ProcessIdentity {
    ProcessIdentity { pid: 0, start_time: 0, boot_id: keeper.boot_id.clone() }
}

struct Checkpoint {
    at_seq: u64,
    bytes: Vec<u8>,
}

/// Reads to the end of the stream, because only the end shows whether a checkpoint follows.
fn read_spec() -> io::Result<(LaunchSpec, Option<Checkpoint>)> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(2 * MAX_FRAME_BYTES as u64).read_to_end(&mut bytes)?;
    let (spec, used) = match next_frame(&bytes)? {
        Some((Frame::Control(json), used)) => (parse_spec(&json)?, used),
        _ => return Err(invalid("there is no launch spec")),
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
    // Report only the column: the text itself may be a prompt or a password.
    serde_json::from_slice(json).map_err(|err| invalid(format!("it is not valid at column {}", err.column())))
}

fn next_frame(bytes: &[u8]) -> io::Result<Option<(Frame, usize)>> {
    Frame::decode(bytes).map_err(|err| invalid(err.to_string()))
}

fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

#[allow(unsafe_code)]
fn take_master() -> io::Result<OwnedFd> {
    // SAFETY: nothing else in this process uses descriptor 3, and we check that it is open before we own it.
    unsafe {
        rustix::io::fcntl_getfd(std::os::fd::BorrowedFd::borrow_raw(RESCUE_FD))?;
        Ok(OwnedFd::from_raw_fd(RESCUE_FD))
    }
}

/// Closes descriptors that we inherited, so that the keeper does not hold them for the agent's whole life.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn close_inherited_descriptors(from: i32) {
    // SAFETY: at this point nothing in this process uses a descriptor from `from` on.
    // Before Linux 5.9 the call is missing; there we trust that our parent closed its own descriptors.
    unsafe { libc::syscall(libc::SYS_close_range, from as libc::c_uint, libc::c_uint::MAX, 0) };
}

#[cfg(not(target_os = "linux"))]
fn close_inherited_descriptors(_from: i32) {}

/// Which of the three processes of a launch this is.
enum Detached {
    /// The process that the daemon started.
    Parent,
    /// The keeper's parent.
    Middle {
        keeper: Pid,
    },
    Keeper,
}

/// Fork, new session, fork: the keeper has no terminal of its own, and its parent has left the daemon.
fn detach(middle_stays: bool) -> io::Result<Detached> {
    if let Some(middle) = fork()? {
        if !middle_stays {
            // It exits at once. An init that does not reap would otherwise keep it as a zombie for ever.
            rustix::process::waitpid(Some(middle), WaitOptions::empty())?;
        }
        return Ok(Detached::Parent);
    }
    rustix::process::setsid()?;
    Ok(fork()?.map_or(Detached::Keeper, |keeper| Detached::Middle { keeper }))
}

fn prepare(
    spec: LaunchSpec,
    checkpoint: Option<Checkpoint>,
    terminal: Option<Terminal>,
) -> Result<Keeper, Failure> {
    let mut run = PreparedRun::open(&spec)?;
    if let Some(Checkpoint { at_seq, bytes }) = checkpoint {
        run.journal.record_first(BodyRef::Checkpoint { at_seq, bytes: &bytes }, &mut run.peers);
    }
    let agent = start_agent(&spec, terminal, &mut run).inspect_err(|_| run.undo())?;
    run.pid_file.child = agent.child.clone();
    // The agent is running; a pid file without its pid is no reason to end it.
    write_pid_file(&run.pid_file).ok();
    Ok(run.into_keeper(spec, agent))
}

/// The keeper's parts before it has an agent.
struct PreparedRun {
    lock: OwnedFd,
    signals: Signals,
    journal: RunJournal,
    peers: Peers,
    socket: Socket,
    pid_file: PidFile,
}

impl PreparedRun {
    fn open(spec: &LaunchSpec) -> Result<PreparedRun, Failure> {
        let signals = Signals::install().map_err(Failure::at("handle signals"))?;
        platform::become_subreaper().map_err(Failure::at("become a subreaper"))?;
        let run_dir = spec.run_dir.as_path();
        std::env::set_current_dir(run_dir).map_err(Failure::at(format!("enter {}", run_dir.display())))?;
        let lock = run_lock::lock_run()?;
        let journal = open_journal(spec)?;
        let socket = Socket::bind(run_dir).map_err(Failure::at("bind the socket"))?;
        let pid_file = PidFile { keeper: platform::own_identity(), child: None };
        let run = PreparedRun { lock, signals, journal, peers: Peers::default(), socket, pid_file };
        write_pid_file(&run.pid_file).inspect_err(|_| run.undo())?;
        Ok(run)
    }

    /// Removes the socket and the pid file that this launch made.
    fn undo(&self) {
        // Report the failure that led here, not one of the cleanup.
        self.socket.remove().ok();
        self.pid_file.remove(Path::new(PID_FILE)).ok();
    }

    fn into_keeper(self, spec: LaunchSpec, agent: Agent) -> Keeper {
        let mut state = KeeperState::new();
        if let Some(status) = agent.exit {
            state.life.on_exit(Exit { status, asked: None }, Instant::now());
        }
        let is_rescue = matches!(spec.start, Start::Rescue { .. });
        Keeper {
            tree: Tree {
                keeper: self.pid_file.keeper.clone(),
                child: agent.child,
                run_id_to_search: is_rescue.then(|| spec.run_id.clone()),
                spare: spec.spare,
            },
            run_id: spec.run_id,
            owner: spec.owner,
            env: environment(spec.start),
            linger: Duration::from_millis(spec.linger_ms).min(LONGEST_LINGER),
            signals: self.signals,
            socket: self.socket,
            port: agent.port,
            journal: self.journal,
            peers: self.peers,
            pid_file: self.pid_file,
            watch: agent.watch,
            state,
            lock: self.lock,
        }
    }
}

fn environment(start: Start) -> Vec<(Bytes, Bytes)> {
    match start {
        Start::Spawn { env, .. } | Start::Rescue { env, .. } => env,
    }
}

fn open_journal(spec: &LaunchSpec) -> Result<RunJournal, Failure> {
    let limits = Limits { segment_bytes: spec.segment_bytes, max_bytes: spec.max_journal_bytes };
    let opened = match spec.start {
        Start::Spawn { .. } => RunJournal::create(Path::new(JOURNAL), limits),
        Start::Rescue { .. } => RunJournal::recover(Path::new(JOURNAL), limits),
    };
    opened.map_err(Failure::at("open the journal"))
}

fn write_pid_file(pid_file: &PidFile) -> Result<(), Failure> {
    pid_file.write(Path::new(PID_FILE)).map_err(Failure::at("write the pid file"))
}

/// The agent, newly started or found by a rescue.
struct Agent {
    child: Option<ProcessIdentity>,
    port: Port,
    watch: Option<Watch>,
    /// Set if the agent ended before the rescue.
    exit: Option<ExitStatus>,
}

fn start_agent(
    spec: &LaunchSpec,
    terminal: Option<Terminal>,
    run: &mut PreparedRun,
) -> Result<Agent, Failure> {
    let PreparedRun { journal, peers, .. } = run;
    match (&spec.start, terminal) {
        (Start::Spawn { argv, env, cwd, stdio }, terminal) => {
            let spec = SpawnSpec { argv, env, cwd, open_files: spec.open_files };
            let (child, port) = child::spawn(&spec, terminal)?;
            journal.record_anchor(peers);
            if let Stdio::Pty { size } = stdio {
                journal.record(resize_body(*size), peers);
            }
            Ok(Agent { child: Some(child), port, watch: None, exit: None })
        }
        (Start::Rescue { child, .. }, Some(terminal)) => {
            journal.record_first(BodyRef::Gap { output_bytes: 0, cause: GapCause::KeeperLost }, peers);
            journal.record_anchor(peers);
            Ok(rescue(spec, child.as_ref(), terminal))
        }
        (Start::Rescue { .. }, None) => {
            Err(Failure::new("take over the terminal", rustix::io::Errno::BADF.into()))
        }
    }
}

fn rescue(spec: &LaunchSpec, child: Option<&ProcessIdentity>, mut terminal: Terminal) -> Agent {
    let found = find_agent(&spec.run_id, terminal.device());
    let child = child.cloned().or_else(|| found.map(|process| process.identity()));
    let watched = child.as_ref().map(Watch::open);
    let has_ended = matches!(watched, Some(Ok(None)));
    let watch = watched.and_then(|watched| watched.ok().flatten());
    if watch.is_none() {
        // Only a hangup shows that the agent ended, and there is none while we hold the slave end ourselves.
        terminal.release_slave();
    }
    Agent { child, port: Port::terminal(terminal), watch, exit: has_ended.then_some(ExitStatus::Unknown) }
}

/// The session leader on this terminal among the processes that inherited the run's id.
fn find_agent(run_id: &str, terminal: u64) -> Option<Process> {
    let candidates = platform::processes_with_environment(RUN_ID_VARIABLE, run_id);
    candidates.into_iter().find(|process| process.session == process.pid && process.terminal == terminal)
}

/// Writes one line of JSON to standard output. If the daemon no longer reads, it does not need the answer.
fn write_answer(answer: &LaunchAnswer) {
    if let Ok(mut line) = serde_json::to_vec(answer) {
        line.push(b'\n');
        io::stdout().lock().write_all(&line).ok();
        io::stdout().lock().flush().ok();
    }
}

/// Closes the pipes to the starting process and redirects stray output to `/dev/null`.
fn redirect_stdio(dev_null: &OwnedFd) {
    // The agent is running; a descriptor that stays open is no reason to end it.
    rustix::stdio::dup2_stdin(dev_null).ok();
    rustix::stdio::dup2_stdout(dev_null).ok();
    rustix::stdio::dup2_stderr(dev_null).ok();
}
