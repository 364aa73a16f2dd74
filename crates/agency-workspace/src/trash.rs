//! Where work goes that a user discards: commits under `refs/agency/trash/`.
//!
//! Nothing is removed here, and neither the user's index nor any branch is touched.
//!
//! A kept workspace is one commit. Its tree is the directory with untracked files, without
//! ignored ones. Its first parent is `HEAD`; the message names the index and the branch, whose
//! commits are parents too, so that all of it stays reachable.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use crate::checkout::uncommitted;
use crate::git::{Git, GitError};
use crate::name::WorkspaceName;
use crate::record::{Record, Worktree};
use crate::remove::RemoveCause;
use crate::repository::{Repository, text};
use crate::state::Found;

/// The user may have no name configured, and these commits are not theirs.
const WHO: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "Agency"),
    ("GIT_AUTHOR_EMAIL", "agency@localhost"),
    ("GIT_COMMITTER_NAME", "Agency"),
    ("GIT_COMMITTER_EMAIL", "agency@localhost"),
];

/// Keeps all there is of a workspace. None if there is nothing.
pub(crate) fn keep(
    repository: &Repository,
    name: &WorkspaceName,
    found: &Found,
) -> Result<Option<String>, RemoveCause> {
    let head = found.record.as_ref().and_then(|record| record.head.clone()).or(found.tip.clone());
    let contents = match (&found.worktree, &head) {
        (Some(worktree), _) => Contents::of_worktree(repository, worktree, head.as_deref())?,
        (None, Some(head)) => Contents::of_commit(repository, head)?,
        (None, None) => return Ok(None),
    };
    let message = described(name, found, &contents);
    let parents = [head.as_deref(), contents.index.as_deref(), found.tip.as_deref()];
    let commit = commit_tree(
        repository,
        &contents.tree,
        &parents.into_iter().flatten().collect::<Vec<_>>(),
        &message,
    )?;
    Ok(keep_commit(repository, name, &commit).map(Some)?)
}

/// Gives a commit a name in the trash.
pub(crate) fn keep_commit(
    repository: &Repository,
    name: &WorkspaceName,
    commit: &str,
) -> Result<String, GitError> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut at_ms = since_1970.as_millis();
    loop {
        let reference = format!("refs/agency/trash/{name}-{at_ms}");
        // The empty old value: nothing that is already kept may be replaced.
        match repository.git().change(&["update-ref", &reference, commit, ""]) {
            Err(err) if err.says("reference already exists") => at_ms += 1,
            kept => return kept.map(|_| reference),
        }
    }
}

struct Contents {
    tree: String,
    /// A commit of what was staged, if that is something else than `HEAD` and the directory.
    index: Option<String>,
}

impl Contents {
    fn of_commit(repository: &Repository, commit: &str) -> Result<Self, GitError> {
        Ok(Self { tree: tree_of(repository, commit)?, index: None })
    }

    fn of_worktree(
        repository: &Repository,
        worktree: &Worktree,
        head: Option<&str>,
    ) -> Result<Self, RemoveCause> {
        let unwritable = |source| RemoveCause::Index { path: worktree.git_dir.clone(), source };
        let scratch = scratch_index(worktree).map_err(unwritable)?;
        let git = worktree.git(repository).with_variable("GIT_INDEX_FILE", scratch.path().join("index"));
        let staged = match git.change(&["write-tree"]) {
            // In the middle of a merge there is no tree of the index; the files have the markers.
            Err(GitError::Failed { .. }) => None,
            tree => Some(tree.map(text)?),
        };
        add_everything(&git)?;
        refuse_nested_repositories(repository, &git, worktree, head)?;
        let tree = git.change(&["write-tree"]).map(text)?;
        let head_tree = head.map(|head| tree_of(repository, head)).transpose()?;
        let staged = staged.filter(|staged| *staged != tree && Some(staged) != head_tree.as_ref());
        let parents: Vec<&str> = head.into_iter().collect();
        let index = staged
            .map(|staged| commit_tree(repository, &staged, &parents, "agency: the index"))
            .transpose()?;
        Ok(Self { tree, index })
    }
}

/// A copy, because it knows which files need not be read again. It lies in git's directory of the
/// worktree, where a split index finds its other half.
fn scratch_index(worktree: &Worktree) -> io::Result<TempDir> {
    let scratch = tempfile::Builder::new().prefix("agency-").tempdir_in(&worktree.git_dir)?;
    match fs::copy(worktree.git_dir.join("index"), scratch.path().join("index")) {
        // A worktree that git was killed in while making it has none yet.
        Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(scratch),
        copied => copied.map(|_| scratch),
    }
}

