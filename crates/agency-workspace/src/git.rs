//! One call of the `git` command line: how it is started, read, repeated and reported.
//!
//! Knows nothing of workspaces, and never uses a shell.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::environment::Environment;
use crate::tool::{ToolError, check_status, retry_while_locked, start_error, trim_newline};

/// By default git waits only 100 ms for a ref lock.
const REF_PATIENCE: [&str; 2] = ["core.filesRefLockTimeout=5000", "core.packedRefsTimeout=5000"];

/// Used where git-lfs is configured but not installed. Without these settings git could neither check out nor
/// add a file under LFS. With them it treats the pointers as files.
const WITHOUT_LFS: [&str; 4] =
    ["filter.lfs.required=false", "filter.lfs.process=", "filter.lfs.smudge=", "filter.lfs.clean="];

/// A git command: its directory, its repository and its settings.
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
    /// Git that looks for a repository from `dir` upwards.
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

    /// Git on exactly this repository. It never finds an enclosing one instead.
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

    /// Reads. Takes no locks, not even for the index refresh of `git status`.
    pub(crate) fn read<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<Vec<u8>, ToolError> {
        retry_while_locked(|| check_status(command_name(args), self.run_read_only(args)?))
    }

    /// Reads one line: an object id, a ref or a path.
    pub(crate) fn read_line<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<OsString, ToolError> {
        self.read(args).map(trim_newline)
    }

    /// Reads a value that may not exist: git then exits with 1 and prints nothing.
    pub(crate) fn read_optional<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<Option<OsString>, ToolError> {
        retry_while_locked(|| {
            let output = self.run_read_only(args)?;
            if output.status.code() == Some(1) && output.stderr.is_empty() {
                return Ok(None);
            }
            check_status(command_name(args), output).map(|out| Some(trim_newline(out)))
        })
    }

    /// Changes something. Repeats the command while another process holds a lock.
    pub(crate) fn change<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<OsString, ToolError> {
        retry_while_locked(|| {
            let output =
                self.command(args).output().map_err(|err| start_error("git", command_name(args), err))?;
            check_status(command_name(args), output).map(trim_newline)
        })
    }

    /// Updates the file times in the index. Git says nothing about a lock with this option, and fails on every
    /// changed file without it.
    pub(crate) fn refresh_index(&self) -> Result<(), ToolError> {
        let lock = self.git_dir.as_ref().map(|git_dir| git_dir.join("index.lock"));
        retry_while_locked(|| match (self.change(&["update-index", "-q", "--refresh"]), &lock) {
            (Err(ToolError::Failed { command, .. }), Some(lock)) if lock.exists() => {
                let stderr = format!("Unable to create '{}': File exists", lock.display());
                Err(ToolError::Failed { command, stderr })
            }
            (refreshed, _) => refreshed.map(drop),
        })
    }

    /// Asks a question that git answers with exit code 0 (yes) or 1 (no), both with output.
    pub(crate) fn read_yes_or_no<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<(bool, Vec<u8>), ToolError> {
        retry_while_locked(|| {
            let output =
                self.command(args).output().map_err(|err| start_error("git", command_name(args), err))?;
            match output.status.code() {
                Some(1) if !output.stdout.is_empty() => Ok((false, output.stdout)),
                _ => check_status(command_name(args), output).map(|out| (true, out)),
            }
        })
    }

    /// Changes something, with `input` on the standard input.
    pub(crate) fn change_with_input<A: AsRef<OsStr>>(
        &self,
        args: &[A],
        input: &[u8],
    ) -> Result<(), ToolError> {
        self.read_with_input(args, input).map(drop)
    }

    /// Reads or changes something, with `input` on the standard input.
    pub(crate) fn read_with_input<A: AsRef<OsStr>>(
        &self,
        args: &[A],
        input: &[u8],
    ) -> Result<Vec<u8>, ToolError> {
        retry_while_locked(|| {
            let output = self
                .command(args)
                .stdin(input_file(args, input)?)
                .output()
                .map_err(|err| start_error("git", command_name(args), err))?;
            check_status(command_name(args), output)
        })
    }

    /// Reads a long output while git writes it, with `input` on the standard input.
    pub(crate) fn stream<A: AsRef<OsStr>>(
        &self,
        args: &[A],
        input: &[u8],
        read: impl FnOnce(&mut dyn BufRead) -> io::Result<()>,
    ) -> Result<(), ToolError> {
        let failed = |source| ToolError::Start { command: command_name(args), source };
        let mut stderr = tempfile::tempfile().map_err(failed)?;
        let mut command = self.command(args);
        command.stdin(input_file(args, input)?).stdout(Stdio::piped());
        command.stderr(stderr.try_clone().map_err(failed)?);
        let mut child = command.spawn().map_err(|err| start_error("git", command_name(args), err))?;
        // Dropped at the end of this line, so that git does not wait for a reader that has failed.
        let has_read = child.stdout.take().map_or(Ok(()), |stdout| read(&mut BufReader::new(stdout)));
        let status = child.wait().map_err(failed)?;
        let mut stderr_bytes = Vec::new();
        stderr.rewind().and_then(|()| stderr.read_to_end(&mut stderr_bytes)).map_err(failed)?;
        // An error of the reader is the cause if git was ended by the closed pipe.
        has_read.map_err(failed)?;
        check_status(command_name(args), Output { status, stdout: Vec::new(), stderr: stderr_bytes })
            .map(drop)
    }

    /// Changes something, once, by a command that runs the user's hooks.
    ///
    /// Output goes to a file: a hook may leave a process behind that holds a pipe open forever.
    pub(crate) fn change_with_hooks<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<(), ToolError> {
        let failed = |source| ToolError::Start { command: command_name(args), source };
        let mut stderr = tempfile::tempfile().map_err(failed)?;
        let mut command = self.command(args);
        command.stdout(Stdio::null()).stderr(stderr.try_clone().map_err(failed)?);
        let status = command.status().map_err(|err| start_error("git", command_name(args), err))?;
        let mut stderr_bytes = Vec::new();
        stderr.rewind().and_then(|()| stderr.read_to_end(&mut stderr_bytes)).map_err(failed)?;
        check_status(command_name(args), Output { status, stdout: Vec::new(), stderr: stderr_bytes })
            .map(drop)
    }

    fn run_read_only<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<Output, ToolError> {
        let mut command = self.command(args);
        command
            .env("GIT_OPTIONAL_LOCKS", "0")
            .output()
            .map_err(|err| start_error("git", command_name(args), err))
    }

    fn command<A: AsRef<OsStr>>(&self, args: &[A]) -> Command {
        let mut command = self.environment.command("git");
        command
            .env("GIT_TERMINAL_PROMPT", "0")
            .envs(self.variables.iter().map(|(name, value)| (name, value)));
        // Our own working directory may have been deleted. With git's `-C`, a missing directory and a missing
        // git give different errors.
        command.current_dir("/").stdin(Stdio::null()).arg("-C").arg(&self.dir);
        if let Some(git_dir) = &self.git_dir {
            command.arg(join_option("--git-dir=", git_dir));
        }
        if let Some(work_tree) = &self.work_tree {
            command.arg(join_option("--work-tree=", work_tree));
        }
        if !self.environment.has_lfs() {
            command.args(WITHOUT_LFS.iter().flat_map(|setting| ["-c", setting]));
        }
        command.args(self.config.iter().flat_map(|setting| ["-c", setting])).args(args);
        command
    }
}

/// Writes the input to a file: a pipe could fill up while git waits for us to read its output.
fn input_file<A: AsRef<OsStr>>(args: &[A], input: &[u8]) -> Result<File, ToolError> {
    let failed = |source| ToolError::Start { command: command_name(args), source };
    let mut file = tempfile::tempfile().map_err(failed)?;
    file.write_all(input).and_then(|()| file.rewind()).map_err(failed)?;
    Ok(file)
}

fn join_option(option: &str, path: &Path) -> OsString {
    let mut option = OsString::from(option);
    option.push(path);
    option
}

/// Returns the name of the command for error messages, without paths and texts.
fn command_name<A: AsRef<OsStr>>(args: &[A]) -> String {
    let words: Vec<_> = args.iter().take(2).map(|arg| arg.as_ref().to_string_lossy()).collect();
    match &words[..] {
        [command, verb] if command == "worktree" => format!("git {command} {verb}"),
        words => format!("git {}", words.first().map(|command| command.as_ref()).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_command_and_not_its_arguments() {
        assert_eq!(command_name(&["worktree", "add", "/secret"]), "git worktree add");
        assert_eq!(command_name(&["commit-tree", "-m", "text"]), "git commit-tree");
    }
}
