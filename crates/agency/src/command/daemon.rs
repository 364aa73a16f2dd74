//! `agency daemon`: shows, starts, stops and restarts the daemon, and installs it as a service.

pub(super) mod service;

use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use agency_api::config::Overrides;
use agency_api::method::{DaemonStatus, DaemonStop, DaemonStopParams, Nothing};
use agency_api::view;
use agency_api::{Failure, FailureCode};
use agency_client::Client;
use agency_daemon::find_live_processes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::cli::Daemon;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::output::{self, count, duration, printable};
use crate::running_programs;

/// Once a daemon has stopped its agents, it only has to close files.
const STOPS_WITHIN: Duration = Duration::from_secs(30);

/// A keeper that was dismissed writes the end of its journal and exits.
const GONE_WITHIN: Duration = Duration::from_secs(10);

pub(super) async fn daemon(context: &Context, command: Daemon) -> CommandResult {
    match command {
        Daemon::Status { json } => status(context, json).await,
        Daemon::Start => start(context).await,
        Daemon::Stop { agents, force } => stop(context, agents, force).await,
        Daemon::Restart => restart(context).await,
        Daemon::Install { print } => service::install(context, print),
        Daemon::Uninstall => service::uninstall(context),
        Daemon::Run => run(context),
    }
}

pub(crate) fn run(context: &Context) -> CommandResult {
    agency_daemon::run(context.state.clone())?;
    Ok(ExitCode::SUCCESS)
}

