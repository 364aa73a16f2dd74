//! Merges a jj workspace into a bookmark, syncs it with its base, and commits its work.
//!
//! Every step is an operation outside the operation log, on top of the previous one. If there is no conflict,
//! the log gets all of them at once at the end. So no user sees half a merge, and `jj op restore` undoes a
//! whole one.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::base::explicit_base;
use crate::branch_checkouts::find_operation_on_branch;
use crate::error::OperationCause;
use crate::integration::{
    MergeInspection, MergeMethod, MergeRequest, Merged, SyncMethod, Synced, UndoneMerge, commit_message,
};
use crate::integration_lock::IntegrationLock;
use crate::jj::Jj;
use crate::jj::merge_commits::MergeCommits;
use crate::jj::repository::{JjRepository, Revision, any_of, quoted, revisions};
use crate::jj::saving::save_workspace;
use crate::jj::workspace::{JjWorkspace, find_parents};
use crate::name::{BRANCHES, WorkspaceName};
use crate::pending_merge::{self, MergeOutcome, PendingMerge, RecoveredMerge};
use crate::repository::tree_of;
use crate::saved_commit::Ignored;
use crate::tool::ToolError;
use crate::trash::TrashReason;
use crate::work::WorkAtRisk;

/// Leaves out commits that jj itself would discard.
const NOT_BLANK: &str = "~ (empty() & description(exact:\"\"))";

/// Operations that are not in the log yet.
struct PendingOperations {
    jj: Jj,
    first: String,
    last: String,
}

impl PendingOperations {
    fn after_last(repository: &JjRepository) -> Result<Self, ToolError> {
        let first = repository.operation()?;
        Ok(Self { jj: repository.jj(), last: first.clone(), first })
    }

    fn run(&mut self, args: &[&str]) -> Result<(), ToolError> {
        let output = self.jj.unintegrated_at(&self.last).run(args)?;
        let line = output.stderr.lines().find(|line| line.contains("--no-integrate-operation"));
        // Without such a line jj had nothing to do.
        if let Some(id) = line.and_then(|line| line.split_whitespace().last()) {
            self.last = id.to_owned();
        }
        Ok(())
    }

    fn revisions(&self, revset: &str) -> Result<Vec<Revision>, ToolError> {
        revisions(&self.jj.at_operation(&self.last), revset)
    }

    fn heads(&self) -> Result<HashSet<String>, ToolError> {
        Ok(self.revisions("visible_heads()")?.into_iter().map(|revision| revision.id).collect())
    }

    /// Runs a command that creates one new head, and returns that head.
    fn create_head(&mut self, args: &[&str]) -> Result<String, ToolError> {
        let before = self.heads()?;
        self.run(args)?;
        let new = self.heads()?.difference(&before).next().cloned();
        new.ok_or_else(|| ToolError::Failed {
            command: format!("jj {}", args.first().unwrap_or(&"")),
            stderr: "no commit was created".into(),
        })
    }

    fn conflicted_files(&self, revset: &str) -> Result<Vec<PathBuf>, ToolError> {
        let conflicted = self.revisions(&format!("({revset}) & conflicts()"))?;
        let mut files = Vec::new();
        for revision in conflicted {
            let template = r#"if(conflict, path ++ "\n")"#;
            let args = ["file", "list", "-r", &revision.id, "-T", template];
            files.extend(
                self.jj
                    .at_operation(&self.last)
                    .read_lines(&args)?
                    .into_iter()
                    .filter(|line| !line.is_empty()),
            );
        }
        files.sort();
        files.dedup();
        Ok(files.into_iter().map(PathBuf::from).collect())
    }

    /// Adds all operations to the log, in one step.
    fn integrate(self, repository: &JjRepository) -> Result<(), ToolError> {
        if self.last != self.first {
            self.jj.run(&["op", "integrate", &self.last])?;
        }
        repository.export()
    }
}

/// Returns the commits to merge: the working copy if it is described, otherwise its parents.
fn committed_tips(repository: &JjRepository, name: &WorkspaceName) -> Result<Vec<String>, OperationCause> {
    let target = find_working_copy(repository, name)?;
    if !target.is_described && !target.is_empty {
        let files = crate::jj::state(repository, name, None)?.uncommitted.len();
        if let Some(work) = WorkAtRisk::of(name, files.max(1), 0, String::new()) {
            return Err(OperationCause::HasWork(work));
        }
    }
    tips_of(repository, &target)
}

