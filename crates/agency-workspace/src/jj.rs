//! One call of the `jj` command line: how it is started, read and reported.
//!
//! Knows nothing of workspaces. Asked on the repository as a whole, it neither looks at the user's working copy
//! nor changes it; asked in a workspace, it takes that one's files in first, as every jj command does.

mod creation;
mod files;
mod integration;
mod merge_commits;
mod removal;
mod repository;
mod restoration;
mod staleness;
mod status;
mod workspace;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::environment::Environment;
use crate::tool::{ToolError, check_status, start_error};

pub(crate) use creation::{check, create, reattach};
pub(crate) use integration::{commit_all, may_merge, merge, recover_merges, sync};
pub use merge_commits::UnfinishedCommit;
pub(crate) use removal::{removable, remove, undo};
pub(crate) use repository::JjRepository;
pub(crate) use restoration::{restore, restore_over};
pub(crate) use status::JjStatus;
pub(crate) use workspace::{JjWorkspace, contents, is_workspace_there, presence, state};

/// Where jj runs, and how.
#[derive(Debug, Clone)]
pub(crate) struct Jj {
    environment: Environment,
    dir: PathBuf,
    options: Vec<String>,
    /// Whether files that lag behind their commit may be brought up to date; never those of the user.
    updates_stale: bool,
}

/// What a command printed and what it said besides.
pub(crate) struct JjOutput {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Jj {
    /// On the repository as a whole.
    pub(crate) fn on(environment: &Environment, root: &Path) -> Self {
        Self { options: vec!["--ignore-working-copy".into()], ..Self::in_user_workspace(environment, root) }
    }

    /// In the user's own workspace, whose files it takes in.
    pub(crate) fn in_user_workspace(environment: &Environment, dir: &Path) -> Self {
        let (environment, dir) = (environment.clone(), dir.to_owned());
        Self { environment, dir, options: Vec::new(), updates_stale: false }
    }

    /// In a workspace of ours, whose files it takes in, and brings up to date if somebody rewrote their commit.
    pub(crate) fn in_task_workspace(environment: &Environment, dir: &Path) -> Self {
        Self { updates_stale: true, ..Self::in_user_workspace(environment, dir) }
    }

    /// Without a look at the files.
    fn without_snapshot(&self) -> Self {
        Self { options: vec!["--ignore-working-copy".into()], updates_stale: false, ..self.clone() }
    }

    /// At an operation that need not be the last, without making the result part of the log.
    pub(crate) fn unintegrated_at(&self, operation: &str) -> Self {
        let options = ["--no-integrate-operation".into(), format!("--at-operation={operation}")];
        Self { options: [self.options.clone(), options.to_vec()].concat(), ..self.clone() }
    }

    /// As [`Jj::aside`], only to look.
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

    /// Times of commits are whole seconds: made again in the same one, after it was taken back, a commit would be
    /// one that is there already, and jj refuses.
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

    /// Each line of what it prints.
    pub(crate) fn read_lines<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<Vec<String>, ToolError> {
        Ok(self.run(args)?.stdout.lines().map(str::to_owned).collect())
    }

    fn command<A: AsRef<OsStr>>(&self, args: &[A]) -> Command {
        let mut command = Command::new("jj");
        command.env_clear().envs(self.environment.variables().map(|(name, value)| (name, value)));
        // Nobody is there to write a text or to read page by page.
        command.env("JJ_EDITOR", "true").current_dir("/").stdin(Stdio::null());
        command.args(["--no-pager", "--color=never", "--config=ui.paginate=never"]);
        command.arg("--repository").arg(&self.dir).args(&self.options).args(args);
        command
    }
}

/// Somebody rewrote the commit that the workspace stands on.
fn is_stale(err: &ToolError) -> bool {
    err.stderr_contains("working copy is stale")
}

/// The name of the command, with the verb of those that have one.
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