async fn status(context: &Context, json: bool) -> CommandResult {
    let Some(mut daemon) = running(context).await? else {
        let failure = Failure::new("no daemon is running")
            .code(FailureCode::NoDaemon)
            .hint("the next command starts one: agency ls");
        return Err(failure.into());
    };
    let view = daemon.call(DaemonStatus, Nothing {}).await?;
    match json {
        true => output::json(&view)?,
        false => output::line(&status_text(&view))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn status_text(view: &view::Daemon) -> String {
    let path = |bytes: &agency_api::Bytes| printable(&bytes.as_path().display().to_string());
    let mut lines = vec![
        format!("running   pid {}, version {}, up {}", view.pid, view.version, duration(view.uptime_seconds)),
        format!("agents    {} in {}", view.live_runs, count(view.projects as usize, "project")),
        format!("socket    {}", path(&view.socket)),
        format!("state     {}", path(&view.state_dir)),
        format!("log       {}", path(&view.log)),
    ];
    if let Some(files) = view.open_files {
        lines.insert(2, format!("files     {} open of at most {}", files.used, files.limit));
    }
    if view.open_shells > 0 {
        lines.push(format!("{}: agency shells", count(view.open_shells as usize, "terminal")));
    }
    if view.orphans > 0 {
        lines.push(format!("{}: agency orphans", count(view.orphans as usize, "orphan")));
    }
    lines.join("\n")
}

async fn start(context: &Context) -> CommandResult {
    let view = context.daemon().await?.call(DaemonStatus, Nothing {}).await?;
    print_running(&view)
}

fn print_running(view: &view::Daemon) -> CommandResult {
    output::line(&format!("daemon running, pid {}", view.pid))?;
    Ok(ExitCode::SUCCESS)
}

async fn stop(context: &Context, agents: bool, force: bool) -> CommandResult {
    if running(context).await?.is_none() {
        output::line("no daemon was running")?;
        return if agents { check_nothing_lives(context) } else { Ok(ExitCode::SUCCESS) };
    }
    let stop = async |force| match running(context).await? {
        Some(daemon) => stop_daemon(context, daemon, agents, force).await,
        None => Ok(NextDaemon::None),
    };
    let after = running_programs::ask_to_end(force, stop).await?;
    if agents {
        check_nothing_lives(context)?;
    }
    output::line(if agents { "agents and daemon stopped" } else { "daemon stopped; agents keep running" })?;
    if let NextDaemon::Running(view) = after {
        output::note(&format!("an attached viewer has started another daemon, pid {}", view.pid));
    }
    Ok(ExitCode::SUCCESS)
}

/// Looks at the process table, whatever the daemon said. Keepers that were dismissed need a moment to exit.
fn check_nothing_lives(context: &Context) -> CommandResult {
    let deadline = Instant::now() + GONE_WITHIN;
    loop {
        let living = find_live_processes(&context.state);
        if living.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        if Instant::now() > deadline {
            let named =
                living.iter().map(|process| format!("process {} of run {}", process.pid, process.run));
            let failure = Failure::new(format!("{} still alive", count_alive(living.len())))
                .code(FailureCode::StopFailed)
                .hint("`agency orphans` names them and `agency orphans kill RUN` ends one");
            return Err(named.fold(failure, Failure::because).into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn count_alive(number: usize) -> String {
    match number {
        1 => "1 agent or keeper is".to_owned(),
        many => format!("{many} agents or keepers are"),
    }
}

async fn restart(context: &Context) -> CommandResult {
    match running(context).await? {
        None => start(context).await,
        Some(daemon) => match stop_daemon(context, daemon, false, false).await? {
            NextDaemon::None => start(context).await,
            NextDaemon::Running(view) => print_running(&view),
        },
    }
}

/// Whether another daemon is running after one has stopped.
pub(super) enum NextDaemon {
    None,
    /// Attached viewers start a new daemon.
    Running(Box<view::Daemon>),
}

pub(super) async fn stop_daemon(
    context: &Context,
    mut daemon: Client,
    agents: bool,
    force: bool,
) -> Result<NextDaemon, Failure> {
    let old = daemon.call(DaemonStatus, Nothing {}).await?;
    let stopping = StoppingDaemon::watch(old.pid);
    daemon
        .call(
            DaemonStop,
            DaemonStopParams { agents, force, overrides: Overrides::from_process(&context.options) },
        )
        .await?;
    if !stopping.has_ended_within(STOPS_WITHIN) {
        return Err(Failure::new(format!("the daemon did not stop: pid {} is still running", old.pid))
            .code(FailureCode::TimedOut)
            .hint(format!("its log: {}", context.state.daemon_log().display())));
    }
    match running(context).await? {
        Some(mut another) => Ok(NextDaemon::Running(Box::new(another.call(DaemonStatus, Nothing {}).await?))),
        None => Ok(NextDaemon::None),
    }
}

/// A daemon that was asked to stop. We open its pidfd while it still runs, so that the number cannot name another process.
struct StoppingDaemon(Option<OwnedFd>);

impl StoppingDaemon {
    #[cfg(target_os = "linux")]
    fn watch(pid: i32) -> StoppingDaemon {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        // If there is no descriptor, the process has ended already.
        StoppingDaemon(Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok()))
    }

    /// There are no pidfds here. The daemon's answer, which comes just before its end, has to be enough.
    #[cfg(not(target_os = "linux"))]
    fn watch(_pid: i32) -> StoppingDaemon {
        StoppingDaemon(None)
    }

    fn has_ended_within(&self, limit: Duration) -> bool {
        let Some(process) = &self.0 else { return true };
        let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: 0 };
        // A pidfd becomes readable when the process ends.
        !matches!(poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit)), Ok(0))
    }
}

/// Connects to the running daemon. `None` if none is running; an error if its socket exists and cannot be used.
pub(super) async fn running(context: &Context) -> Result<Option<Client>, Failure> {
    match agency_api::daemon_socket::connect(&context.state) {
        Ok(_) => Client::connect(&context.state).await.map(Some),
        Err(err) if matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            Ok(None)
        }
        Err(err) => Err(Failure::new("cannot reach the daemon")
            .code(FailureCode::IoError)
            .because(format!("{}: {err}", context.state.daemon_socket().display()))),
    }
}
