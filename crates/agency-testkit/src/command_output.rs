//! The result of a command that ran to its end: exit code and output.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use crate::ready::{is_ready_before, pidfd_of};

/// Far more than any command needs, so that only one that hangs reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandOutput {
    /// The negative signal number if a signal ended it.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    command: String,
}

impl CommandOutput {
    /// Runs the command with this input. The output goes to files: a daemon that the command leaves behind may hold
    /// them open, and the test does not wait for it.
    pub fn of(mut command: Command, input: &[u8]) -> CommandOutput {
        let shown = format!("{command:?}");
        let (mut stdout, mut stderr) = (scratch_file(b""), scratch_file(b""));
        command.stdin(scratch_file(input)).stdout(shared(&stdout)).stderr(shared(&stderr));
        let mut child = command.spawn().unwrap_or_else(|err| panic!("cannot run {shown}: {err}"));
        let pidfd = pidfd_of(&child);
        let ended = is_ready_before(Instant::now() + PATIENCE, &mut [PollFd::new(&pidfd, PollFlags::IN)]);
        if !ended {
            child.kill().expect("our own child can be killed");
        }
        let status = child.wait().expect("our own child can be waited for");
        let (stdout, stderr) = (content(&mut stdout), content(&mut stderr));
        let output = CommandOutput { code: code(status), stdout, stderr, command: shown };
        assert!(ended, "not done after {PATIENCE:?}: {output}");
        output
    }

    /// Standard output; panics unless the command succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "failed: {self}");
        self.stdout
    }

    /// Standard error; panics if the command succeeded.
    #[track_caller]
    pub fn refused(self) -> String {
        assert_ne!(self.code, 0, "succeeded: {self}");
        self.stderr
    }

    /// Standard output as JSON; panics unless the command succeeded.
    #[track_caller]
    pub fn json(self) -> serde_json::Value {
        let text = self.clone().ok();
        serde_json::from_str(&text).unwrap_or_else(|err| panic!("not JSON ({err}): {self}"))
    }
}

impl std::fmt::Display for CommandOutput {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let CommandOutput { code, stdout, stderr, command } = self;
        write!(out, "{command}\nexit code {code}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().or(status.signal().map(|signal| -signal)).unwrap_or(i32::MIN)
}

fn scratch_file(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a scratch file");
    file.write_all(content).and_then(|()| file.rewind()).expect("room for a scratch file");
    file
}

fn shared(file: &File) -> Stdio {
    file.try_clone().expect("a descriptor is free").into()
}

fn content(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).expect("a scratch file can be read");
    String::from_utf8_lossy(&bytes).into_owned()
}
