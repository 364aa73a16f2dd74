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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Compare,
    Snapshot,
    Restore,
    Commit,
    Sync,
    Merge,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} workspace {workspace}")]
pub struct OperationError {
    pub operation: Operation,
    pub workspace: WorkspaceName,
    #[source]
    pub cause: OperationCause,
}

#[derive(Debug, thiserror::Error)]
pub enum OperationCause {
    #[error("{} is a plain directory: it has no versions", path.display())]
    Plain { path: PathBuf },
    #[error("{}", absence(path, *presence))]
    NotReady { path: PathBuf, presence: Presence },
    #[error("there is no branch, tag or commit `{base}`")]
    BaseMissing { base: String },
    #[error("there is no local branch `{branch}` to merge into")]
    TargetMissing { branch: String },
    #[error("`{branch}` is its own branch")]
    OwnBranch { branch: String },
    #[error("its base {base} is a branch of a server, and no local branch follows it")]
    RemoteBase { base: String },
    #[error("the main checkout is on no branch that could be merged into")]
    NoCurrentBranch,
    #[error("there is no bookmark, tag or commit `{base}`")]
    RevisionMissing { base: String },
    #[error("there is no bookmark `{bookmark}` to merge into")]
    BookmarkMissing { bookmark: String },
    #[error("its own commits have conflicts that nobody has resolved: {}", shown(files))]
    Unresolved { files: Vec<PathBuf> },
    #[error("no bookmark is below your @, so there is none to merge into")]
    NoBookmark,
    #[error("the bookmark {bookmark} stands on several commits at once")]
    BookmarkConflicted { bookmark: String },
    #[error("there is no snapshot {number} of it")]
    SnapshotMissing { number: u64 },
    #[error("the trash has no `{reference}`")]
    TrashMissing { reference: String },
    #[error("{}", conflict(with, files))]
    Conflicts { with: String, files: Vec<PathBuf> },
    #[error("{0}")]
    HasWork(WorkAtRisk),
    #[error("{target} would also get {}", listed(commits))]
    UnfinishedCommits {
        target: String,
        commits: Vec<UnfinishedCommit>,
        /// Whether a rebase would leave them out.
        leaves_out: bool,
    },
    #[error("{}", in_the_way(files))]
    InTheWay { files: Vec<PathBuf> },
    #[error("{branch} is checked out in {} with changes of its own: {}", path.display(), shown(files))]
    TargetDirty { branch: String, path: PathBuf, files: Vec<PathBuf> },
    #[error("files that git does not track are in the way in {}: {}", path.display(), shown(files))]
    TargetBlocked { path: PathBuf, files: Vec<PathBuf> },
    #[error("{branch} was moved by somebody else meanwhile")]
    TargetMoved { branch: String },
    #[error("{} is on {} and not on its own branch {branch}", path.display(), head.as_deref().unwrap_or("no branch"))]
    OtherBranch { path: PathBuf, head: Option<String>, branch: String },
    #[error("{what} is under way in {}", path.display())]
    Busy { path: PathBuf, what: &'static str },
    #[error("{target} has all of it already")]
    NothingNew { target: String },
    #[error("{target} has {commits} commits that the workspace does not have")]
    NotFastForward { target: String, commits: u64 },
    #[error("{} is taken by something else", path.display())]
    PathTaken { path: PathBuf },
    #[error("the branch {branch} exists already, with other commits")]
    BranchExists { branch: String },
    #[error("an earlier merge into {branch} was cut off, and {} was changed since: {}", path.display(), shown(files))]
    InterruptedMerge { branch: String, path: PathBuf, files: Vec<PathBuf> },
    #[error("files that were just being written may be left in {}, and could not be put back", path.display())]
    RecoveryFailed {
        path: PathBuf,
        #[source]
        left: Box<OperationCause>,
    },
    #[error("{} is as before; what was there when the merge failed is kept as {kept}", path.display())]
    RolledBack { path: PathBuf, kept: String, source: Box<OperationCause> },
    #[error("{branch} may have the merge already: that could not be settled")]
    MergeUncertain { branch: String, source: ToolError },
    #[error("it is kept by {kept}, and this project is used with {used}")]
    OtherVcs { kept: &'static str, used: &'static str },
    #[error("cannot write in {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Save(#[from] RemoveCause),
    #[error(transparent)]
    Create(Box<CreateCause>),
    #[error(transparent)]
    Git(#[from] ToolError),
}

impl OperationError {
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
                Some("starting the task makes the directory again from its branch".into())
            }
            OperationCause::NotReady { .. } => None,
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
            OperationCause::HasWork(_) => Some("commit them in the workspace first".into()),
            OperationCause::InTheWay { .. } => Some("commit them, or move them away".into()),
            OperationCause::TargetDirty { path, .. } => {
                Some(format!("commit or stash them there: git -C '{}' stash", path.display()))
            }
            OperationCause::TargetBlocked { .. } => Some("move them away".into()),
            OperationCause::TargetMoved { .. } => Some("try again".into()),
            OperationCause::OtherBranch { path, branch, .. } => {
                Some(format!("run: git -C '{}' switch {branch}", path.display()))
            }
            OperationCause::Busy { .. } => Some("finish or abort it there".into()),
            OperationCause::NothingNew { .. } => None,
            OperationCause::NotFastForward { .. } => {
                Some(format!("`agency sync {workspace}` brings them in, or merge without --ff"))
            }
            OperationCause::PathTaken { .. } => Some("move it away; nothing in it was touched".into()),
            OperationCause::BranchExists { branch } => {
                Some(format!("look at it with `git log {branch}`, then rename or delete it"))
            }
            OperationCause::InterruptedMerge { path, .. } => {
                Some(format!("commit or stash what is yours there: git -C '{}' status", path.display()))
            }
            OperationCause::RecoveryFailed { path, left } => left.hint(workspace).or_else(|| {
                Some(format!(
                    "the next merge or sync tries again; git -C '{}' status shows them",
                    path.display()
                ))
            }),
            OperationCause::RolledBack { kept, source, .. } => {
                source.hint(workspace).or_else(|| Some(format!("look at it with: git show {kept}")))
            }
            OperationCause::MergeUncertain { branch, .. } => {
                Some(format!("look at {branch}; the next merge, or a restart of the daemon, settles it"))
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
        })
    }
}

