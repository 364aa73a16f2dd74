//! Finds the processes of a sealed environment, and ends them.
//!
//! Never searches by name: a process is ours if its home is the sealed one, or if a pid file there names its pid and
//! start time.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use serde::Deserialize;

use super::Sealed;
use crate::eventually::until;
use crate::process::Process;

/// A keeper, as its pid file describes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Keeper {
    /// From the name of its directory.
    #[serde(skip)]
    pub run: String,
    #[serde(rename = "keeper")]
    pub process: Process,
    /// The agent.
    #[serde(default)]
    pub child: Option<Process>,
}

impl Keeper {
    /// The keeper's parent, if it holds the terminal too.
    pub fn holder(&self) -> Option<Process> {
        self.process.parent().filter(|parent| parent.name() == "agency-holder")
    }

    /// Kills the keeper in a way that no process follows it, unless a daemon starts one.
    pub fn kill_for_good(&self) {
        if let Some(holder) = self.holder() {
            holder.kill();
        }
        self.process.kill();
    }
}

impl Sealed {
    /// The live daemon, from the lock that it holds.
    pub fn daemon(&self) -> Option<Process> {
        let files = fs::read_dir(self.state()).ok()?;
        let mut paths = files.filter_map(|file| Some(file.ok()?.path()));
        let lock = paths.find(|path| path.extension().is_some_and(|extension| extension == "lock"))?;
        let pid = fs::read_to_string(lock).ok()?.lines().next()?.parse().ok()?;
        // A lock that its holder left behind may by now name the pid of another process.
        Process::find(pid).filter(|process| self.is_ours(process))
    }

    /// The live keepers, from their pid files.
    pub fn keepers(&self) -> Vec<Keeper> {
        let keepers = self.pid_files().into_iter().map(|(run, text)| {
            keeper(&run, &text).unwrap_or_else(|err| panic!("the pid file of run {run}: {err}: {text}"))
        });
        keepers.filter(|keeper| keeper.process.is_alive()).collect()
    }

    /// Pairs of run id and content.
    fn pid_files(&self) -> Vec<(String, String)> {
        // `r` holds the runs of tasks, `w` the processes that several tasks share.
        let dirs = ["r", "w"].into_iter().filter_map(|dir| fs::read_dir(self.state().join(dir)).ok());
        let files = dirs.flatten().filter_map(|run| {
            let run = run.ok()?;
            Some((run.file_name().into_string().ok()?, fs::read_to_string(run.path().join("pid")).ok()?))
        });
        files.collect()
    }

    /// All live processes that were started in this environment, and their descendants.
    pub fn processes(&self) -> Vec<Process> {
        Process::all().into_iter().filter(|process| self.is_ours(process)).collect()
    }

    /// Only processes of this environment have this home.
    fn is_ours(&self, process: &Process) -> bool {
        process.has_env("HOME", &self.home())
    }

    pub(super) fn end_everything(&self) {
        let ended = until(Duration::from_secs(20), || {
            let left = self.left_behind();
            left.iter().for_each(|process| {
                // `false` means that the process ended by itself.
                process.signal(Signal::KILL);
            });
            left.is_empty().then_some(())
        });
        if ended.is_none() {
            eprintln!("processes of a test are still alive: {:?}", self.left_behind());
        }
    }

    /// Also processes whose environment cannot be read, if a pid file names them.
    fn left_behind(&self) -> Vec<Process> {
        let known = self.pid_files().into_iter().filter_map(|(run, text)| keeper(&run, &text).ok());
        // The holder first: it follows a killed keeper with another one.
        let known = known.flat_map(|keeper| [keeper.holder(), Some(keeper.process), keeper.child]).flatten();
        let mut left = self.processes();
        left.extend(known.filter(Process::is_alive));
        left
    }
}

fn keeper(run: &str, pid_file: &str) -> serde_json::Result<Keeper> {
    Ok(Keeper { run: run.to_string(), ..serde_json::from_str(pid_file)? })
}
