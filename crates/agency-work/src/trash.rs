//! The trash of a project: removed tasks, and other work that hidden refs keep.
//!
//! These functions run git and block, so the daemon calls them beside its loop.
//! Not here: whether an entry may be restored or expire now. The loop asks the supervisor first.

mod removal;

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use agency_api::paths::{RunDir, StateDir, project_id};
use agency_api::trash::{self as api, Expired, Trash, TrashEntryKind};
use agency_api::{Failure, FailureCode};
use agency_core::ids::{ProjectId, TaskId, TaskKey};
use agency_run::run_meta::{self, RunMeta};
use agency_workspace::{PastMerge, Presence, Project, RemoveCause, TrashEntry, TrashReason, WorkspaceName};

use crate::failure::AsFailure;

pub use removal::{Removal, Step, TrashDirectory};

/// A git that a killed daemon started may still be deleting files.
const DELETED_WITHIN: Duration = Duration::from_secs(10);

/// Something that can be restored.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a handful of them, read and shown")]
pub enum Entry {
    /// A removed task, with its files.
    Task(Removal),
    /// Files or commits of a task, kept by a hidden ref that no removal mentions.
    Files(TrashEntry, api::TrashEntryView),
    /// The last merge of a task.
    Merge(PastMerge),
}

impl Entry {
    pub fn view(&self) -> api::TrashEntryView {
        match self {
            Entry::Task(removal) => api::TrashEntryView {
                id: removal.id.clone(),
                task: removal.task,
                slug: removal.slug.clone(),
                what: TrashEntryKind::Task,
                why: removal.why.clone(),
                time: time(removal.at()),
                bytes: removal.bytes,
                reference: removal.reference.clone(),
                batch: removal.batch.clone(),
            },
            Entry::Files(_, view) => view.clone(),
            Entry::Merge(merge) => describe_merge(merge),
        }
    }

    /// A merge below other commits can only be reverted.
    fn is_undoable(&self) -> bool {
        match self {
            Entry::Task(_) | Entry::Files(..) => true,
            Entry::Merge(merge) => merge.is_last,
        }
    }

    fn at(&self) -> SystemTime {
        match self {
            Entry::Task(removal) => removal.at(),
            Entry::Files(trashed, _) => trashed.at,
            Entry::Merge(merge) => merge.at,
        }
    }

    fn kept_at(&self) -> SystemTime {
        match self {
            Entry::Task(removal) => removal.kept_at(),
            Entry::Files(trashed, _) => trashed.at,
            Entry::Merge(merge) => merge.at,
        }
    }
}

/// Everything that `undo` can take back. `merged`: the workspaces of the tasks that are merged.
pub fn list(
    project: &Project,
    directory: &TrashDirectory,
    merged: &[WorkspaceName],
) -> Result<Trash, Failure> {
    let mut entries = with_merges(project, directory, merged)?;
    entries.retain(Entry::is_undoable);
    Ok(Trash { entries: entries.iter().map(Entry::view).collect() })
}

fn with_merges(
    project: &Project,
    directory: &TrashDirectory,
    merged: &[WorkspaceName],
) -> Result<Vec<Entry>, Failure> {
    let mut entries = entries(project, directory)?;
    let merges = agency_workspace::past_merges(project).map_err(|err| err.as_failure())?;
    let is_merged = |merge: &PastMerge| merged.contains(&merge.workspace);
    entries.extend(merges.into_iter().filter(is_merged).map(Entry::Merge));
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.at()));
    Ok(entries)
}

/// The newest first, without those whose removal is still under way.
pub fn entries(project: &Project, directory: &TrashDirectory) -> Result<Vec<Entry>, Failure> {
    let removals = directory.all();
    let refs = agency_workspace::trash_entries(project).map_err(|err| err.as_failure())?;
    let is_named = |trashed: &TrashEntry| {
        removals.iter().any(|removal| removal.reference.as_ref() == Some(&trashed.reference))
    };
    let mut entries = Vec::new();
    for trashed in refs.iter().filter(|trashed| !is_named(trashed)) {
        let being_removed = |removal: &Removal| {
            removal.step == Step::Begun && removal.task == task_of(trashed) && removal.at() <= trashed.at
        };
        if !removals.iter().any(being_removed) {
            entries.push(Entry::Files(trashed.clone(), describe(project, trashed)));
        }
    }
    entries.extend(removals.into_iter().filter(|removal| removal.step != Step::Begun).map(Entry::Task));
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.at()));
    Ok(entries)
}

