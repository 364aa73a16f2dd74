//! A jj workspace: what exists of it, and what is in it.
//!
//! The working-copy commit counts as uncommitted as long as it has no description.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::error::OperationCause;
use crate::jj::files::{commit_index, current_index, save_turn_details, untracked};
use crate::jj::repository::{JjRepository, Revision, any_of, other_bookmarks, quoted, revisions};
use crate::jj::staleness::files_operation;
use crate::merge_mark::{MergeMark, TargetMerge};
use crate::name::WorkspaceName;
use crate::presence::{PathStatus, Presence, WorkspaceState};
use crate::repository::Repository;
use crate::saved_commit::{Completeness, Contents, Trailers};
use crate::temp_index::parse_paths;
use crate::tool::ToolError;

/// Prints `name`, a space, then a commit as in `repository`.
const LIST: &str = r#"name ++ " " ++ target.commit_id() ++ " " ++ if(target.empty(), "e", "-") ++ if(target.description(), "d", "-") ++ if(target.conflict(), "c", "-") ++ "\n""#;

/// Everything that exists of one workspace.
#[derive(Debug)]
pub(crate) struct JjWorkspace {
    pub(crate) path_status: PathStatus,
    /// Whether the directory is a workspace of this repository.
    pub(super) is_ours: bool,
    /// The working-copy commit, if jj knows the workspace.
    pub(crate) target: Option<Revision>,
    /// The commit of its bookmark.
    pub(crate) bookmark: Option<String>,
    /// The working-copy commits of all other workspaces.
    pub(crate) others: Vec<String>,
    /// Messages about files that jj does not track.
    pub(crate) warnings: Vec<String>,
    /// Whether `target` is the commit that the files were on before the user made jj forget the workspace.
    pub(super) is_forgotten: bool,
}

impl JjWorkspace {
    pub(crate) fn find(repository: &JjRepository, name: &WorkspaceName) -> Result<Self, ToolError> {
        let path = repository.workspace_path(name);
        let listed = repository.jj().read_lines(&["workspace", "list", "-T", LIST])?;
        let all: Vec<(String, Revision)> = listed.iter().filter_map(|line| parse(line)).collect();
        let target = all.iter().find(|(known, _)| known == name.as_str()).map(|(_, target)| target.clone());
        let others = all.into_iter().filter(|(known, _)| known != name.as_str());
        Ok(Self {
            path_status: PathStatus::of(&path),
            is_ours: repository.is_workspace(&path),
            target,
            bookmark: repository.store().branch_tip(&name.branch())?,
            others: others.map(|(_, target)| target.id).collect(),
            warnings: Vec::new(),
            is_forgotten: false,
        })
    }

    /// Lets jj take a snapshot of the present files, then finds the workspace.
    pub(crate) fn snapshot_and_find(
        repository: &JjRepository,
        name: &WorkspaceName,
    ) -> Result<Self, ToolError> {
        let found = Self::find(repository, name)?;
        if found.presence() != Presence::Ready {
            return Ok(found);
        }
        let output = repository.jj_in_task(&repository.workspace_path(name)).run(&["util", "snapshot"])?;
        Ok(Self { warnings: refused_file_warnings(&output.stderr), ..Self::find(repository, name)? })
    }

    pub(crate) fn presence(&self) -> Presence {
        let is_known =
            self.target.as_ref().is_some_and(|target| !target.is_blank()) || self.bookmark.is_some();
        match self.path_status {
            PathStatus::Occupied if self.is_ours && self.target.is_some() => Presence::Ready,
            PathStatus::Occupied => Presence::NotOurs,
            PathStatus::Missing | PathStatus::EmptyDirectory if is_known => Presence::DirectoryGone,
            PathStatus::Missing | PathStatus::EmptyDirectory => Presence::Absent,
        }
    }