fn add_everything(git: &Git) -> Result<(), GitError> {
    let git = git.clone().with_config("core.safecrlf=false").with_config("advice.addEmbeddedRepo=false");
    let sparse =
        git.maybe(&["config", "--bool", "core.sparseCheckout"])?.is_some_and(|sparse| sparse == "true");
    let args: &[&str] =
        if sparse { &["add", "--all", "--sparse", "--", ":/"] } else { &["add", "--all", "--", ":/"] };
    git.change(args).map(drop)
}

/// A repository inside the workspace is only a commit id to git: its files and its own commits
/// would be gone. Submodules that hold nothing of their own may go.
fn refuse_nested_repositories(
    repository: &Repository,
    git: &Git,
    worktree: &Worktree,
    head: Option<&str>,
) -> Result<(), RemoveCause> {
    let mut with_work = Vec::new();
    for (commit, path) in gitlinks(git)? {
        let inside = worktree.path.join(&path);
        if inside.join(".git").exists() && !is_spare(repository, &inside, head, &commit, &path)? {
            with_work.push(path);
        }
    }
    if with_work.is_empty() { Ok(()) } else { Err(RemoveCause::NestedRepositories { paths: with_work }) }
}

pub(crate) fn gitlinks(git: &Git) -> Result<Vec<(String, PathBuf)>, GitError> {
    let listed = git.read(&["ls-files", "--stage", "-z", "--", ":/"])?;
    let entries = listed.split(|byte| *byte == 0).filter_map(|entry| {
        // `160000 <commit> 0\t<path>`
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        let commit = entry[..tab].strip_prefix(b"160000 ")?.split(|byte| *byte == b' ').next()?;
        let path = Path::new(OsStr::from_bytes(&entry[tab + 1..])).to_owned();
        Some((String::from_utf8_lossy(commit).into_owned(), path))
    });
    Ok(entries.collect())
}

/// A submodule as `head` has it, clean, with every commit on a server.
fn is_spare(
    repository: &Repository,
    inside: &Path,
    head: Option<&str>,
    commit: &str,
    path: &Path,
) -> Result<bool, GitError> {
    let Some(head) = head else { return Ok(false) };
    let mut entry = OsString::from(format!("{head}:"));
    entry.push(path);
    let recorded =
        repository.git().maybe(&["rev-parse".as_ref(), "--verify".as_ref(), "--quiet".as_ref(), &*entry])?;
    let git = Git::discovering(repository.environment(), inside);
    let own = git.line(&["rev-list", "--count", "HEAD", "--branches", "--not", "--remotes"])?;
    Ok(recorded.is_some_and(|recorded| recorded == commit)
        && own == "0"
        && uncommitted(&git, &[])?.is_empty())
}

fn tree_of(repository: &Repository, commit: &str) -> Result<String, GitError> {
    repository.git().line(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).map(text)
}

fn commit_tree(
    repository: &Repository,
    tree: &str,
    parents: &[&str],
    message: &str,
) -> Result<String, GitError> {
    let git = WHO.iter().fold(repository.git(), |git, (variable, who)| git.with_variable(variable, *who));
    let mut args = vec!["commit-tree", tree, "-m", message];
    let mut known: Vec<&str> = Vec::new();
    for parent in parents {
        if !known.contains(parent) {
            known.push(parent);
            args.extend(["-p", parent]);
        }
    }
    git.change(&args).map(text)
}

/// For the one who brings it back.
fn described(name: &WorkspaceName, found: &Found, contents: &Contents) -> String {
    let head = found.record.as_ref().map(|record| match &record.branch {
        Some(branch) => format!("refs/heads/{branch}"),
        None => Record::detached_head(record).unwrap_or_default().to_owned(),
    });
    let branch = found.tip.as_ref().map(|tip| format!("{} {tip}", name.branch()));
    let mut message = format!("agency: workspace {name}, as it was removed\n\nAgency-Workspace: {name}\n");
    for (key, value) in [("Head", head), ("Index", contents.index.clone()), ("Branch", branch)] {
        if let Some(value) = value {
            message.push_str(&format!("Agency-{key}: {value}\n"));
        }
    }
    message
}