fn describe(project: &Project, trashed: &TrashEntry) -> api::TrashEntryView {
    let (what, why) = match trashed.reason {
        TrashReason::Removed => (TrashEntryKind::Workspace, "the workspace was removed"),
        TrashReason::PutBack => (TrashEntryKind::Files, "older files were restored over them"),
        TrashReason::Rebased => (TrashEntryKind::Commits, "a rebase put them on top of the base again"),
        TrashReason::Loose => (TrashEntryKind::Commit, "nothing else held it"),
    };
    let name = trashed.workspace.to_string();
    let slug = name.split_once('-').map(|(_, slug)| slug.to_owned()).unwrap_or_default();
    api::TrashEntryView {
        id: id_of(&trashed.reference),
        task: task_of(trashed),
        slug,
        what,
        why: why.to_owned(),
        time: time(trashed.at),
        // If git cannot tell the size, show the entry without it.
        bytes: agency_workspace::trash_entry_bytes(project, trashed).unwrap_or(0),
        reference: Some(trashed.reference.clone()),
        batch: None,
    }
}

fn describe_merge(merge: &PastMerge) -> api::TrashEntryView {
    let name = merge.workspace.to_string();
    let slug = name.split_once('-').map(|(_, slug)| slug.to_owned()).unwrap_or_default();
    api::TrashEntryView {
        id: format!("merge-{name}"),
        task: merge.workspace.task_id().parse().unwrap_or_default(),
        slug,
        what: TrashEntryKind::Merge,
        why: format!("merged into {}", merge.into),
        time: time(merge.at),
        bytes: 0,
        reference: Some(merge.reference.clone()),
        batch: None,
    }
}

fn task_of(trashed: &TrashEntry) -> u64 {
    trashed.workspace.task_id().parse().unwrap_or_default()
}

/// The id of the trash entry that a hidden ref keeps.
pub fn id_of(reference: &str) -> String {
    reference.rsplit('/').next().unwrap_or(reference).to_owned()
}

/// The entry that `word` names; without a word the newest removal or merge.
pub fn choose(
    project: &Project,
    directory: &TrashDirectory,
    merged: &[WorkspaceName],
    word: Option<&str>,
) -> Result<Entry, Failure> {
    let mut entries = with_merges(project, directory, merged)?;
    if word.is_none() {
        entries.retain(Entry::is_undoable);
    }
    let views: Vec<api::TrashEntryView> = entries.iter().map(Entry::view).collect();
    let at = position(&views, word)?;
    Ok(entries.swap_remove(at))
}

fn position(entries: &[api::TrashEntryView], word: Option<&str>) -> Result<usize, Failure> {
    let list = "agency undo --list";
    let Some(word) = word else {
        let newest = entries.iter().position(|entry| is_of_whole_task(entry.what));
        return newest.ok_or_else(|| {
            let none =
                Failure::new("no task was removed or merged in this project").code(FailureCode::NotFound);
            if entries.is_empty() {
                none
            } else {
                none.hint(format!("`{list}` shows other work that is kept"))
            }
        });
    };
    if let Some(exact) = entries.iter().position(|entry| entry.id == word) {
        return Ok(exact);
    }
    let is_named = |entry: &&api::TrashEntryView| {
        let (id, slug) = (entry.task.to_string(), &entry.slug);
        is_of_whole_task(entry.what) && (word == id || word == *slug || word == format!("{id}-{slug}"))
    };
    if let Some(named) = entries.iter().position(|entry| is_named(&entry)) {
        return Ok(named);
    }
    let matching: Vec<usize> = (0..entries.len()).filter(|at| entries[*at].id.starts_with(word)).collect();
    match matching.as_slice() {
        [one] => Ok(*one),
        [] => Err(Failure::new(format!("the trash has nothing called `{word}`"))
            .code(FailureCode::NotFound)
            .hint(format!("`{list}`"))),
        many => {
            let ids: Vec<&str> = many.iter().map(|at| entries[*at].id.as_str()).collect();
            Err(Failure::new(format!("`{word}` may mean {}", ids.join(" or ")))
                .code(FailureCode::AmbiguousName))
        }
    }
}

fn is_of_whole_task(what: TrashEntryKind) -> bool {
    matches!(what, TrashEntryKind::Task | TrashEntryKind::Merge)
}

/// Puts the files of a removed task back where they were. Returns remarks for the user.
///
/// If an earlier try was cut off, its half-made workspace goes into the trash first.
fn restore_workspace(
    project: &Project,
    removal: &Removal,
    was_cut_off: bool,
) -> Result<Vec<String>, Failure> {
    let Some(reference) = &removal.reference else { return Ok(Vec::new()) };
    let name = workspace_name(removal)?;
    let looked = agency_workspace::presence(project, &name);
    let presence = looked.map_err(|err| err.as_failure())?;
    let trash = agency_workspace::trash_entries(project).map_err(|err| err.as_failure())?;
    let Some(trashed) = trash.into_iter().find(|trashed| trashed.reference == *reference) else {
        return match presence {
            Presence::Ready => Ok(Vec::new()),
            _ => Err(Failure::new(format!("the files of {name} are not in the trash any more"))
                .code(FailureCode::NotFound)
                .because(format!("there is no {reference}"))),
        };
    };
    if was_cut_off && presence != Presence::Absent {
        let removal = agency_workspace::RemoveOptions::discarding();
        agency_workspace::remove(project, &name, None, removal).map_err(|err| err.as_failure())?;
    }
    agency_workspace::restore(project, &trashed)
        .map(|workspace| workspace.warnings)
        .map_err(|err| err.as_failure())
}