fn absence(path: &Path, presence: Presence) -> String {
    let path = path.display();
    match presence {
        Presence::Ready => format!("{path} is ready"),
        Presence::HalfMade => format!("{path} is only half made"),
        Presence::DirectoryGone => format!("its directory {path} is gone"),
        Presence::NotOurs => format!("{path} is not a workspace of this project"),
        Presence::Absent => format!("there is no {path}"),
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
        [] => "files that no commit holds are in the way".into(),
        files => format!("files that no commit holds are in the way: {}", shown(files)),
    }
}

pub(crate) fn shown(files: &[PathBuf]) -> String {
    let mut named: Vec<_> = files.iter().take(MOST_NAMED).map(|file| file.display().to_string()).collect();
    if files.len() > MOST_NAMED {
        named.push(format!("and {} more", files.len() - MOST_NAMED));
    }
    named.join(", ")
}

#[derive(Debug, thiserror::Error)]
#[error("cannot remove workspace {workspace}")]
pub struct RemoveError {
    pub workspace: WorkspaceName,
    #[source]
    pub cause: RemoveCause,
}

#[derive(Debug, thiserror::Error)]
pub enum RemoveCause {
    #[error("{0}")]
    HasWork(WorkAtRisk),
    #[error("{} is not a worktree that git knows of this repository", path.display())]
    NotOurs { path: PathBuf },
    #[error("its worktree is locked: {reason}")]
    Locked { path: PathBuf, reason: String },
    #[error("its branch {branch} is checked out in {}", path.display())]
    BranchInUse { branch: String, path: PathBuf },
    #[error("git cannot keep the repositories inside it: {}", shown(paths))]
    NestedRepositories { paths: Vec<PathBuf> },
    #[error("cannot copy the index in {}", path.display())]
    Index { path: PathBuf, source: io::Error },
    #[error("it could not be removed completely")]
    Unfinished { trash_ref: Option<String>, source: ToolError },
    #[error(transparent)]
    Unreadable(Box<OperationCause>),
    #[error(transparent)]
    Git(#[from] ToolError),
}

impl RemoveError {
    pub fn hint(&self) -> Option<String> {
        self.cause.hint()
    }
}

impl RemoveCause {
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            RemoveCause::HasWork(work) => Some(work.hint()),
            RemoveCause::NotOurs { path } => Some(format!(
                "if the repository was moved, run: git worktree repair '{0}'; otherwise delete {0} yourself",
                path.display()
            )),
            RemoveCause::Locked { path, .. } => {
                Some(format!("run: git worktree unlock '{}'", path.display()))
            }
            RemoveCause::BranchInUse { .. } => Some("switch to another branch there".into()),
            RemoveCause::NestedRepositories { .. } => {
                Some("push what they hold and delete them, or move them somewhere else".into())
            }
            RemoveCause::Unfinished { trash_ref, source } => trash_ref
                .as_ref()
                .map(|kept| format!("everything in it is kept as {kept}"))
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
