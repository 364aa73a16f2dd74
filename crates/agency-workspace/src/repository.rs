//! A git repository: where its main checkout and its common directory are.
//!
//! Not a project: plain directories are not handled here.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::environment::Environment;
use crate::error::{OpenError, OperationCause};
use crate::git::Git;
use crate::hidden_ref::HiddenRef;
use crate::name::{WORKTREES, WorkspaceName};
use crate::scratch_objects::{KeptObjects, ScratchObjects, object_variables};
use crate::tool::{ToolError, text};

/// The author of our own commits. The user may have no name configured, and these commits are not theirs.
const WHO: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "Agency"),
    ("GIT_AUTHOR_EMAIL", "agency@localhost"),
    ("GIT_COMMITTER_NAME", "Agency"),
    ("GIT_COMMITTER_EMAIL", "agency@localhost"),
];

#[derive(Debug, Clone)]
pub(crate) struct Repository {
    root: PathBuf,
    /// Shared by all worktrees: `.git` of the main checkout, or the bare repository.
    common_dir: PathBuf,
    bare: bool,
    environment: Environment,
}

impl Repository {
    pub(crate) fn find(dir: &Path, environment: Environment) -> Result<Self, OpenError> {
        let here = Git::discovering(&environment, dir);
        if let Some((root, common_dir)) = plain_checkout(&here, dir) {
            return Ok(Self { root, common_dir, bare: false, environment });
        }
        let failed = |source| OpenError::Git { path: dir.to_owned(), source };
        let common_dir = match find_common_dir(&here, dir) {
            Err(err) if err.stderr_contains("not a git repository") => {
                return Err(OpenError::NotARepository { path: dir.to_owned() });
            }
            found => found.map_err(failed)?,
        };
        let common = Git::on(&environment, &common_dir, &common_dir);
        let bare = common.read_line(&["rev-parse", "--is-bare-repository"]).map_err(failed)? == "true";
        let root = match main_checkout(&environment, dir, &common_dir) {
            Some(root) => root,
            None if bare => common_dir.clone(),
            None => return Err(OpenError::NoMainCheckout { git_dir: common_dir, path: dir.to_owned() }),
        };
        Ok(Self { root, common_dir, bare, environment })
    }

    /// Builds a repository from known paths.
    pub(crate) fn from_parts(root: &Path, common_dir: &Path, bare: bool, environment: &Environment) -> Self {
        let (root, common_dir) = (root.to_owned(), common_dir.to_owned());
        Self { root, common_dir, bare, environment: environment.clone() }
    }

    /// Creates a place for the objects of a look.
    pub(crate) fn scratch_objects(&self) -> Result<Arc<ScratchObjects>, OperationCause> {
        let unwritable = |source| OperationCause::Write { path: self.common_dir.clone(), source };
        ScratchObjects::create(&self.common_dir).map_err(unwritable)
    }

    /// Returns the same repository that writes its objects elsewhere.
    pub(crate) fn writing_to(&self, objects: &ScratchObjects) -> Self {
        match object_variables(self.common_dir(), objects.path(), &[]) {
            Some(variables) => {
                Self { environment: self.environment.with_variables(variables), ..self.clone() }
            }
            None => self.clone(),
        }
    }

