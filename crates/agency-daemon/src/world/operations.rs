//! Handles and records that the daemon holds while it carries out an operation on a task.
//!
//! Not here: whether an operation may begin. The supervisor decides that, from one table, and keeps the task's
//! occupation until the daemon reports the end.

use std::sync::Arc;

use agency_api::Failure;
use agency_core::agent_state::AgentState;
use agency_core::evidence::Why;
use agency_core::ids::TaskKey;
use agency_core::supervisor::{AgentActivity, Event, Operation, Permit};
use agency_work::trash::Removal;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::World;
use super::setup_run::SetupRun;

/// Held by the thread that reads, takes or restores the snapshots of a task.
pub(super) type SnapshotLock = Arc<Mutex<()>>;

/// The operation on one task, and the lock of its snapshots.
#[derive(Default)]
pub(super) struct TaskOperations {
    current: Option<Current>,
    snapshots: SnapshotLock,
}

/// The operation that is under way, with everything that the daemon needs to watch it, to end it or to finish it.
/// The supervisor also knows of operations that need nothing of that kind; they are not here.
pub(super) enum Current {
    SettingUp(SetupRun),
    /// A merge or a sync.
    Integrating(JoinHandle<()>),
    Removing {
        removal: Removal,
        teardown: Option<SetupRun>,
    },
    /// An earlier daemon was killed during the removal, and this one could neither finish nor undo it.
    Unsettled {
        removal: Removal,
        cause: Failure,
    },
}

impl Current {
    fn setup_run(&self) -> Option<&SetupRun> {
        match self {
            Current::SettingUp(run) => Some(run),
            Current::Removing { teardown, .. } => teardown.as_ref(),
            Current::Integrating(_) | Current::Unsettled { .. } => None,
        }
    }

    fn setup_run_mut(&mut self) -> Option<&mut SetupRun> {
        match self {
            Current::SettingUp(run) => Some(run),
            Current::Removing { teardown, .. } => teardown.as_mut(),
            Current::Integrating(_) | Current::Unsettled { .. } => None,
        }
    }

    fn removal(&self) -> Option<&Removal> {
        match self {
            Current::Removing { removal, .. } | Current::Unsettled { removal, .. } => Some(removal),
            Current::SettingUp(_) | Current::Integrating(_) => None,
        }
    }
}

impl World {
    /// Whether the operation may begin now, without beginning it.
    pub(super) fn may(&self, key: &TaskKey, operation: Operation) -> Result<(), Failure> {
        let agent = self.agent_activity(key);
        self.supervisor.may_begin(key, operation, agent).map_err(|refusal| self.refusal_failure(refusal))
    }

    /// Occupies the task. [`World::finish_operation`] reports the end.
    pub(super) fn begin_operation(&mut self, key: &TaskKey, operation: Operation) -> Result<(), Failure> {
        let agent = self.agent_activity(key);
        self.supervisor.begin(key, operation, agent).map_err(|refusal| self.refusal_failure(refusal))
    }

    /// Like [`World::begin_operation`], for a caller who agrees that an agent at work does not finish its turn.
    pub(super) fn begin_operation_at_rest(
        &mut self,
        key: &TaskKey,
        operation: Operation,
    ) -> Result<(), Failure> {
        let begun = self.supervisor.begin(key, operation, AgentActivity::AtRest);
        begun.map_err(|refusal| self.refusal_failure(refusal))
    }

    /// The operation is over, however it ended: a restart that waited for it begins, and so does the next queued text.
    pub(super) fn finish_operation(&mut self, key: &TaskKey, operation: Operation) {
        self.set_current(key, None);
        self.decide(Event::Finished { key: key.clone(), operation });
        self.check_workspace(key);
        self.deliver_next(key);
    }

    /// An agent that waits for a permission is in the middle of its turn.
    fn agent_activity(&self, key: &TaskKey) -> AgentActivity {
        let live = self.supervisor.live_run(key).and_then(|run| self.runs.live.get(run));
        match live.map(|live| live.standing.state) {
            None | Some(AgentState::Exited { .. }) => AgentActivity::AtRest,
            Some(AgentState::NeedsInput { why, .. } | AgentState::Stale { why, .. })
                if why != Why::Permission =>
            {
                AgentActivity::AtRest
            }
            Some(_) => AgentActivity::AtWork,
        }
    }

    /// Texts for the agent wait in the queue, because its files are being changed.
    pub(super) fn must_hold_texts(&self, key: &TaskKey) -> bool {
        self.supervisor.permit(key, Operation::Send) == Permit::Waits
    }

    pub(super) fn set_current(&mut self, key: &TaskKey, current: Option<Current>) {
        match current {
            Some(current) => self.operations.entry(key.clone()).or_default().current = Some(current),
            None => drop(self.take_current(key)),
        }
    }

    pub(super) fn take_current(&mut self, key: &TaskKey) -> Option<Current> {
        self.operations.get_mut(key)?.current.take()
    }

    pub(super) fn current(&self, key: &TaskKey) -> Option<&Current> {
        self.operations.get(key)?.current.as_ref()
    }

    pub(super) fn current_mut(&mut self, key: &TaskKey) -> Option<&mut Current> {
        self.operations.get_mut(key)?.current.as_mut()
    }

    /// The setup or teardown that runs in the task's workspace.
    pub(super) fn setup_run(&self, key: &TaskKey) -> Option<&SetupRun> {
        self.current(key)?.setup_run()
    }

    pub(super) fn setup_run_mut(&mut self, key: &TaskKey) -> Option<&mut SetupRun> {
        self.current_mut(key)?.setup_run_mut()
    }

    /// The record of the task's removal, while it is under way or unsettled.
    pub(super) fn removal(&self, key: &TaskKey) -> Option<&Removal> {
        self.current(key)?.removal()
    }

    pub(super) fn snapshot_lock(&mut self, key: &TaskKey) -> SnapshotLock {
        self.operations.entry(key.clone()).or_default().snapshots.clone()
    }

    /// Takes out everything that is under way: the daemon leaves.
    pub(super) fn take_all_current(&mut self) -> Vec<Current> {
        self.operations.drain().filter_map(|(_, operations)| operations.current).collect()
    }
}
