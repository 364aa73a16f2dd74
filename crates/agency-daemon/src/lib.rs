//! The daemon: the one process per user that knows every task, follows every keeper and answers every caller.
//!
//! It may be killed at any instruction: keepers, journals, task files and workspaces survive, and the next daemon finds
//! them again.
//!
//! A request travels through these modules, in this order:
//!
//! * `agency-server` reads the request and finds its handler in the `world::router`. `world::argument` opens the project
//!   and finds the task of the call.
//! * `world` is the one loop, and everything it owns. Each file of its directory handles one subject:
//!   * the loop: `loop_event` (everything that can happen), `effects`, `operations` and `refusals` (what the supervisor
//!     orders, allows and refuses), `events` (what subscribers hear), `boot`;
//!   * tasks and their agents: `tasks`, `new_tasks`, `starts`, `launches`, `lifecycle`, `runs`, `orphans`, `agents`;
//!   * what agents show and say: `terminals`, `conversations`, `approvals`, `sends`, `explain`, `searches`, `notices`;
//!   * workspaces: `workspaces`, `setups`, `setup_run`, `environments`, `ports`, `missing_workspaces`,
//!     `moved_projects`;
//!   * the work in them: `diffs`, `turns`, `integrations` (merge and sync), `conflicts`;
//!   * its removal: `removals`, `trash`, `finished_tasks`, `traces`;
//!   * shared ACP processes: `connections`; limits of agents that start tasks: `mcp`;
//!   * the user's files: `configuration`, `consent`.
//! * Work that takes long runs beside the loop: `agency-work` in workspaces, `agency-run` with keepers.
//! * `lock` and `log` serve the process itself: one daemon per user and host, and its log.

mod lock;
mod log;
mod memory;
mod world;

use std::io::{self, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use agency_api::paths::StateDir;
use agency_api::{Failure, FailureCode, daemon_socket, socket};
use agency_run::run_search::{self, LiveProcess};
use agency_run::{keeper_copy, limits, recording};
use agency_server::Streams;
use agency_server::{ServerContext, UNSENT_ANSWERS};
use agency_store::epoch::DaemonEpoch;
use agency_store::program_memory::ProgramMemories;
use agency_store::rule_book::RuleBook;
use agency_store::state_format::{self, NewerFormat};
use signal_hook::consts::SIGUSR1;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, broadcast};

use crate::lock::DaemonLock;
use crate::world::loop_event::{LoopEvent, Reporter};
use crate::world::{DaemonContext, World};

/// A subscriber that is further behind misses events, and the daemon sends it their number.
const EVENTS_WAITING: usize = 4096;

/// A daemon that holds the lock and does not listen by then has lost its socket, or is still looking for its agents.
const OTHER_BINDS_AFTER: Duration = Duration::from_millis(500);

/// A daemon that leaves waits this long for callers that read their answers slowly.
const ANSWERS_SENT_WITHIN: Duration = Duration::from_secs(1);

/// How long a second daemon waits for the first one to listen.
const OTHER_LISTENS_WITHIN: Duration = Duration::from_secs(20);

/// Every change of state in a recording, as the detector sees it with the user's own rules.
pub fn states_of_recording(
    path: &std::path::Path,
) -> Result<(Vec<agency_api::view::StateChange>, Vec<String>), Failure> {
    let book = RuleBook::open(agency_api::paths::rules());
    Ok((recording::states(path, book.rules(), Default::default())?, book.problems()))
}

/// Blocking. Every keeper and every process of a run that lives, whatever the files say.
pub fn find_live_processes(state: &StateDir) -> Vec<LiveProcess> {
    run_search::find_live_processes(state)
}

/// The problems in the user's own screen rules.
pub fn rule_problems() -> Vec<String> {
    RuleBook::open(agency_api::paths::rules()).problems()
}

/// Runs the daemon until a caller or a signal ends it. Prints `ready` on standard output once it listens, or the failure
/// as JSON if it cannot.
pub fn run(state: StateDir) -> Result<(), Failure> {
    let outcome = begin(&state);
    if let Err(failure) = &outcome {
        say(&serde_json::to_string(failure).unwrap_or_else(|_| failure.message.clone()));
    }
    match outcome? {
        Some(prepared) => live(state, prepared),
        None => {
            say("ready");
            Ok(())
        }
    }
}