/// Blocking. Deletes the record and the runs of an expired entry. `is_task_again`: a task with this id exists, and the
/// runs belong to it.
pub fn delete_removal(
    state: &StateDir,
    project: &ProjectId,
    directory: &TrashDirectory,
    removal: &Removal,
    is_task_again: bool,
) {
    let key = TaskKey { project: project.clone(), task: TaskId(removal.task) };
    let is_kept = directory.all().iter().any(|other| other.task == removal.task && other.id != removal.id);
    for (dir, meta) in runs_of(state, &key, removal).into_iter().filter(|(dir, meta)| {
        !is_task_again && !is_kept && meta.host == state.host() && !dir.pid_file().exists()
    }) {
        if let Err(cause) = std::fs::remove_dir_all(dir.path()) {
            tracing::warn!(run = %meta.run, %cause, "the journal of an expired task stays behind");
        }
    }
    if let Err(cause) = directory.delete(&removal.id) {
        tracing::warn!(entry = removal.id, %cause, "an expired entry stays behind");
    }
}

/// Blocking. Puts the workspace back where it was, and finds the runs of its task.
pub fn restore_task_workspace(
    state: &StateDir,
    key: &TaskKey,
    project: &Project,
    removal: &Removal,
    was_cut_off: bool,
) -> Result<RestoredWorkspace, Failure> {
    let notes = restore_workspace(project, removal, was_cut_off)?;
    let runs = runs_of(state, key, removal).into_iter().map(|(_, meta)| meta);
    let runs = runs.filter(|meta| meta.shell.is_none()).collect();
    Ok(RestoredWorkspace { notes, runs })
}

/// Blocking. The oldest first.
fn runs_of(state: &StateDir, key: &TaskKey, removal: &Removal) -> Vec<(RunDir, RunMeta)> {
    let mut runs = run_meta::all(state);
    runs.retain(|(_, meta)| {
        project_id(&meta.root) == key.project.0 && meta.task == key.task.0 && meta.slug == removal.slug
    });
    runs
}

/// The outcome of something that an earlier daemon had begun when it was killed.
#[derive(Debug)]
pub enum CutOff {
    Removal {
        key: TaskKey,
        settled: Result<Settled, Failure>,
    },
    /// A task on its way out of the trash.
    Restoration {
        key: TaskKey,
        removal: Removal,
        restored: Result<RestoredWorkspace, Failure>,
    },
}

/// The workspace of a removed task is where it was.
#[derive(Debug)]
pub struct RestoredWorkspace {
    /// Remarks for the user.
    pub notes: Vec<String>,
    /// All runs of its task, the oldest first.
    pub runs: Vec<RunMeta>,
}

/// The outcome of a removal that was cut off.
#[derive(Debug)]
pub enum Settled {
    /// Nothing had gone.
    TakenBack,
    /// The workspace is gone. `reference` keeps its files.
    Gone { reference: Option<String>, bytes: u64 },
}

/// Finishes a removal that was cut off, or finds that nothing had gone. `has_task`: the task file is still there.
pub fn settle(
    project: &Project,
    directory: &TrashDirectory,
    removal: &Removal,
    has_task: bool,
) -> Result<Settled, Failure> {
    let name = workspace_name(removal)?;
    let trash = agency_workspace::trash_entries(project).map_err(|err| err.as_failure())?;
    let is_its = |trashed: &&TrashEntry| {
        trashed.reason == TrashReason::Removed && trashed.workspace == name && trashed.at >= removal.at()
    };
    // The first ref keeps everything. A later try keeps only what the first one left in place.
    let Some(trashed) = trash.iter().rfind(is_its) else {
        return Ok(match has_task {
            true => Settled::TakenBack,
            false => Settled::Gone { reference: None, bytes: 0 },
        });
    };
    finish(project, &name, removal.keep_ignored, &directory.leftover(&removal.id))?;
    let bytes = agency_workspace::trash_entry_bytes(project, trashed).unwrap_or(0);
    Ok(Settled::Gone { reference: Some(trashed.reference.clone()), bytes })
}

