//! Runs: the one process that knows every task, follows every keeper and answers every caller.
//!
//! May be killed at any instruction: keepers, journals, task files and workspaces survive, and the
//! next daemon says what it found.

mod blocking;
mod lock;
mod log;
mod loop_event;
mod reply;
mod router;
mod server;
mod streams;
mod traces;
mod trash;
mod vanishing;
mod world;

use std::io::{self, Write};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use agency_api::paths::StateDir;
use agency_api::{Failure, socket};
use agency_run::{keeper_copy, limits, recording};
use agency_store::rule_book::RuleBook;
use signal_hook::consts::SIGUSR1;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Semaphore, broadcast};

use crate::lock::DaemonLock;
use crate::loop_event::{LoopEvent, Reporter};
use crate::server::{Door, UNSENT_ANSWERS};
use crate::streams::Streams;
use crate::world::{DaemonContext, World};

/// A subscriber may be this many events behind before it is told that it missed some.
const EVENTS_WAITING: usize = 4096;

/// One that has not begun to listen by then has lost its socket, or is still finding its agents.
const OTHER_BINDS_AFTER: Duration = Duration::from_millis(500);

const ANSWERS_SENT_WITHIN: Duration = Duration::from_secs(1);

/// How long a daemon that came second waits for the first one to listen.
const OTHER_LISTENS_WITHIN: Duration = Duration::from_secs(20);

/// Every change of state in a recording, as the detector sees it with the user's own rules.
pub fn states_of_recording(
    path: &std::path::Path,
) -> Result<(Vec<agency_api::view::StateChange>, Vec<String>), Failure> {
    let book = RuleBook::open(agency_api::paths::rules());
    Ok((recording::states(path, book.rules(), Default::default())?, book.problems()))
}

/// What is wrong with the user's own rules about screens, if anything is.
pub fn rule_problems() -> Vec<String> {
    RuleBook::open(agency_api::paths::rules()).problems()
}

/// Runs the daemon until it is told to leave. Says `ready` on standard output once it listens, or why it cannot.
pub fn run(state: StateDir) -> Result<(), Failure> {
    let outcome = begin(&state);
    if let Err(failure) = &outcome {
        let reasons = std::iter::once(&failure.message).chain(&failure.causes);
        say(&reasons.map(String::as_str).collect::<Vec<_>>().join(": "));
    }
    match outcome? {
        Some(prepared) => live(state, prepared),
        None => {
            say("ready");
            Ok(())
        }
    }
}

