//! The checkout that the user stands in, if it is not the main one.
//!
//! Not the checkout of a merge target: see `merge_target`.

use std::path::Path;

use crate::base::explicit_base;
use crate::jj;
use crate::name::WORKTREES;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::tool::text;
use crate::worktree::Worktree;

/// Returns the base that a user means who names none in `dir`, if `dir` is in another checkout than the main
/// one: the branch of that checkout, or its commit where `HEAD` is detached. In jj, the change of that
/// workspace. The workspaces of tasks do not count, because agents make tasks in them too.
pub fn base_where_user_is(project: &Project, dir: &Path, wanted: Option<&str>) -> Option<String> {
    let dir = dir.canonicalize().ok().filter(|_| explicit_base(wanted).is_none())?;
    match &project.kind {
        Kind::Git(repository) => branch_of_checkout(repository, &dir),
        Kind::Jj(repository) => jj::base_in_user_workspace(repository, &dir),
        Kind::Plain(_) => None,
    }
}

fn branch_of_checkout(repository: &Repository, dir: &Path) -> Option<String> {
    let top = dir.ancestors().find(|dir| dir.join(".git").exists())?;
    if top.starts_with(repository.root().join(WORKTREES)) {
        return None;
    }
    let git = Worktree::open(repository, top)?.git(repository);
    let found = match git.read_optional(&["symbolic-ref", "--quiet", "--short", "HEAD"]) {
        Ok(None) => git.read_line(&["rev-parse", "--verify", "HEAD"]).map(Some),
        branch => branch,
    };
    found.unwrap_or_default().map(text)
}