/// Waits while another daemon holds the lock. `None` once that daemon listens: then this one is not needed.
fn begin(state: &StateDir) -> Result<Option<Prepared>, Failure> {
    // Another daemon may send SIGUSR1 as soon as this one holds the lock. Without a handler the signal would end it.
    let ignored = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGUSR1, ignored)
        .map_err(|err| Failure::new("cannot handle signals").code(FailureCode::Internal).caused_by(&err))?;
    let (begun, mut has_signalled) = (Instant::now(), false);
    let deadline = begun + OTHER_LISTENS_WITHIN;
    loop {
        if let Some(prepared) = prepare(state)? {
            return Ok(Some(prepared));
        }
        if daemon_socket::connect(state).is_ok() {
            return Ok(None);
        }
        if begun.elapsed() > OTHER_BINDS_AFTER && !std::mem::replace(&mut has_signalled, true) {
            lock::ask_holder_to_bind(state);
        }
        if Instant::now() > deadline {
            return Err(Failure::new("another daemon holds the lock but does not listen")
                .code(FailureCode::NoDaemon)
                .hint(format!("its log: {}", state.daemon_log().display())));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

struct Prepared {
    _lock: DaemonLock,
    epoch: Arc<DaemonEpoch>,
    open_files: Option<(u64, u64)>,
    keeper_binary: PathBuf,
    listener: UnixListener,
    socket: PathBuf,
    /// Why there is no log, and why the format of the state directory could not be read.
    problems: Vec<String>,
}

/// `None` if another daemon holds the lock.
fn prepare(state: &StateDir) -> Result<Option<Prepared>, Failure> {
    let cannot = |what: &str| {
        Failure::new(format!("cannot {what} in {}", state.root().display())).code(FailureCode::IoError)
    };
    // First of all: state of a later format must stay as it is.
    state_format::check(state).map_err(|newer| too_new(state, &newer))?;
    // Leave the caller's terminal. A daemon that a shell started already leads a process group; then this fails, and
    // nothing is lost.
    rustix::process::setsid().map(drop).unwrap_or_default();
    state.create().map_err(|err| cannot("keep state").caused_by(&err))?;
    let Some(lock) = DaemonLock::take(state).map_err(|err| cannot("take the lock").caused_by(&err))? else {
        return Ok(None);
    };
    // A daemon of a later version may have begun and ended meanwhile.
    state_format::check(state).map_err(|newer| too_new(state, &newer))?;
    // A daemon without a log can still serve its agents.
    let log = log::open(state).err();
    let log_problem = log.map(|cause| format!("{} cannot be written: {cause}", state.daemon_log().display()));
    let format_problem = state_format::mark(state, env!("CARGO_PKG_VERSION"));
    let problems = log_problem.into_iter().chain(format_problem).collect();
    let epoch = Arc::new(DaemonEpoch::begin(state, lock.file()));
    let open_files = limits::raise_open_files();
    let keeper_binary = keeper_copy::installed(state).map_err(|err| {
        Failure::new("cannot use the keeper's program")
            .code(FailureCode::CommandNotFound)
            .caused_by(&err)
            .hint("`make` builds agency and agency-keeper side by side")
    })?;
    let (listener, socket) = daemon_socket::bind(state).map_err(|err| cannot("listen").caused_by(&err))?;
    Ok(Some(Prepared { _lock: lock, epoch, open_files, keeper_binary, listener, socket, problems }))
}

fn too_new(state: &StateDir, newer: &NewerFormat) -> Failure {
    let (version, knows) = (env!("CARGO_PKG_VERSION"), state_format::CURRENT);
    Failure::new(format!("the state in {} is newer than this version of Agency", state.root().display()))
        .code(FailureCode::VersionMismatch)
        .because(format!("it has format {}, written by {}", newer.format, newer.written_by))
        .because(format!(
            "Agency {version} knows formats up to {knows}; it changed nothing, and agents go on"
        ))
        .hint(format!(
            "use {} or later, or set XDG_STATE_HOME to another directory to begin without these tasks",
            newer.written_by
        ))
}

fn live(state: StateDir, prepared: Prepared) -> Result<(), Failure> {
    memory::give_back_large_blocks();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("agency").build().map_err(
            |err| Failure::new("cannot start threads").code(FailureCode::OutOfCapacity).caused_by(&err),
        )?;
    runtime.block_on(serve(&state, prepared));
    // The callers of blocking work that is still under way know already that the daemon leaves.
    runtime.shutdown_timeout(Duration::from_millis(500));
    Ok(())
}

async fn serve(state: &StateDir, prepared: Prepared) {
    let (reporter, mut inbox) = world::loop_event::channel();
    let (events, _) = broadcast::channel(EVENTS_WAITING);
    let streams = Arc::new(Streams::default());
    let desk = world::desk_feed::DeskFeed::new(prepared.epoch.get());
    let context = DaemonContext {
        state: state.clone(),
        socket: prepared.socket.clone(),
        epoch: prepared.epoch.clone(),
        keeper_binary: prepared.keeper_binary,
        program: std::env::current_exe().ok(),
        rule_book: Arc::new(RuleBook::open(agency_api::paths::rules())),
        memories: Arc::new(ProgramMemories::open(state)),
        open_files: prepared.open_files,
        streams: streams.clone(),
        events: events.clone(),
        desk: desk.clone(),
        reporter: reporter.clone(),
        problems: prepared.problems,
    };
    tracing::info!(
        pid = std::process::id(),
        epoch = prepared.epoch.get(),
        version = env!("CARGO_PKG_VERSION"),
        "the daemon is here"
    );
    watch_signals(reporter.clone());
    leave_when_lock_is_lost(state.clone(), prepared.epoch.clone(), reporter.clone());
    let (mut world, found) = World::find_all(context).await;
    let unsent = Arc::new(Semaphore::new(UNSENT_ANSWERS as usize));
    let router = Arc::new(world::build_router());
    let server = ServerContext {
        state: state.clone(),
        router,
        requests: reporter,
        streams,
        events,
        desk: desk.updates(),
        unsent: unsent.clone(),
    };
    tokio::spawn(desk.follow(server.requests.clone()));
    tokio::spawn(listen(prepared.listener, server.clone()));
    bind_again_on_signal(state.clone(), server);
    say("ready");
    world.boot(found, &mut inbox).await;
    world.live(inbox).await;
    // First the callers get their answers. A caller that does not read delays the end only for a moment.
    drop(tokio::time::timeout(ANSWERS_SENT_WITHIN, unsent.acquire_many(UNSENT_ANSWERS)).await);
    // The next daemon binds its own socket. Until then callers see at once that no daemon runs. A daemon that lost its
    // lock must not delete the socket of its successor.
    if prepared.epoch.holds_lock()
        && let Err(cause) = std::fs::remove_file(prepared.socket)
    {
        tracing::warn!(%cause, "cannot delete the socket");
    }
}

async fn listen(listener: UnixListener, server: ServerContext<Reporter>) {
    if let Err(cause) = agency_server::serve(listener, server).await {
        tracing::error!(%cause, "the daemon no longer accepts connections");
    }
}

/// A user deleted or moved the state directory. The agents go on, and the next daemon finds them by their keepers.
fn leave_when_lock_is_lost(state: StateDir, epoch: Arc<DaemonEpoch>, reporter: Reporter) {
    tokio::spawn(async move {
        lock::wait_until_lost(&state, &epoch).await;
        tracing::error!("the state directory was deleted or moved; the daemon leaves, the agents go on");
        reporter.report(LoopEvent::Leave).await;
    });
}

/// Binds a new socket on SIGUSR1, if the old one was deleted.
fn bind_again_on_signal(state: StateDir, server: ServerContext<Reporter>) {
    let mut signals = match signal(SignalKind::user_defined1()) {
        Ok(signals) => signals,
        Err(cause) => return tracing::error!(%cause, "cannot watch SIGUSR1; a deleted socket stays deleted"),
    };
    tokio::spawn(async move {
        while signals.recv().await.is_some() {
            if state.daemon_socket().exists() {
                continue;
            }
            match socket::bind(&state.daemon_socket()) {
                Ok(listener) => {
                    tracing::warn!("the socket was deleted; the daemon has bound a new one");
                    tokio::spawn(listen(listener, server.clone()));
                }
                Err(cause) => {
                    tracing::error!(%cause, "the socket was deleted, and the daemon cannot bind a new one")
                }
            }
        }
    });
}

fn watch_signals(reporter: Reporter) {
    let watch = |kind: SignalKind, event: fn() -> LoopEvent| {
        let reporter = reporter.clone();
        match signal(kind) {
            Ok(mut signals) => {
                tokio::spawn(async move {
                    while signals.recv().await.is_some() {
                        reporter.report(event()).await;
                    }
                });
            }
            Err(cause) => tracing::error!(%cause, ?kind, "cannot watch a signal"),
        }
    };
    watch(SignalKind::terminate(), || LoopEvent::EndAll);
    watch(SignalKind::interrupt(), || LoopEvent::EndAll);
    watch(SignalKind::hangup(), || LoopEvent::Leave);
}

/// Prints one line for the process that started the daemon. Then standard output goes to `/dev/null`, so that a closed
/// pipe does no harm.
fn say(line: &str) {
    let mut stdout = io::stdout();
    let printed = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    let silenced = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/null")
        .and_then(|null| rustix::stdio::dup2_stdout(null).map_err(io::Error::from));
    if let Err(cause) = printed.and(silenced) {
        tracing::debug!(%cause, "cannot print to standard output");
    }
}
