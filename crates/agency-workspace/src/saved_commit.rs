//! A commit that holds a whole workspace: its files, its index, its `HEAD` and its branch.
//!
//! The trash and the snapshots give such commits names.
//!
//! The tree is the directory with untracked files, without ignored ones. The first parent is `HEAD`. Trailers
//! in the message name the rest, whose commits are parents too, so that everything stays reachable.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::details::{DetailsSource, OwnIndex};
use crate::error::{OperationCause, RemoveCause};
use crate::git::Git;
use crate::git_workspace::GitWorkspace;
use crate::ignored::{IgnoredFiles, ignored_paths};
use crate::index_entries::{IndexEntry, gitlinks, index_entries};
use crate::name::WorkspaceName;
use crate::repository::{Repository, commit_tree, tree_of};
use crate::restore_details::Details;
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
    /// A commit with what a tree does not hold; see `details`. Earlier versions did not write it.
    pub(crate) details: Option<String>,
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

    /// Returns None for a commit of an earlier version.
    pub(crate) fn read_details(&self, repository: &Repository) -> Result<Option<Details>, ToolError> {
        self.details.as_ref().map(|details| Details::read(repository, details)).transpose()
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
            details: take("Details"),
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
            ("Details", self.details.clone()),
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
    /// See [`Trailers::details`].
    pub(crate) details: Option<String>,
    /// Messages about files that could not be read.
    pub(crate) warnings: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ignored {
    Left,
    Saved,
}

/// How much to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completeness {
    /// The files that a diff shows.
    Trees,
    /// All that a restore needs.
    WithDetails,
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
        let reading = Reading::of_all(repository, worktree, head)?;
        Ok(reading.write(ignored, Completeness::WithDetails)?)
    }

    /// Checks whether [`Self::read_all`] would refuse. The next call then needs not read the files again.
    pub(crate) fn check_readable(
        repository: &Repository,
        worktree: &Worktree,
        head: Option<&str>,
    ) -> Result<(), RemoveCause> {
        let reading = Reading::of_all(repository, worktree, head)?;
        let kept = reading.temp_index.keep_for(&worktree.git_dir);
        kept.map_err(|source| RemoveCause::Index { path: worktree.git_dir.clone(), source })
    }

    /// Reads as much as possible, and returns the rest as warnings.
    pub(crate) fn read_readable(
        repository: &Repository,
        worktree: &Worktree,
        head: Option<&str>,
        completeness: Completeness,
    ) -> Result<Self, OperationCause> {
        let reading = Reading::start(repository, worktree, head).map_err(|cause| match cause {
            ReadingError::Index(source) => OperationCause::Write { path: worktree.git_dir.clone(), source },
            ReadingError::Git(err) => err.into(),
        })?;
        let warnings = reading.temp_index.add_readable_files()?;
        Ok(Self { warnings, ..reading.write(Ignored::Left, completeness)? })
    }

    /// Creates the commit that holds everything.
    pub(crate) fn save(
        &self,
        repository: &Repository,
        subject: &str,
        trailers: Trailers,
    ) -> Result<String, ToolError> {
        let Self { index, ignored, details, .. } = self.clone();
        let trailers = Trailers { index, ignored, details, ..trailers };
        let tip = trailers.branch.as_ref().map(|(_, tip)| tip.as_str());
        let others = [&self.index, &self.ignored].map(Option::as_deref);
        let parents = [&[self.head.as_deref()][..], &others, &[tip, self.details.as_deref()]].concat();
        let parents: Vec<&str> = parents.into_iter().flatten().collect();
        commit_tree(repository, &self.tree, &parents, &trailers.message(subject))
    }
}

/// The content of a worktree while it is read.
struct Reading<'a> {
    repository: &'a Repository,
    worktree: &'a Worktree,
    head: Option<&'a str>,
    /// The entries of the worktree's own index.
    entries: Vec<IndexEntry>,
    /// The tree of the index, without files in conflict.
    staged: String,
    temp_index: TempIndex,
}

enum ReadingError {
    Index(io::Error),
    Git(ToolError),
}

impl From<ToolError> for ReadingError {
    fn from(err: ToolError) -> Self {
        Self::Git(err)
    }
}

