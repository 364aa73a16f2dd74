//! One call of the `git` command line: how it is started, read, repeated and reported.
//!
//! Knows nothing of workspaces, and no shell is ever involved.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Seek, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::environment::Environment;

/// Twenty workspaces made at once meet at the same lock files for some milliseconds each. Doubling
/// from 10 ms, eight attempts wait 1.3 s in all: longer than any healthy holder, short enough to
/// report a lock that a dead process left.
const FIRST_WAIT: Duration = Duration::from_millis(10);
const ATTEMPTS: u32 = 8;

/// Git waits for ref locks by itself, but only 100 ms unless told.
const REF_PATIENCE: [&str; 2] = ["core.filesRefLockTimeout=5000", "core.packedRefsTimeout=5000"];

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("git is not installed, or not in the PATH")]
    Missing,
    #[error("cannot start `git {command}`")]
    Start { command: String, source: io::Error },
    #[error("`git {command}` failed: {stderr}")]
    Failed { command: String, stderr: String },
    #[error("`git {command}` was ended by a signal: {stderr}")]
    Killed { command: String, stderr: String },
}

impl GitError {
    pub fn hint(&self) -> Option<String> {
        match self {
            GitError::Missing => Some("install git, or use the directory itself with --vcs none".into()),
            GitError::Failed { stderr, .. } if is_lock_held(stderr) => {
                Some("another git command is at work, or one that died left its lock file; remove it if so".into())
            }
            GitError::Failed { stderr, .. } if stderr.contains("dubious ownership") => {
                Some("the repository belongs to another user; `git config --global --add safe.directory …` trusts it".into())
            }
            GitError::Failed { stderr, .. } if stderr.contains("tell me who you are") => {
                Some("run: git config --global user.name … and git config --global user.email …".into())
            }
            GitError::Failed { command, stderr } if command == "merge-tree" && stderr.contains("usage:") => {
                Some("git 2.38 or newer is needed".into())
            }
            GitError::Start { .. } | GitError::Failed { .. } | GitError::Killed { .. } => None,
        }
    }

    pub(crate) fn says(&self, words: &str) -> bool {
        matches!(self, GitError::Failed { stderr, .. } if stderr.contains(words))
    }
}

/// Where git runs, and on what.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    environment: Environment,
    dir: PathBuf,
    git_dir: Option<PathBuf>,
    work_tree: Option<PathBuf>,
    variables: Vec<(&'static str, OsString)>,
    config: Vec<&'static str>,
}

impl Git {
    /// Git that looks for a repository itself, from `dir` upwards.
    pub(crate) fn discovering(environment: &Environment, dir: &Path) -> Self {
        Self {
            environment: environment.clone(),
            dir: dir.to_owned(),
            git_dir: None,
            work_tree: None,
            variables: Vec::new(),
            config: REF_PATIENCE.to_vec(),
        }
    }

    /// Git on exactly this repository. It cannot wander off into the one around it.
    pub(crate) fn on(environment: &Environment, git_dir: &Path, dir: &Path) -> Self {
        Self { git_dir: Some(git_dir.to_owned()), ..Self::discovering(environment, dir) }
    }

    pub(crate) fn with_work_tree(mut self, work_tree: &Path) -> Self {
        self.work_tree = Some(work_tree.to_owned());
        self
    }

    pub(crate) fn with_variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    pub(crate) fn with_config(mut self, setting: &'static str) -> Self {
        self.config.push(setting);
        self
    }

    /// Reads; takes no locks, not even the index refresh of `git status`.
    pub(crate) fn read<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<Vec<u8>, GitError> {
        patiently(|| succeeded(args, self.reading(args)?))
    }

    /// Reads one line: an object id, a ref, a path.
    pub(crate) fn line<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<OsString, GitError> {
        self.read(args).map(without_newline)
    }

    /// Reads what may not be there: git says so with exit code 1 and silence.
    pub(crate) fn maybe<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<Option<OsString>, GitError> {
        patiently(|| {
            let output = self.reading(args)?;
            if output.status.code() == Some(1) && output.stderr.is_empty() {
                return Ok(None);
            }
            succeeded(args, output).map(|out| Some(without_newline(out)))
        })
    }

    /// Changes something, again and again while only a lock is in the way.
    pub(crate) fn change<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<OsString, GitError> {
        patiently(|| {
            let output = self.command(args).output().map_err(|err| not_started(args, err))?;
            succeeded(args, output).map(without_newline)
        })
    }

    /// Asks what git answers with exit code 0 or 1 (no), both with something to read.
    pub(crate) fn answer<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<(bool, Vec<u8>), GitError> {
        patiently(|| {
            let output = self.command(args).output().map_err(|err| not_started(args, err))?;
            match output.status.code() {
                Some(1) if !output.stdout.is_empty() => Ok((false, output.stdout)),
                _ => succeeded(args, output).map(|out| (true, out)),
            }
        })
    }

    /// Changes something that is told on the standard input.
    pub(crate) fn change_by<A: AsRef<OsStr>>(&self, args: &[A], input: &[u8]) -> Result<(), GitError> {
        let failed = |source| GitError::Start { command: shown(args), source };
        patiently(|| {
            let mut told = tempfile::tempfile().map_err(failed)?;
            told.write_all(input).and_then(|()| told.rewind()).map_err(failed)?;
            let output = self.command(args).stdin(told).output().map_err(|err| not_started(args, err))?;
            succeeded(args, output).map(drop)
        })
    }

