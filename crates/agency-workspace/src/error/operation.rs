//! Why an operation on a workspace failed, in the words that a user reads.
//!
//! Covers operations on the work in a workspace, and removals, which fail for many of the same reasons.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::create::CreateCause;
use crate::name::WorkspaceName;
use crate::presence::Presence;
use crate::tool::ToolError;
use crate::unfinished_commit::UnfinishedCommit;
use crate::work::WorkAtRisk;

/// Error messages name up to this many files and count the rest.
const MOST_NAMED: usize = 5;

/// An operation on the work in a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Comparing it with its base or a snapshot.
    Compare,
    /// Taking or listing snapshots.
    Snapshot,
    /// Restoring a snapshot or a trash entry.
    Restore,
    /// Committing its work.
    Commit,
    /// Bringing new commits of the base in.
    Sync,
    /// Merging it into a branch.
    Merge,
    /// Taking a merge back.
    Unmerge,
}

/// An operation on a workspace failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} workspace {workspace}")]
pub struct OperationError {
    /// The operation.
    pub operation: Operation,
    /// The workspace.
    pub workspace: WorkspaceName,
    /// Why it failed.
    #[source]
    pub cause: OperationCause,
}

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub enum OperationCause {
    /// The project is a plain directory.
    #[error("{} is a plain directory without version control", path.display())]
    Plain {
        /// The path that the error is about.
        path: PathBuf,
    },
    /// There is no workspace to work in.
    #[error("{}", absence(path, *presence))]
    NotReady {
        /// The path that the error is about.
        path: PathBuf,
        /// How much of the workspace exists.
        presence: Presence,
    },
    /// jj has forgotten the workspace.
    #[error("jj has forgotten the workspace {}", path.display())]
    Forgotten {
        /// The path that the error is about.
        path: PathBuf,
    },
    /// The base does not exist.
    #[error("there is no branch, tag or commit `{base}`")]
    BaseMissing {
        /// The base as the caller named it.
        base: String,
    },
    /// The branch to merge into does not exist.
    #[error("there is no local branch `{branch}` to merge into")]
    TargetMissing {
        /// The branch.
        branch: String,
    },
    /// The target is the branch of the workspace itself.
    #[error("{branch} is the workspace's own branch")]
    OwnBranch {
        /// The branch.
        branch: String,
    },
    /// The base is a remote branch, and no local branch tracks it.
    #[error("its base {base} is a remote branch, and no local branch tracks it")]
    RemoteBase {
        /// The base as the caller named it.
        base: String,
    },
    /// The main checkout is on no branch.
    #[error("the main checkout is not on a branch, so there is none to merge into")]
    NoCurrentBranch,
    /// The base does not exist in jj.
    #[error("there is no bookmark, tag or commit `{base}`")]
    RevisionMissing {
        /// The base as the caller named it.
        base: String,
    },
    /// The bookmark to merge into does not exist.
    #[error("there is no bookmark `{bookmark}` to merge into")]
    BookmarkMissing {
        /// The bookmark.
        bookmark: String,
    },
    /// Commits of the workspace have conflicts.
    #[error("its own commits have unresolved conflicts: {}", shown(files))]
    Unresolved {
        /// The files, relative to the checkout.
        files: Vec<PathBuf>,
    },
    /// No bookmark to merge into was found.
    #[error("there is no bookmark below your @ to merge into")]
    NoBookmark,
    /// The bookmark is in conflict.
    #[error("the bookmark {bookmark} is in conflict: it points to several commits")]
    BookmarkConflicted {
        /// The bookmark.
        bookmark: String,
    },
    /// There is no such snapshot.
    #[error("it has no snapshot {number}")]
    SnapshotMissing {
        /// The number of the snapshot.
        number: u64,
    },
    /// There is no such trash entry.
    #[error("the trash has no `{reference}`")]
    TrashMissing {
        /// The hidden ref.
        reference: String,
    },
    /// The merge has conflicts.
    #[error("{}", conflict(with, files))]
    Conflicts {
        /// The branch or bookmark that it conflicts with.
        with: String,
        /// The files, relative to the checkout.
        files: Vec<PathBuf>,
    },
    /// There is uncommitted work.
    #[error("{0}")]
    HasWork(WorkAtRisk),
    /// The merge would include commits that are not finished.
    #[error("{target} would also get {}", listed(commits))]
    UnfinishedCommits {
        /// The branch or bookmark to merge into.
        target: String,
        /// The commits.
        commits: Vec<UnfinishedCommit>,
        /// Whether a rebase would leave them out.
        leaves_out: bool,
    },
    /// Uncommitted files would be overwritten.
    #[error("{}", in_the_way(files))]
    InTheWay {
        /// The files, relative to the checkout.
        files: Vec<PathBuf>,
    },
    /// The checkout of the target has changes.
    #[error("{branch} is checked out in {} with uncommitted changes: {}", path.display(), shown(files))]
    TargetDirty {
        /// The branch.
        branch: String,
        /// The path that the error is about.
        path: PathBuf,
        /// The files, relative to the checkout.
        files: Vec<PathBuf>,
    },
    /// Untracked files would be overwritten in the checkout of the target.
    #[error("untracked files are in the way in {}: {}", path.display(), shown(files))]
    TargetBlocked {
        /// The path that the error is about.
        path: PathBuf,
        /// The files, relative to the checkout.
        files: Vec<PathBuf>,
    },
    /// Agency has not merged the workspace, or the merge is too old to be known.
    #[error("Agency has no record of a merge")]
    NeverMerged,
    /// Other work contains the merge.
    #[error("{}", built_upon(branch, by))]
    BuiltUpon {
        /// The branch or bookmark that was merged into.
        branch: String,
        /// The branch that has the merge, or the target itself if it has moved on.
        by: String,
    },
    /// Another process moved the branch meanwhile.
    #[error("another process moved {branch} meanwhile")]
    TargetMoved {
        /// The branch.
        branch: String,
    },
    /// The workspace is on another branch.
    #[error("{} is on {} and not on its own branch {branch}", path.display(), head.as_deref().unwrap_or("no branch"))]
    OtherBranch {
        /// The path that the error is about.
        path: PathBuf,
        /// The branch that is checked out; None if `HEAD` is detached.
        head: Option<String>,
        /// The branch.
        branch: String,
    },
    /// A git operation is in progress.
    #[error("{what} is in progress in {}", path.display())]
    Busy {
        /// The path that the error is about.
        path: PathBuf,
        /// The operation, with its article.
        what: &'static str,
        /// The arguments of the git command that aborts it.
        abort: &'static str,
    },
    /// git reported success, but the branch did not move.
    #[error("git reported success, but {branch} did not get the merge")]
    NotMoved {
        /// The branch.
        branch: String,
    },
    /// There is nothing to merge.
    #[error("nothing to merge: it has no changes against {target}")]
    NothingNew {
        /// The branch or bookmark to merge into.
        target: String,
    },
    /// The target has commits of its own.
    #[error("{target} has {commits} commits that the workspace does not have")]
    NotFastForward {
        /// The branch or bookmark to merge into.
        target: String,
        /// The number of commits that the workspace lacks.
        commits: u64,
    },
    /// Something else exists at the path of the workspace.
    #[error("something else exists at {}", path.display())]
    PathTaken {
        /// The path that the error is about.
        path: PathBuf,
    },
    /// The branch exists with other commits.
    #[error("the branch {branch} exists already, with other commits")]
    BranchExists {
        /// The branch.
        branch: String,
    },
    /// The files are written, and some are not as they were saved.
    #[error("these files are not as they were saved: {}", shown(files))]
    NotRestored {
        /// The files, relative to the checkout.
        files: Vec<PathBuf>,
        /// The trash ref that holds the files from before.
        trash_ref: String,
    },
    /// An interrupted merge cannot be recovered, because the user has changed files since.
    #[error("an earlier merge into {branch} was interrupted, and {} has changed since: {}", path.display(), shown(files))]
    InterruptedMerge {
        /// The branch.
        branch: String,
        /// The path that the error is about.
        path: PathBuf,
        /// The files, relative to the checkout.
        files: Vec<PathBuf>,
    },
    /// The operation failed, and so did its recovery.
    #[error("some files in {} may be half written, and could not be restored", path.display())]
    RecoveryFailed {
        /// The path that the error is about.
        path: PathBuf,
        /// Why the recovery failed.
        #[source]
        left: Box<OperationCause>,
    },
    /// The merge failed, and the checkout was restored.
    #[error("{} is as before; its files at the time of the failure are saved as {trash_ref}", path.display())]
    RolledBack {
        /// The path that the error is about.
        path: PathBuf,
        /// The trash ref that holds the files of the failed merge.
        trash_ref: String,
        /// The error below.
        source: Box<OperationCause>,
    },
    /// It is not known whether the merge has happened.
    #[error("cannot tell whether {branch} has the merge")]
    MergeUncertain {
        /// The branch.
        branch: String,
        /// The error below.
        source: ToolError,
    },
    /// The entry was saved by another kind of project.
    #[error("it was saved with {saved_with}, and this project is used with {used_with}")]
    OtherVcs {
        /// How the entry was saved.
        saved_with: &'static str,
        /// How the project is used now.
        used_with: &'static str,
    },
    /// A file cannot be written.
    #[error("cannot write in {}", path.display())]
    Write {
        /// The path that the error is about.
        path: PathBuf,
        /// The error below.
        source: io::Error,
    },
    /// The present state could not be saved.
    #[error(transparent)]
    Save(#[from] RemoveCause),
    /// The workspace could not be created again.
    #[error(transparent)]
    Create(Box<CreateCause>),
    /// git or jj failed.
    #[error(transparent)]
    Git(#[from] ToolError),
}

impl OperationError {
    /// Returns a way out for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        self.cause.hint(&self.workspace)
    }
}

impl OperationCause {
    pub(crate) fn hint(&self, workspace: &WorkspaceName) -> Option<String> {
        match self {
            OperationCause::Plain { .. } => {
                Some("tasks in a git or jj repository have workspaces of their own".into())
            }
            OperationCause::NotReady { presence: Presence::DirectoryGone, .. } => {
                Some("start the task: that creates the directory again from its branch".into())
            }
            OperationCause::NotReady { presence: Presence::NotOurs, path } => Some(repair_hint(path)),
            OperationCause::NotReady { .. } => None,
            OperationCause::Forgotten { .. } => Some(format!(
                "`agency rm {workspace} --discard`, then `agency undo`: that makes it a workspace again, with all files"
            )),
            OperationCause::BaseMissing { .. } | OperationCause::RevisionMissing { .. } => {
                Some("set the task's base_branch to one that exists".into())
            }
            OperationCause::TargetMissing { .. }
            | OperationCause::OwnBranch { .. }
            | OperationCause::RemoteBase { .. }
            | OperationCause::NoCurrentBranch => Some("name a local branch with --into".into()),
            OperationCause::BookmarkMissing { bookmark } => {
                Some(format!("name another with --into, or make it: jj bookmark create {bookmark} -r COMMIT"))
            }
            OperationCause::Unresolved { .. } => {
                Some("nothing was changed; `jj resolve` in the workspace, or edit the files there".into())
            }
            OperationCause::NoBookmark => {
                Some("make one (`jj bookmark create main -r COMMIT`), or name one with --into".into())
            }
            OperationCause::BookmarkConflicted { bookmark } => Some(format!(
                "`jj bookmark list {bookmark}` shows them; choose: jj bookmark set {bookmark} -r COMMIT"
            )),
            OperationCause::SnapshotMissing { .. } | OperationCause::TrashMissing { .. } => None,
            OperationCause::Conflicts { with, .. } => Some(format!(
                "nothing was changed; merge {with} by hand in the workspace, or tell the agent to"
            )),
            OperationCause::UnfinishedCommits { commits, leaves_out, .. } => {
                let ways: Vec<String> = commits.iter().map(UnfinishedCommit::hint).collect();
                let without = format!(", or `agency merge {workspace} --rebase` leaves it out");
                let without = if *leaves_out { &without } else { "" };
                Some(format!("nothing was changed; {}{without}", ways.join(", ")))
            }
            OperationCause::HasWork(work) => {
                Some(format!("commit {} in the workspace first", work.pronoun()))
            }
            OperationCause::InTheWay { .. } => Some("commit them, or move them away".into()),
            OperationCause::TargetDirty { path, .. } => {
                Some(format!("commit or stash them there: git -C '{}' stash", path.display()))
            }
            OperationCause::TargetBlocked { .. } => Some("move them away".into()),
            OperationCause::NeverMerged => None,
            OperationCause::BuiltUpon { .. } => {
                Some("nothing was changed; make a commit that reverts it: git revert -m 1 COMMIT".into())
            }
            OperationCause::TargetMoved { .. } => Some("try again".into()),
            OperationCause::OtherBranch { path, branch, .. } => {
                Some(format!("run: git -C '{}' switch {branch}", path.display()))
            }
            OperationCause::Busy { path, abort, .. } => {
                Some(format!("finish it there, or abort it: git -C '{}' {abort}", path.display()))
            }
            OperationCause::NotMoved { branch } => {
                Some(format!("a setting of yours may prevent it: git config --get-regexp 'merge|{branch}'"))
            }
            OperationCause::NothingNew { .. } => None,
            OperationCause::NotFastForward { .. } => {
                Some(format!("`agency sync {workspace}` brings them in, or merge without --ff"))
            }
            OperationCause::PathTaken { .. } => Some("move it away; nothing in it was touched".into()),
            OperationCause::BranchExists { branch } => {
                Some(format!("look at it with `git log {branch}`, then rename or delete it"))
            }
            OperationCause::NotRestored { trash_ref, .. } => Some(format!(
                "another process may have written them; all files from before are in {trash_ref}"
            )),
            OperationCause::InterruptedMerge { path, .. } => {
                Some(format!("commit or stash your changes there: git -C '{}' status", path.display()))
            }
            OperationCause::RecoveryFailed { path, left } => left.hint(workspace).or_else(|| {
                Some(format!(
                    "the next merge or sync tries again; git -C '{}' status shows them",
                    path.display()
                ))
            }),
            OperationCause::RolledBack { trash_ref, source, .. } => {
                source.hint(workspace).or_else(|| Some(format!("look at it with: git show {trash_ref}")))
            }
            OperationCause::MergeUncertain { branch, .. } => {
                Some(format!("check {branch}; the next merge or a restart of the daemon finds out"))
            }
            OperationCause::OtherVcs { .. } | OperationCause::Write { .. } => None,
            OperationCause::Save(cause) => cause.hint(),
            OperationCause::Create(cause) => cause.hint(),
            OperationCause::Git(err) => err.hint(),
        }
    }
}

impl Operation {
    /// Wraps a cause, for `map_err`.
    pub(crate) fn failed(self, workspace: &WorkspaceName) -> impl Fn(OperationCause) -> OperationError {
        let workspace = workspace.clone();
        move |cause| OperationError { operation: self, workspace: workspace.clone(), cause }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Compare => "compare",
            Operation::Snapshot => "take a snapshot of",
            Operation::Restore => "restore",
            Operation::Commit => "commit the work in",
            Operation::Sync => "sync",
            Operation::Merge => "merge",
            Operation::Unmerge => "undo the merge of",
        })
    }
}

