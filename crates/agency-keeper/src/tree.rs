//! The agent's process tree and how it is ended: TERM and HUP, a grace period, then KILL until nothing is left.
//!
//! The keeper is a subreaper, so orphans become its children: it also finds processes that left the group or the
//! session. It sends signals to process identities, never to bare pids.

use std::time::{Duration, Instant};

use agency_api::ProcessIdentity;
use agency_api::keeper::Ended;
use rustix::process::Signal;

use crate::holder;
use crate::keeper_search::PROGRAM;
use crate::pidfile::PidFile;
use crate::platform::{self, Process};

/// A process that forks while the tree is being ended is found by one of the next scans.
const SCAN_AGAIN_AFTER: Duration = Duration::from_millis(50);
const KILL_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// The processes that belong to the run.
pub(crate) struct Tree {
    pub(crate) keeper: ProcessIdentity,
    pub(crate) child: Option<ProcessIdentity>,
    /// Set for a tree that another keeper started, because it does not descend from us.
    pub(crate) run_id_to_search: Option<String>,
    pub(crate) spare: Vec<String>,
}

/// The environment variable that every process of a run inherits.
pub(crate) const RUN_ID_VARIABLE: &str = "AGENCY_RUN_ID";

impl Tree {
    /// All processes of the run, parents first. `others` are daemons that must not be touched.
    pub(crate) fn processes(&self, others: &[i32]) -> Vec<Process> {
        let mut roots = self.agent_process();
        if let Some(run_id) = &self.run_id_to_search {
            roots.extend(platform::processes_with_environment(RUN_ID_VARIABLE, run_id));
        }
        self.with_descendants(roots, others)
    }

    /// Like `processes`, but does not search the whole machine: of a tree that another keeper started, it finds
    /// only what still descends from the agent.
    pub(crate) fn processes_nearby(&self, others: &[i32]) -> Vec<Process> {
        self.with_descendants(self.agent_process(), others)
    }

    /// Our own descendants, then `roots` with their descendants.
    fn with_descendants(&self, roots: Vec<Process>, others: &[i32]) -> Vec<Process> {
        let own = self.keeper.pid;
        let belongs = |process: &Process| {
            process.pid != own
                && !others.contains(&process.pid)
                && !is_another_keeper(process)
                && !is_another_holder(process)
        };
        let mut found = platform::descendants(own, &belongs);
        for root in roots {
            if belongs(&root) && !contains(&found, &root) {
                let below = platform::descendants(root.pid, &|process| {
                    belongs(process) && !contains(&found, process)
                });
                found.push(root);
                found.extend(below);
            }
        }
        found
    }

    /// The agent, which may not descend from us.
    fn agent_process(&self) -> Vec<Process> {
        let child = self.child.as_ref();
        let found =
            child.and_then(|child| platform::process(child.pid).filter(|found| found.has_identity(child)));
        found.into_iter().collect()
    }

    fn is_spared(&self, process: &Process) -> bool {
        let is_named = self.spare.iter().any(|name| process.is_called(name));
        is_named && self.child.as_ref().is_none_or(|child| !process.has_identity(child))
    }

    fn is_in_agents_group(&self, process: &Process) -> bool {
        self.child.as_ref().is_some_and(|child| child.pid == process.group)
    }
}

fn contains(processes: &[Process], wanted: &Process) -> bool {
    processes.iter().any(|process| process.pid == wanted.pid)
}

/// Whether this is the keeper of another run. An agent may start a daemon, whose keepers then descend from us;
/// we must not end their runs.
fn is_another_keeper(process: &Process) -> bool {
    process.name.starts_with(PROGRAM)
        && platform::file_in_directory_of(process.pid, "pid")
            .and_then(|bytes| serde_json::from_slice::<PidFile>(&bytes).ok())
            .is_some_and(|file| process.has_identity(&file.keeper))
}

/// Whether this holds the terminal of such a run.
fn is_another_holder(process: &Process) -> bool {
    process.name == holder::NAME
        && platform::descendants(process.pid, &|_| true).iter().any(is_another_keeper)
}

/// The termination of a process tree while it is in progress.
pub(crate) struct Termination {
    has_terminal: bool,
    hang_up_at: Instant,
    kill_at: Instant,
    scan_at: Instant,
    signalled: Vec<SignalledProcess>,
}