    /// Returns the repository with the objects of a look.
    pub(crate) fn with_objects(&self, objects: &KeptObjects) -> Self {
        objects.0.as_ref().map_or_else(|| self.clone(), |objects| self.writing_to(objects))
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    pub(crate) fn is_bare(&self) -> bool {
        self.bare
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    pub(crate) fn workspace_path(&self, name: &WorkspaceName) -> PathBuf {
        self.root.join(WORKTREES).join(name.as_str())
    }

    /// Git on the repository as a whole; `HEAD` is that of the main checkout.
    pub(crate) fn git(&self) -> Git {
        Git::on(&self.environment, &self.common_dir, &self.root)
    }

    /// Returns the commit that `revision` names, if it names one.
    pub(crate) fn commit(&self, revision: &str) -> Result<Option<String>, ToolError> {
        let commit = format!("{revision}^{{commit}}");
        match self.git().read_line(&["rev-parse", "--verify", "--quiet", &commit]) {
            // Git reports this in many ways: no output, `ambiguous`, `not a commit`.
            Err(ToolError::Failed { .. }) => Ok(None),
            found => found.map(|commit| Some(text(commit))),
        }
    }

    /// Lists the hidden refs in a folder, or the one of that name.
    pub(crate) fn hidden_refs(&self, under: &str) -> Result<Vec<HiddenRef>, ToolError> {
        let format =
            "--format=%(refname)%00%(objectname)%00%(tree)%00%(creatordate:unix)%00%(contents)%00%01";
        let listed = self.git().read(&["for-each-ref", format, under])?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        Ok(listed.split("\0\u{1}\n").filter_map(HiddenRef::parse).collect())
    }

    /// Gives a commit the first free name of a numbered series, and returns its number.
    pub(crate) fn add_hidden_ref(
        &self,
        commit: &str,
        first: u64,
        name: impl Fn(u64) -> String,
    ) -> Result<(u64, String), ToolError> {
        let mut number = first;
        loop {
            let reference = name(number);
            // The empty old value means that an existing ref is never replaced.
            match self.git().change(&["update-ref", &reference, commit, ""]) {
                Err(err) if err.stderr_contains("reference already exists") => number += 1,
                named => return named.map(|_| (number, reference)),
            }
        }
    }

    pub(crate) fn branch_tip(&self, branch: &str) -> Result<Option<String>, ToolError> {
        let branch = format!("refs/heads/{branch}");
        Ok(self.git().read_optional(&["rev-parse", "--verify", "--quiet", &branch])?.map(text))
    }
}

/// Handles the most common case with one call of git: a main checkout with the repository in its `.git`.
fn plain_checkout(git: &Git, dir: &Path) -> Option<(PathBuf, PathBuf)> {
    let output = git.read_line(&["rev-parse", "--git-common-dir", "--git-dir", "--show-toplevel"]).ok()?;
    let mut lines =
        output.as_bytes().split(|byte| *byte == b'\n').map(|line| Path::new(OsStr::from_bytes(line)));
    let (common_dir, git_dir, root) = (lines.next()?, lines.next()?, lines.next()?);
    let real = |path: &Path| dir.join(path).canonicalize().ok();
    let common_dir = real(common_dir)?;
    let is_plain = real(git_dir)? == common_dir && real(&root.join(".git"))? == common_dir;
    // A name with a line break takes the longer way.
    (is_plain && lines.next().is_none()).then(|| (root.to_owned(), common_dir))
}

fn find_common_dir(git: &Git, dir: &Path) -> Result<PathBuf, ToolError> {
    resolve_path(git, dir, "--git-common-dir")
}

/// Git prints these paths relative to its directory or absolute.
pub(crate) fn resolve_path(git: &Git, dir: &Path, what: &str) -> Result<PathBuf, ToolError> {
    let printed = dir.join(git.read_line(&["rev-parse", what])?);
    printed.canonicalize().map_err(|source| ToolError::Start { command: "rev-parse".into(), source })
}

/// Finds the directory that `common_dir` itself, not one of its linked worktrees, is checked out in.
///
/// That is the parent of the repository (`.git`), or a configured directory (submodules), or one of ours (a
/// separate git directory, which does not know its checkout).
fn main_checkout(environment: &Environment, dir: &Path, common_dir: &Path) -> Option<PathBuf> {
    let configured =
        Git::discovering(environment, common_dir).read_line(&["rev-parse", "--show-toplevel"]).ok();
    let configured = configured.map(PathBuf::from);
    let beside = common_dir.parent().map(Path::to_owned);
    let around = dir.ancestors().map(Path::to_owned);
    configured.into_iter().chain(beside).chain(around).find(|dir| {
        let is_door = || resolve_path(&Git::discovering(environment, dir), dir, "--git-dir");
        dir.join(".git").exists() && is_door().is_ok_and(|git_dir| git_dir == common_dir)
    })
}

pub(crate) fn tree_of(repository: &Repository, commit: &str) -> Result<String, ToolError> {
    repository.git().read_line(&["rev-parse", "--verify", &format!("{commit}^{{tree}}")]).map(text)
}

pub(crate) fn commit_tree(
    repository: &Repository,
    tree: &str,
    parents: &[&str],
    message: &str,
) -> Result<String, ToolError> {
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