/// Returns the working-copy commit of a workspace, whose directory may be gone.
fn find_working_copy(repository: &JjRepository, name: &WorkspaceName) -> Result<Revision, OperationCause> {
    let found = JjWorkspace::snapshot_and_find(repository, name)?;
    match &found.target {
        Some(target) => Ok(target.clone()),
        None => Err(found
            .ready(repository, name)
            .err()
            .unwrap_or(OperationCause::BookmarkMissing { bookmark: name.branch() })),
    }
}

fn tips_of(repository: &JjRepository, target: &Revision) -> Result<Vec<String>, OperationCause> {
    if target.is_blank() {
        return Ok(find_parents(repository, &target.id)?);
    }
    Ok(vec![target.id.clone()])
}

pub(crate) fn merge(
    repository: &JjRepository,
    name: &WorkspaceName,
    request: &MergeRequest,
) -> Result<Merged, OperationCause> {
    let lock = IntegrationLock::acquire(repository.store())?;
    recover_merges(repository, &lock)?;
    let tips = committed_tips(repository, name)?;
    let PreparedMerge { mut operations, into, before, after, mut notes } =
        prepare_merge(repository, name, &tips, request, None)?;
    notes.push(format!("undo: jj op restore {:.12}", operations.first));
    operations.run(&["bookmark", "set", "-r", &after, &into])?;
    if let [tip] = &tips[..] {
        operations.run(&["bookmark", "set", "--allow-backwards", "-r", tip, &name.branch()])?;
    }
    if bookmark_commit(repository, &into)? != before {
        return Err(OperationCause::TargetMoved { branch: into });
    }
    let tip = tips.last().cloned().unwrap_or_default();
    let pending = PendingMerge {
        name: name.clone(),
        target: into.clone(),
        old: before.clone(),
        new: after.clone(),
        tip,
    };
    pending.write(repository.store())?;
    complete_merge(repository, operations, &pending)?;
    Ok(Merged { into, before, after, checkout: None, notes })
}

/// Adds the merge to the log. On an error, jj's log decides whether the merge happened: the later steps can
/// be repeated.
fn complete_merge(
    repository: &JjRepository,
    operations: PendingOperations,
    pending: &PendingMerge,
) -> Result<(), OperationCause> {
    let landed = operations.integrate(repository).and_then(|()| pending.complete(repository.store()));
    let Err(err) = landed else { return Ok(()) };
    match recover_merge(repository, pending) {
        Ok(MergeOutcome::Merged) => Ok(()),
        Ok(MergeOutcome::RolledBack { .. }) => Err(err.into()),
        Err(source) => Err(OperationCause::MergeUncertain { branch: pending.target.clone(), source }),
    }
}

/// Moves the bookmark back, and abandons the commits that only the merge made. Both enter the log as one.
pub(crate) fn undo_merge(
    repository: &JjRepository,
    name: &WorkspaceName,
) -> Result<UndoneMerge, OperationCause> {
    let lock = IntegrationLock::acquire(repository.store())?;
    recover_merges(repository, &lock)?;
    let PendingMerge { target: branch, old, new, tip, .. } = PendingMerge::last(repository.store(), name)?;
    if bookmark_commit(repository, &branch)? != new {
        return Err(OperationCause::BuiltUpon { by: branch.clone(), branch });
    }
    let above = format!("{new}:: ~ {new} ~ ::{tip} {NOT_BLANK}");
    let remote = format!("remote_bookmarks() & {new}::");
    for revset in [above, remote] {
        if let Some(other) = repository.revisions(&revset)?.first() {
            return Err(OperationCause::BuiltUpon { branch, by: format!("{:.12}", other.id) });
        }
    }
    let mut operations = PendingOperations::after_last(repository)?;
    operations.run(&["bookmark", "set", "--allow-backwards", "-r", &old, &branch])?;
    let made = format!("{old}..{new} ~ ::{tip}");
    if !operations.revisions(&made)?.is_empty() {
        operations.run(&["abandon", &made])?;
    }
    operations.integrate(repository)?;
    Ok(UndoneMerge { branch, before: new, after: old, checkout: None })
}

