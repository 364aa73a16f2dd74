//! A separate environment for a test of the whole program: home, state, repository, programs.
//!
//! It inherits no variables but `PATH`, and no process that was started in it outlives it.

mod fixtures;
mod processes;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::binaries::Binaries;
use crate::command_output::CommandOutput;
use crate::eventually::until;
use crate::pty::Pty;

pub use processes::Keeper;

/// How much of the daemon's log a failed test shows.
const LOG_LINES_SHOWN: usize = 200;

pub struct Sealed {
    // The path is short: the path of a socket has at most 108 bytes.
    root: TempDir,
}

impl Sealed {
    /// Makes an environment with a repository of one commit.
    pub fn new() -> Sealed {
        let root = tempfile::Builder::new().prefix("agency-").tempdir().expect("a scratch directory");
        let sealed = Sealed { root };
        for dir in ["home", "state", "config", "run", "bin", "repo"] {
            let made = fs::DirBuilder::new().mode(0o700).create(sealed.path(dir));
            made.unwrap_or_else(|err| panic!("cannot make {dir}: {err}"));
        }
        sealed.install_programs();
        sealed.install_editor();
        sealed.make_repository(&sealed.repo());
        sealed
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The directory that holds all of it.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// Keeps the directory after the end, so that a person can look at it.
    pub fn keep(&mut self) {
        self.root.disable_cleanup(true);
    }

    /// The repository that commands run in.
    pub fn repo(&self) -> PathBuf {
        self.path("repo")
    }

    pub fn home(&self) -> PathBuf {
        self.path("home")
    }

    /// Agency's state directory.
    pub fn state(&self) -> PathBuf {
        self.path("state/agency")
    }

    /// The user's configuration file, which need not exist.
    pub fn config(&self) -> PathBuf {
        self.path("config/agency/config.toml")
    }

    pub fn write_config(&self, toml: &str) {
        let path = self.config();
        let dir = path.parent().expect("a file lies in a directory");
        fs::create_dir_all(dir).and_then(|()| fs::write(&path, toml)).expect("room for a configuration");
    }

    /// Sets the text that `$EDITOR` appends to the files it is called with.
    pub fn editor_types(&self, text: &str) {
        fs::write(self.path("editor-text"), text).expect("room for a text");
    }

    /// A command for any program, in this environment and in the repository.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut path = self.path("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into()));
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.repo()).env("PATH", path);
        for (name, dir) in [
            ("HOME", "home"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_RUNTIME_DIR", "run"),
            ("EDITOR", "bin/editor"),
            ("AGENCY_KEEPER", "bin/agency-keeper"),
        ] {
            command.env(name, self.path(dir));
        }
        command.envs(PLAIN_ENVIRONMENT);
        command
    }

    /// A command for `agency ARG…`, which the caller may change before running it.
    pub fn agency(&self, args: impl IntoIterator<Item: AsRef<OsStr>>) -> Command {
        Binaries::keeper();
        let mut command = self.command(Binaries::agency());
        command.args(args);
        command
    }

    /// Runs `agency ARG…` without input and without a terminal.
    pub fn run(&self, args: impl IntoIterator<Item: AsRef<OsStr>>) -> CommandOutput {
        CommandOutput::of(self.agency(args), b"")
    }

    /// Runs `agency ARG…` on a terminal of 80 × 24.
    pub fn on_terminal(&self, args: impl IntoIterator<Item: AsRef<OsStr>>) -> Pty {
        Pty::spawn(self.agency(args), 80, 24)
    }

    pub fn daemon_log(&self) -> String {
        fs::read_to_string(self.state().join("daemon.log")).unwrap_or_default()
    }

    /// Waits for a condition; if it never holds, panics with `what` and the daemon's log.
    #[track_caller]
    pub fn eventually<T>(&self, what: &str, within: Duration, condition: impl FnMut() -> Option<T>) -> T {
        match until(within, condition) {
            Some(found) => found,
            None => panic!("not within {within:?}: {what}"),
        }
    }

    fn show_log(&self) {
        let log = self.daemon_log();
        let lines: Vec<&str> = log.lines().collect();
        let shown = &lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..];
        eprintln!("--- daemon.log ({} lines)\n{}\n---", lines.len(), shown.join("\n"));
    }
}

/// Fixed settings, so that a test does the same on every machine.
const PLAIN_ENVIRONMENT: [(&str, &str); 11] = [
    ("TERM", "xterm-256color"),
    ("LANG", "C.UTF-8"),
    ("TZ", "UTC"),
    ("SHELL", "/bin/sh"),
    ("USER", "tester"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_AUTHOR_NAME", "Tester"),
    ("GIT_AUTHOR_EMAIL", "tester@example.com"),
    ("GIT_COMMITTER_NAME", "Tester"),
    ("GIT_COMMITTER_EMAIL", "tester@example.com"),
];

impl Default for Sealed {
    fn default() -> Sealed {
        Sealed::new()
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.show_log();
        }
        self.end_everything();
    }
}
