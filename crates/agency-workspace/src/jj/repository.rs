//! A jj repository: where its main workspace and its git store are, and what its revisions are.
//!
//! Not the workspace of a task: see `workspace`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::base::explicit_base;
use crate::environment::Environment;
use crate::error::OpenError;
use crate::jj::Jj;
use crate::name::WorkspaceName;
use crate::repository::Repository;
use crate::tool::ToolError;

/// Prints `12ab ed-`: the id, and whether the commit is empty, described and in conflict.
const COMMIT: &str = r#"commit_id ++ " " ++ if(empty, "e", "-") ++ if(description, "d", "-") ++ if(conflict, "c", "-") ++ "\n""#;

/// This many letters of a change id are unique in every repository.
const CHANGE: usize = 16;

#[derive(Debug, Clone)]
pub(crate) struct JjRepository {
    /// Git's objects and refs, which hold the commits.
    store: Repository,
    /// `.jj/repo` of the main workspace.
    repo_dir: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Revision {
    pub(crate) id: String,
    pub(crate) is_empty: bool,
    pub(crate) is_described: bool,
    pub(crate) has_conflict: bool,
}

impl Revision {
    /// `flags` as [`COMMIT`] prints them.
    pub(crate) fn of(id: &str, flags: &str) -> Self {
        let has = |flag| flags.contains(flag);
        Self { id: id.to_owned(), is_empty: has('e'), is_described: has('d'), has_conflict: has('c') }
    }

    /// Whether jj itself discards the commit when no workspace is on it any more.
    pub(crate) fn is_blank(&self) -> bool {
        self.is_empty && !self.is_described
    }
}

impl JjRepository {
    /// Returns the repository that has a workspace with `dir` as its top, or None.
    pub(crate) fn at_top(dir: &Path, environment: &Environment) -> Result<Option<Self>, OpenError> {
        let Some(repo_dir) = repo_dir_of(dir) else { return Ok(None) };
        let lost = || OpenError::NoMainCheckout { git_dir: repo_dir.clone(), path: dir.to_owned() };
        let root = repo_dir.parent().and_then(Path::parent).ok_or_else(lost)?;
        let store_dir = repo_dir.join("store");
        let target = fs::read_to_string(store_dir.join("git_target")).map_err(|_| lost())?;
        let git_dir = store_dir.join(target.trim()).canonicalize().map_err(|_| lost())?;
        let is_colocated = root.join(".git").canonicalize().is_ok_and(|beside| beside == git_dir);
        let store = Repository::from_parts(root, &git_dir, !is_colocated, environment);
        Ok(Some(Self { store, repo_dir }))
    }

    pub(crate) fn store(&self) -> &Repository {
        &self.store
    }

    pub(crate) fn root(&self) -> &Path {
        self.store.root()
    }

    /// Whether git works in the main workspace too.
    pub(crate) fn is_colocated(&self) -> bool {
        !self.store.is_bare()
    }

    pub(crate) fn workspace_path(&self, name: &WorkspaceName) -> PathBuf {
        self.store.workspace_path(name)
    }

    /// Returns the directory whose only entry is the last operation.
    pub(crate) fn operation_heads(&self) -> PathBuf {
        self.repo_dir.join("op_heads/heads")
    }

    /// Whether the directory is a workspace of this repository.
    pub(crate) fn is_workspace(&self, path: &Path) -> bool {
        repo_dir_of(path).is_some_and(|repo_dir| repo_dir == self.repo_dir)
    }

    pub(crate) fn jj(&self) -> Jj {
        Jj::on(self.store.environment(), self.root())
    }

    /// jj in the user's own workspace.
    pub(crate) fn jj_in_user_workspace(&self) -> Jj {
        Jj::in_user_workspace(self.store.environment(), self.root())
    }

    /// jj in the workspace of a task.
    pub(crate) fn jj_in_task(&self, path: &Path) -> Jj {
        Jj::in_task_workspace(self.store.environment(), path)
    }

    pub(crate) fn revisions(&self, revset: &str) -> Result<Vec<Revision>, ToolError> {
        revisions(&self.jj(), revset)
    }

    /// Returns the commit of a name: of a bookmark first, then of a server's bookmark in git's notation.
    pub(crate) fn commit_of(&self, name: &str) -> Result<Option<String>, ToolError> {
        let quoted = quoted(name);
        let remote = remote_bookmark(name);
        let tries = [Some(format!("bookmarks(exact:{quoted})")), remote, Some(format!("present({quoted})"))];
        for revset in tries.into_iter().flatten() {
            match self.revisions(&format!("latest({revset})")) {
                Ok(found) if found.is_empty() => {}
                // A name that jj cannot parse names nothing.
                Err(ToolError::Failed { .. }) => {}
                found => return Ok(found?.into_iter().next().map(|revision| revision.id)),
            }
        }
        Ok(None)
    }

