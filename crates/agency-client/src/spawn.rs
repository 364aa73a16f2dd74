//! Starting the daemon on demand.
//!
//! Two callers may try at once: the daemon's lock lets one win, and the other one connects to it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use agency_api::paths::StateDir;
use agency_api::{Failure, FailureCode};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

/// Adoption of hundreds of keepers happens before the daemon is ready.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// What the daemon itself heeds; every other `AGENCY_*` speaks of the task that the caller belongs to.
const HEEDED: [&str; 2] = ["AGENCY_LOG", "AGENCY_KEEPER"];

/// Runs `executable daemon run` in a session of its own and waits until it listens.
///
/// The daemon answers with one line on its standard output: `ready`, or why it cannot be.
pub async fn start_daemon(state: &StateDir, executable: &Path) -> Result<(), Failure> {
    state.create().map_err(|err| {
        Failure::new("cannot start the daemon")
            .code(FailureCode::NoDaemon)
            .because(format!("its directory {} cannot be used: {err}", state.root().display()))
            .hint("agency doctor")
    })?;
    let mut command = std::process::Command::new(executable);
    command.arg0("agency: daemon").args(["daemon", "run"]);
    command.current_dir(state.root()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // Called by an agent, the daemon would pass for a part of that agent's run.
    std::env::vars_os().filter(|(name, _)| is_of_the_callers_task(name)).for_each(|(name, _)| {
        command.env_remove(name);
    });
    command.env("AGENCY_SOCKET", state.daemon_socket());
    let mut child = Command::from(command)
        .spawn()
        .map_err(|err| cannot_start(state).because(format!("{}: {err}", executable.display())))?;
    let stdout = child.stdout.take().ok_or_else(|| cannot_start(state))?;
    let mut line = String::new();
    let mut lines = BufReader::new(stdout);
    match tokio::time::timeout(READY_WITHIN, lines.read_line(&mut line)).await {
        Err(_) => Err(cannot_start(state).because(format!("no answer within {} s", READY_WITHIN.as_secs()))),
        Ok(Err(err)) => Err(cannot_start(state).caused_by(&err)),
        Ok(Ok(_)) => match line.trim() {
            "ready" => Ok(()),
            "" => Err(cannot_start(state).because("it ended without a word")),
            reason => Err(cannot_start(state).because(reason)),
        },
    }
}

fn is_of_the_callers_task(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"AGENCY_") && !HEEDED.iter().any(|heeded| name == *heeded)
}

fn cannot_start(state: &StateDir) -> Failure {
    Failure::new("cannot start the daemon")
        .code(FailureCode::NoDaemon)
        .hint(format!("its log: {}", state.daemon_log().display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemon_inherits_nothing_of_the_agent_that_started_it() {
        let of_a_task = |name: &str| is_of_the_callers_task(OsStr::new(name));
        for name in ["AGENCY_RUN_ID", "AGENCY_PROMPT", "AGENCY_PROMPT_FILE", "AGENCY_SESSION_ID"] {
            assert!(of_a_task(name), "{name}");
        }
        for name in ["AGENCY_LOG", "AGENCY_KEEPER", "PATH", "HOME", "XDG_STATE_HOME"] {
            assert!(!of_a_task(name), "{name}");
        }
    }
}
