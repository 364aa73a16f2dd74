//! Snapshots of the workspace at the end of each turn, and the way back to one of them.

use agency_api::trash::{Turn, Turns};
use agency_api::{Failure, FailureCode};
use agency_workspace::{Project, Snapshot, TrashEntry, WorkspaceName};

use crate::failure::AsFailure;
use crate::trash::{id_of, time};

const BEFORE_FIRST_TURN: &str = "before the first turn";
const TURN: &str = "turn";
const BACK_TO: &str = "back to ";
const RESTORED_FILES: &str = "brought back";

/// Blocking. Takes the snapshot with which the first turn is compared.
pub fn keep_start(project: &Project, name: &WorkspaceName) -> Result<(), Failure> {
    agency_workspace::snapshot_before_first_turn(project, name, BEFORE_FIRST_TURN)
        .map(drop)
        .map_err(|err| err.as_failure())
}

/// Blocking. Takes the snapshot at the end of a turn. `None`: no file has changed.
pub fn keep_turn(project: &Project, name: &WorkspaceName) -> Result<Option<Snapshot>, Failure> {
    agency_workspace::snapshot_if_changed(project, name, TURN).map_err(|err| err.as_failure())
}

/// Blocking.
pub fn list(project: &Project, name: &WorkspaceName) -> Result<Turns, Failure> {
    let failed = |err: agency_workspace::OperationError| err.as_failure();
    let snapshots = agency_workspace::snapshots(project, name).map_err(failed)?;
    let mut turns = Vec::new();
    for (at, snapshot) in snapshots.iter().enumerate().filter(|(_, snapshot)| snapshot.number > 0) {
        let before = at.checked_sub(1).map(|at| &snapshots[at]);
        let diff = before.map(|before| agency_workspace::diff_between(project, name, before, snapshot));
        let diff = diff.transpose().map_err(failed)?;
        turns.push(Turn {
            number: snapshot.number,
            time: Some(time(snapshot.at)),
            label: snapshot.label.clone(),
            files: diff.as_ref().map_or(0, |diff| diff.files.len() as u64),
            additions: diff.as_ref().map_or(0, |diff| diff.additions()),
            deletions: diff.as_ref().map_or(0, |diff| diff.deletions()),
            reference: snapshot.reference.clone(),
        });
    }
    Ok(Turns { turns })
}

/// Blocking. Makes the files as they were after an earlier turn. Returns that turn, and the trash entry that keeps the
/// files which were there before.
pub fn restore(project: &Project, name: &WorkspaceName, turn: Option<u64>) -> Result<(u64, String), Failure> {
    let failed = |err: agency_workspace::OperationError| err.as_failure();
    let snapshots = agency_workspace::snapshots(project, name).map_err(failed)?;
    let target = choose_snapshot(name, &snapshots, turn)?;
    let kept = agency_workspace::restore_snapshot(project, name, target).map_err(failed)?;
    let label = format!("{BACK_TO}{}", turn_shown_by(target));
    // Take a snapshot even if the files were the same already: from now on this turn is the last one.
    agency_workspace::snapshot(project, name, &label).map_err(failed)?;
    Ok((turn_shown_by(target), id_of(&kept)))
}

fn choose_snapshot<'a>(
    name: &WorkspaceName,
    snapshots: &'a [Snapshot],
    turn: Option<u64>,
) -> Result<&'a Snapshot, Failure> {
    let list = format!("`agency turns {name}` lists them");
    let none = || {
        Failure::new("no turn to undo")
            .code(FailureCode::NotFound)
            .because("no turn has changed a file (terminal agents have no recorded turns)")
            .hint(list.clone())
    };
    match turn {
        Some(number) => snapshots.iter().find(|snapshot| snapshot.number == number).ok_or_else(|| {
            Failure::new(format!("there is no turn {number}")).code(FailureCode::NotFound).hint(list)
        }),
        None => {
            let last = last_turn(snapshots).ok_or_else(none)?;
            snapshots.iter().rfind(|snapshot| snapshot.number < last).ok_or_else(none)
        }
    }
}

/// The last turn that has ended and was not undone. Changes since its end do not count.
fn last_turn(snapshots: &[Snapshot]) -> Option<u64> {
    let (newest, earlier) = snapshots.split_last()?;
    match turn_shown_by(newest) {
        number if number == newest.number => Some(number),
        number => last_turn(&earlier[..earlier.partition_point(|snapshot| snapshot.number <= number)]),
    }
}

/// Blocking. Brings files of a trash entry back into their workspace. Returns remarks for the user.
pub fn restore_files(project: &Project, trashed: &TrashEntry) -> Result<Vec<String>, Failure> {
    let restored = agency_workspace::restore(project, trashed);
    if restored.is_ok() {
        keep_restored_files(project, &trashed.workspace);
    }
    restored.map(|workspace| workspace.warnings).map_err(|err| err.as_failure())
}

/// Blocking. After files came back from the trash, takes a snapshot, so that `agency undo --turn` can undo that too.
fn keep_restored_files(project: &Project, name: &WorkspaceName) {
    let kept = agency_workspace::snapshots(project, name).and_then(|snapshots| match snapshots.is_empty() {
        true => Ok(None),
        false => agency_workspace::snapshot_if_changed(project, name, RESTORED_FILES),
    });
    if let Err(cause) = kept {
        tracing::warn!(workspace = %name, %cause, "no snapshot was taken after files came back from the trash");
    }
}

/// The turn whose end the snapshot shows.
fn turn_shown_by(snapshot: &Snapshot) -> u64 {
    let restored = snapshot.label.strip_prefix(BACK_TO).and_then(|number| number.parse().ok());
    restored.unwrap_or(snapshot.number)
}
