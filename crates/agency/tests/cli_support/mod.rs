//! A home directory for one test, a terminal, and a fake daemon.

#![allow(dead_code, unreachable_pub, reason = "every test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "test helpers fail by panicking")]

pub mod daemon;
pub mod pty;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use agency_api::paths::StateDir;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};

/// Much more than any step here takes. Only a test that hangs waits this long.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A temporary home directory. No real daemon can start in it, because the test holds the daemon's lock.
pub struct Home {
    directory: tempfile::TempDir,
    _lock: File,
}

impl Home {
    pub fn new() -> Home {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDir::at(directory.path().join("state/agency"));
        state.create().unwrap();
        let lock = File::create(state.daemon_lock()).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        Home { directory, _lock: lock }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn state(&self) -> StateDir {
        StateDir::at(self.path().join("state/agency"))
    }

    pub fn drafts(&self) -> Vec<PathBuf> {
        match std::fs::read_dir(self.state().root().join("drafts")) {
            Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
            Err(_) => Vec::new(),
        }
    }

    pub fn agency(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agency"));
        command.args(arguments).env_clear().current_dir(self.path()).stdin(Stdio::null());
        command.env("HOME", self.path()).env("XDG_STATE_HOME", self.path().join("state"));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("TERM", "xterm-256color");
        command
    }

    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.agency(arguments).output().unwrap().into()
    }

    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> CommandOutput {
        use std::io::Write;
        let mut command = self.agency(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap().into()
    }
}

impl Drop for Home {
    /// A command may have started a daemon just before it ended. That daemon must not outlive the directory.
    fn drop(&mut self) {
        let ours = format!("XDG_STATE_HOME={}", self.path().join("state").display());
        while let Some(stray) = process_with(ours.as_bytes()) {
            // The process may end by itself meanwhile.
            kill_process(stray, Signal::KILL).ok();
            std::thread::yield_now();
        }
    }
}

/// A running process with this environment variable.
fn process_with(variable: &[u8]) -> Option<Pid> {
    let entries = std::fs::read_dir("/proc").ok()?.flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
    let started_with = |pid: &Pid| {
        let environment =
            std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == variable)
    };
    pids.into_iter().find(started_with)
}

/// The output of a command and its exit code.
#[derive(Debug, PartialEq, Eq)]
pub struct CommandOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        CommandOutput {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl CommandOutput {
    #[track_caller]
    pub fn is(&self, code: i32, stdout: &str, stderr: &str) {
        let wanted = CommandOutput { code: Some(code), stdout: stdout.into(), stderr: stderr.into() };
        assert_eq!(self, &wanted);
    }
}