/// Recovers merges that were interrupted: their operation is in the log, or it is not.
pub(crate) fn recover_merges(
    repository: &JjRepository,
    _: &IntegrationLock,
) -> Result<Vec<RecoveredMerge>, OperationCause> {
    let settle = |pending: &PendingMerge| {
        let outcome = recover_merge(repository, pending)?;
        Ok(RecoveredMerge { workspace: pending.name.clone(), into: pending.target.clone(), outcome })
    };
    pending_merge::pending_merges(repository.store())?.iter().map(settle).collect()
}

fn recover_merge(repository: &JjRepository, pending: &PendingMerge) -> Result<MergeOutcome, ToolError> {
    let (store, bookmark) = (repository.store(), quoted(&pending.target));
    let arrived = format!("present({}) & ::bookmarks(exact:{bookmark})", pending.new);
    if repository.revisions(&arrived)?.is_empty() {
        pending.delete(store)?;
        return Ok(MergeOutcome::RolledBack { trash_ref: None });
    }
    repository.export()?;
    pending.complete(store)?;
    Ok(MergeOutcome::Merged)
}

/// Checks whether [`merge`] would refuse once all the work is committed. The log stays as it is.
pub(crate) fn may_merge(
    repository: &JjRepository,
    name: &WorkspaceName,
    request: &MergeRequest,
) -> Result<(), OperationCause> {
    let _lock = IntegrationLock::acquire(repository.store())?;
    let target = find_working_copy(repository, name)?;
    let tips = tips_of(repository, &target)?;
    prepare_merge(repository, name, &tips, request, Some(&target.id)).map(drop)
}

/// Finds the target and uncommitted work. Fails with the first reason to refuse, even once all work is committed.
pub(crate) fn inspect_merge(
    repository: &JjRepository,
    name: &WorkspaceName,
    request: &MergeRequest,
    inspection: &mut MergeInspection,
) -> Result<(), OperationCause> {
    let lock = IntegrationLock::acquire(repository.store())?;
    recover_merges(repository, &lock)?;
    drop(lock);
    inspection.uncommitted = match committed_tips(repository, name) {
        Err(OperationCause::HasWork(work)) => Some(work),
        tips => tips.map(|_| None)?,
    };
    inspection.into = Some(choose_target(repository, request)?);
    may_merge(repository, name, request)
}

/// A merge that is not in the log yet.
struct PreparedMerge {
    operations: PendingOperations,
    into: String,
    before: String,
    after: String,
    notes: Vec<String>,
}

/// `described` is a commit that will have a description by the time of the merge.
fn prepare_merge(
    repository: &JjRepository,
    name: &WorkspaceName,
    tips: &[String],
    request: &MergeRequest,
    described: Option<&str>,
) -> Result<PreparedMerge, OperationCause> {
    let into = choose_target(repository, request)?;
    // jj has no such operations. In a colocated repository the user may run git, which moves the branch when the
    // operation ends, and jj would follow.
    if let Some((path, operation)) = find_operation_on_branch(repository.store(), &into)? {
        return Err(operation.refusal(path));
    }
    let before = bookmark_commit(repository, &into)?;
    let all = format!("({}) ~ ::{before} {NOT_BLANK}", ancestors_revset(tips));
    if repository.revisions(&all)?.is_empty() {
        return Err(OperationCause::NothingNew { target: into });
    }
    let own = MergeCommits::find(repository, name, &all, described)?;
    own.refuse_unfinished(repository, request.how, &into)?;
    let mut operations = PendingOperations::after_last(repository)?;
    let files = operations.conflicted_files(&own.commits)?;
    if !files.is_empty() {
        return Err(OperationCause::Unresolved { files });
    }
    let at: Vec<&str> = tips.iter().map(String::as_str).collect();
    let message = commit_message(repository.store(), name, (&into, &before), &at, request)?;
    let after =
        create_merged_commit(&mut operations, (&into, &before), tips, &own.commits, (request.how, &message))?;
    let files = operations.conflicted_files(&format!("{before}..{after}"))?;
    let is_new_commit = matches!(request.how, MergeMethod::Squash | MergeMethod::Rebase);
    if is_new_commit && tree_of(repository.store(), &after)? == tree_of(repository.store(), &before)? {
        return Err(OperationCause::NothingNew { target: into });
    }
    if !files.is_empty() {
        return Err(OperationCause::Conflicts { with: into, files });
    }
    let notes = own.notes(repository, request.how, &into)?;
    Ok(PreparedMerge { operations, into, before, after, notes })
}