fn built_upon(branch: &str, by: &str) -> String {
    match branch == by {
        true => format!("{branch} has moved on since the merge"),
        false => format!("{by} has the merge, too"),
    }
}

fn absence(path: &Path, presence: Presence) -> String {
    let path = path.display();
    match presence {
        Presence::Ready => format!("{path} is ready"),
        Presence::HalfMade => format!("{path} is incomplete"),
        Presence::DirectoryGone => format!("its directory {path} is gone"),
        Presence::NotOurs => format!("{path} is not a workspace of this project"),
        Presence::Absent => format!("{path} does not exist"),
    }
}

/// Git's records hold the path of each worktree, which is wrong after the user has moved one.
fn repair_hint(path: &Path) -> String {
    format!("if the repository was moved, run: git worktree repair '{}'", path.display())
}

fn not_ours(path: &Path, in_jj: bool) -> String {
    let path = path.display();
    match in_jj {
        true => format!("jj does not know {path} as a workspace of this repository"),
        false => format!("git does not know {path} as a worktree of this repository"),
    }
}

fn conflict(with: &str, files: &[PathBuf]) -> String {
    match files {
        [file] => format!("{} conflicts with {with}", file.display()),
        files => format!("{} files conflict with {with}: {}", files.len(), shown(files)),
    }
}