struct SignalledProcess {
    process: Process,
    outside: bool,
    hung_up: bool,
    killed: bool,
}

/// How strong the signals are by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pressure {
    Ask,
    /// HUP also for processes that handle only TERM.
    HangUp,
    Kill,
}

impl Termination {
    /// `has_terminal`: a program on a terminal that does not react to TERM may still react to HUP, so it gets HUP in the middle
    /// of its grace. A program without a terminal has its whole grace after TERM.
    pub(crate) fn started(now: Instant, grace: Duration, has_terminal: bool) -> Termination {
        let hang_up_at = now + if has_terminal { grace / 2 } else { grace };
        let (kill_at, scan_at) = (now + grace, now);
        Termination { has_terminal, hang_up_at, kill_at, scan_at, signalled: Vec::new() }
    }

    /// Brings the KILL forward; a later time has no effect.
    pub(crate) fn kill_by(&mut self, kill_at: Instant) {
        self.kill_at = self.kill_at.min(kill_at);
        self.scan_at = self.scan_at.min(self.kill_at);
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.scan_at
    }

    pub(crate) fn has_killed(&self, identity: &ProcessIdentity) -> bool {
        self.signalled.iter().any(|signalled| signalled.killed && signalled.process.has_identity(identity))
    }

    /// Scans the tree once: asks each process once to end, and kills after the grace. Returns whether any is left.
    pub(crate) fn sweep(&mut self, now: Instant, tree: &Tree, others: &[i32]) -> bool {
        let pressure = match now {
            now if now >= self.kill_at => Pressure::Kill,
            now if now >= self.hang_up_at => Pressure::HangUp,
            _ => Pressure::Ask,
        };
        self.scan_at = match pressure {
            Pressure::Kill => now + KILL_AGAIN_AFTER,
            Pressure::Ask | Pressure::HangUp => (now + SCAN_AGAIN_AFTER).min(self.kill_at),
        };
        let mut is_any_left = false;
        for process in tree.processes(others) {
            if !process.has_ended() && !tree.is_spared(&process) {
                is_any_left |= self.signal_once(process, pressure, tree);
            }
        }
        is_any_left
    }

    /// Signals one process. Returns whether to wait for its end.
    fn signal_once(&mut self, process: Process, pressure: Pressure, tree: &Tree) -> bool {
        let identity = process.identity();
        let index =
            match self.signalled.iter().position(|signalled| signalled.process.has_identity(&identity)) {
                Some(index) => index,
                None => {
                    signal_process(&identity, Signal::TERM);
                    // A stopped process does not react to TERM before it continues.
                    signal_process(&identity, Signal::CONT);
                    let outside = !tree.is_in_agents_group(&process);
                    self.signalled.push(SignalledProcess { process, outside, hung_up: false, killed: false });
                    self.signalled.len() - 1
                }
            };
        let signalled = self.signalled.get_mut(index);
        signalled.is_none_or(|signalled| signalled.escalate(&identity, pressure, self.has_terminal))
    }

    /// Ended processes that were outside the agent's own process group.
    pub(crate) fn ended_processes(&self) -> Vec<Ended> {
        let outside = self.signalled.iter().filter(|signalled| signalled.outside);
        outside
            .map(|signalled| Ended {
                pid: signalled.process.pid,
                name: signalled.process.name.clone(),
                killed: signalled.killed,
            })
            .collect()
    }
}

impl SignalledProcess {
    fn escalate(&mut self, identity: &ProcessIdentity, pressure: Pressure, has_terminal: bool) -> bool {
        let hangs_up = || match pressure {
            // HUP at once would end a process that handles only TERM before it can use its grace.
            Pressure::Ask => !platform::handles_only(identity.pid, Signal::TERM, Signal::HUP),
            Pressure::HangUp => true,
            Pressure::Kill => has_terminal,
        };
        if !self.hung_up && hangs_up() {
            self.hung_up = true;
            signal_process(identity, Signal::HUP);
        }
        if pressure < Pressure::Kill {
            return true;
        }
        let is_running = signal_process(identity, Signal::KILL);
        self.killed |= is_running;
        is_running
    }
}

/// Sends a signal. `false` if the process has ended, or now belongs to another user.
fn signal_process(identity: &ProcessIdentity, signal: Signal) -> bool {
    platform::signal_if_same(identity, signal).unwrap_or(false)
}
