//! Errors of the programs that this crate runs, and when to try again.
//!
//! Does not know which program: `git` and `jj` start them.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::process::{ExitStatus, Output};
use std::thread;
use std::time::Duration;

/// Twenty workspaces that are created at once compete for the same lock files for some milliseconds each.
/// Doubling from 10 ms, eight attempts wait 1.3 s in all: longer than any healthy process holds a lock, and
/// short enough to report a lock that a dead process left.
const FIRST_WAIT: Duration = Duration::from_millis(10);
const ATTEMPTS: u32 = 8;

/// A program failed.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The program is not installed.
    #[error("{program} is not installed, or not in the PATH")]
    Missing {
        /// The name of the program.
        program: &'static str,
    },
    /// The program could not be started.
    #[error("cannot start `{command}`")]
    Start {
        /// The name of the command, without its arguments.
        command: String,
        /// The error below.
        source: io::Error,
    },
    /// The program exited with an error.
    #[error("`{command}` failed: {stderr}")]
    Failed {
        /// The name of the command, without its arguments.
        command: String,
        /// The output of the program on standard error.
        stderr: String,
    },
    /// A signal ended the program.
    #[error("`{command}` was ended by a signal: {stderr}")]
    Killed {
        /// The name of the command, without its arguments.
        command: String,
        /// The output of the program on standard error.
        stderr: String,
    },
}

impl ToolError {
    /// Returns a way out for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            ToolError::Missing { program } => {
                Some(format!("install {program}, or use the directory itself with --vcs none"))
            }
            ToolError::Failed { stderr, .. } if is_lock_held(stderr) => {
                Some("another git command is running, or a dead one left its lock file; in that case remove it".into())
            }
            ToolError::Failed { stderr, .. } if stderr.contains("dubious ownership") => {
                Some("the repository belongs to another user; `git config --global --add safe.directory …` trusts it".into())
            }
            ToolError::Failed { stderr, .. } if stderr.contains("tell me who you are") => {
                Some("run: git config --global user.name … and git config --global user.email …".into())
            }
            ToolError::Failed { stderr, .. } if stderr.contains("working copy is stale") => {
                Some("run: jj workspace update-stale".into())
            }
            ToolError::Failed { command, stderr } if command == "git merge-tree" && stderr.contains("usage:") => {
                Some("git 2.38 or newer is needed".into())
            }
            ToolError::Start { .. } | ToolError::Failed { .. } | ToolError::Killed { .. } => None,
        }
    }

    pub(crate) fn stderr_contains(&self, words: &str) -> bool {
        matches!(self, ToolError::Failed { stderr, .. } if stderr.contains(words))
    }
}

/// Repeats an attempt without side effects while another process holds a lock.
pub(crate) fn retry_while_locked<T>(attempt: impl Fn() -> Result<T, ToolError>) -> Result<T, ToolError> {
    let mut wait = FIRST_WAIT;
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(ToolError::Failed { stderr, .. })
                if is_lock_held(&stderr) || is_neighbour_moving(&stderr) =>
            {
                thread::sleep(wait);
                wait *= 2;
            }
            done => return done,
        }
    }
    attempt()
}

pub(crate) fn start_error(program: &'static str, command: String, err: io::Error) -> ToolError {
    match err.kind() {
        io::ErrorKind::NotFound => ToolError::Missing { program },
        _ => ToolError::Start { command, source: err },
    }
}

pub(crate) fn check_status(command: String, output: Output) -> Result<Vec<u8>, ToolError> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let stderr = stderr_text(&output.stderr, output.status);
    match output.status.code() {
        Some(_) => Err(ToolError::Failed { command, stderr }),
        None => Err(ToolError::Killed { command, stderr }),
    }
}

fn stderr_text(stderr: &[u8], status: ExitStatus) -> String {
    let text = String::from_utf8_lossy(stderr);
    match text.trim() {
        "" => format!("no output ({status})"),
        text => text.to_owned(),
    }
}

pub(crate) fn trim_newline(mut out: Vec<u8>) -> OsString {
    if out.last() == Some(&b'\n') {
        out.pop();
    }
    OsString::from_vec(out)
}

fn is_lock_held(stderr: &str) -> bool {
    stderr.contains("could not lock config file")
        || (stderr.contains(".lock'") && stderr.contains("File exists"))
        // The message of jj, when two of its commands write git's refs at the same time.
        || stderr.contains("packed-ref transaction")
}

/// Git reads the records of all worktrees, and fails on one that is being created or removed.
fn is_neighbour_moving(stderr: &str) -> bool {
    stderr.contains("/worktrees/") && (stderr.contains("failed to read") || stderr.contains("Invalid path"))
}

pub(crate) fn text(out: OsString) -> String {
    out.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn failed(stderr: &str) -> ToolError {
        ToolError::Failed { command: "worktree add".into(), stderr: stderr.into() }
    }

    /// Counts the attempts that are made when the first two fail with this message.
    fn attempts(stderr: &str) -> u32 {
        let attempts = Cell::new(0);
        let last = retry_while_locked(|| {
            attempts.set(attempts.get() + 1);
            if attempts.get() < 3 { Err(failed(stderr)) } else { Ok(()) }
        });
        assert_eq!(last.is_ok(), attempts.get() == 3);
        attempts.get()
    }

    #[test]
    fn temporary_failures_are_retried() {
        assert_eq!(attempts("error: could not lock config file .git/config: File exists"), 3);
        assert_eq!(attempts("fatal: Unable to create '/x/.git/refs/heads/a.lock': File exists."), 3);
        assert_eq!(attempts("fatal: failed to read /x/.git/worktrees/2-b/commondir: Success"), 3);
        assert_eq!(attempts("fatal: Invalid path '/x/.git/worktrees/2-b': No such file or directory"), 3);
    }

    #[test]
    fn permanent_failures_are_reported_at_once() {
        assert_eq!(attempts("fatal: '/x/.agency/worktrees/1-a' already exists"), 1);
        assert_eq!(attempts("fatal: cannot lock ref 'refs/heads/a': reference already exists"), 1);
    }

    #[test]
    fn errors_with_a_known_solution_have_a_hint() {
        assert!(failed("Unable to create '/x.lock': File exists").hint().unwrap().contains("remove it"));
        assert!(
            failed("fatal: detected dubious ownership in repository")
                .hint()
                .unwrap()
                .contains("safe.directory")
        );
        assert_eq!(failed("fatal: something else").hint(), None);
    }
}