fn listed(commits: &[UnfinishedCommit]) -> String {
    let named: Vec<String> = commits.iter().map(UnfinishedCommit::to_string).collect();
    named.join("; and ")
}

fn in_the_way(files: &[PathBuf]) -> String {
    match files {
        [] => "uncommitted files are in the way".into(),
        files => format!("uncommitted files are in the way: {}", shown(files)),
    }
}

pub(crate) fn shown(files: &[PathBuf]) -> String {
    let mut named: Vec<_> = files.iter().take(MOST_NAMED).map(|file| file.display().to_string()).collect();
    if files.len() > MOST_NAMED {
        named.push(format!("and {} more", files.len() - MOST_NAMED));
    }
    named.join(", ")
}

/// A workspace could not be removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot remove workspace {workspace}")]
pub struct RemoveError {
    /// The workspace.
    pub workspace: WorkspaceName,
    /// Why it failed.
    #[source]
    pub cause: RemoveCause,
}

/// Why a workspace could not be removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveCause {
    /// There is work that would be lost.
    #[error("{0}")]
    HasWork(WorkAtRisk),
    /// The directory is not a worktree of this repository.
    #[error("{}", not_ours(path, *in_jj))]
    NotOurs {
        /// The path that the error is about.
        path: PathBuf,
        /// Whether the project is used with jj.
        in_jj: bool,
    },
    /// The user has locked the worktree.
    #[error("its worktree is locked: {reason}")]
    Locked {
        /// The path that the error is about.
        path: PathBuf,
        /// The reason that the user gave.
        reason: String,
    },
    /// The branch is checked out elsewhere.
    #[error("its branch {branch} is checked out in {}", path.display())]
    BranchInUse {
        /// The branch.
        branch: String,
        /// The path that the error is about.
        path: PathBuf,
    },
    /// Nested repositories cannot be saved.
    #[error("git cannot save the repositories inside it: {}", shown(paths))]
    NestedRepositories {
        /// The nested repositories.
        paths: Vec<PathBuf>,
    },
    /// Repositories in ignored folders have commits that no server has.
    #[error("repositories in ignored folders have commits of their own: {}", shown(paths))]
    IgnoredRepositories {
        /// The repositories.
        paths: Vec<PathBuf>,
    },
    /// The index cannot be copied.
    #[error("cannot copy the index in {}", path.display())]
    Index {
        /// The path that the error is about.
        path: PathBuf,
        /// The error below.
        source: io::Error,
    },
    /// The removal stopped half-way.
    #[error("it could not be removed completely")]
    Unfinished {
        /// The trash ref that holds everything, if something was saved.
        trash_ref: Option<String>,
        /// The error below.
        source: ToolError,
    },
    /// The workspace could not be read.
    #[error(transparent)]
    Unreadable(Box<OperationCause>),
    /// git or jj failed.
    #[error(transparent)]
    Git(#[from] ToolError),
}

