//! The turns of an agent: a snapshot of the workspace at the end of each, and the way back to one of them.
//!
//! Each task takes one snapshot at a time, beside the loop. The daemon cannot see turns in a terminal, so an agent with
//! the terminal driver has none.

use agency_api::event::{TurnKeptEvent, TurnTakenBackEvent};
use agency_api::trash::{TurnRestoreParams, TurnRestored, Turns};
use agency_api::{Failure, method};
use agency_core::ids::TaskKey;
use agency_core::supervisor::Operation;
use agency_run::blocking::blocking;
use agency_server::Reply;
use agency_work::turns;
use agency_workspace::{Snapshot, Vcs};

use super::World;
use super::loop_event::LoopEvent;
use super::router::{Later, Router};

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
            let kept = blocking(move || turns::keep_turn(&project, &name));
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
            blocking(move || turns::list(&project, &name)).await
        }))
    }

    /// `agency undo --turn`.
    fn restore_turn(&mut self, (key, params): (TaskKey, TurnRestoreParams), reply: Reply<TurnRestored>) {
        let begun = self.workspace_to_enter(&key).and_then(|_| {
            let workspace = self.workspace_of(&key)?;
            self.begin_operation(&key, Operation::RestoreTurn)?;
            self.record_restore(&key).inspect_err(|_| self.finish_operation(&key, Operation::RestoreTurn))?;
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
            let restored = blocking(move || turns::restore(&project, &name, params.turn)).await;
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
        if restored.is_ok() {
            self.strike_integration(key);
        }
        self.finish_operation(key, Operation::RestoreTurn);
        reply.send(restored.and_then(|(turn, kept_as)| {
            self.announce(Some(key), None, TurnTakenBackEvent { turn, kept_as: kept_as.clone() });
            let lives = self.live_run(key).is_ok();
            let notes = lives.then(|| "its agent does not know: tell it with your next message".to_owned());
            Ok(TurnRestored { task: self.view(key)?, turn, kept_as, notes: notes.into_iter().collect() })
        }));
    }
}