/// Removes the rest of the workspace. If git has forgotten the worktree without deleting all of its files, the directory
/// moves to `aside`.
fn finish(project: &Project, name: &WorkspaceName, keep_ignored: bool, aside: &Path) -> Result<(), Failure> {
    let removal = agency_workspace::RemoveOptions { discard: true, keep_ignored };
    let deadline = Instant::now() + DELETED_WITHIN;
    loop {
        match agency_workspace::remove(project, name, None, removal) {
            Ok(_) => return Ok(()),
            Err(err) if is_being_deleted(&err.cause) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(err) if matches!(err.cause, RemoveCause::NotOurs { .. }) && !aside.exists() => {
                let path = agency_workspace::workspace_path(project, name);
                std::fs::rename(&path, aside).map_err(|cause| in_the_way(&path, &cause))?;
            }
            Err(err) => return Err(err.as_failure()),
        }
    }
}

/// The rename fails, for example, between two file systems. The user has to choose another place then.
fn in_the_way(path: &Path, cause: &std::io::Error) -> Failure {
    Failure::new(format!("cannot move away what is left of {}", path.display()))
        .code(FailureCode::IoError)
        .caused_by(cause)
        .hint("move it elsewhere yourself, or delete it: the removed work is in the trash")
}

fn is_being_deleted(cause: &RemoveCause) -> bool {
    matches!(
        cause,
        RemoveCause::NotOurs { .. }
            | RemoveCause::Unfinished { .. }
            | RemoveCause::Git(_)
            | RemoveCause::Index { .. }
    )
}

/// Deletes entries that are older than `age` for good, but not those whose removal is still under way. A dry run only
/// lists them. Also returns the removals whose files are gone now.
pub fn expire(
    project: &Project,
    directory: &TrashDirectory,
    age: Duration,
    dry_run: bool,
) -> Result<(Expired, Vec<Removal>), Failure> {
    let before = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
    let (old, young): (Vec<Entry>, Vec<Entry>) =
        entries(project, directory)?.into_iter().partition(|entry| entry.kept_at() < before);
    let expired = Expired {
        expired: old.iter().map(Entry::view).collect(),
        stays: young.iter().map(Entry::view).collect(),
        dry_run,
    };
    if dry_run || old.is_empty() {
        return Ok((expired, Vec::new()));
    }
    let mut refs = agency_workspace::trash_entries(project).map_err(|err| err.as_failure())?;
    refs.retain(|kept| expired.expired.iter().any(|entry| entry.reference.as_ref() == Some(&kept.reference)));
    agency_workspace::expire_trash(project, &refs).map_err(|err| err.as_failure())?;
    let removals = old.into_iter().filter_map(|entry| match entry {
        Entry::Task(removal) => Some(removal),
        Entry::Files(..) | Entry::Merge(_) => None,
    });
    Ok((expired, removals.collect()))
}

fn workspace_name(removal: &Removal) -> Result<WorkspaceName, Failure> {
    WorkspaceName::new(removal.task, &removal.slug)
        .map_err(|err| Failure::new(err.to_string()).code(FailureCode::Internal))
}

pub fn time(at: SystemTime) -> String {
    jiff::Timestamp::try_from(at)
        .and_then(|at| jiff::Timestamp::from_second(at.as_second()))
        .map(|at| at.to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, task: u64, slug: &str, what: TrashEntryKind) -> api::TrashEntryView {
        api::TrashEntryView {
            id: id.to_owned(),
            task,
            slug: slug.to_owned(),
            what,
            why: String::new(),
            time: String::new(),
            bytes: 0,
            reference: None,
            batch: None,
        }
    }

    #[test]
    fn an_entry_is_named_by_its_id_its_task_or_a_beginning() {
        use TrashEntryKind::{Files, Task};
        let entries = [
            entry("3-new-30", 3, "new", Files),
            entry("2-fix-20", 2, "fix", Task),
            entry("2-fix-10", 2, "fix", Task),
            entry("1-old-05", 1, "old", Task),
        ];
        let at = |word: Option<&str>| position(&entries, word).map_err(|failure| failure.message);
        assert_eq!(at(None), Ok(1), "the newest removal, not what else was kept");
        assert_eq!(at(Some("2-fix-10")), Ok(2));
        for word in ["2", "fix", "2-fix"] {
            assert_eq!(at(Some(word)), Ok(1), "{word}");
        }
        assert_eq!(at(Some("3-new")), Ok(0));
        assert_eq!(at(Some("1-o")), Ok(3));
        assert_eq!(at(Some("2-f")), Err("`2-f` may mean 2-fix-20 or 2-fix-10".to_owned()));
        assert_eq!(at(Some("x")), Err("the trash has nothing called `x`".to_owned()));
        let code = |word: &str| position(&entries, Some(word)).map_err(|failure| failure.code);
        assert_eq!(code("2-f"), Err(FailureCode::AmbiguousName));
        assert_eq!(code("x"), Err(FailureCode::NotFound));
        assert_eq!(
            position(&[], None).map_err(|failure| failure.message),
            Err("no task was removed or merged in this project".to_owned())
        );
    }
}
