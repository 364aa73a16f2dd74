//! One call of the `jj` command line: how it is started, read and reported.
//!
//! Knows nothing of workspaces. On the repository as a whole, jj neither reads nor changes the user's working
//! copy. In a workspace it first takes a snapshot of the files there, as every jj command does.

mod creation;
mod files;
mod integration;
mod merge_commits;
mod removal;
mod repository;
mod restoration;
mod saving;
mod staleness;
mod status;
mod workspace;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::environment::Environment;
use crate::tool::{ToolError, check_status, start_error};

pub(crate) use creation::{base_in_user_workspace, check, create, reattach};
pub(crate) use integration::{commit_all, inspect_merge, may_merge, merge, recover_merges, sync, undo_merge};
pub(crate) use removal::{removable, remove, undo};
pub(crate) use repository::JjRepository;
pub(crate) use restoration::{restore, restore_over};
pub(crate) use status::JjStatus;
pub(crate) use workspace::{JjWorkspace, contents, find_missing, is_workspace_there, presence, state};

/// A jj command: its directory and its options.
#[derive(Debug, Clone)]
pub(crate) struct Jj {
    environment: Environment,
    dir: PathBuf,
    options: Vec<String>,
    /// Whether this command may update files that lag behind their commit. Never for the user's files.
    updates_stale: bool,
}

/// The output of a command.
pub(crate) struct JjOutput {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Jj {
    /// Runs on the repository as a whole.
    pub(crate) fn on(environment: &Environment, root: &Path) -> Self {
        Self { options: vec!["--ignore-working-copy".into()], ..Self::in_user_workspace(environment, root) }
    }

    /// Runs in the user's own workspace, and takes a snapshot of its files.
    pub(crate) fn in_user_workspace(environment: &Environment, dir: &Path) -> Self {
        let (environment, dir) = (environment.clone(), dir.to_owned());
        Self { environment, dir, options: Vec::new(), updates_stale: false }
    }

    /// Runs in a workspace of a task, and takes a snapshot of its files. Updates them if another process
    /// rewrote their commit.
    pub(crate) fn in_task_workspace(environment: &Environment, dir: &Path) -> Self {
        Self { updates_stale: true, ..Self::in_user_workspace(environment, dir) }
    }

    /// The same command without a snapshot of the files.
    fn without_snapshot(&self) -> Self {
        Self { options: vec!["--ignore-working-copy".into()], updates_stale: false, ..self.clone() }
    }

    /// Runs at an operation that need not be the last, and does not add the result to the operation log.
    pub(crate) fn unintegrated_at(&self, operation: &str) -> Self {
        let options = ["--no-integrate-operation".into(), format!("--at-operation={operation}")];
        Self { options: [self.options.clone(), options.to_vec()].concat(), ..self.clone() }
    }

    /// Like [`Jj::unintegrated_at`], for read-only commands.
    pub(crate) fn at_operation(&self, operation: &str) -> Self {
        let options = [self.options.clone(), vec![format!("--at-operation={operation}")]].concat();
        Self { options, ..self.clone() }
    }

    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<JjOutput, ToolError> {
        match self.run_without_update(args) {
            Err(err) if self.updates_stale && is_stale(&err) => {
                staleness::update_stale(self, &self.dir)?;
                self.run_without_update(args)
            }
            done => done,
        }
    }

    /// Commit times are whole seconds. A commit that was undone and is created again within the same second
    /// would be identical to the first one, and jj refuses that; so wait and try again.
    fn run_without_update<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<JjOutput, ToolError> {
        match self.run_once(args) {
            Err(err) if err.stderr_contains("Newly-created commit") => {
                std::thread::sleep(Duration::from_secs(1));
                self.run_once(args)
            }
            done => done,
        }
    }

    fn run_once<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<JjOutput, ToolError> {
        let Output { status, stdout, stderr } =
            self.command(args).output().map_err(|err| start_error("jj", command_name(args), err))?;
        let stderr_text = String::from_utf8_lossy(&stderr).into_owned();
        let out = check_status(command_name(args), Output { status, stdout, stderr })?;
        Ok(JjOutput { stdout: String::from_utf8_lossy(&out).into_owned(), stderr: stderr_text })
    }

    /// Runs a command and returns the lines that it prints.
    pub(crate) fn read_lines<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<Vec<String>, ToolError> {
        Ok(self.run(args)?.stdout.lines().map(str::to_owned).collect())
    }

    fn command<A: AsRef<OsStr>>(&self, args: &[A]) -> Command {
        let mut command = self.environment.command("jj");
        // No user is there to write a text or to read page by page.
        command.env("JJ_EDITOR", "true").current_dir("/").stdin(Stdio::null());
        command.args(["--no-pager", "--color=never", "--config=ui.paginate=never"]);
        command.arg("--repository").arg(&self.dir).args(&self.options).args(args);
        command
    }
}

/// Whether another process rewrote the commit that the workspace is on.
fn is_stale(err: &ToolError) -> bool {
    err.stderr_contains("working copy is stale")
}

/// Returns the name of the command for error messages, with the verb of commands that have one.
fn command_name<A: AsRef<OsStr>>(args: &[A]) -> String {
    let words: Vec<_> = args.iter().take(2).map(|arg| arg.as_ref().to_string_lossy()).collect();
    match &words[..] {
        [group, verb] if ["workspace", "bookmark", "op", "git", "util", "file"].contains(&group.as_ref()) => {
            format!("jj {group} {verb}")
        }
        words => format!("jj {}", words.first().map(|word| word.as_ref()).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_command_and_not_its_arguments() {
        assert_eq!(command_name(&["workspace", "add", "/secret"]), "jj workspace add");
        assert_eq!(command_name(&["describe", "-m", "text"]), "jj describe");
    }
}