impl RemoveError {
    /// Returns a way out for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        self.cause.hint()
    }
}

impl RemoveCause {
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            RemoveCause::HasWork(work) => Some(work.hint()),
            RemoveCause::NotOurs { path, in_jj: false } => {
                Some(format!("{}; otherwise delete {} yourself", repair_hint(path), path.display()))
            }
            RemoveCause::NotOurs { path, in_jj: true } => Some(format!(
                "`jj workspace list` shows the workspaces that it knows; keep what you need of {0}, then delete it: rm -r '{0}'",
                path.display()
            )),
            RemoveCause::Locked { path, .. } => {
                Some(format!("run: git worktree unlock '{}'", path.display()))
            }
            RemoveCause::BranchInUse { .. } => Some("switch to another branch there".into()),
            RemoveCause::NestedRepositories { .. } => {
                Some("push their commits and delete them, or move them elsewhere".into())
            }
            RemoveCause::IgnoredRepositories { .. } => Some(
                "push their commits, set workspace.keep_ignored to save them too, or pass --discard".into(),
            ),
            RemoveCause::Unfinished { trash_ref, source } => trash_ref
                .as_ref()
                .map(|trash_ref| format!("everything in it is saved as {trash_ref}"))
                .or_else(|| source.hint()),
            RemoveCause::Index { .. } | RemoveCause::Unreadable(_) => None,
            RemoveCause::Git(err) => err.hint(),
        }
    }
}

impl From<OperationCause> for RemoveCause {
    fn from(cause: OperationCause) -> Self {
        match cause {
            OperationCause::Save(cause) => cause,
            OperationCause::Git(err) => RemoveCause::Git(err),
            cause => RemoveCause::Unreadable(Box::new(cause)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_files_are_counted_and_a_few_are_named() {
        let files: Vec<PathBuf> = (1..=7).map(|n| PathBuf::from(format!("f{n}"))).collect();
        assert_eq!(conflict("main", &files[..1]), "f1 conflicts with main");
        assert_eq!(conflict("main", &files), "7 files conflict with main: f1, f2, f3, f4, f5, and 2 more");
    }
}
