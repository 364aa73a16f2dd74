//! Who lives in a sealed environment, and the end of everybody in it.
//!
//! Nobody is looked for by name: a process is ours if its home is the sealed one, or if a pid file there names
//! its pid and start time.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use serde::Deserialize;

use crate::eventually::until;
use crate::process::Process;
use crate::sealed::Sealed;

/// What a keeper's pid file says.
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

impl Sealed {
    /// The daemon that lives now, from the lock that it holds.
    pub fn daemon(&self) -> Option<Process> {
        let files = fs::read_dir(self.state()).ok()?;
        let mut paths = files.filter_map(|file| Some(file.ok()?.path()));
        let lock = paths.find(|path| path.extension().is_some_and(|extension| extension == "lock"))?;
        let pid = fs::read_to_string(lock).ok()?.lines().next()?.parse().ok()?;
        // A lock that its holder left behind may name anybody by now.
        Process::find(pid).filter(|process| self.is_ours(process))
    }

    /// The keepers that live now, from their pid files.
    pub fn keepers(&self) -> Vec<Keeper> {
        let keepers = self.pid_files().into_iter().map(|(run, text)| {
            keeper(&run, &text).unwrap_or_else(|err| panic!("the pid file of run {run}: {err}: {text}"))
        });
        keepers.filter(|keeper| keeper.process.is_alive()).collect()
    }

    /// Run and content.
    fn pid_files(&self) -> Vec<(String, String)> {
        // Runs of tasks, and processes that several of them share.
        let dirs = ["r", "w"].into_iter().filter_map(|dir| fs::read_dir(self.state().join(dir)).ok());
        let files = dirs.flatten().filter_map(|run| {
            let run = run.ok()?;
            Some((run.file_name().into_string().ok()?, fs::read_to_string(run.path().join("pid")).ok()?))
        });
        files.collect()
    }

    /// Everything that lives and was started in this environment, or by what was.
    pub fn processes(&self) -> Vec<Process> {
        Process::all().into_iter().filter(|process| self.is_ours(process)).collect()
    }

    /// Its home is ours, and no one else has that home.
    fn is_ours(&self, process: &Process) -> bool {
        process.has_env("HOME", &self.home())
    }

    pub(crate) fn end_everything(&self) {
        let ended = until(Duration::from_secs(20), || {
            let left = self.left_behind();
            left.iter().for_each(|process| {
                // One that is gone by itself needs none.
                process.signal(Signal::KILL);
            });
            left.is_empty().then_some(())
        });
        if ended.is_none() {
            eprintln!("processes of a test live on: {:?}", self.left_behind());
        }
    }

    /// Also those whose environment does not tell, if a pid file does.
    fn left_behind(&self) -> Vec<Process> {
        let known = self.pid_files().into_iter().filter_map(|(run, text)| keeper(&run, &text).ok());
        let known = known.flat_map(|keeper| [Some(keeper.process), keeper.child]).flatten();
        let mut left = self.processes();
        left.extend(known.filter(Process::is_alive));
        left
    }
}

fn keeper(run: &str, pid_file: &str) -> serde_json::Result<Keeper> {
    Ok(Keeper { run: run.to_string(), ..serde_json::from_str(pid_file)? })
}
