//! Whether work that Agency has merged is still in its target.
//!
//! Only looks. The user may have taken a merge back, with `git reset` or `jj op restore`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tracing::warn;

use crate::error::{Operation, OperationCause, OperationError};
use crate::jj;
use crate::merge_mark::{MergeMark, TargetMerge, recent_branches, target_revisions};
use crate::name::WorkspaceName;
use crate::project::{Kind, Project};
use crate::repository::Repository;
use crate::stamp::stamp_refs;
use crate::tool::ToolError;

const MARKS: &str = "refs/agency/merged";

/// Branches of tasks move all the time, and no merge goes into them without a note of ours.
const TASK_BRANCHES: &str = "refs/heads/agency";

/// Whether Agency has merged everything that is committed in the workspace, in this repository, and the target
/// still has it.
pub fn is_merged(project: &Project, name: &WorkspaceName) -> Result<bool, OperationError> {
    let Some(repository) = project.git_repository() else { return Ok(false) };
    let looked = || -> Result<bool, OperationCause> {
        let tip = repository.branch_tip(&name.branch())?;
        let Some(mark) = MergeMark::read(repository, name)? else { return Ok(false) };
        let is_all = tip.is_none() || tip.as_ref() == Some(&mark.tip);
        Ok(is_all && find_taken_back(project, repository, vec![(name.clone(), mark)])?.is_empty())
    };
    looked().map_err(Operation::Merge.failed(name))
}

/// Workspaces whose merges the user has taken back, as a check found them.
#[derive(Debug, Clone, Default)]
pub struct TakenBack {
    /// The names of the workspaces.
    pub workspaces: Vec<WorkspaceName>,
    /// When the check began. A merge that ends later is not in it. None if there was no check.
    pub checked_at: Option<Instant>,
}

/// The last check of each project, with the stamp of its refs. Every call about a task asks for a check, and most
/// of the time nothing has changed.
#[derive(Debug, Default)]
pub struct MergeChecks {
    answers: Mutex<HashMap<PathBuf, (u64, Vec<WorkspaceName>)>>,
}

impl MergeChecks {
    /// Finds the workspaces whose merge the user has taken back: Agency merged them, and the target no longer has
    /// the work. Starts no process if no branch has moved since the last call.
    pub fn find_taken_back(&self, project: &Project) -> TakenBack {
        let checked_at = Some(Instant::now());
        TakenBack { workspaces: self.merges_taken_back(project), checked_at }
    }

    fn merges_taken_back(&self, project: &Project) -> Vec<WorkspaceName> {
        let Some(repository) = project.git_repository() else { return Vec::new() };
        let tasks = repository.common_dir().join(TASK_BRANCHES);
        let stamp = stamp_refs(project, repository, &[MARKS], &|path| path == tasks);
        let answers = || self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = answers().get(project.root()).filter(|(then, _)| Some(*then) == stamp).cloned();
        if let Some((_, names)) = known {
            return names;
        }
        let found = MergeMark::all(repository).and_then(|marks| find_taken_back(project, repository, marks));
        let names = match found {
            Ok(names) => names,
            // The merges count until a later call can look at them.
            Err(err) => {
                warn!(root = %project.root().display(), %err, "cannot check whether merges were taken back");
                return Vec::new();
            }
        };
        match stamp {
            Some(stamp) => answers().insert(project.root().to_owned(), (stamp, names.clone())),
            None => answers().remove(project.root()),
        };
        names
    }
}

fn find_taken_back(
    project: &Project,
    repository: &Repository,
    marks: Vec<(WorkspaceName, MergeMark)>,
) -> Result<Vec<WorkspaceName>, ToolError> {
    let mut of_target: BTreeMap<Option<String>, Vec<(WorkspaceName, MergeMark)>> = BTreeMap::new();
    for (name, mark) in marks {
        let target = mark.merge.as_ref().map(|merge| merge.target.clone());
        of_target.entry(target).or_default().push((name, mark));
    }
    let mut taken_back = Vec::new();
    for (target, marks) in of_target {
        let commits: Vec<&str> =
            marks.iter().filter_map(|(_, mark)| Some(mark.merge.as_ref()?.commit.as_str())).collect();
        let (missing, revisions) = match (&project.kind, &target) {
            (Kind::Jj(jj), Some(target)) => jj::find_missing(jj, target, &commits)?,
            (_, Some(target)) => find_missing(repository, target, &commits)?,
            (_, None) => (HashSet::new(), recent_branches(repository)?),
        };
        for (name, mark) in marks {
            let is_missing = match &mark.merge {
                Some(TargetMerge { commit, .. }) => missing.contains(commit),
                None => true,
            };
            if is_missing && !mark.is_contained(repository, &revisions)? {
                taken_back.push(name);
            }
        }
    }
    Ok(taken_back)
}

/// Returns those commits that the target does not have, and the revisions that stand for the target.
fn find_missing(
    repository: &Repository,
    target: &str,
    commits: &[&str],
) -> Result<(HashSet<String>, Vec<String>), ToolError> {
    let (within, revisions) = target_revisions(repository, target)?;
    Ok((within.list_missing(repository, commits)?, revisions))
}
