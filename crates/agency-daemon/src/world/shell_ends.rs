//! Closing terminals beside agents: by their callers, with their task, and with the daemon.
//!
//! A program that runs in a terminal is only ended if the caller insists.

use std::time::Duration;

use agency_api::shell::{ShellCloseParams, ShellsClosed};
use agency_api::{Failure, FailureCode};
use agency_core::ids::TaskKey;
use agency_keeper::platform;
use agency_run::command::RunCommand;
use agency_run::handle::RunHandle;
use agency_server::Reply;
use rustix::process::Signal;

use super::World;
use super::loop_event::{AfterShells, LoopEvent, ShellEvent};
use super::shells::LiveShell;

/// Between SIGTERM and SIGKILL.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// A keeper kills what is left after the grace, and exits. On a busy machine that takes a while.
const CLOSED_WITHIN: Duration = Duration::from_secs(15);

/// Terminals that are to be closed.
pub(super) struct ShellEnds(Vec<(String, RunHandle)>);

impl ShellEnds {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Closes the terminals and waits until their processes are gone. Returns their names.
    pub(super) async fn close(self) -> Result<Vec<String>, Failure> {
        for (name, handle) in &self.0 {
            // A suspended keeper could not signal anything.
            if let Err(cause) = platform::signal_if_same(&handle.keeper, Signal::CONT) {
                tracing::warn!(name, pid = handle.keeper.pid, %cause, "cannot wake a keeper");
            }
            handle.command(RunCommand::Stop { grace: STOP_GRACE });
        }
        let mut closed = Vec::new();
        for (name, handle) in self.0 {
            if tokio::time::timeout(CLOSED_WITHIN, handle.commands.closed()).await.is_err() {
                return Err(Failure::new(format!("terminal {name} does not end"))
                    .code(FailureCode::StopFailed)
                    .because("a process in it survives SIGKILL, or its keeper does not answer")
                    .hint("`agency doctor` looks at keepers and processes"));
            }
            closed.push(name);
        }
        Ok(closed)
    }
}

impl World {
    pub(super) fn close_shells(
        &mut self,
        (key, params): (TaskKey, ShellCloseParams),
        reply: Reply<ShellsClosed>,
    ) {
        let ShellCloseParams { shell, force, .. } = params;
        if let Some(name) = &shell
            && let Err(failure) = self.live_shell(&key, name)
        {
            return reply.send(Err(failure));
        }
        let is_meant =
            |live: &LiveShell| live.key == key && shell.as_ref().is_none_or(|name| *name == live.name);
        let checked = match force {
            true => Ok(()),
            false => self.refuse_programs_in(is_meant),
        };
        match checked {
            Ok(()) => {
                let ends = self.shell_ends(is_meant);
                self.end_shells(ends, AfterShells::Close { reply });
            }
            Err(failure) => reply.send(Err(failure)),
        }
    }

    /// Refuses to end the programs that run in the terminals of a task, or of all tasks.
    pub(super) fn refuse_running_programs(&self, key: Option<&TaskKey>, force: bool) -> Result<(), Failure> {
        match force {
            true => Ok(()),
            false => self.refuse_programs_in(|live| key.is_none_or(|key| *key == live.key)),
        }
    }

    fn refuse_programs_in(&self, is_meant: impl Fn(&LiveShell) -> bool) -> Result<(), Failure> {
        let mut running = self.running_programs(is_meant).into_iter();
        let Some(first) = running.next() else { return Ok(()) };
        let failure =
            Failure::new(first).code(FailureCode::ProgramRunning).hint("end it first, or pass --force");
        Err(running.fold(failure, Failure::because))
    }

    /// A sentence for each program that runs in one of these terminals.
    pub(super) fn running_programs(&self, is_meant: impl Fn(&LiveShell) -> bool) -> Vec<String> {
        let named = |live: &LiveShell| {
            let running = self.activity(live).running?;
            Some(format!("`{running}` runs in terminal {}:{}", self.name_of(&live.key), live.name))
        };
        self.runs.shells.live().filter(|live| is_meant(live)).filter_map(named).collect()
    }

    pub(super) fn shell_ends(&self, is_meant: impl Fn(&LiveShell) -> bool) -> ShellEnds {
        let meant = self.runs.shells.live().filter(|live| is_meant(live));
        ShellEnds(meant.map(|live| (live.name.clone(), live.handle.clone())).collect())
    }

    /// Closes terminals beside the loop. [`ShellEvent::Closed`] follows.
    pub(super) fn end_shells(&self, ends: ShellEnds, after: AfterShells) {
        let reporter = self.context.reporter.clone();
        tokio::spawn(async move {
            let closed = ends.close().await;
            reporter.report(LoopEvent::Shell(ShellEvent::Closed { after, closed })).await;
        });
    }

    /// Closes every terminal, because the user ends all agents.
    pub(super) fn end_all_shells(&mut self) {
        self.lifetime.ending_shells = true;
        let ends = self.shell_ends(|_| true);
        self.end_shells(ends, AfterShells::Leave);
    }

    pub(super) fn on_shells_closed(&mut self, after: AfterShells, closed: Result<Vec<String>, Failure>) {
        match (after, closed) {
            (AfterShells::Stop { key, reply }, Ok(closed)) => self.stop_agent(key, closed, reply),
            (AfterShells::Stop { reply, .. }, Err(failure)) => reply.send(Err(failure)),
            (AfterShells::Close { reply }, closed) => {
                reply.send(closed.map(|closed| ShellsClosed { closed }));
            }
            (AfterShells::Leave, closed) => {
                if let Err(failure) = closed {
                    tracing::error!(
                        cause = failure.message,
                        "a terminal is still alive; the next daemon will find it"
                    );
                }
                if !self.runs.shells.is_starting_any() {
                    self.lifetime.ending_shells = false;
                    self.leave_when_alone();
                }
            }
        }
    }
}
