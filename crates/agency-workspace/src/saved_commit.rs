//! A commit that holds a whole workspace: its files, its index, its `HEAD` and its branch.
//!
//! The trash and the snapshots give such commits names.
//!
//! The tree is the directory with untracked files, without ignored ones. The first parent is `HEAD`. Trailers
//! in the message name the rest, whose commits are parents too, so that everything stays reachable.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::{OperationCause, RemoveCause};
use crate::git::Git;
use crate::git_workspace::GitWorkspace;
use crate::name::WorkspaceName;
use crate::repository::{Repository, commit_tree, tree_of};
use crate::temp_index::TempIndex;
use crate::tool::ToolError;
use crate::uncommitted::uncommitted_files;
use crate::worktree::{Worktree, WorktreeRecord};

/// The trailers in the message of a saved commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Trailers {
    pub(crate) workspace: Option<WorkspaceName>,
    /// `refs/heads/…`, or a commit where `HEAD` was detached.
    pub(crate) head: Option<String>,
    /// A commit of the index, if it differed from `HEAD`.
    pub(crate) index: Option<String>,
    /// A commit of the directory with ignored files.
    pub(crate) ignored: Option<String>,
    /// The workspace's own branch, and its commit.
    pub(crate) branch: Option<(String, String)>,
    /// In a jj repository: the operation before the one that made this commit necessary.
    pub(crate) operation: Option<String>,
    pub(crate) label: Option<String>,
}

impl Trailers {
    /// Reads the trailers of a commit, and its first parent: the `HEAD` at that time.
    pub(crate) fn read(repository: &Repository, commit: &str) -> Result<(Self, Option<String>), ToolError> {
        let output = repository.git().read(&["log", "-1", "--format=%P%x00%B", commit])?;
        let output = String::from_utf8_lossy(&output).into_owned();
        let (parents, message) = output.split_once('\0').unwrap_or_default();
        let head = parents.split(' ').next().filter(|head| !head.is_empty()).map(str::to_owned);
        Ok((Self::parse(message), head))
    }

    pub(crate) fn parse(message: &str) -> Self {
        let lines = message.lines().filter_map(|line| line.strip_prefix("Agency-")?.split_once(": "));
        let mut values: HashMap<&str, &str> = lines.collect();
        let mut take = |key| values.remove(key).map(str::to_owned);
        Self {
            workspace: take("Workspace").and_then(|name| name.parse().ok()),
            head: take("Head"),
            index: take("Index"),
            ignored: take("Ignored"),
            branch: take("Branch").and_then(|branch| {
                branch.split_once(' ').map(|(name, tip)| (name.to_owned(), tip.to_owned()))
            }),
            operation: take("Operation"),
            label: take("Label"),
        }
    }

    fn message(&self, subject: &str) -> String {
        let workspace = self.workspace.as_ref().map(WorkspaceName::to_string);
        let branch = self.branch.as_ref().map(|(name, tip)| format!("{name} {tip}"));
        // A trailer has one line.
        let label = self.label.as_ref().map(|label| label.split_whitespace().collect::<Vec<_>>().join(" "));
        let trailers = [
            ("Workspace", workspace),
            ("Head", self.head.clone()),
            ("Index", self.index.clone()),
            ("Ignored", self.ignored.clone()),
            ("Branch", branch),
            ("Operation", self.operation.clone()),
            ("Label", label),
        ];
        let lines =
            trailers.into_iter().filter_map(|(key, value)| Some(format!("Agency-{key}: {}\n", value?)));
        format!("{subject}\n\n{}", lines.collect::<String>())
    }
}

/// The files of a workspace as git objects.
#[derive(Debug, Clone, Default)]
pub(crate) struct Contents {
    pub(crate) tree: String,
    pub(crate) head: Option<String>,
    /// See [`Trailers::index`].
    pub(crate) index: Option<String>,
    /// See [`Trailers::ignored`].
    pub(crate) ignored: Option<String>,
    /// Messages about files that could not be read.
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ignored {
    Left,
    Saved,
}

impl Contents {
    pub(crate) fn of_commit(repository: &Repository, commit: &str) -> Result<Self, ToolError> {
        let tree = tree_of(repository, commit)?;
        Ok(Self { tree, head: Some(commit.to_owned()), ..Self::default() })
    }

    /// Reads everything, before a deletion. Refuses if anything cannot be saved.
    pub(crate) fn read_all(
        repository: &Repository,
        worktree: &Worktree,
        head: Option<&str>,
        ignored: Ignored,
    ) -> Result<Self, RemoveCause> {
        let unwritable = |source| RemoveCause::Index { path: worktree.git_dir.clone(), source };
        let temp_index =
            TempIndex::copy_of(worktree.git(repository), &worktree.git_dir).map_err(unwritable)?;
        let staged = temp_index.staged_tree()?;
        temp_index.add_all_files()?;
        refuse_nested_repositories(repository, temp_index.git(), worktree, head)?;
        Ok(Self::write(repository, &temp_index, head, staged, ignored)?)
    }