    /// Changes something, once, by a command that runs the user's hooks.
    ///
    /// Output goes to a file: a hook may leave a process behind that holds a pipe open for ever.
    pub(crate) fn change_with_hooks<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<(), GitError> {
        let failed = |source| GitError::Start { command: shown(args), source };
        let mut stderr = tempfile::tempfile().map_err(failed)?;
        let mut command = self.command(args);
        command.stdout(Stdio::null()).stderr(stderr.try_clone().map_err(failed)?);
        let status = command.status().map_err(|err| not_started(args, err))?;
        let mut said = Vec::new();
        stderr.rewind().and_then(|()| stderr.read_to_end(&mut said)).map_err(failed)?;
        succeeded(args, Output { status, stdout: Vec::new(), stderr: said }).map(drop)
    }

    fn reading<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<Output, GitError> {
        let mut command = self.command(args);
        command.env("GIT_OPTIONAL_LOCKS", "0").output().map_err(|err| not_started(args, err))
    }

    fn command<A: AsRef<OsStr>>(&self, args: &[A]) -> Command {
        let mut command = Command::new("git");
        command.env_clear().envs(self.environment.variables().map(|(name, value)| (name, value)));
        command
            .env("GIT_TERMINAL_PROMPT", "0")
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        // Ours may have been deleted; git's own `-C` tells a missing directory from a missing git.
        command.current_dir("/").stdin(Stdio::null()).arg("-C").arg(&self.dir);
        if let Some(git_dir) = &self.git_dir {
            command.arg(joined("--git-dir=", git_dir));
        }
        if let Some(work_tree) = &self.work_tree {
            command.arg(joined("--work-tree=", work_tree));
        }
        command.args(self.config.iter().flat_map(|setting| ["-c", setting])).args(args);
        command
    }
}

/// Repeats an attempt that made nothing while only a lock is in its way.
pub(crate) fn patiently<T>(attempt: impl Fn() -> Result<T, GitError>) -> Result<T, GitError> {
    let mut wait = FIRST_WAIT;
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(GitError::Failed { stderr, .. }) if is_lock_held(&stderr) || is_neighbour_moving(&stderr) => {
                thread::sleep(wait);
                wait *= 2;
            }
            done => return done,
        }
    }
    attempt()
}

fn joined(option: &str, path: &Path) -> OsString {
    let mut option = OsString::from(option);
    option.push(path);
    option
}

fn not_started<A: AsRef<OsStr>>(args: &[A], err: io::Error) -> GitError {
    match err.kind() {
        io::ErrorKind::NotFound => GitError::Missing,
        _ => GitError::Start { command: shown(args), source: err },
    }
}

fn succeeded<A: AsRef<OsStr>>(args: &[A], output: Output) -> Result<Vec<u8>, GitError> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let command = shown(args);
    let stderr = said(&output.stderr, output.status);
    match output.status.code() {
        Some(_) => Err(GitError::Failed { command, stderr }),
        None => Err(GitError::Killed { command, stderr }),
    }
}

fn said(stderr: &[u8], status: ExitStatus) -> String {
    let text = String::from_utf8_lossy(stderr);
    match text.trim() {
        "" => format!("it said nothing ({status})"),
        text => text.to_owned(),
    }
}

/// The name of the command: enough to know it, and no paths or messages.
fn shown<A: AsRef<OsStr>>(args: &[A]) -> String {
    let words: Vec<_> = args.iter().take(2).map(|arg| arg.as_ref().to_string_lossy()).collect();
    match &words[..] {
        [command, verb] if command == "worktree" => format!("{command} {verb}"),
        words => words.first().map(|command| command.to_string()).unwrap_or_default(),
    }
}

fn without_newline(mut out: Vec<u8>) -> OsString {
    if out.last() == Some(&b'\n') {
        out.pop();
    }
    OsString::from_vec(out)
}

fn is_lock_held(stderr: &str) -> bool {
    stderr.contains("could not lock config file")
        || (stderr.contains(".lock'") && stderr.contains("File exists"))
}

/// Git reads the records of all worktrees, and stumbles over one that just comes or goes.
fn is_neighbour_moving(stderr: &str) -> bool {
    stderr.contains("/worktrees/") && (stderr.contains("failed to read") || stderr.contains("Invalid path"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn failed(stderr: &str) -> GitError {
        GitError::Failed { command: "worktree add".into(), stderr: stderr.into() }
    }

    /// How often an attempt is made that fails twice with these words.
    fn attempts(stderr: &str) -> u32 {
        let attempts = Cell::new(0);
        let last = patiently(|| {
            attempts.set(attempts.get() + 1);
            if attempts.get() < 3 { Err(failed(stderr)) } else { Ok(()) }
        });
        assert_eq!(last.is_ok(), attempts.get() == 3);
        attempts.get()
    }

    #[test]
    fn what_is_only_in_the_way_for_a_moment_is_tried_again() {
        assert_eq!(attempts("error: could not lock config file .git/config: File exists"), 3);
        assert_eq!(attempts("fatal: Unable to create '/x/.git/refs/heads/a.lock': File exists."), 3);
        assert_eq!(attempts("fatal: failed to read /x/.git/worktrees/2-b/commondir: Success"), 3);
        assert_eq!(attempts("fatal: Invalid path '/x/.git/worktrees/2-b': No such file or directory"), 3);
    }

    #[test]
    fn what_is_wrong_for_good_is_said_at_once() {
        assert_eq!(attempts("fatal: '/x/.agency/worktrees/1-a' already exists"), 1);
        assert_eq!(attempts("fatal: cannot lock ref 'refs/heads/a': reference already exists"), 1);
    }

    #[test]
    fn errors_name_the_command_and_not_its_arguments() {
        assert_eq!(shown(&["worktree", "add", "/secret"]), "worktree add");
        assert_eq!(shown(&["commit-tree", "-m", "text"]), "commit-tree");
    }

    #[test]
    fn a_way_out_is_offered_where_there_is_one() {
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
