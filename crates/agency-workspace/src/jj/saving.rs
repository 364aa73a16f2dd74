//! Saves a jj workspace in the trash.
//!
//! Not when: creation, removal, restoration and syncs decide that.

use crate::error::OperationCause;
use crate::jj::files::read_all;
use crate::jj::repository::JjRepository;
use crate::jj::workspace::JjWorkspace;
use crate::name::WorkspaceName;
use crate::presence::Presence;
use crate::saved_commit::{Contents, Ignored};
use crate::tool::ToolError;
use crate::trash::{self, TrashReason};

/// Saves everything that exists of the workspace. Returns None if nothing does.
pub(super) fn save_workspace(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &JjWorkspace,
    reason: TrashReason,
    ignored: Ignored,
) -> Result<Option<String>, OperationCause> {
    let Some(contents) = read_contents(repository, name, found, ignored)? else { return Ok(None) };
    let trailers = found.describe(repository, name)?;
    Ok(Some(trash::save_contents(repository.store(), name, &contents, trailers, reason)?))
}

/// Reads everything. Refuses if anything cannot be saved.
pub(super) fn read_contents(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &JjWorkspace,
    ignored: Ignored,
) -> Result<Option<Contents>, OperationCause> {
    let contents = match (&found.target, &found.bookmark) {
        (Some(target), _) if found.presence() == Presence::Ready => {
            read_all(repository, name, target, ignored, found.is_forgotten)?
        }
        (Some(target), _) => Contents::of_commit(repository.store(), &target.id)?,
        (None, Some(tip)) => Contents::of_commit(repository.store(), tip)?,
        (None, None) => return Ok(None),
    };
    Ok(Some(contents))
}

/// Saves the commits that would be lost if jj forgot a workspace whose directory is gone.
pub(super) fn save_unreferenced(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &JjWorkspace,
) -> Result<Option<String>, ToolError> {
    let Some(target) = &found.target else { return Ok(None) };
    if target.is_blank() && found.count_unmerged(repository, name, None)? == 0 {
        return Ok(None);
    }
    let contents = Contents::of_commit(repository.store(), &target.id)?;
    let trailers = found.describe(repository, name)?;
    trash::save_contents(repository.store(), name, &contents, trailers, TrashReason::Loose).map(Some)
}
