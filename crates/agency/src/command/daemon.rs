//! `agency daemon`: the process behind it all.

use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::time::Duration;

use agency_api::config::Overrides;
use agency_api::method::{DaemonStatus, DaemonStop, DaemonStopParams, Nothing};
use agency_api::view;
use agency_api::{Failure, FailureCode};
use agency_client::Client;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::service;
use crate::cli::Daemon;
use crate::context::Context;
use crate::output::{self, count, duration, printable};
use crate::stop::Done;

/// A daemon that has ended its agents has only files to close.
const GONE_WITHIN: Duration = Duration::from_secs(30);

pub(super) async fn daemon(context: &Context, command: Daemon) -> Done {
    match command {
        Daemon::Status { json } => status(context, json).await,
        Daemon::Start => start(context).await,
        Daemon::Stop { agents } => stop(context, agents).await,
        Daemon::Restart => restart(context).await,
        Daemon::Install { print } => service::install(context, print),
        Daemon::Uninstall => service::uninstall(context),
        Daemon::Run => run(context),
    }
}

pub(crate) fn run(context: &Context) -> Done {
    agency_daemon::run(context.state.clone())?;
    Ok(ExitCode::SUCCESS)
}

async fn status(context: &Context, json: bool) -> Done {
    let Some(mut daemon) = running(context).await? else {
        let failure = Failure::new("no daemon is running")
            .code(FailureCode::NoDaemon)
            .hint("the next command starts one: agency ls");
        return Err(failure.into());
    };
    let view = daemon.call(DaemonStatus, Nothing {}).await?;
    match json {
        true => output::json(&view)?,
        false => output::line(&human(&view))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn human(view: &view::Daemon) -> String {
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
    if view.orphans > 0 {
        lines.push(format!("{}: agency orphans", count(view.orphans as usize, "orphan")));
    }
    lines.join("\n")
}

async fn start(context: &Context) -> Done {
    let view = context.daemon().await?.call(DaemonStatus, Nothing {}).await?;
    say_running(&view)
}

fn say_running(view: &view::Daemon) -> Done {
    output::line(&format!("daemon running, pid {}", view.pid))?;
    Ok(ExitCode::SUCCESS)
}

async fn stop(context: &Context, agents: bool) -> Done {
    let Some(daemon) = running(context).await? else {
        output::line("no daemon was running")?;
        return Ok(ExitCode::SUCCESS);
    };
    let after = end(context, daemon, agents).await?;
    output::line(if agents { "agents and daemon stopped" } else { "daemon stopped; agents keep running" })?;
    if let After::Another(view) = after {
        output::note(&format!("an attached viewer has started another daemon, pid {}", view.pid));
    }
    Ok(ExitCode::SUCCESS)
}

async fn restart(context: &Context) -> Done {
    match running(context).await? {
        None => start(context).await,
        Some(daemon) => match end(context, daemon, false).await? {
            After::Nobody => start(context).await,
            After::Another(view) => say_running(&view),
        },
    }
}

/// Who answers once a daemon has left.
pub(super) enum After {
    Nobody,
    /// Viewers who are attached start one by themselves.
    Another(Box<view::Daemon>),
}

pub(super) async fn end(context: &Context, mut daemon: Client, agents: bool) -> Result<After, Failure> {
    let old = daemon.call(DaemonStatus, Nothing {}).await?;
    let leaving = Leaving::watch(old.pid);
    daemon
        .call(DaemonStop, DaemonStopParams { agents, overrides: Overrides::from_process(&context.options) })
        .await?;
    if !leaving.gone_within(GONE_WITHIN) {
        return Err(Failure::new(format!("the daemon did not stop: pid {} is still running", old.pid))
            .code(FailureCode::TimedOut)
            .hint(format!("its log: {}", context.state.daemon_log().display())));
    }
    match running(context).await? {
        Some(mut another) => Ok(After::Another(Box::new(another.call(DaemonStatus, Nothing {}).await?))),
        None => Ok(After::Nobody),
    }
}

/// A process that was asked to leave. Taken while it is known to be there, so that its number is its own.
struct Leaving(Option<OwnedFd>);

impl Leaving {
    #[cfg(target_os = "linux")]
    fn watch(pid: i32) -> Leaving {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        // Without a descriptor it has gone already.
        Leaving(Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK).ok()))
    }

    /// Without such a descriptor its answer must do, which comes a moment before its end.
    #[cfg(not(target_os = "linux"))]
    fn watch(_pid: i32) -> Leaving {
        Leaving(None)
    }

    fn gone_within(&self, limit: Duration) -> bool {
        let Some(process) = &self.0 else { return true };
        let limit = Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: 0 };
        // Its descriptor becomes readable at its end.
        !matches!(poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit)), Ok(0))
    }
}

/// The daemon if one answers; an error only when its socket exists and cannot be used.
pub(super) async fn running(context: &Context) -> Result<Option<Client>, Failure> {
    match agency_api::socket::connect(&context.state.daemon_socket()) {
        Ok(_) => Client::connect(&context.state).await.map(Some),
        Err(err) if matches!(err.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            Ok(None)
        }
        Err(err) => Err(Failure::new("cannot reach the daemon")
            .code(FailureCode::IoError)
            .because(format!("{}: {err}", context.state.daemon_socket().display()))),
    }
}
