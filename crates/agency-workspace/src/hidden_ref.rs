//! Hidden refs: names below `refs/agency/` that keep objects alive.
//!
//! Not who creates them: the trash, snapshots, merges and syncs do.

use std::time::Duration;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use crate::name::WorkspaceName;

/// A hidden ref and its commit.
#[derive(Debug)]
pub(crate) struct HiddenRef {
    pub(crate) reference: String,
    pub(crate) commit: String,
    pub(crate) tree: String,
    pub(crate) at: SystemTime,
    pub(crate) message: String,
}

impl HiddenRef {
    pub(crate) fn parse(entry: &str) -> Option<Self> {
        let mut fields = entry.split('\0');
        let mut next = || fields.next().map(str::to_owned);
        let (reference, commit, tree) = (next()?, next()?, next()?);
        let at = UNIX_EPOCH + Duration::from_secs(next()?.parse().ok()?);
        Some(Self { reference, commit, tree, at, message: next()? })
    }
}

/// The folder of the marks of merges.
pub(crate) const MERGED_MARKS: &str = "refs/agency/merged/";

/// Returns the ref that marks the last merge of a workspace: see `merge_mark`.
pub(crate) fn merged_mark_ref(name: &WorkspaceName) -> String {
    format!("{MERGED_MARKS}{name}")
}

/// Returns the folder of refs with the snapshots of a workspace.
pub(crate) fn turn_refs(name: &WorkspaceName) -> String {
    format!("refs/agency/turns/{}/", name.task_id())
}