/// Chooses the bookmark to merge into: the named one, the base, the one below the base, or the one that the
/// user works on top of.
fn choose_target(repository: &JjRepository, request: &MergeRequest) -> Result<String, OperationCause> {
    let known = repository.bookmarks()?;
    let base = request.base.as_ref().filter(|base| known.contains(base));
    if let Some(named) = request.into.as_ref().or(base) {
        return Ok(named.clone());
    }
    if let Some(nearest) = nearest_to_base(repository, request.base.as_deref())? {
        return Ok(nearest);
    }
    if let Some(nearest) = repository.nearest_bookmark("@")? {
        return Ok(nearest);
    }
    let mut users = known.iter().filter(|known| !known.starts_with(BRANCHES));
    match (users.clone().find(|known| *known == "main"), users.next(), users.next()) {
        (Some(chosen), ..) | (None, Some(chosen), None) => Ok(chosen.clone()),
        _ => Err(OperationCause::NoBookmark),
    }
}

/// Returns the bookmark below a base that is not below the user's change: the task began in another workspace of
/// the user.
fn nearest_to_base(repository: &JjRepository, base: Option<&str>) -> Result<Option<String>, ToolError> {
    let Some(base) = explicit_base(base) else { return Ok(None) };
    let Some(commit) = repository.commit_of(base)? else { return Ok(None) };
    match repository.revisions(&format!("{commit} & ::@"))?.is_empty() {
        true => repository.nearest_bookmark(&commit),
        false => Ok(None),
    }
}

/// Returns the commit of a bookmark.
fn bookmark_commit(repository: &JjRepository, bookmark: &str) -> Result<String, OperationCause> {
    let found = repository.revisions(&format!("bookmarks(exact:{})", quoted(bookmark)))?;
    match &found[..] {
        [revision] => Ok(revision.id.clone()),
        [] => Err(OperationCause::BookmarkMissing { bookmark: bookmark.to_owned() }),
        _ => Err(OperationCause::BookmarkConflicted { bookmark: bookmark.to_owned() }),
    }
}

/// Refuses a base that is a bookmark with several commits: one of them would be chosen at random.
fn refuse_conflicted(repository: &JjRepository, base: &str) -> Result<(), OperationCause> {
    match bookmark_commit(repository, base) {
        Err(err @ OperationCause::BookmarkConflicted { .. }) => Err(err),
        Err(OperationCause::BookmarkMissing { .. }) | Ok(_) => Ok(()),
        Err(err) => Err(err),
    }
}

fn ancestors_revset(tips: &[String]) -> String {
    format!("::({})", tips.join("|"))
}

fn create_merged_commit(
    operations: &mut PendingOperations,
    (into, before): (&str, &str),
    tips: &[String],
    own: &str,
    (how, message): (MergeMethod, &str),
) -> Result<String, OperationCause> {
    let all: Vec<&str> = [before].into_iter().chain(tips.iter().map(String::as_str)).collect();
    match how {
        MergeMethod::Merge => {
            Ok(operations.create_head(&[&["new", "--no-edit", "-m", message], &all[..]].concat())?)
        }
        MergeMethod::Squash => {
            let merged =
                operations.create_head(&[&["new", "--no-edit", "-m", message], &all[..]].concat())?;
            let start = operations.heads()?;
            let squashed = operations.create_head(&["new", "--no-edit", "-m", message, before])?;
            operations.run(&["restore", "--from", &merged, "--into", &squashed])?;
            let made = operations.heads()?.difference(&start).next().cloned();
            operations.run(&["abandon", &merged])?;
            Ok(made.unwrap_or(squashed))
        }
        MergeMethod::Rebase => Ok(operations.create_head(&["duplicate", "--onto", before, own])?),
        MergeMethod::FastForward => fast_forward(operations, into, before, tips),
    }
}

fn fast_forward(
    operations: &PendingOperations,
    into: &str,
    before: &str,
    tips: &[String],
) -> Result<String, OperationCause> {
    let missing = operations.revisions(&format!("::{before} ~ {}", ancestors_revset(tips)))?;
    match (missing.len() as u64, tips) {
        (0, [tip]) => Ok(tip.clone()),
        (commits, _) => Err(OperationCause::NotFastForward { target: into.to_owned(), commits }),
    }
}