    pub(crate) fn bookmarks(&self) -> Result<Vec<String>, ToolError> {
        self.jj().read_lines(&["bookmark", "list", "-T", r#"name ++ "\n""#])
    }

    /// Whether the name is a local or remote bookmark. True for None, which stands for the bookmark that the
    /// user works on top of.
    pub(crate) fn has_bookmark(&self, name: Option<&str>) -> Result<bool, ToolError> {
        let Some(name) = explicit_base(name) else { return Ok(true) };
        if self.bookmarks()?.iter().any(|known| known == name) {
            return Ok(true);
        }
        match remote_bookmark(name) {
            Some(remote) => Ok(!self.revisions(&remote)?.is_empty()),
            None => Ok(false),
        }
    }

    /// Returns a name that still leads to the commit after it is rewritten: its bookmark, or its change id.
    pub(crate) fn name_of(&self, commit: &str) -> Result<String, ToolError> {
        let bookmarks = r#"local_bookmarks.map(|b| b.name() ++ "\n").join("")"#;
        let template = format!(r#"{bookmarks} ++ change_id.short({CHANGE}) ++ "\n""#);
        let names = self.jj().read_lines(&["log", "--no-graph", "-r", commit, "-T", &template])?;
        let name = names.into_iter().find(|name| !name.is_empty() && !name.starts_with("agency/"));
        Ok(name.unwrap_or_else(|| commit.to_owned()))
    }

    /// Returns the bookmark that the user works on top of, if there is one.
    pub(crate) fn nearest_bookmark(&self, revset: &str) -> Result<Option<String>, ToolError> {
        let nearest = format!("latest(heads(::({revset}) & bookmarks(~glob:\"agency/*\")))");
        let template = r#"local_bookmarks.map(|b| b.name() ++ "\n").join("")"#;
        let names = self.jj().read_lines(&["log", "--no-graph", "-r", &nearest, "-T", template])?;
        Ok(names.into_iter().find(|name| !name.is_empty() && !name.starts_with("agency/")))
    }

    /// Returns the commits of a base; without one, the commit of the user's bookmark. If a change was
    /// squashed into another one, returns the user's working copy.
    pub(crate) fn tips(&self, base: Option<&str>) -> Result<Vec<String>, ToolError> {
        let base = match explicit_base(base) {
            Some(base) => Some(base.to_owned()),
            None => self.nearest_bookmark("@")?,
        };
        let Some(base) = base else { return Ok(Vec::new()) };
        match self.commit_of(&base)? {
            None if is_change(&base) => Ok(self.user_commit()?.into_iter().collect()),
            commit => Ok(commit.into_iter().collect()),
        }
    }

    fn user_commit(&self) -> Result<Option<String>, ToolError> {
        Ok(self.revisions("@")?.into_iter().next().map(|revision| revision.id))
    }

    /// Returns the last operation, which `jj op restore` can go back to.
    pub(crate) fn operation(&self) -> Result<String, ToolError> {
        let lines =
            self.jj().read_lines(&["op", "log", "--no-graph", "--limit", "1", "-T", r#"id ++ "\n""#])?;
        Ok(lines.into_iter().next().unwrap_or_default())
    }

    /// Makes git's refs match jj's bookmarks.
    pub(crate) fn export(&self) -> Result<(), ToolError> {
        self.jj().run(&["git", "export"]).map(drop)
    }
}

pub(crate) fn revisions(jj: &Jj, revset: &str) -> Result<Vec<Revision>, ToolError> {
    let lines = jj.read_lines(&["log", "--no-graph", "-r", revset, "-T", COMMIT])?;
    Ok(lines.iter().filter_map(|line| parse(line)).collect())
}

fn parse(line: &str) -> Option<Revision> {
    let (id, flags) = line.split_once(' ')?;
    Some(Revision::of(id, flags))
}

/// Returns a revset for a server's bookmark in git's notation.
fn remote_bookmark(name: &str) -> Option<String> {
    let (remote, branch) = name.split_once('/')?;
    Some(format!("remote_bookmarks(exact:{}, exact:{})", quoted(branch), quoted(remote)))
}

/// Whether the name could be a change id, as [`JjRepository::name_of`] returns it.
fn is_change(name: &str) -> bool {
    name.len() == CHANGE && name.bytes().all(|letter| (b'k'..=b'z').contains(&letter))
}

/// Returns a revset of those commits that still exist.
pub(crate) fn any_of<'a>(ids: impl IntoIterator<Item = &'a String>) -> String {
    let present = ids.into_iter().map(|id| format!("present({id})"));
    ["none()".to_owned()].into_iter().chain(present).collect::<Vec<_>>().join("|")
}

/// Quotes a name for a revset.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

/// In the main workspace `.jj/repo` is the repository. In others it is a file that leads to it.
fn repo_dir_of(dir: &Path) -> Option<PathBuf> {
    let repo = dir.join(".jj/repo");
    let meta = repo.metadata().ok()?;
    if meta.is_dir() {
        return repo.canonicalize().ok();
    }
    let target = fs::read_to_string(&repo).ok()?;
    dir.join(".jj").join(target.trim_end_matches('\n')).canonicalize().ok()
}

/// Returns a revset of all bookmarks but ours. Not `bookmarks() ~ …`, which subtracts commits: a commit with
/// our bookmark and another one must stay.
pub(super) fn other_bookmarks(name: &WorkspaceName) -> String {
    format!("bookmarks(~exact:{})", quoted(&name.branch()))
}

/// Returns a revset of commits that have a name of the user's.
pub(super) fn named_by_others(name: &WorkspaceName) -> String {
    format!("{}|remote_bookmarks()|tags()", other_bookmarks(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_line_of_jj_is_parsed() {
        assert!(parse("12ab e-").unwrap().is_blank());
        let work = parse("12ab -d").unwrap();
        assert!(work.is_described && !work.is_blank());
        assert_eq!(quoted(r#"a"b\c"#), r#""a\"b\\c""#);
    }
}
