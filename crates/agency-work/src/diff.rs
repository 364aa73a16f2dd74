//! The changes in the workspace of a task, as callers see them.

use agency_api::{Failure, FailureCode, work};
use agency_workspace::{Diff, FileDiff, FileStatus, Project, Snapshot, WorkspaceName};

use crate::failure::AsFailure;

/// No user reads a longer patch on a screen, and git can show it.
const LONGEST_PATCH: usize = 64 << 20;

/// The diff that a caller wants.
#[derive(Debug, Clone)]
pub struct DiffRequest {
    pub id: u64,
    pub slug: String,
    pub project: Project,
    pub name: WorkspaceName,
    pub base: Option<String>,
    pub turn: Option<u64>,
    pub stat: bool,
    /// The task is merged, so a start does not make its workspace again.
    pub is_final: bool,
}

impl DiffRequest {
    /// Blocking.
    pub fn compute(self) -> Result<work::Diff, Failure> {
        let diff = match self.turn {
            Some(turn) => self.of_turn(turn)?,
            None => self.of_existing_work()?,
        };
        let patch = if self.stat { None } else { Some(self.patch(&diff)?) };
        let pager = patch.as_ref().and_then(|_| agency_workspace::diff_pager(&self.project));
        Ok(work::Diff {
            task: self.id,
            slug: self.slug,
            base: self.base.filter(|_| self.turn.is_none()),
            turn: self.turn,
            additions: diff.additions(),
            deletions: diff.deletions(),
            from: diff.from,
            to: diff.to,
            files: diff.files.into_iter().map(file).collect(),
            patch: patch.map(agency_api::Bytes),
            pager,
            warnings: diff.warnings,
        })
    }

    /// The diff of the workspace. If its directory is gone, only the committed changes, with a warning.
    fn of_existing_work(&self) -> Result<Diff, Failure> {
        let mut diff = self.of_all()?;
        if agency_workspace::workspace_path(&self.project, &self.name).is_dir() {
            return Ok(diff);
        }
        let gone = format!("the workspace of {} is gone", self.name);
        let again = (!self.is_final).then(|| format!("`agency start {}` makes it again", self.id));
        if diff.files.is_empty() {
            let failure = Failure::new(gone).code(FailureCode::WorkspaceMissing);
            return Err(again.into_iter().fold(failure, Failure::hint));
        }
        let start_hint = again.map(|again| format!("; {again}")).unwrap_or_default();
        let warning = format!("{gone}, and only what was committed is shown{start_hint}");
        diff.warnings.push(warning);
        Ok(diff)
    }

    fn of_all(&self) -> Result<Diff, Failure> {
        agency_workspace::diff(&self.project, &self.name, self.base.as_deref())
            .map_err(|err| err.as_failure())
    }

    /// The diff from the end of the previous turn, or from the base, to the end of this turn.
    fn of_turn(&self, turn: u64) -> Result<Diff, Failure> {
        let (project, name) = (&self.project, &self.name);
        let taken = agency_workspace::snapshots(project, name).map_err(|err| err.as_failure())?;
        let at = taken.iter().position(|snapshot| snapshot.number == turn);
        let at = at.ok_or_else(|| no_turn(name, turn, &taken))?;
        let before = at.checked_sub(1).and_then(|before| taken.get(before));
        let diff = match before {
            Some(before) => agency_workspace::diff_between(project, name, before, &taken[at]),
            None => agency_workspace::diff_since(project, name, &self.of_all()?.from, &taken[at]),
        };
        diff.map_err(|err| err.as_failure())
    }

    fn patch(&self, diff: &Diff) -> Result<Vec<u8>, Failure> {
        let patch = agency_workspace::patch(&self.project, &self.name, diff);
        let patch = patch.map_err(|err| err.as_failure())?;
        if patch.len() <= LONGEST_PATCH {
            return Ok(patch);
        }
        let path = agency_workspace::workspace_path(&self.project, &self.name);
        Err(Failure::new(format!(
            "the diff of {} is too long to show ({} MiB)",
            self.name,
            patch.len() >> 20
        ))
        .code(FailureCode::Unsupported)
        .hint(format!(
            "--stat shows what changed; git -C '{}' diff {} shows a part of it",
            path.display(),
            diff.from
        )))
    }
}

fn no_turn(name: &WorkspaceName, turn: u64, taken: &[Snapshot]) -> Failure {
    let failure = Failure::new(format!("{name} has no recorded turn {turn}")).code(FailureCode::NotFound);
    let turns: Vec<u64> = taken.iter().map(|snapshot| snapshot.number).filter(|number| *number > 0).collect();
    match (turns.as_slice(), taken) {
        ([only], _) => failure.because(format!("it has only turn {only}")),
        ([first, .., last], _) => failure.because(format!("it has turns {first} to {last}")),
        // The files from before the first turn are number 0.
        ([], [_, ..]) => failure.because("no turn has changed a file yet"),
        ([], []) => failure.because("it has no recorded turns").hint(format!(
            "Agency records turns only in conversations; `agency diff {}` shows all changes",
            name.task_id()
        )),
    }
}

fn file(file: FileDiff) -> work::FileDiff {
    work::FileDiff {
        path: file.path.into(),
        old_path: file.old_path.map(Into::into),
        status: status(file.status),
        additions: file.additions,
        deletions: file.deletions,
        binary: file.binary,
    }
}

fn status(status: FileStatus) -> work::FileStatus {
    match status {
        FileStatus::Added => work::FileStatus::Added,
        FileStatus::Modified => work::FileStatus::Modified,
        FileStatus::Deleted => work::FileStatus::Deleted,
        FileStatus::Renamed => work::FileStatus::Renamed,
        FileStatus::Copied => work::FileStatus::Copied,
        FileStatus::TypeChanged => work::FileStatus::TypeChanged,
    }
}