/// Waits while another daemon holds the lock: until that one listens, which is as good, or has left.
fn begin(state: &StateDir) -> Result<Option<Prepared>, Failure> {
    // From the lock on others may ask us to bind our socket anew; before there is a loop to hear it, that must
    // not be our end.
    let unheard = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGUSR1, unheard)
        .map_err(|err| Failure::new("cannot handle signals").caused_by(&err))?;
    let (begun, mut asked) = (Instant::now(), false);
    let deadline = begun + OTHER_LISTENS_WITHIN;
    loop {
        if let Some(prepared) = prepare(state)? {
            return Ok(Some(prepared));
        }
        if socket::connect(&state.daemon_socket()).is_ok() {
            return Ok(None);
        }
        if begun.elapsed() > OTHER_BINDS_AFTER && !std::mem::replace(&mut asked, true) {
            lock::ask_holder_to_bind(state);
        }
        if Instant::now() > deadline {
            return Err(Failure::new("another daemon holds the lock but does not listen")
                .hint(format!("its log: {}", state.daemon_log().display())));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

struct Prepared {
    _lock: DaemonLock,
    epoch: u64,
    open_files: Option<(u64, u64)>,
    keeper_binary: std::path::PathBuf,
    listener: UnixListener,
}

/// `None` when another daemon is there already.
fn prepare(state: &StateDir) -> Result<Option<Prepared>, Failure> {
    let cannot = |what: &str| Failure::new(format!("cannot {what} in {}", state.root().display()));
    // Away from the caller's terminal; started by hand from a shell it leads a group already, which is as good.
    rustix::process::setsid().map(drop).unwrap_or_default();
    state.create().map_err(|err| cannot("keep state").caused_by(&err))?;
    let Some(lock) = DaemonLock::take(state).map_err(|err| cannot("take the lock").caused_by(&err))? else {
        return Ok(None);
    };
    log::open(state).map_err(|err| cannot("write the log").caused_by(&err))?;
    let epoch = lock::next_epoch(state).map_err(|err| cannot("count epochs").caused_by(&err))?;
    let open_files = limits::raise_open_files();
    let keeper_binary = keeper_copy::installed(state).map_err(|err| {
        Failure::new("the keeper's program cannot be used")
            .caused_by(&err)
            .hint("`make` builds agency and agency-keeper side by side")
    })?;
    let listener = socket::bind(&state.daemon_socket()).map_err(|err| cannot("listen").caused_by(&err))?;
    Ok(Some(Prepared { _lock: lock, epoch, open_files, keeper_binary, listener }))
}

fn live(state: StateDir, prepared: Prepared) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("agency")
        .build()
        .map_err(|err| Failure::new("cannot start threads").caused_by(&err))?;
    runtime.block_on(serve(&state, prepared));
    // Blocking work that is still under way belongs to callers who were told that we leave.
    runtime.shutdown_timeout(Duration::from_millis(500));
    Ok(())
}

async fn serve(state: &StateDir, prepared: Prepared) {
    let (reporter, inbox) = loop_event::channel();
    let (events, _) = broadcast::channel(EVENTS_WAITING);
    let streams = Arc::new(Streams::default());
    let context = DaemonContext {
        state: state.clone(),
        epoch: prepared.epoch,
        keeper_binary: prepared.keeper_binary,
        program: std::env::current_exe().ok(),
        rule_book: Arc::new(RuleBook::open(agency_api::paths::rules())),
        open_files: prepared.open_files,
        streams: streams.clone(),
        events: events.clone(),
        reporter: reporter.clone(),
    };
    tracing::info!(
        pid = std::process::id(),
        epoch = prepared.epoch,
        version = env!("CARGO_PKG_VERSION"),
        "the daemon is here"
    );
    watch_signals(reporter.clone());
    let world = World::boot(context).await;
    let unsent = Arc::new(Semaphore::new(UNSENT_ANSWERS as usize));
    let router = Arc::new(world::router());
    let door = Door { state: state.clone(), router, reporter, streams, events, unsent: unsent.clone() };
    tokio::spawn(listen(prepared.listener, door.clone()));
    bind_anew_when_asked(state.clone(), door);
    say("ready");
    world.live(inbox).await;
    // Whoever asked us to leave is told so first; one that does not listen is not waited for long.
    drop(tokio::time::timeout(ANSWERS_SENT_WITHIN, unsent.acquire_many(UNSENT_ANSWERS)).await);
    // The next daemon binds it anew; until then callers see at once that nobody is here.
    if let Err(cause) = std::fs::remove_file(state.daemon_socket()) {
        tracing::warn!(%cause, "the socket stays behind");
    }
}

async fn listen(listener: UnixListener, door: Door) {
    if let Err(cause) = server::serve(listener, door).await {
        tracing::error!(%cause, "the daemon's door is broken");
    }
}

/// Somebody deleted our socket: SIGUSR1 makes another.
fn bind_anew_when_asked(state: StateDir, door: Door) {
    let mut asked = match signal(SignalKind::user_defined1()) {
        Ok(asked) => asked,
        Err(cause) => return tracing::error!(%cause, "a deleted socket will stay deleted"),
    };
    tokio::spawn(async move {
        while asked.recv().await.is_some() {
            if state.daemon_socket().exists() {
                continue;
            }
            match socket::bind(&state.daemon_socket()) {
                Ok(listener) => {
                    tracing::warn!("the socket was deleted; there is a new one");
                    tokio::spawn(listen(listener, door.clone()));
                }
                Err(cause) => tracing::error!(%cause, "the deleted socket cannot be made anew"),
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
            Err(cause) => tracing::error!(%cause, ?kind, "a signal cannot be watched"),
        }
    };
    watch(SignalKind::terminate(), || LoopEvent::EndAll);
    watch(SignalKind::interrupt(), || LoopEvent::EndAll);
    watch(SignalKind::hangup(), || LoopEvent::Leave);
}

/// One line for whoever started us, who may not care; then silence, so that a closed pipe never matters.
fn say(line: &str) {
    let mut stdout = io::stdout();
    let told = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
    let silenced = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/null")
        .and_then(|null| rustix::stdio::dup2_stdout(null).map_err(io::Error::from));
    if let Err(cause) = told.and(silenced) {
        tracing::debug!(%cause, "nobody hears us");
    }
}
