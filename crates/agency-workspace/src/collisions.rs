//! Which workspaces would conflict with their base or with each other, found out by merging their work, committed
//! or not, in the object store.
//!
//! Touches no checkout. Remembers what it has tried: nothing is merged twice, and a workspace that did not
//! change costs one look at its files.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tracing::debug;

use crate::jj;
use crate::kept::{commit_tree, tree_of};
use crate::name::WorkspaceName;
use crate::operation::{Operation, OperationCause, OperationError};
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::scratch::paths;
use crate::state::Found;
use crate::tool::ToolError;

/// Two that are equal stand for the same work, committed or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(u64);

impl Fingerprint {
    pub(crate) fn of(hash: u64) -> Self {
        Self(hash)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collision {
    pub workspace: WorkspaceName,
    pub with: With,
    pub files: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum With {
    /// The name of the base.
    Base(String),
    Workspace(WorkspaceName),
}

#[derive(Debug, thiserror::Error)]
#[error("cannot tell which workspaces of {} collide", root.display())]
pub struct CollisionsError {
    pub root: PathBuf,
    pub source: ToolError,
}

impl CollisionsError {
    pub fn hint(&self) -> Option<String> {
        self.source.hint()
    }
}

/// What was found out so far, for one project.
#[derive(Debug, Default)]
pub struct Radar {
    seen: HashMap<WorkspaceName, (Fingerprint, String)>,
    tried: HashMap<(String, String), Vec<PathBuf>>,
    merges: u64,
}

impl Radar {
    /// All collisions between these workspaces and with their bases (as in [`crate::state()`]). A workspace that
    /// cannot be read collides with nothing.
    pub fn look(
        &mut self,
        project: &Project,
        workspaces: &[(WorkspaceName, Option<String>)],
    ) -> Result<Vec<Collision>, CollisionsError> {
        let Some(repository) = project.store() else { return Ok(Vec::new()) };
        let mut work: Vec<(&WorkspaceName, Option<&str>, String)> = Vec::new();
        for (name, base) in workspaces {
            match self.commit_of(project, repository, name) {
                Ok(commit) => work.push((name, base.as_deref(), commit)),
                Err(err) => debug!(%name, %err, "a workspace is not compared with the others"),
            }
        }
        let found = self.compare(project, repository, &work);
        found.map_err(|source| CollisionsError { root: project.root().to_owned(), source })
    }

    /// How many merges were tried so far: what a look has cost.
    pub fn merges(&self) -> u64 {
        self.merges
    }

    /// A commit of all the work in a workspace, on nobody's branch.
    fn commit_of(
        &mut self,
        project: &Project,
        repository: &Repository,
        name: &WorkspaceName,
    ) -> Result<String, OperationError> {
        let fingerprint = fingerprint(project, name)?;
        if let Some((known, commit)) = self.seen.get(name)
            && *known == fingerprint
        {
            return Ok(commit.clone());
        }
        let made = || {
            let contents = project.contents(name)?;
            let head = contents.head.as_deref();
            if let Some(head) = head.filter(|_| contents.warnings.is_empty())
                && tree_of(repository, head)? == contents.tree
            {
                return Ok(head.to_owned());
            }
            let parents: Vec<&str> = head.into_iter().collect();
            Ok(commit_tree(repository, &contents.tree, &parents, "agency: work in progress")?)
        };
        let commit = made().map_err(Operation::Compare.failed(name))?;
        self.seen.insert(name.clone(), (fingerprint, commit.clone()));
        Ok(commit)
    }

    fn compare(
        &mut self,
        project: &Project,
        repository: &Repository,
        work: &[(&WorkspaceName, Option<&str>, String)],
    ) -> Result<Vec<Collision>, ToolError> {
        let before = std::mem::take(&mut self.tried);
        let mut found = Vec::new();
        for (at, (name, base, commit)) in work.iter().enumerate() {
            if let Some(tip) = project.tips(*base)?.first() {
                let with = With::Base(base.unwrap_or("HEAD").to_owned());
                let files = self.conflicts(repository, &before, tip, commit)?;
                found.push(Collision { workspace: (*name).clone(), with, files });
            }
            for (other, _, other_commit) in &work[at + 1..] {
                let with = With::Workspace((*other).clone());
                let files = self.conflicts(repository, &before, commit, other_commit)?;
                found.push(Collision { workspace: (*name).clone(), with, files });
            }
        }
        found.retain(|collision| !collision.files.is_empty());
        Ok(found)
    }

    fn conflicts(
        &mut self,
        repository: &Repository,
        before: &HashMap<(String, String), Vec<PathBuf>>,
        one: &str,
        other: &str,
    ) -> Result<Vec<PathBuf>, ToolError> {
        let key = (one.to_owned(), other.to_owned());
        let files = match before.get(&key).or_else(|| self.tried.get(&key)) {
            Some(files) => files.clone(),
            None => {
                self.merges += 1;
                conflicting_files(repository, one, other)?
            }
        };
        self.tried.insert(key, files.clone());
        Ok(files)
    }
}

/// Cheap: one `git status`, and the times of the files that it names.
pub fn fingerprint(project: &Project, name: &WorkspaceName) -> Result<Fingerprint, OperationError> {
    let looked = match &project.kind {
        Kind::Git(repository) => worktree_fingerprint(repository, name).map_err(OperationCause::from),
        Kind::Jj(repository) => jj::fingerprint(repository, name).map_err(OperationCause::from),
        Kind::Plain(_) => Err(OperationCause::Plain { path: project.root().to_owned() }),
    };
    looked.map_err(Operation::Compare.failed(name))
}

fn worktree_fingerprint(repository: &Repository, name: &WorkspaceName) -> Result<Fingerprint, ToolError> {
    let found = Found::look(repository, name)?;
    let path = repository.workspace_path(name);
    let mut hasher = DefaultHasher::new();
    found.head().hash(&mut hasher);
    for file in found.uncommitted(repository)? {
        stamp(&path.join(&file)).hash(&mut hasher);
        file.hash(&mut hasher);
    }
    Ok(Fingerprint(hasher.finish()))
}

type Stamp = (u64, i64, i64, i64, i64, u32);

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = path.symlink_metadata().ok()?;
    Some((meta.size(), meta.mtime(), meta.mtime_nsec(), meta.ctime(), meta.ctime_nsec(), meta.mode()))
}

/// Files that git cannot merge by itself.
pub(crate) fn conflicting_files(
    repository: &Repository,
    one: &str,
    other: &str,
) -> Result<Vec<PathBuf>, ToolError> {
    let options = ["--write-tree", "--name-only", "--no-messages", "--allow-unrelated-histories", "-z"];
    let args = [&["merge-tree"], &options[..], &[one, other]].concat();
    let (is_clean, said) = repository.git().answer(&args)?;
    if is_clean {
        return Ok(Vec::new());
    }
    // The tree comes first.
    let mut files: Vec<PathBuf> = paths(&said).into_iter().skip(1).collect();
    files.sort();
    files.dedup();
    Ok(files)
}
