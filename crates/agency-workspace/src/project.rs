//! A project: the repository or plain directory that workspaces belong to.
//!
//! Not its tasks. A project is found from any directory inside, its own workspaces included, and is always
//! the same one.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::environment::Environment;
use crate::error::OpenError;
use crate::jj::JjRepository;
use crate::name::WorkspaceName;
use crate::repository::Repository;

/// How workspaces are separated; `--vcs` on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vcs {
    /// One git worktree for each task.
    Git,
    /// One jj workspace for each task.
    Jj,
    /// No isolation: every task works in the directory itself.
    Plain,
}

/// The kind of a project. Public functions of this crate match on it once.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Git(Repository),
    Jj(JjRepository),
    Plain(Environment),
}

/// A repository or plain directory in which Agency is used.
#[derive(Debug, Clone)]
pub struct Project {
    root: PathBuf,
    pub(crate) kind: Kind,
    note: Option<String>,
}

impl Project {
    /// Finds the project that `path` is in: the nearest jj or git repository, or an enclosing plain directory
    /// that already has tasks. A repository of both kinds counts as jj where jj is installed.
    ///
    /// `vcs` asks for a project of that kind. `environment` is the caller's.
    ///
    /// A repository that is used with `--vcs none` looks like a git project, so store [`Project::vcs`] next
    /// to the root and pass it here.
    pub fn open_with(path: &Path, vcs: Option<Vcs>, environment: Environment) -> Result<Project, OpenError> {
        let unreachable = |source| OpenError::Directory { path: path.to_owned(), source };
        let dir = path.canonicalize().map_err(unreachable)?;
        std::fs::read_dir(&dir).map_err(unreachable)?;
        match vcs {
            Some(Vcs::Plain) => Ok(Self::plain(dir, environment)),
            Some(Vcs::Git) => Self::git(&dir, environment),
            Some(Vcs::Jj) => Self::jj(&dir, environment),
            None => Self::detected(&dir, environment),
        }
    }

    fn detected(dir: &Path, environment: Environment) -> Result<Project, OpenError> {
        let found = Self::versioned(dir, environment.clone());
        let plain_root = match &found {
            // A plain directory inside a repository counts only if the user has made tasks there.
            Ok(project) => plain_inside(dir, &project.root),
            Err(OpenError::NotARepository { .. } | OpenError::JjMissing { .. }) => {
                dir.ancestors().find(|dir| has_tasks(dir))
            }
            Err(_) => None,
        };
        plain_root.map(|root| Ok(Self::plain(root.to_owned(), environment))).unwrap_or(found)
    }

    /// Finds the nearer one of a jj and a git repository. A git worktree of a colocated repository belongs to
    /// jj.
    fn versioned(dir: &Path, environment: Environment) -> Result<Project, OpenError> {
        let top = dir.ancestors().find(|dir| dir.join(".jj").is_dir() || dir.join(".git").exists());
        if let Some(repository) =
            top.map(|top| JjRepository::at_top(top, &environment)).transpose()?.flatten()
        {
            return Self::jj_or_git(repository, environment);
        }
        let found = Self::git(dir, environment.clone())?;
        match JjRepository::at_top(&found.root, &environment)? {
            Some(repository) => Self::jj_or_git(repository, environment),
            None => Ok(found),
        }
    }

    fn jj_or_git(repository: JjRepository, environment: Environment) -> Result<Project, OpenError> {
        let path = repository.root().to_owned();
        if environment.has_program("jj") {
            return Ok(Self::of_kind(path, Kind::Jj(repository)));
        }
        if !repository.is_colocated() {
            return Err(OpenError::JjMissing { path });
        }
        let note = "jj is not installed, or not in the PATH: this workspace is a git worktree";
        Ok(Self { note: Some(note.into()), ..Self::git(&path, environment)? })
    }

    fn jj(dir: &Path, environment: Environment) -> Result<Project, OpenError> {
        for top in dir.ancestors() {
            if let Some(repository) = JjRepository::at_top(top, &environment)? {
                let root = repository.root().to_owned();
                return Ok(Self::of_kind(root, Kind::Jj(repository)));
            }
        }
        // A git worktree contains nothing of jj, but the repository that it belongs to may.
        let not_one = |_| OpenError::NotAJjRepository { path: dir.to_owned() };
        let found = Self::git(dir, environment.clone()).map_err(not_one)?;
        match JjRepository::at_top(&found.root, &environment)? {
            Some(repository) => Ok(Self::of_kind(found.root, Kind::Jj(repository))),
            None => Err(OpenError::NotAJjRepository { path: dir.to_owned() }),
        }
    }

    fn git(dir: &Path, environment: Environment) -> Result<Project, OpenError> {
        let repository = Repository::find(dir, environment)?;
        Ok(Self::of_kind(repository.root().to_owned(), Kind::Git(repository)))
    }

    fn plain(root: PathBuf, environment: Environment) -> Project {
        Self::of_kind(root, Kind::Plain(environment))
    }

    fn of_kind(root: PathBuf, kind: Kind) -> Project {
        Self { root, kind, note: None }
    }

    /// A remark for the user who creates a workspace in this project.
    pub(crate) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Returns the top of the main checkout, also when opened from inside a worktree. For a bare repository:
    /// its directory, or the enclosing one if that has a `.git` that leads to it.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the kind of the project.
    pub fn vcs(&self) -> Vcs {
        match self.kind {
            Kind::Git(_) => Vcs::Git,
            Kind::Jj(_) => Vcs::Jj,
            Kind::Plain(_) => Vcs::Plain,
        }
    }
}

/// Returns the path of the workspace of that name, whether it exists or not.
pub fn workspace_path(project: &Project, name: &WorkspaceName) -> PathBuf {
    match &project.kind {
        Kind::Git(repository) => repository.workspace_path(name),
        Kind::Jj(repository) => repository.workspace_path(name),
        Kind::Plain(_) => project.root.clone(),
    }
}

fn plain_inside<'a>(dir: &'a Path, root: &Path) -> Option<&'a Path> {
    let below_the_top = |dir: &&Path| *dir != root && !dir.join(".git").exists() && !dir.join(".jj").exists();
    dir.ancestors().take_while(below_the_top).find(|dir| has_tasks(dir))
}

fn has_tasks(dir: &Path) -> bool {
    dir.join(".agency/tasks").is_dir()
}

impl fmt::Display for Vcs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Vcs::Git => "git",
            Vcs::Jj => "jj",
            Vcs::Plain => "none",
        })
    }
}

/// A text is not the name of a [`Vcs`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a kind of workspace: git, jj or none")]
pub struct VcsError(String);

impl FromStr for Vcs {
    type Err = VcsError;

    fn from_str(text: &str) -> Result<Self, VcsError> {
        match text {
            "git" => Ok(Vcs::Git),
            "jj" => Ok(Vcs::Jj),
            "none" => Ok(Vcs::Plain),
            other => Err(VcsError(other.to_owned())),
        }
    }
}
