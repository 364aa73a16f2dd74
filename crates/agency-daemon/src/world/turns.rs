//! The turns of an agent: a snapshot of the workspace at the end of each, and the way back to one of them.
//!
//! Each task takes one snapshot at a time, beside the loop. The daemon cannot see turns in a terminal, so an agent with
//! the terminal driver has none.

use agency_api::event::{TurnKeptEvent, TurnTakenBackEvent};
use agency_api::trash::{Turn, TurnRestoreParams, TurnRestored, Turns};
use agency_api::{Failure, method};
use agency_core::ids::TaskKey;
use agency_core::supervisor::Operation;
use agency_run::blocking::blocking;
use agency_server::Reply;
use agency_workspace::{Project, Snapshot, Vcs, WorkspaceName};

use super::World;
use super::loop_event::LoopEvent;
use super::router::{Later, Router};
use crate::trash::{id_of, operation_failure, time};

const TURN: &str = "turn";
const BACK_TO: &str = "back to ";
const RESTORED_FILES: &str = "brought back";

pub(super) fn register(router: &mut Router) {
    router.on(method::TurnList, World::turns);
    router.on_reply(method::TurnRestore, World::restore_turn);
}

impl World {
    /// Takes a snapshot, or remembers to take one more after the one that is being taken.
    pub(super) fn take_turn_snapshot(&mut self, key: &TaskKey) {
        let Ok((project, name)) = self.workspace_of(key) else { return };
        if project.vcs() == Vcs::Plain || !self.supervisor.begin_snapshot(key) {
            return;
        }
        let lock = self.snapshot_lock(key);
        // Take a free lock at once, so that a caller who lists the turns from now on sees this one too.
        let alone = lock.clone().try_lock_owned().ok();
        let (key, reporter) = (key.clone(), self.context.reporter.clone());
        tokio::spawn(async move {
            let alone = match alone {
                Some(alone) => alone,
                None => lock.lock_owned().await,
            };
            let kept = blocking(move || {
                agency_workspace::snapshot_if_changed(&project, &name, TURN)
                    .map_err(|err| operation_failure(&err))
            });
            let kept = kept.await;
            reporter.report(LoopEvent::TurnKept { key, kept }).await;
            drop(alone);
        });
    }

    pub(super) fn on_turn_kept(&mut self, key: &TaskKey, kept: Result<Option<Snapshot>, Failure>) {
        let once_more = self.supervisor.end_snapshot(key);
        match kept {
            Ok(Some(snapshot)) => {
                let Snapshot { number: turn, reference, warnings, .. } = snapshot;
                self.announce(Some(key), None, TurnKeptEvent { turn, reference, warnings });
            }
            Ok(None) => {}
            Err(cause) => tracing::warn!(task = %key, %cause, "no snapshot was taken at the end of a turn"),
        }
        if once_more {
            self.take_turn_snapshot(key);
        }
    }

    fn turns(&mut self, key: TaskKey) -> Result<Later<Turns>, Failure> {
        let ((project, name), lock) = (self.workspace_of(&key)?, self.snapshot_lock(&key));
        Ok(Later::new(async move {
            let _alone = lock.lock().await;
            blocking(move || list_turns(&project, &name)).await
        }))
    }

    /// `agency undo --turn`.
    fn restore_turn(&mut self, (key, params): (TaskKey, TurnRestoreParams), reply: Reply<TurnRestored>) {
        let begun = self.workspace_to_enter(&key).and_then(|_| {
            let workspace = self.workspace_of(&key)?;
            self.begin_operation(&key, Operation::RestoreTurn)?;
            Ok(workspace)
        });
        let workspace = match begun {
            Ok(workspace) => workspace,
            Err(failure) => {
                let words = format!("cannot take a turn of task {} back", key.task);
                return reply.send(Err(failure.within(words)));
            }
        };
        let lock = self.snapshot_lock(&key);
        let reporter = self.context.reporter.clone();
        tokio::spawn(async move {
            let (project, name) = workspace;
            let alone = lock.lock().await;
            let restored = blocking(move || restore_turn(&project, &name, params.turn)).await;
            drop(alone);
            reporter.report(LoopEvent::TurnRestored { key, reply, restored }).await;
        });
    }

    pub(super) fn on_turn_restored(
        &mut self,
        key: &TaskKey,
        reply: Reply<TurnRestored>,
        restored: Result<(u64, String), Failure>,
    ) {
        self.finish_operation(key, Operation::RestoreTurn);
        reply.send(restored.and_then(|(turn, kept_as)| {
            self.announce(Some(key), None, TurnTakenBackEvent { turn, kept_as: kept_as.clone() });
            let lives = self.live_run(key).is_ok();
            let notes = lives.then(|| "its agent does not know: tell it with your next message".to_owned());
            Ok(TurnRestored { task: self.view(key)?, turn, kept_as, notes: notes.into_iter().collect() })
        }));
    }
}

/// Blocking.
fn list_turns(project: &Project, name: &WorkspaceName) -> Result<Turns, Failure> {
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

/// Blocking. Makes the files as they were after an earlier turn. Returns that turn, and the trash entry that keeps the
/// files which were there before.
fn restore_turn(
    project: &Project,
    name: &WorkspaceName,
    turn: Option<u64>,
) -> Result<(u64, String), Failure> {
    let failed = |err: agency_workspace::OperationError| operation_failure(&err);
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
        Failure::new("there is no turn to take back")
            .because("its driver has no turns, or no turn has changed anything yet")
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

/// The last turn that has ended and was not taken back. Changes since its end do not count.
fn last_turn(snapshots: &[Snapshot]) -> Option<u64> {
    let (newest, earlier) = snapshots.split_last()?;
    match turn_shown_by(newest) {
        number if number == newest.number => Some(number),
        number => last_turn(&earlier[..earlier.partition_point(|snapshot| snapshot.number <= number)]),
    }
}

/// Blocking. After files came back from the trash, takes a snapshot, so that `agency undo --turn` can undo that too.
pub(super) fn keep_restored_files(project: &Project, name: &WorkspaceName) {
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
