//! The ends of an agent's turns: the workspace is kept as it was, under hidden refs, and can be had back.
//!
//! One snapshot at a time for each task, beside the loop. Terminals have no turns that anybody knows of.

use std::sync::Arc;

use agency_api::Failure;
use agency_api::event::{TurnKeptEvent, TurnTakenBackEvent};
use agency_api::trash::{Turn, TurnRestored, Turns};
use agency_core::ids::TaskKey;
use agency_workspace::{Project, Snapshot, Vcs, WorkspaceName};
use tokio::sync::Mutex;

use super::World;
use crate::discarded::{id_of, operation_failure, time};
use crate::happening::{Answer, Happening};
use crate::rpc;

const TURN: &str = "turn";
const BACK_TO: &str = "back to ";
const BROUGHT_BACK: &str = "brought back";

/// Whoever reads or writes the snapshots of a task holds it.
pub(super) type TurnLock = Arc<Mutex<()>>;

impl World {
    pub(super) fn turn_ended(&mut self, key: &TaskKey) {
        if let Some(once_more) = self.snapshotting.get_mut(key) {
            *once_more = true;
            return;
        }
        let Ok((project, name)) = self.workspace_of(key) else { return };
        if project.vcs() == Vcs::Plain {
            return;
        }
        self.snapshotting.insert(key.clone(), false);
        let lock = self.turn_lock(key);
        // At once where it is free: who asks for the turns from now on is told of this one too.
        let alone = lock.clone().try_lock_owned().ok();
        let (key, reporter) = (key.clone(), self.ground.reporter.clone());
        tokio::spawn(async move {
            let alone = match alone {
                Some(alone) => alone,
                None => lock.lock_owned().await,
            };
            let kept = rpc::blocking(move || {
                agency_workspace::snapshot_if_changed(&project, &name, TURN)
                    .map_err(|err| operation_failure(&err))
            });
            let kept = kept.await;
            reporter.report(Happening::TurnKept { key, kept }).await;
            drop(alone);
        });
    }

    pub(super) fn on_turn_kept(&mut self, key: &TaskKey, kept: Result<Option<Snapshot>, Failure>) {
        let once_more = self.snapshotting.remove(key).unwrap_or_default();
        match kept {
            Ok(Some(snapshot)) => {
                let Snapshot { number: turn, reference, warnings, .. } = snapshot;
                self.announce(Some(key), None, TurnKeptEvent { turn, reference, warnings });
            }
            Ok(None) => {}
            Err(cause) => tracing::warn!(task = %key, %cause, "a turn ended, and its files are not kept"),
        }
        if once_more {
            self.turn_ended(key);
        }
    }

    pub(super) fn turn_lock(&mut self, key: &TaskKey) -> TurnLock {
        self.turn_locks.entry(key.clone()).or_default().clone()
    }

    pub(super) fn turns(&mut self, key: &TaskKey, answer: Answer) {
        let (workspace, lock) = (self.workspace_of(key), self.turn_lock(key));
        tokio::spawn(async move {
            let _alone = lock.lock().await;
            let listed = rpc::blocking(move || {
                let (project, name) = workspace?;
                listed(&project, &name)
            });
            answer.give_as(listed.await);
        });
    }

    /// `agency undo --turn`.
    pub(super) fn take_turn_back(&mut self, key: TaskKey, turn: Option<u64>, answer: Answer) {
        let ready = self.must_rest(&key).and_then(|()| self.workspace_to_enter(&key));
        let workspace = match ready.and_then(|_| self.workspace_of(&key)) {
            Ok(workspace) => workspace,
            Err(failure) => {
                let words = format!("cannot take a turn of task {} back", key.task);
                return answer.give(Err(failure.within(words)));
            }
        };
        self.rewinding.insert(key.clone());
        let lock = self.turn_lock(&key);
        let reporter = self.ground.reporter.clone();
        tokio::spawn(async move {
            let (project, name) = workspace;
            let alone = lock.lock().await;
            let back = rpc::blocking(move || back(&project, &name, turn)).await;
            drop(alone);
            reporter.report(Happening::TurnTakenBack { key, answer, back }).await;
        });
    }

