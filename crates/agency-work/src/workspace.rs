//! Makes and removes the workspace of a task.

use agency_api::Failure;
use agency_run::process_tree::end_tree;
use agency_workspace::{Presence, Project, Vcs, Workspace, WorkspaceName};

use crate::failure::AsFailure;

/// The facts that git gives about a workspace that could be made.
#[derive(Debug)]
pub struct WorkspaceCheck {
    /// The revision that the workspace would start from; `None` for a plain directory.
    pub base: Option<String>,
    /// A warning for the user.
    pub warning: Option<String>,
}

/// Blocking. Fails where making the workspace would fail.
pub fn check(project: &Project, name: &WorkspaceName, base: Option<&str>) -> Result<WorkspaceCheck, Failure> {
    let base = agency_workspace::check_create(project, name, base).map_err(|err| err.as_failure())?;
    if project.vcs() == Vcs::Plain {
        return Ok(WorkspaceCheck { base: None, warning: None });
    }
    // The number is only for a warning, so a failure to count is no failure.
    let warning = match agency_workspace::dirty_checkout(project).unwrap_or_default().len() {
        0 => None,
        1 => Some("1 file with uncommitted changes in your checkout is not in the workspace".to_string()),
        many => {
            Some(format!("{many} files with uncommitted changes in your checkout are not in the workspace"))
        }
    };
    Ok(WorkspaceCheck { base: base.map(|base| base.name), warning })
}

/// Blocking. Makes the workspace of a task, or its directory if only the branch is left. `None`: it was there already.
pub fn make(
    project: &Project,
    name: &WorkspaceName,
    base: Option<&str>,
) -> Result<Option<Workspace>, Failure> {
    let failed = |err: agency_workspace::CreateError| err.as_failure();
    agency_workspace::exclude_agency_dir(project).map_err(|err| err.as_failure())?;
    let presence = agency_workspace::presence(project, name).map_err(|err| err.as_failure())?;
    match presence {
        Presence::Ready => Ok(None),
        Presence::DirectoryGone => {
            let mut workspace = agency_workspace::reattach(project, name).map_err(failed)?;
            workspace.warnings.push(format!(
                "the directory of {name} was gone, and Agency made it again from its branch; \
                 if you moved it, files that were not committed are where you moved it to"
            ));
            Ok(Some(workspace))
        }
        // `create` names the files that are in the way.
        Presence::Absent | Presence::HalfMade | Presence::NotOurs => {
            agency_workspace::create(project, name, base).map(Some).map_err(failed)
        }
    }
}

/// Blocking. Removes a workspace that a start has just made.
pub fn undo(project: &Project, made: &Workspace) -> Result<(), Failure> {
    agency_workspace::undo_create(project, made).map(drop).map_err(|err| err.as_failure())
}

/// Blocking. Refuses a workspace that cannot be removed, and one with work in it unless the work is to be discarded.
/// Returns what the removal loses.
pub fn may_remove(
    project: &Project,
    name: &WorkspaceName,
    base: Option<&str>,
    removal: agency_workspace::RemoveOptions,
) -> Result<agency_workspace::Lost, Failure> {
    agency_workspace::check_remove(project, name, base, removal).map_err(|err| err.as_failure())
}

/// Blocking. Ends every process that setup commands left running, then removes the workspace.
pub fn remove(
    run: Option<String>,
    (project, name): (Project, WorkspaceName),
    base: Option<String>,
    removal: agency_workspace::RemoveOptions,
) -> Result<(agency_workspace::Removed, u64), Failure> {
    if let Some(run) = run {
        end_tree(&run);
    }
    let removed = agency_workspace::remove(&project, &name, base.as_deref(), removal)
        .map_err(|err| err.as_failure())?;
    // Git needs long to find the size of many files.
    let count = || removed.trash_ref.as_deref().map_or(0, |reference| kept_bytes(&project, reference));
    let bytes = removed.saved_bytes.unwrap_or_else(count);
    Ok((removed, bytes))
}

/// Blocking. Only for people: 0 if the size cannot be found out.
fn kept_bytes(project: &Project, reference: &str) -> u64 {
    let entries = agency_workspace::trash_entries(project).unwrap_or_default();
    let entry = entries.iter().find(|entry| entry.reference == reference);
    entry.and_then(|entry| agency_workspace::trash_entry_bytes(project, entry).ok()).unwrap_or(0)
}