    /// Reads as much as possible, and returns the rest as warnings.
    pub(crate) fn read_readable(
        repository: &Repository,
        worktree: &Worktree,
        head: Option<&str>,
    ) -> Result<Self, OperationCause> {
        let temp_index = worktree.temp_index(repository)?;
        let staged = temp_index.staged_tree()?;
        let warnings = temp_index.add_readable_files()?;
        let found = Self::write(repository, &temp_index, head, staged, Ignored::Left)?;
        Ok(Self { warnings, ..found })
    }

    fn write(
        repository: &Repository,
        temp_index: &TempIndex,
        head: Option<&str>,
        staged: Option<String>,
        ignored: Ignored,
    ) -> Result<Self, ToolError> {
        let tree = temp_index.tree()?;
        let head_tree = head.map(|head| tree_of(repository, head)).transpose()?;
        let staged = staged.filter(|staged| Some(staged) != head_tree.as_ref());
        let parents: Vec<&str> = head.into_iter().collect();
        let commit = |tree: &str, what: &str| commit_tree(repository, tree, &parents, what);
        let index = staged.map(|staged| commit(&staged, "agency: the index")).transpose()?;
        let ignored = match ignored {
            Ignored::Left => None,
            Ignored::Saved => {
                temp_index.add_ignored_files()?;
                Some(temp_index.tree()?).filter(|with| *with != tree)
            }
        };
        let ignored = ignored.map(|with| commit(&with, "agency: with ignored files")).transpose()?;
        Ok(Self { tree, head: head.map(str::to_owned), index, ignored, warnings: Vec::new() })
    }

    /// Creates the commit that holds everything.
    pub(crate) fn save(
        &self,
        repository: &Repository,
        subject: &str,
        trailers: Trailers,
    ) -> Result<String, ToolError> {
        let trailers = Trailers { index: self.index.clone(), ignored: self.ignored.clone(), ..trailers };
        let tip = trailers.branch.as_ref().map(|(_, tip)| tip.as_str());
        let parents = [self.head.as_deref(), self.index.as_deref(), self.ignored.as_deref(), tip];
        let parents: Vec<&str> = parents.into_iter().flatten().collect();
        commit_tree(repository, &self.tree, &parents, &trailers.message(subject))
    }
}

/// Describes the `HEAD` and the branch of a worktree.
pub(crate) fn describe(name: &WorkspaceName, found: &GitWorkspace) -> Trailers {
    let head = found.record.as_ref().map(|record| match &record.branch {
        Some(branch) => format!("refs/heads/{branch}"),
        None => WorktreeRecord::detached_head(record).unwrap_or_default().to_owned(),
    });
    let branch = found.tip.as_ref().map(|tip| (name.branch(), tip.clone()));
    Trailers { workspace: Some(name.clone()), head, branch, ..Trailers::default() }
}

/// Refuses nested repositories: git stores only their commit ids, so their files and commits would be lost.
/// Accepts submodules that hold nothing of their own.
fn refuse_nested_repositories(
    repository: &Repository,
    git: &Git,
    worktree: &Worktree,
    head: Option<&str>,
) -> Result<(), RemoveCause> {
    let mut with_work = Vec::new();
    for (commit, path) in gitlinks(git)? {
        let inside = worktree.path.join(&path);
        if inside.join(".git").exists() && !is_disposable(repository, &inside, head, &commit, &path)? {
            with_work.push(path);
        }
    }
    if with_work.is_empty() { Ok(()) } else { Err(RemoveCause::NestedRepositories { paths: with_work }) }
}

pub(crate) fn gitlinks(git: &Git) -> Result<Vec<(String, PathBuf)>, ToolError> {
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

/// Whether a submodule is clean, at the commit that `head` has, and has every commit on a server.
fn is_disposable(
    repository: &Repository,
    inside: &Path,
    head: Option<&str>,
    commit: &str,
    path: &Path,
) -> Result<bool, ToolError> {
    let Some(head) = head else { return Ok(false) };
    let mut entry = OsString::from(format!("{head}:"));
    entry.push(path);
    let recorded = repository.git().read_optional(&[
        "rev-parse".as_ref(),
        "--verify".as_ref(),
        "--quiet".as_ref(),
        &*entry,
    ])?;
    let git = Git::discovering(repository.environment(), inside);
    let own = git.read_line(&["rev-list", "--count", "HEAD", "--branches", "--not", "--remotes"])?;
    Ok(recorded.is_some_and(|recorded| recorded == commit)
        && own == "0"
        && uncommitted_files(&git, &[])?.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_are_parsed_as_they_were_written() {
        let trailers = Trailers {
            workspace: Some("1-fix".parse().unwrap()),
            head: Some("refs/heads/agency/1-fix".into()),
            ignored: Some("12ab".into()),
            branch: Some(("agency/1-fix".into(), "34cd".into())),
            label: Some("turn 3".into()),
            ..Trailers::default()
        };
        assert_eq!(Trailers::parse(&trailers.message("agency: workspace 1-fix")), trailers);
        assert_eq!(Trailers::parse("another message"), Trailers::default());
        let long = Trailers { label: Some("two\nlines\nAgency-Head: x".into()), ..Trailers::default() };
        assert_eq!(Trailers::parse(&long.message("s")).label.unwrap(), "two lines Agency-Head: x");
    }
}
