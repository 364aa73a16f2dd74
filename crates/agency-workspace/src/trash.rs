//! The trash: work that a user discards, as commits under `refs/agency/trash/`.
//!
//! Saves work. `trash_list` lists and deletes entries.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::error::RemoveCause;
use crate::git_workspace::GitWorkspace;
use crate::hidden_ref::{HiddenRef, merged_mark_ref, turn_refs};
use crate::name::WorkspaceName;
use crate::repository::Repository;
use crate::saved_commit::{Contents, Ignored, Trailers, describe};
use crate::tool::ToolError;

pub(crate) const TRASH: &str = "refs/agency/trash/";

/// Saved work that [`crate::restore()`] can restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrashEntry {
    /// The hidden ref: `refs/agency/trash/…`.
    pub reference: String,
    /// The workspace that the work comes from.
    pub workspace: WorkspaceName,
    /// The time at which it was saved.
    pub at: SystemTime,
    /// Why it was saved.
    pub reason: TrashReason,
    pub(crate) commit: String,
    pub(crate) trailers: Trailers,
}

/// Why work is in the trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrashReason {
    /// The workspace was removed.
    Removed,
    /// A snapshot was restored over it.
    PutBack,
    /// Its commits were created again on top of its base.
    Rebased,
    /// A commit that no ref held.
    Loose,
}

impl TrashReason {
    const ALL: [TrashReason; 4] =
        [TrashReason::Removed, TrashReason::PutBack, TrashReason::Rebased, TrashReason::Loose];

    fn subject(self, name: &WorkspaceName) -> String {
        format!("agency: workspace {name}, {}", self.words())
    }

    fn words(self) -> &'static str {
        match self {
            TrashReason::Removed => "as it was removed",
            TrashReason::PutBack => "before a snapshot was put back",
            TrashReason::Rebased => "before it was rebased",
            TrashReason::Loose => "a commit of it",
        }
    }

    fn of(subject: &str) -> Self {
        Self::ALL.into_iter().find(|reason| subject.ends_with(reason.words())).unwrap_or(TrashReason::Loose)
    }
}

/// Deletes the snapshots of a workspace and its merge mark.
pub(crate) fn delete_snapshots_and_mark(
    repository: &Repository,
    name: &WorkspaceName,
) -> Result<Vec<String>, ToolError> {
    let mut refs = repository.hidden_refs(&turn_refs(name))?;
    refs.extend(repository.hidden_refs(&merged_mark_ref(name))?);
    for hidden in &refs {
        repository.git().change(&["update-ref", "-d", &hidden.reference])?;
    }
    Ok(refs.into_iter().map(|hidden| hidden.reference).collect())
}

pub(crate) fn list(repository: &Repository) -> Result<Vec<TrashEntry>, ToolError> {
    let mut entries: Vec<_> = repository.hidden_refs(TRASH)?.into_iter().filter_map(parse).collect();
    entries.sort_by(|one, other| (other.at, &other.reference).cmp(&(one.at, &one.reference)));
    Ok(entries)
}

fn parse(hidden: HiddenRef) -> Option<TrashEntry> {
    let HiddenRef { reference, commit, message, .. } = hidden;
    let (name, at_ms) = reference.strip_prefix(TRASH)?.rsplit_once('-')?;
    let workspace: WorkspaceName = name.parse().ok()?;
    let trailers = Trailers::parse(&message);
    let reason = if trailers.workspace.is_some() {
        TrashReason::of(message.lines().next()?)
    } else {
        TrashReason::Loose
    };
    let at = UNIX_EPOCH + Duration::from_millis(at_ms.parse().ok()?);
    Some(TrashEntry { workspace, at, reason, trailers, reference, commit })
}

/// Saves everything that exists of a workspace. Returns None if nothing does.
pub(crate) fn save_workspace(
    repository: &Repository,
    name: &WorkspaceName,
    found: &GitWorkspace,
    reason: TrashReason,
    ignored: Ignored,
) -> Result<Option<String>, RemoveCause> {
    let head = found.head().map(str::to_owned);
    let contents = match (&found.worktree, &head) {
        (Some(worktree), _) => Contents::read_all(repository, worktree, head.as_deref(), ignored)?,
        (None, Some(head)) => Contents::of_commit(repository, head)?,
        (None, None) => return Ok(None),
    };
    Ok(save_contents(repository, name, &contents, describe(name, found), reason).map(Some)?)
}

pub(crate) fn save_contents(
    repository: &Repository,
    name: &WorkspaceName,
    contents: &Contents,
    trailers: Trailers,
    reason: TrashReason,
) -> Result<String, ToolError> {
    let commit = contents.save(repository, &reason.subject(name), trailers)?;
    save_commit(repository, name, &commit)
}

/// Adds a commit to the trash.
pub(crate) fn save_commit(
    repository: &Repository,
    name: &WorkspaceName,
    commit: &str,
) -> Result<String, ToolError> {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at_ms = u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX);
    repository
        .add_hidden_ref(commit, at_ms, |at_ms| format!("{TRASH}{name}-{at_ms}"))
        .map(|(_, reference)| reference)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_of_a_trash_entry_is_parsed_from_its_subject() {
        let name: WorkspaceName = "1-fix".parse().unwrap();
        for reason in TrashReason::ALL {
            assert_eq!(TrashReason::of(&reason.subject(&name)), reason);
        }
    }
}
