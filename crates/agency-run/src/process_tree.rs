//! Ends the processes of a run that its keeper can no longer end.

use std::time::{Duration, Instant};

use agency_keeper::platform;
use rustix::process::Signal;

use crate::environment::RUN_ID;

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// Sends SIGTERM to every process with this run id in its environment, waits, then sends SIGKILL. Blocks.
/// Returns how many processes it found.
pub fn end_tree(run: &str) -> usize {
    // A daemon that an agent started has the run id too, and must not end itself.
    let own = std::process::id() as i32;
    let members = || {
        let mut members = platform::processes_with_environment(RUN_ID, run);
        members.retain(|process| process.pid != own);
        members
    };
    let first = members();
    for process in &first {
        signal(process, Signal::TERM);
        signal(process, Signal::HUP);
    }
    let deadline = Instant::now() + GRACE;
    while !members().is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    for process in members() {
        signal(&process, Signal::KILL);
    }
    first.len()
}

fn signal(process: &platform::Process, signal: Signal) {
    if let Err(cause) = platform::signal_if_same(&process.identity(), signal) {
        tracing::warn!(pid = process.identity().pid, %cause, "cannot signal an orphaned process");
    }
}
