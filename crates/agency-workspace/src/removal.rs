//! Options and result of a removal.
//!
//! Not how it is done: see `remove`.

use std::path::PathBuf;

use crate::lost::Lost;

/// How to remove a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemoveOptions {
    /// Removes also a workspace with work that is uncommitted or not in the base.
    pub discard: bool,
    /// Saves ignored files in the trash too. They may be many.
    pub keep_ignored: bool,
}

impl RemoveOptions {
    /// Removes a workspace whatever is in it.
    pub fn discarding() -> Self {
        Self { discard: true, ..Self::default() }
    }
}

/// The result of a removal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removed {
    /// The ref `refs/agency/trash/…` that holds the files, the index and the branch. None if there was
    /// nothing to remove.
    pub trash_ref: Option<String>,
    /// The branch that was deleted.
    pub branch: Option<String>,
    /// The directory that was deleted.
    pub directory: Option<PathBuf>,
    /// The size of the files that a restore writes. None if the directory was gone already.
    pub saved_bytes: Option<u64>,
    /// The files that were deleted and are not in the trash.
    pub lost: Lost,
}
