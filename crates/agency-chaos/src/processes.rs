//! Finds the daemons, keepers and agents of a run in `/proc`, without Agency's own files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use agency_testkit::Process;

/// A keeper, found by the run's directory that it works in.
#[derive(Clone, Debug)]
pub struct KeeperProcess {
    pub process: Process,
    pub run: String,
    /// Holds a process that several tasks share.
    pub is_shared: bool,
}

/// A process that carries the id of a run.
#[derive(Clone, Debug)]
pub struct RunProcess {
    pub process: Process,
    pub run: String,
    pub workspace: Option<PathBuf>,
}

/// All processes of a run of the harness.
#[derive(Debug, Default)]
pub struct Census {
    pub daemons: Vec<Process>,
    pub keepers: Vec<KeeperProcess>,
    pub agents: Vec<RunProcess>,
}

impl Census {
    /// `home` and `state` are those of the run.
    pub fn take(home: &Path, state: &Path) -> Census {
        let mut census = Census::default();
        for process in Process::all() {
            let name = first_argument(process.pid);
            if name.starts_with("agency-keeper:") {
                census.keepers.extend(keeper(process, state));
                continue;
            }
            let variables = environment(process.pid);
            if variables.get("HOME").is_none_or(|value| Path::new(value) != home) || !process.is_alive() {
                continue;
            }
            if name == "agency: daemon" {
                census.daemons.push(process);
            } else if let Some(run) = variables.get("AGENCY_RUN_ID") {
                let workspace = variables.get("AGENCY_WORKTREE").map(PathBuf::from);
                census.agents.push(RunProcess {
                    process,
                    run: run.to_string_lossy().into_owned(),
                    workspace,
                });
            }
        }
        census
    }

    pub fn processes(&self) -> Vec<Process> {
        let keepers = self.keepers.iter().map(|keeper| keeper.process);
        let agents = self.agents.iter().map(|agent| agent.process);
        self.daemons.iter().copied().chain(keepers).chain(agents).collect()
    }

    pub fn describe(&self) -> String {
        let daemons = self.daemons.iter().map(|process| format!("daemon {}", process.pid));
        let keepers =
            self.keepers.iter().map(|keeper| format!("keeper {} of run {}", keeper.process.pid, keeper.run));
        let agents = self.agents.iter().map(|agent| {
            format!("process {} ({}) of run {}", agent.process.pid, agent.process.name(), agent.run)
        });
        daemons.chain(keepers).chain(agents).collect::<Vec<_>>().join("\n")
    }
}

/// A keeper works in its run's directory, which may have been deleted.
fn keeper(process: Process, state: &Path) -> Option<KeeperProcess> {
    let cwd = std::fs::read_link(format!("/proc/{}/cwd", process.pid)).ok()?;
    let below = cwd.strip_prefix(state).ok()?;
    let mut parts = below.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    let (kind, run) = (parts.next()?, parts.next()?);
    let run = run.trim_end_matches(" (deleted)").to_owned();
    Some(KeeperProcess { process, run, is_shared: kind == "w" })
}

fn first_argument(pid: i32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let first = line.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(first).into_owned()
}

fn environment(pid: i32) -> BTreeMap<String, OsString> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let pairs = bytes.split(|byte| *byte == 0).filter_map(|pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let name = std::str::from_utf8(&pair[..at]).ok()?;
        Some((name.to_owned(), OsString::from_vec(pair[at + 1..].to_vec())))
    });
    pairs.collect()
}