pub(crate) fn sync(
    repository: &JjRepository,
    name: &WorkspaceName,
    base: Option<&str>,
    how: SyncMethod,
) -> Result<Synced, OperationCause> {
    let _lock = IntegrationLock::acquire(repository.store())?;
    let found = JjWorkspace::snapshot_and_find(repository, name)?;
    let before = found.ready(repository, name)?.id.clone();
    let base = match explicit_base(base) {
        Some(base) => base.to_owned(),
        None => repository.nearest_bookmark("@")?.unwrap_or_else(|| "main".into()),
    };
    refuse_conflicted(repository, &base)?;
    let Some(commit) = repository.tips(Some(&base))?.into_iter().next() else {
        return Err(OperationCause::RevisionMissing { base });
    };
    let commits = repository.revisions(&format!("::{commit} ~ ::{before}"))?.len() as u64;
    if commits == 0 {
        return Ok(Synced { base, commits, after: before.clone(), before, trash_ref: None });
    }
    let trash_ref = match how {
        SyncMethod::Rebase => rebase(repository, name, &found, &before, (&base, &commit))?,
        SyncMethod::Merge => merge_base(repository, name, (&base, &commit))?,
    };
    let after =
        JjWorkspace::snapshot_and_find(repository, name)?.target.map(|target| target.id).unwrap_or_default();
    Ok(Synced { base, commits, before, after, trash_ref })
}

/// Rebases only commits that no other workspace is on: those of the user must not move.
fn rebase(
    repository: &JjRepository,
    name: &WorkspaceName,
    found: &JjWorkspace,
    before: &str,
    (base, commit): (&str, &str),
) -> Result<Option<String>, OperationCause> {
    let own = format!("({commit}..{before}) ~ ::({})", any_of(&found.others));
    let mut operations = PendingOperations::after_last(repository)?;
    operations.run(&["rebase", "-s", &format!("roots({own})"), "-d", commit])?;
    let files = operations.conflicted_files(&format!("{commit}:: ~ ::{commit}"))?;
    let were_there = repository.revisions(&format!("({own}) & conflicts()"))?;
    if !files.is_empty() && were_there.is_empty() {
        return Err(OperationCause::Conflicts { with: base.to_owned(), files });
    }
    let kept = save_workspace(repository, name, found, TrashReason::Rebased, Ignored::Left)?;
    operations.integrate(repository)?;
    Ok(kept)
}

fn merge_base(
    repository: &JjRepository,
    name: &WorkspaceName,
    (base, commit): (&str, &str),
) -> Result<Option<String>, OperationCause> {
    let tips = committed_tips(repository, name)?;
    let mut all: Vec<&str> = tips.iter().map(String::as_str).collect();
    all.push(commit);
    let message = format!("Merge {base} into {}", name.branch());
    let mut operations = PendingOperations::after_last(repository)?;
    let merged = operations.create_head(&[&["new", "--no-edit", "-m", &message], &all[..]].concat())?;
    let files = operations.conflicted_files(&merged)?;
    if !files.is_empty() {
        return Err(OperationCause::Conflicts { with: base.to_owned(), files });
    }
    let inside = repository.jj_in_task(&repository.workspace_path(name));
    inside.run(&[&["new", "-m", &message], &all[..]].concat())?;
    inside.run(&["new"])?;
    Ok(None)
}

/// Describes the working copy, begins a new one, and moves the bookmark.
pub(crate) fn commit_all(
    repository: &JjRepository,
    name: &WorkspaceName,
    message: &str,
) -> Result<Option<String>, OperationCause> {
    let found = JjWorkspace::snapshot_and_find(repository, name)?;
    let target = found.ready(repository, name)?;
    if target.is_empty || target.is_described {
        return Ok(None);
    }
    repository.jj_in_task(&repository.workspace_path(name)).run(&["commit", "-m", message])?;
    let now = JjWorkspace::find(repository, name)?;
    let Some(commit) = find_parents(repository, &now.ready(repository, name)?.id)?.into_iter().next() else {
        return Ok(None);
    };
    repository.jj().run(&["bookmark", "set", "--allow-backwards", "-r", &commit, &name.branch()])?;
    repository.export()?;
    Ok(Some(commit))
}
