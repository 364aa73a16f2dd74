//! The record of a removed task in `projects/{id}/trash/{entry}/`, beside the hidden ref that keeps its files.
//!
//! The daemon writes it before anything goes. If the daemon is killed during the removal, the next one finishes the
//! removal or undoes it. The runs of a removed task stay where they are until its entry expires.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agency_api::Bytes;
use agency_api::paths::{StateDir, create_private};
use agency_core::ids::{ProjectId, TaskId};
use agency_core::slug::{Slug, TaskName};
use agency_store::atomic;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removal {
    /// `{id}-{slug}-{milliseconds}`
    pub id: String,
    pub task: u64,
    pub slug: String,
    pub at_ms: u64,
    pub step: Step,
    /// The command that removed it, for people.
    pub why: String,
    pub keep_ignored: bool,
    /// The hidden ref with the files. None where there were none.
    pub reference: Option<String>,
    /// The size of those files.
    pub bytes: u64,
    /// The name of a command that removed several tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// Texts that waited for its agent's prompt.
    #[serde(default)]
    pub queued: Vec<Bytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Anything between nothing and everything may be gone.
    Begun,
    Done,
    /// The daemon is restoring the task.
    Restoring,
}

impl Removal {
    pub fn name(&self) -> io::Result<TaskName> {
        let slug = Slug::new(&self.slug).map_err(|err| io::Error::other(err.to_string()))?;
        Ok(TaskName { id: TaskId(self.task), slug })
    }

    pub fn at(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.at_ms)
    }

    /// When the last part of it went into the trash.
    pub fn kept_at(&self) -> SystemTime {
        let of_files = self.reference.as_deref().and_then(|name| name.rsplit('-').next()?.parse().ok());
        UNIX_EPOCH + Duration::from_millis(of_files.unwrap_or(0).max(self.at_ms))
    }
}

/// The directory with all removals of a project.
#[derive(Debug, Clone)]
pub struct TrashDirectory {
    directory: PathBuf,
}

impl TrashDirectory {
    pub fn of(state: &StateDir, project: &ProjectId) -> TrashDirectory {
        TrashDirectory { directory: state.project(&project.0).join("trash") }
    }

    pub fn begin(
        &self,
        name: &TaskName,
        why: String,
        keep_ignored: bool,
        batch: Option<String>,
        queued: Vec<Bytes>,
    ) -> io::Result<Removal> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_ms = now.as_millis() as u64;
        let removal = Removal {
            id: format!("{name}-{at_ms}"),
            task: name.id.0,
            slug: name.slug.as_str().to_owned(),
            at_ms,
            step: Step::Begun,
            why,
            keep_ignored,
            reference: None,
            bytes: 0,
            batch,
            queued,
        };
        create_private(&self.entry(&removal.id))?;
        self.write(&removal)?;
        Ok(removal)
    }

    pub fn write(&self, removal: &Removal) -> io::Result<()> {
        atomic::write(&self.record(&removal.id), &serde_json::to_vec_pretty(removal)?)
    }

    /// The newest first.
    pub fn all(&self) -> Vec<Removal> {
        let Ok(entries) = std::fs::read_dir(&self.directory) else { return Vec::new() };
        let mut removals: Vec<Removal> =
            entries.flatten().filter_map(|entry| read(&entry.path().join(RECORD))).collect();
        removals.sort_by(|one, other| (other.at_ms, &other.id).cmp(&(one.at_ms, &one.id)));
        removals
    }

    pub fn has(&self, id: &str) -> bool {
        self.record(id).exists()
    }

    /// The task's file as it was.
    pub fn task_file(&self, id: &str) -> PathBuf {
        self.entry(id).join("task.md")
    }

    /// The record of its workspace, which lay beside the repository.
    pub fn workspace(&self, id: &str) -> PathBuf {
        self.entry(id).join("workspace")
    }

    /// The rest of its directory, if git did not delete all of it.
    pub fn leftover(&self, id: &str) -> PathBuf {
        self.entry(id).join("leftover")
    }

    /// Deletes the record first: without it there is no entry, even if a part of the directory stays.
    pub fn delete(&self, id: &str) -> io::Result<()> {
        std::fs::remove_file(self.record(id)).or_else(|err| match err.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(err),
        })?;
        std::fs::remove_dir_all(self.entry(id))
    }

    fn entry(&self, id: &str) -> PathBuf {
        self.directory.join(id)
    }

    fn record(&self, id: &str) -> PathBuf {
        self.entry(id).join(RECORD)
    }
}

const RECORD: &str = "removal.json";

fn read(path: &Path) -> Option<Removal> {
    let bytes = std::fs::read(path).ok()?;
    match serde_json::from_slice(&bytes) {
        Ok(removal) => Some(removal),
        Err(cause) => {
            tracing::warn!(record = %path.display(), %cause, "the record of a removal is unreadable");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removals_are_found_again_the_newest_first_until_they_are_deleted() {
        let home = tempfile::tempdir().unwrap();
        let trash = TrashDirectory::of(&StateDir::at(home.path().to_path_buf()), &ProjectId("p".to_owned()));
        assert_eq!(trash.all(), []);
        let name = |id: u64| TaskName { id: TaskId(id), slug: Slug::new("fix").unwrap() };
        let mut first = trash.begin(&name(1), "agency rm".to_owned(), false, None, Vec::new()).unwrap();
        first.at_ms -= 1;
        first.reference = Some("refs/agency/trash/1-fix-99999999999999".to_owned());
        trash.write(&first).unwrap();
        let second = trash.begin(&name(2), "agency rm".to_owned(), true, None, vec!["text".into()]).unwrap();
        assert_eq!(trash.all(), [second.clone(), first.clone()]);
        assert_eq!(second.kept_at(), second.at());
        assert_eq!(first.kept_at(), UNIX_EPOCH + Duration::from_millis(99_999_999_999_999));
        trash.delete(&second.id).unwrap();
        assert!(trash.has(&first.id) && !trash.has(&second.id));
        assert_eq!(trash.all(), [first]);
    }
}
