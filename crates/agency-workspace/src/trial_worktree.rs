//! A worktree in which a merge is tried before any branch or file of the user changes.
//!
//! The real git merges in it, with the user's hooks, signing, merge drivers and identity. It contains files
//! only if there are hooks that may read them; without files a merge in a big repository is fast.

use std::fs::{self};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tracing::warn;

use crate::error::OperationCause;
use crate::git::Git;
use crate::integration_lock::IntegrationLock;
use crate::name::WORKTREES;
use crate::repository::Repository;
use crate::temp_index::parse_paths;
use crate::tool::ToolError;
use crate::worktree::{Force, Worktree, WorktreeRecord, list_records};

/// Not a valid workspace name.
const PREFIX: &str = ".aside-";

/// The hooks that git runs for a merge or a commit.
const HOOKS: [&str; 4] = ["pre-merge-commit", "pre-commit", "prepare-commit-msg", "commit-msg"];

/// A rebase must not move other branches on the rebased commits, and no user is there to answer questions.
const REBASE_CONFIG: [&str; 3] =
    ["rebase.updateRefs=false", "rebase.autoSquash=false", "rebase.autoStash=false"];

pub(crate) struct TrialWorktree<'a> {
    repository: &'a Repository,
    record: WorktreeRecord,
    git: Git,
}

impl<'a> TrialWorktree<'a> {
    /// Creates the worktree at `commit`, on no branch.
    pub(crate) fn create(
        repository: &'a Repository,
        commit: &str,
        _: &IntegrationLock,
    ) -> Result<Self, OperationCause> {
        remove_leftovers(repository)?;
        let folder = repository.root().join(WORKTREES);
        let unwritable = |source| OperationCause::Write { path: folder.clone(), source };
        // Git's records hold real paths; `.agency` may be a link.
        let real = fs::create_dir_all(&folder).and_then(|()| folder.canonicalize()).map_err(unwritable)?;
        // This only finds a free name. Git makes the directory.
        let path =
            tempfile::Builder::new().prefix(PREFIX).tempdir_in(&real).map_err(unwritable)?.path().to_owned();
        let with_files = has_hooks(repository)?;
        add(repository, &path, commit, with_files)?;
        match Self::open(repository, &path, with_files) {
            Ok(Some(trial)) => Ok(trial),
            opened => {
                remove_leftovers(repository)?;
                opened?;
                Err(unwritable(io::ErrorKind::NotFound.into()))
            }
        }
    }

    fn open(
        repository: &'a Repository,
        path: &Path,
        with_files: bool,
    ) -> Result<Option<Self>, OperationCause> {
        let record = list_records(repository)?.into_iter().find(|record| record.path == path);
        let (Some(record), Some(worktree)) = (record, Worktree::open(repository, path)) else {
            return Ok(None);
        };
        let git = REBASE_CONFIG.into_iter().fold(worktree.git(repository), Git::with_config);
        let git = git.with_variable("GIT_EDITOR", "true");
        let git = if with_files { git } else { without_files(git, &worktree)? };
        Ok(Some(Self { repository, record, git }))
    }

    pub(crate) fn git(&self) -> &Git {
        &self.git
    }

    pub(crate) fn head(&self) -> Result<String, ToolError> {
        self.git.read_line(&["rev-parse", "--verify", "HEAD"]).map(crate::tool::text)
    }

    /// Runs a command that may end in conflicts, and distinguishes them from other failures.
    pub(crate) fn run_merge(&self, args: &[&str], with: &str) -> Result<(), OperationCause> {
        let Err(err) = self.git.change_with_hooks(args) else { return Ok(()) };
        let files = self.unmerged_files()?;
        if files.is_empty() {
            return Err(without_advice(err).into());
        }
        Err(OperationCause::Conflicts { with: with.to_owned(), files })
    }

    fn unmerged_files(&self) -> Result<Vec<PathBuf>, ToolError> {
        let mut files = parse_paths(&self.git.read(&["diff", "--name-only", "--diff-filter=U", "-z"])?);
        files.sort();
        files.dedup();
        Ok(files)
    }
}

/// Removes git's advice from an error: it is about a worktree that no longer exists when the user reads it.
fn without_advice(err: ToolError) -> ToolError {
    let ToolError::Failed { command, stderr } = err else { return err };
    let is_kept = |line: &&str| !line.starts_with("Not committing merge;") && !line.starts_with("hint:");
    let kept: Vec<&str> = stderr.lines().filter(is_kept).collect();
    ToolError::Failed { command, stderr: kept.join("\n").trim_end().to_owned() }
}

impl Drop for TrialWorktree<'_> {
    fn drop(&mut self) {
        self.record.remove(self.repository, Force::Yes).unwrap_or_else(
            |left| warn!(path = %self.record.path.display(), %left, "a trial worktree could not be removed"),
        );
    }
}

fn add(repository: &Repository, path: &Path, commit: &str, with_files: bool) -> Result<(), ToolError> {
    // The user's hooks are for merges. This is not the user's checkout.
    let git = repository.git().with_config("core.hooksPath=/dev/null");
    let how = if with_files { "--checkout" } else { "--no-checkout" };
    let args = ["worktree", "add", "--quiet", "--detach", how, "--"].map(AsRef::as_ref);
    git.change(&[&args[..], &[path.as_os_str(), commit.as_ref()]].concat()).map(drop)
}

/// Makes the checkout sparse, without files. The settings go with each call, because git would write
/// configured ones into the user's configuration.
fn without_files(git: Git, worktree: &Worktree) -> Result<Git, OperationCause> {
    let patterns = worktree.git_dir.join("info/sparse-checkout");
    let write = || -> io::Result<()> {
        fs::create_dir_all(worktree.git_dir.join("info"))?;
        fs::write(&patterns, "!/*\n")
    };
    write().map_err(|source| OperationCause::Write { path: patterns.clone(), source })?;
    let settings = ["core.sparseCheckout=true", "core.sparseCheckoutCone=false", "index.sparse=false"];
    let git = settings.into_iter().fold(git, Git::with_config);
    git.change(&["read-tree", "-m", "-u", "HEAD"])?;
    Ok(git)
}

fn has_hooks(repository: &Repository) -> Result<bool, ToolError> {
    let asked: Vec<String> =
        HOOKS.iter().flat_map(|hook| ["--git-path".into(), format!("hooks/{hook}")]).collect();
    let args: Vec<&str> = ["rev-parse"].into_iter().chain(asked.iter().map(String::as_str)).collect();
    let output = repository.git().read(&args)?;
    let runs = |path: &str| {
        let path = repository.root().join(path);
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    Ok(String::from_utf8_lossy(&output).lines().any(runs))
}

/// Whether directories of trial worktrees exist. Asks the file system only.
pub(crate) fn has_leftovers(repository: &Repository) -> bool {
    list_directories(repository).next().is_some()
}

fn list_directories(repository: &Repository) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(repository.root().join(WORKTREES)).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| is_trial(path))
}

fn is_trial(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(PREFIX))
}

/// Removes worktrees that a killed merge has left, and directories that git did not get to know.
pub(crate) fn remove_leftovers(repository: &Repository) -> Result<(), ToolError> {
    for record in list_records(repository)?.iter().filter(|record| is_trial(&record.path)) {
        record.remove(repository, Force::Yes)?;
    }
    for path in list_directories(repository) {
        fs::remove_dir_all(&path).unwrap_or_else(
            |left| warn!(path = %path.display(), %left, "the directory of a trial worktree could not be removed"),
        );
    }
    Ok(())
}
