//! Starts the daemon if none runs.
//!
//! Two callers may try at the same time. The daemon's lock lets one of them win, and the other one connects to that
//! daemon.

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

/// The daemon adopts all keepers before it is ready, and there may be hundreds.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// The variables that the daemon itself reads. Every other `AGENCY_*` variable belongs to the caller's task.
const DAEMON_VARIABLES: [&str; 2] = ["AGENCY_LOG", "AGENCY_KEEPER"];

/// Runs `executable daemon run` in its own session and waits until the daemon listens.
///
/// The daemon writes one line to its standard output: `ready`, or the failure as JSON.
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
    // With these variables, a daemon that an agent started would look like a part of that agent's run.
    std::env::vars_os().filter(|(name, _)| belongs_to_task(name)).for_each(|(name, _)| {
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
            "" => Err(cannot_start(state).because("it ended without a message")),
            reason => Err(failed_start(state, reason)),
        },
    }
}

fn belongs_to_task(name: &OsStr) -> bool {
    name.as_bytes().starts_with(b"AGENCY_") && !DAEMON_VARIABLES.iter().any(|own| name == *own)
}

/// The daemon's own hint is better than a look into its log.
fn failed_start(state: &StateDir, reason: &str) -> Failure {
    let failure = cannot_start(state);
    match serde_json::from_str::<Failure>(reason) {
        Ok(Failure { message, causes, hint, .. }) => Failure {
            causes: std::iter::once(message).chain(causes).collect(),
            hint: hint.or(failure.hint),
            ..failure
        },
        Err(_) => failure.because(reason),
    }
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
    fn the_daemon_inherits_no_variables_of_the_agent_that_started_it() {
        let of_task = |name: &str| belongs_to_task(OsStr::new(name));
        for name in ["AGENCY_RUN_ID", "AGENCY_PROMPT", "AGENCY_PROMPT_FILE", "AGENCY_SESSION_ID"] {
            assert!(of_task(name), "{name}");
        }
        for name in ["AGENCY_LOG", "AGENCY_KEEPER", "PATH", "HOME", "XDG_STATE_HOME"] {
            assert!(!of_task(name), "{name}");
        }
    }
}