    /// Returns the working-copy commit that the files were on when the user ran `jj workspace forget`. None if
    /// jj knows the workspace, or the directory was never a workspace of this repository.
    pub(crate) fn forgotten(
        &self,
        repository: &JjRepository,
        name: &WorkspaceName,
    ) -> Result<Option<Revision>, ToolError> {
        if self.target.is_some() || !self.is_ours {
            return Ok(None);
        }
        let Some(operation) = files_operation(&repository.workspace_path(name)) else { return Ok(None) };
        let last = revisions(
            &repository.jj().at_operation(&operation),
            &format!("present({}@)", quoted(name.as_str())),
        )?;
        Ok(last.into_iter().next())
    }

    /// Returns the working-copy commit, if there is a workspace to work in.
    pub(crate) fn ready(
        &self,
        repository: &JjRepository,
        name: &WorkspaceName,
    ) -> Result<&Revision, OperationCause> {
        match (&self.target, self.presence()) {
            (Some(target), Presence::Ready) => Ok(target),
            (None, Presence::NotOurs) if self.is_ours => {
                Err(OperationCause::Forgotten { path: repository.workspace_path(name) })
            }
            (_, presence) => {
                Err(OperationCause::NotReady { path: repository.workspace_path(name), presence })
            }
        }
    }

