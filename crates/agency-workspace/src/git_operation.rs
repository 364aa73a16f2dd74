//! Git operations that the user has begun in a checkout and has not finished, such as a rebase.
//!
//! Looks only at the files that git keeps during them. Starts no process.

use std::path::{Path, PathBuf};

use crate::error::OperationCause;

/// A git operation that is not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GitOperation {
    /// With its article.
    what: &'static str,
    /// The arguments of the git command that aborts it.
    abort: &'static str,
}

/// The file of each operation in git's directory of a checkout. The first one that exists decides: a rebase
/// that stops at a conflict also has the file of a cherry-pick.
const SIGNS: [(&str, GitOperation); 8] = [
    ("rebase-merge", GitOperation { what: "a rebase", abort: "rebase --abort" }),
    ("rebase-apply/applying", GitOperation { what: "a `git am`", abort: "am --abort" }),
    ("rebase-apply", GitOperation { what: "a rebase", abort: "rebase --abort" }),
    ("MERGE_HEAD", GitOperation { what: "a merge", abort: "merge --abort" }),
    ("CHERRY_PICK_HEAD", GitOperation { what: "a cherry-pick", abort: "cherry-pick --abort" }),
    ("REVERT_HEAD", GitOperation { what: "a revert", abort: "revert --abort" }),
    // Stays between the commits of a long cherry-pick or revert. Either command aborts both.
    ("sequencer/todo", GitOperation { what: "a cherry-pick or revert", abort: "cherry-pick --abort" }),
    ("BISECT_START", GitOperation { what: "a bisect", abort: "bisect reset" }),
];

impl GitOperation {
    /// Returns the operation in progress in a checkout.
    pub(crate) fn in_progress(git_dir: &Path) -> Option<Self> {
        SIGNS.into_iter().find(|(sign, _)| git_dir.join(sign).exists()).map(|(_, operation)| operation)
    }

    /// The refusal to change the branch of this checkout.
    pub(crate) fn refusal(self, path: PathBuf) -> OperationCause {
        OperationCause::Busy { path, what: self.what, abort: self.abort }
    }
}