impl<'a> Reading<'a> {
    fn start(
        repository: &'a Repository,
        worktree: &'a Worktree,
        head: Option<&'a str>,
    ) -> Result<Self, ReadingError> {
        let entries = index_entries(&worktree.git(repository))?;
        let copy =
            || TempIndex::copy_of(worktree.git(repository), &worktree.git_dir).map_err(ReadingError::Index);
        let temp_index = copy()?;
        let staged = if entries.iter().any(|entry| entry.stage != 0) {
            let settled = copy()?;
            settled
                .remove_entries(entries.iter().filter(|entry| entry.stage != 0).map(|entry| &*entry.path))?;
            settled.tree()?
        } else {
            temp_index.tree()?
        };
        let kept = TempIndex::kept_for(worktree.git(repository), &worktree.git_dir);
        let temp_index = kept.map_err(ReadingError::Index)?.unwrap_or(temp_index);
        temp_index.show_hidden_files(&worktree.path, &entries)?;
        Ok(Self { repository, worktree, head, entries, staged, temp_index })
    }

    /// Reads everything. Refuses if anything cannot be saved.
    fn of_all(
        repository: &'a Repository,
        worktree: &'a Worktree,
        head: Option<&'a str>,
    ) -> Result<Self, RemoveCause> {
        let reading = Self::start(repository, worktree, head).map_err(|cause| match cause {
            ReadingError::Index(source) => RemoveCause::Index { path: worktree.git_dir.clone(), source },
            ReadingError::Git(err) => err.into(),
        })?;
        reading.temp_index.add_all_files()?;
        refuse_nested_repositories(repository, reading.temp_index.git(), worktree, head)?;
        Ok(reading)
    }

    /// Writes what the index has now.
    fn write(self, ignored: Ignored, completeness: Completeness) -> Result<Contents, ToolError> {
        let Self { repository, head, temp_index, .. } = &self;
        let tree = temp_index.tree()?;
        let head_tree = head.map(|head| tree_of(repository, head)).transpose()?;
        let staged = Some(&self.staged).filter(|staged| Some(*staged) != head_tree.as_ref());
        let parents: Vec<&str> = head.iter().copied().collect();
        let commit = |tree: &str, what: &str| commit_tree(repository, tree, &parents, what);
        let index = staged.map(|staged| commit(staged, "agency: the index")).transpose()?;
        let ignored_paths = match completeness {
            Completeness::Trees => Vec::new(),
            Completeness::WithDetails => ignored_paths(temp_index.git())?,
        };
        let ignored_tree = match ignored {
            Ignored::Left => None,
            Ignored::Saved => {
                temp_index.add_ignored_files()?;
                Some(temp_index.tree()?).filter(|with| *with != tree)
            }
        };
        let details = match completeness {
            Completeness::Trees => None,
            Completeness::WithDetails => Some(self.save_details(ignored, ignored_paths)?),
        };
        let with_ignored =
            ignored_tree.map(|with| commit(&with, "agency: with ignored files")).transpose()?;
        let head = head.map(str::to_owned);
        Ok(Contents { tree, head, index, ignored: with_ignored, details, warnings: Vec::new() })
    }

    fn save_details(&self, ignored: Ignored, paths: Vec<PathBuf>) -> Result<String, ToolError> {
        let git = self.worktree.git(self.repository);
        let mut left_out = HashSet::from([PathBuf::from(".git")]);
        let nested = match ignored {
            Ignored::Left => {
                left_out.extend(paths);
                Vec::new()
            }
            Ignored::Saved => IgnoredFiles::find(&self.worktree.path, &paths).repositories(),
        };
        let links = gitlinks(self.temp_index.git())?.into_iter().map(|(_, path)| path);
        left_out.extend(links.filter(|link| !nested.contains(link)));
        let own = OwnIndex { git_dir: &self.worktree.git_dir, git: &git, entries: &self.entries };
        let source = DetailsSource {
            repository: self.repository,
            temp_index: &self.temp_index,
            root: &self.worktree.path,
            worktree: Some(own),
            left_out: &left_out,
            nested: &nested,
            only: None,
        };
        source.save()
    }
}

/// Saves the modes and the raw bytes of some tracked files.
pub(crate) fn save_details_of(
    repository: &Repository,
    worktree: &Worktree,
    files: &HashSet<PathBuf>,
) -> Result<String, OperationCause> {
    let temp_index = worktree.temp_index(repository)?;
    let (root, left_out) = (&*worktree.path, &HashSet::new());
    let only = Some(files);
    let source = DetailsSource {
        repository,
        temp_index: &temp_index,
        root,
        worktree: None,
        left_out,
        nested: &[],
        only,
    };
    Ok(source.save()?)
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
            details: Some("56ef".into()),
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