    pub(super) fn uncommitted(
        &self,
        repository: &JjRepository,
        name: &WorkspaceName,
    ) -> Result<Vec<PathBuf>, OperationCause> {
        let Some(target) = self.target.as_ref().filter(|_| self.presence() == Presence::Ready) else {
            return Ok(Vec::new());
        };
        let mut files = untracked(repository, name, target)?;
        if !target.is_described && !target.is_empty {
            files.extend(list_changed(repository, &target.id)?);
        }
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// Counts commits that only this workspace refers to, without blank ones.
    pub(super) fn count_unmerged(
        &self,
        repository: &JjRepository,
        name: &WorkspaceName,
        base: Option<&str>,
    ) -> Result<u64, ToolError> {
        let Some(target) = &self.target else { return Ok(0) };
        let tips = repository.tips(base)?;
        let mut landed = vec![any_of(tips.iter().chain(&self.others))];
        if tips.is_empty() || !repository.has_bookmark(base)? {
            landed.push(other_bookmarks(name));
        }
        if let Some(mark) = MergeMark::read(repository.store(), name)?
            && has_landed(repository, &mark, &tips)?
        {
            landed.push(format!("present({})", mark.tip));
        }
        // An undescribed working copy is not a commit yet: its files are counted.
        let own = format!("::{} ~ ::({}) ~ (empty() & description(exact:\"\"))", target.id, landed.join("|"));
        let commits = repository.revisions(&own)?;
        let is_commit = |revision: &&Revision| revision.is_described || revision.id != target.id;
        Ok(commits.iter().filter(is_commit).count() as u64)
    }

    pub(super) fn describe(
        &self,
        repository: &JjRepository,
        name: &WorkspaceName,
    ) -> Result<Trailers, ToolError> {
        Ok(Trailers {
            workspace: Some(name.clone()),
            head: self.target.as_ref().map(|target| target.id.clone()),
            branch: self.bookmark.as_ref().map(|tip| (name.branch(), tip.clone())),
            operation: Some(repository.operation()?),
            ..Trailers::default()
        })
    }
}

fn parse(line: &str) -> Option<(String, Revision)> {
    let (rest, flags) = line.rsplit_once(' ')?;
    let (name, id) = rest.rsplit_once(' ')?;
    Some((name.to_owned(), Revision::of(id, flags)))
}

/// Reads the indented lines after a warning.
fn refused_file_warnings(stderr: &str) -> Vec<String> {
    let after = stderr.lines().skip_while(|line| !line.starts_with("Warning: Refused to snapshot"));
    let files = after.skip(1).take_while(|line| line.starts_with("  "));
    files.map(|line| format!("jj does not track {}", line.trim())).collect()
}

pub(crate) fn presence(repository: &JjRepository, name: &WorkspaceName) -> Result<Presence, ToolError> {
    Ok(JjWorkspace::find(repository, name)?.presence())
}

/// Whether the target of a merge still has it. `bases` are the commits of the base, for a mark that names no
/// target.
fn has_landed(repository: &JjRepository, mark: &MergeMark, bases: &[String]) -> Result<bool, ToolError> {
    let Some(TargetMerge { target, commit }) = &mark.merge else {
        return mark.is_contained(repository.store(), bases);
    };
    let (missing, targets) = find_missing(repository, target, &[commit])?;
    Ok(missing.is_empty() || mark.is_contained(repository.store(), &targets)?)
}

/// Returns those commits that the bookmark does not have, and the commits of the bookmark.
pub(crate) fn find_missing(
    repository: &JjRepository,
    target: &str,
    commits: &[&str],
) -> Result<(HashSet<String>, Vec<String>), ToolError> {
    let target = quoted(target);
    let named = format!("bookmarks(exact:{target})|remote_bookmarks(exact:{target})");
    let targets: Vec<String> = repository.revisions(&named)?.into_iter().map(|found| found.id).collect();
    let within = match targets.is_empty() {
        // The user has deleted or renamed it.
        true => "bookmarks(~glob:\"agency/*\")|remote_bookmarks()|tags()".to_owned(),
        false => named,
    };
    let any: Vec<String> = commits.iter().map(|commit| format!("present({commit})")).collect();
    let landed = repository.revisions(&format!("({}) & ::({within})", any.join("|")))?;
    let is_missing = |commit: &&&str| !landed.iter().any(|found| found.id == **commit);
    Ok((commits.iter().filter(is_missing).map(|commit| (*commit).to_owned()).collect(), targets))
}

pub(crate) fn is_workspace_there(repository: &JjRepository, name: &WorkspaceName) -> bool {
    repository.is_workspace(&repository.workspace_path(name))
}

pub(crate) fn state(
    repository: &JjRepository,
    name: &WorkspaceName,
    base: Option<&str>,
) -> Result<WorkspaceState, OperationCause> {
    let found = JjWorkspace::snapshot_and_find(repository, name)?;
    Ok(WorkspaceState {
        path: repository.workspace_path(name),
        presence: found.presence(),
        branch: found.bookmark.as_ref().map(|_| name.branch()),
        uncommitted: found.uncommitted(repository, name)?,
        unmerged_commits: found.count_unmerged(repository, name, base)?,
    })
}

/// Reads the content of the workspace and the trailers that describe it. Objects that jj does not write itself go
/// to `store`.
pub(crate) fn contents(
    repository: &JjRepository,
    name: &WorkspaceName,
    store: &Repository,
    completeness: Completeness,
) -> Result<(Contents, Trailers), OperationCause> {
    let found = JjWorkspace::snapshot_and_find(repository, name)?;
    let target = match (&found.target, found.presence()) {
        (Some(target), Presence::Ready | Presence::DirectoryGone) => target,
        _ => found.ready(repository, name)?,
    };
    let mut contents = Contents::of_commit(repository.store(), &target.id)?;
    if found.presence() == Presence::Ready {
        let path = repository.workspace_path(name);
        let index = match (target.has_conflict, completeness) {
            // The tree of a commit with conflicts is in jj's own format. The files have conflict markers.
            (true, _) => Some(current_index(store, &path, target)?),
            (false, Completeness::WithDetails) => Some(commit_index(store, &path, target)?),
            (false, Completeness::Trees) => None,
        };
        if let Some(index) = index {
            contents.tree = index.tree()?;
            if completeness == Completeness::WithDetails {
                contents.details = Some(save_turn_details(repository, name, &index)?);
            }
        }
    }
    let trailers = found.describe(repository, name)?;
    Ok((Contents { warnings: found.warnings, ..contents }, trailers))
}

pub(crate) fn find_parents(repository: &JjRepository, commit: &str) -> Result<Vec<String>, ToolError> {
    let parents = repository.store().git().read_line(&["log", "-1", "--format=%P", commit])?;
    Ok(crate::tool::text(parents).split_whitespace().map(str::to_owned).collect())
}

pub(super) fn list_changed(repository: &JjRepository, commit: &str) -> Result<Vec<PathBuf>, ToolError> {
    let args = [
        "diff-tree",
        "--root",
        "-r",
        "-z",
        "--name-only",
        "--no-renames",
        "--no-commit-id",
        "--diff-merges=first-parent",
        commit,
    ];
    Ok(parse_paths(&repository.store().git().read(&args)?))
}
