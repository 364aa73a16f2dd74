//! Starting the daemon on demand.
//!
//! Two callers may try at once: the daemon's lock lets one win, and the other one connects to it.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use agency_api::Failure;
use agency_api::paths::StateDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

/// Adoption of hundreds of keepers happens before the daemon is ready.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Runs `executable daemon run` in a session of its own and waits until it listens.
///
/// The daemon answers with one line on its standard output: `ready`, or why it cannot be.
pub async fn start_daemon(state: &StateDir, executable: &Path) -> Result<(), Failure> {
    state.create().map_err(|err| cannot_start(state).caused_by(&err))?;
    let mut command = std::process::Command::new(executable);
    command.arg0("agency: daemon").args(["daemon", "run"]);
    command.current_dir(state.root()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
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

fn cannot_start(state: &StateDir) -> Failure {
    Failure::new("cannot start the daemon").hint(format!("its log: {}", state.daemon_log().display()))
}
