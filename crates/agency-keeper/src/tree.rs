//! The agent's process tree, and its end: TERM and HUP, a grace, KILL until nothing is left.
//!
//! Orphans come back to the keeper, which is their subreaper, so processes that left the group or the
//! session are found all the same. Signals go to identities, never to bare pids.

use std::time::{Duration, Instant};

use agency_api::ProcessIdentity;
use agency_api::keeper::Ended;
use rustix::process::Signal;

use crate::pidfile::PidFile;
use crate::platform::{self, Process};

/// A process that forks while it is being ended is found at one of the next looks.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);
const KILL_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// What belongs to the run.
pub(crate) struct Tree {
    pub(crate) keeper: ProcessIdentity,
    pub(crate) child: Option<ProcessIdentity>,
    /// Set for a tree that another keeper started: it does not descend from us.
    pub(crate) run_id_to_search: Option<String>,
    pub(crate) spare: Vec<String>,
}

/// The variable that every process of a run inherits.
pub(crate) const RUN_ID_VARIABLE: &str = "AGENCY_RUN_ID";

impl Tree {
    /// Everything of the run that is there now, parents first. `others`: daemons that must not be touched.
    pub(crate) fn processes(&self, others: &[i32]) -> Vec<Process> {
        let mut roots = self.child_elsewhere();
        if let Some(run_id) = &self.run_id_to_search {
            roots.extend(platform::with_environment(RUN_ID_VARIABLE, run_id));
        }
        self.below(roots, others)
    }

    /// The same without a search of the whole machine: of a tree that another keeper started, only what still
    /// descends from the agent.
    pub(crate) fn processes_nearby(&self, others: &[i32]) -> Vec<Process> {
        self.below(self.child_elsewhere(), others)
    }

    /// Our own descendants, then these with theirs.
    fn below(&self, roots: Vec<Process>, others: &[i32]) -> Vec<Process> {
        let own = self.keeper.pid;
        let belongs = |process: &Process| {
            process.pid != own && !others.contains(&process.pid) && !is_another_keeper(process)
        };
        let mut found = platform::descendants(own, &belongs);
        for root in roots {
            if belongs(&root) && !holds(&found, &root) {
                let below =
                    platform::descendants(root.pid, &|process| belongs(process) && !holds(&found, process));
                found.push(root);
                found.extend(below);
            }
        }
        found
    }

    /// The agent, which need not descend from us.
    fn child_elsewhere(&self) -> Vec<Process> {
        let child = self.child.as_ref();
        let found = child.and_then(|child| platform::process(child.pid).filter(|found| found.is(child)));
        found.into_iter().collect()
    }

    fn is_spared(&self, process: &Process) -> bool {
        let is_named = self.spare.iter().any(|name| process.is_called(name));
        is_named && self.child.as_ref().is_none_or(|child| !process.is(child))
    }

    fn is_in_agents_group(&self, process: &Process) -> bool {
        self.child.as_ref().is_some_and(|child| child.pid == process.group)
    }
}

fn holds(processes: &[Process], wanted: &Process) -> bool {
    processes.iter().any(|process| process.pid == wanted.pid)
}

/// An agent may start a daemon, whose keepers then descend from us. Their runs are not ours to end.
fn is_another_keeper(process: &Process) -> bool {
    process.name.starts_with("agency-keeper")
        && platform::file_in_directory_of(process.pid, "pid")
            .and_then(|bytes| serde_json::from_slice::<PidFile>(&bytes).ok())
            .is_some_and(|file| process.is(&file.keeper))
}

/// The end of a tree, while it lasts.
pub(crate) struct Ending {
    hang_up_at: Instant,
    kill_at: Instant,
    look_at: Instant,
    told: Vec<Told>,
}

struct Told {
    process: Process,
    outside: bool,
    hung_up: bool,
    killed: bool,
}

/// How far a stop has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Pressure {
    Ask,
    /// Also those that wanted to end at TERM in their own way.
    HangUp,
    Kill,
}

impl Ending {
    pub(crate) fn begun(now: Instant, grace: Duration) -> Ending {
        Ending { hang_up_at: now + grace / 2, kill_at: now + grace, look_at: now, told: Vec::new() }
    }

    /// A later wish can only make it quicker.
    pub(crate) fn kill_by(&mut self, kill_at: Instant) {
        self.kill_at = self.kill_at.min(kill_at);
        self.look_at = self.look_at.min(self.kill_at);
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.look_at
    }

    pub(crate) fn has_killed(&self, identity: &ProcessIdentity) -> bool {
        self.told.iter().any(|told| told.killed && told.process.is(identity))
    }

    /// One look at the tree: everyone is told once, and after the grace killed. Returns whether anyone is left.
    pub(crate) fn sweep(&mut self, now: Instant, tree: &Tree, others: &[i32]) -> bool {
        let pressure = match now {
            now if now >= self.kill_at => Pressure::Kill,
            now if now >= self.hang_up_at => Pressure::HangUp,
            _ => Pressure::Ask,
        };
        self.look_at = match pressure {
            Pressure::Kill => now + KILL_AGAIN_AFTER,
            Pressure::Ask | Pressure::HangUp => (now + LOOK_AGAIN_AFTER).min(self.kill_at),
        };
        let mut anyone = false;
        for process in tree.processes(others) {
            if !process.has_ended() && !tree.is_spared(&process) {
                anyone |= self.tell(process, pressure, tree);
            }
        }
        anyone
    }

    /// Whether its end is worth waiting for.
    fn tell(&mut self, process: Process, pressure: Pressure, tree: &Tree) -> bool {
        let identity = process.identity();
        let index = match self.told.iter().position(|told| told.process.is(&identity)) {
            Some(index) => index,
            None => {
                is_reachable(&identity, Signal::TERM);
                // A stopped process cannot even die of TERM.
                is_reachable(&identity, Signal::CONT);
                let outside = !tree.is_in_agents_group(&process);
                self.told.push(Told { process, outside, hung_up: false, killed: false });
                self.told.len() - 1
            }
        };
        self.told.get_mut(index).is_none_or(|told| told.press(&identity, pressure))
    }

    /// Who was ended outside the agent's own process group.
    pub(crate) fn ended(&self) -> Vec<Ended> {
        let outside = self.told.iter().filter(|told| told.outside);
        outside
            .map(|told| Ended { pid: told.process.pid, name: told.process.name.clone(), killed: told.killed })
            .collect()
    }
}

impl Told {
    fn press(&mut self, identity: &ProcessIdentity, pressure: Pressure) -> bool {
        // HUP at once would end whoever handles only TERM before it has done so: its grace would never happen.
        let minds_only_term = || platform::handles_only(identity.pid, Signal::TERM, Signal::HUP);
        if !self.hung_up && (pressure > Pressure::Ask || !minds_only_term()) {
            self.hung_up = true;
            is_reachable(identity, Signal::HUP);
        }
        if pressure < Pressure::Kill {
            return true;
        }
        let is_reachable = is_reachable(identity, Signal::KILL);
        self.killed |= is_reachable;
        is_reachable
    }
}

/// Signals it. `false`: it has ended meanwhile, or belongs to another user by now and cannot be helped.
fn is_reachable(identity: &ProcessIdentity, signal: Signal) -> bool {
    platform::signal_if_same(identity, signal).unwrap_or(false)
}