    pub(super) fn on_turn_taken_back(
        &mut self,
        key: &TaskKey,
        answer: Answer,
        back: Result<(u64, String), Failure>,
    ) {
        self.rewinding.remove(key);
        self.deliver_next(key);
        answer.give_as(back.and_then(|(turn, kept_as)| {
            self.announce(Some(key), None, TurnTakenBackEvent { turn, kept_as: kept_as.clone() });
            let lives = self.live_run(key).is_ok();
            let notes = lives.then(|| "its agent does not know: tell it with your next message".to_owned());
            Ok(TurnRestored { task: self.view(key)?, turn, kept_as, notes: notes.into_iter().collect() })
        }));
    }
}

/// Blocking.
fn listed(project: &Project, name: &WorkspaceName) -> Result<Turns, Failure> {
    let failed = |err: agency_workspace::OperationError| operation_failure(&err);
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

/// Blocking. The turn after which the files are now as they were, and where those that were there are kept.
fn back(project: &Project, name: &WorkspaceName, turn: Option<u64>) -> Result<(u64, String), Failure> {
    let failed = |err: agency_workspace::OperationError| operation_failure(&err);
    let snapshots = agency_workspace::snapshots(project, name).map_err(failed)?;
    let target = wanted(name, &snapshots, turn)?;
    let kept = agency_workspace::restore_snapshot(project, name, target).map_err(failed)?;
    let label = format!("{BACK_TO}{}", stands_for(target));
    // Also if the files were so by chance: from here on this turn is the last one.
    agency_workspace::snapshot(project, name, &label).map_err(failed)?;
    Ok((stands_for(target), id_of(&kept)))
}

fn wanted<'a>(
    name: &WorkspaceName,
    snapshots: &'a [Snapshot],
    turn: Option<u64>,
) -> Result<&'a Snapshot, Failure> {
    let list = format!("`agency turns {name}` lists them");
    let none = || {
        Failure::new("there is no turn to take back")
            .because("its driver tells of no turns, or none has changed anything yet")
            .hint(format!("{list}; terminals have none"))
    };
    match turn {
        Some(number) => snapshots
            .iter()
            .find(|snapshot| snapshot.number == number)
            .ok_or_else(|| Failure::new(format!("there is no turn {number}")).hint(list)),
        None => {
            let last = last_turn(snapshots).ok_or_else(none)?;
            snapshots.iter().rfind(|snapshot| snapshot.number < last).ok_or_else(none)
        }
    }
}

/// The last turn that has ended and was not taken back. What changed since its end does not count.
fn last_turn(snapshots: &[Snapshot]) -> Option<u64> {
    let (newest, earlier) = snapshots.split_last()?;
    match stands_for(newest) {
        number if number == newest.number => Some(number),
        number => last_turn(&earlier[..earlier.partition_point(|snapshot| snapshot.number <= number)]),
    }
}

/// Blocking. After files came back from the trash: to take the last turn back is to leave them again.
pub(super) fn keep_brought_back(project: &Project, name: &WorkspaceName) {
    let kept = agency_workspace::snapshots(project, name).and_then(|snapshots| match snapshots.is_empty() {
        true => Ok(None),
        false => agency_workspace::snapshot_if_changed(project, name, BROUGHT_BACK),
    });
    if let Err(cause) = kept {
        tracing::warn!(workspace = %name, %cause, "files came back, and are not kept as a turn");
    }
}

/// The turn whose end the snapshot shows.
fn stands_for(snapshot: &Snapshot) -> u64 {
    let told = snapshot.label.strip_prefix(BACK_TO).and_then(|number| number.parse().ok());
    told.unwrap_or(snapshot.number)
}
