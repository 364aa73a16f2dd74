//! The occupation of each task: operations begin and finish, and "may this begin?" is answered.
//!
//! Not here: the table of operations that exclude each other (see `occupation`), and the life of an agent's process
//! (see `task`).
//!
//! Invariant: the daemon carries out at most one operation on a task's files at a time.

use std::collections::{BTreeMap, BTreeSet};

use super::Supervisor;
use super::effect::Effect;
use super::event_handling::ShutdownPhase;
use super::occupation::{Occupation, Operation, Permit};
use super::refusal::Refusal;
use super::task::Task;
use crate::Time;
use crate::ids::{ProjectId, RunId, TaskKey};

/// Whether the agent of a task works at this moment. Without a live agent it does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentActivity {
    /// It waits for input, so its files may change.
    AtRest,
    /// It is in the middle of a turn, or that is unknown.
    AtWork,
}

/// Operations that the daemon carries out, and other facts that exclude operations. An agent's life is not among them.
#[derive(Debug, Default)]
pub(super) struct Works {
    /// The operation on each task's files. Tasks that are being removed or restored need not be known.
    under_way: BTreeMap<TaskKey, Occupation>,
    /// Runs of earlier daemons that live and that no task owns.
    orphans: BTreeMap<RunId, TaskKey>,
    /// Projects whose trash is being emptied.
    emptying: BTreeSet<ProjectId>,
    /// Snapshots that are being taken, and whether another turn has ended meanwhile.
    snapshots: BTreeMap<TaskKey, bool>,
}

impl Works {
    pub(super) fn of(&self, key: &TaskKey) -> Option<Occupation> {
        self.under_way.get(key).copied()
    }

    pub(super) fn set(&mut self, key: TaskKey, occupation: Occupation) {
        self.under_way.insert(key, occupation);
    }

    fn orphan_of(&self, key: &TaskKey) -> Option<&RunId> {
        self.orphans.iter().find(|(_, of)| *of == key).map(|(run, _)| run)
    }

    /// The daemon restores something from the trash of this project, or an earlier turn.
    fn is_restoring(&self, project: &ProjectId) -> bool {
        self.under_way.iter().any(|(key, occupation)| {
            key.project == *project && matches!(occupation, Occupation::Restoring | Occupation::RestoringTurn)
        })
    }
}

impl Supervisor {
    /// The occupation of the task. An operation on its files comes before the life of its agent.
    pub fn occupation(&self, key: &TaskKey) -> Occupation {
        let life = || self.tasks.get(key).map(Task::occupation).filter(|life| *life != Occupation::Free);
        let orphaned = || self.works.orphan_of(key).map(|_| Occupation::Orphaned);
        self.works.of(key).or_else(life).or_else(orphaned).unwrap_or(Occupation::Free)
    }

    /// Whether the operation may begin, from the table alone.
    pub fn permit(&self, key: &TaskKey, operation: Operation) -> Permit {
        let permits = self.occupations(key).map(|occupation| operation.permit(occupation));
        permits.max().unwrap_or(Permit::Begins)
    }

    /// All occupations of the task: its agent may live while its files are synced.
    fn occupations(&self, key: &TaskKey) -> impl Iterator<Item = Occupation> {
        let orphaned = self.works.orphan_of(key).map(|_| Occupation::Orphaned);
        let life = self.tasks.get(key).map(Task::occupation);
        self.works.of(key).into_iter().chain(orphaned).chain(life)
    }

    /// Whether the operation may begin now. `agent` counts only where the table asks for an agent at rest.
    ///
    /// Says nothing about whether the task exists or its status allows the operation.
    pub fn may_begin(
        &self,
        key: &TaskKey,
        operation: Operation,
        agent: AgentActivity,
    ) -> Result<(), Refusal> {
        self.may_begin_in_project(key, operation)?;
        for occupation in self.occupations(key) {
            match (operation.permit(occupation), agent) {
                (Permit::Begins | Permit::Joins | Permit::Follows, _)
                | (Permit::IfAtRest, AgentActivity::AtRest) => {}
                (Permit::IfAtRest, AgentActivity::AtWork) => {
                    return Err(Refusal::AgentAtWork { key: key.clone() });
                }
                (Permit::Waits | Permit::Refused, _) => return Err(self.refusal(key, operation, occupation)),
            }
        }
        Ok(())
    }

    /// No entry leaves a trash that is being emptied.
    fn may_begin_in_project(&self, key: &TaskKey, operation: Operation) -> Result<(), Refusal> {
        let is_out_of_trash = matches!(operation, Operation::RestoreTask | Operation::RestoreFiles);
        match is_out_of_trash && self.works.emptying.contains(&key.project) {
            true => Err(Refusal::EmptyingTrash),
            false => Ok(()),
        }
    }

    fn refusal(&self, key: &TaskKey, operation: Operation, occupation: Occupation) -> Refusal {
        let key = key.clone();
        let run = self.live_run(&key).cloned();
        match (occupation, operation, run) {
            (Occupation::Elsewhere, ..) => Refusal::Elsewhere { key },
            (Occupation::Unsettled, ..) => Refusal::Unsettled { key },
            (Occupation::Orphaned, ..) => {
                let run = self.works.orphan_of(&key).cloned().unwrap_or(RunId(String::new()));
                Refusal::Orphaned { key, run }
            }
            (Occupation::Free | Occupation::CleaningUp, Operation::Stop | Operation::Send, _) => {
                let status = self.status(&key).unwrap_or(crate::task_status::TaskStatus::Draft);
                Refusal::NotRunning { key, status }
            }
            (Occupation::Live, Operation::SetUp, Some(run)) => Refusal::HasARun { key, run },
            (Occupation::Live | Occupation::Stopping, Operation::Merge | Operation::Remove, _) => {
                Refusal::AgentLives { key }
            }
            (doing, ..) => Refusal::Busy { key, doing },
        }
    }

    /// Begins an operation that the daemon carries out itself, and reports with [`Event::Finished`].
    ///
    /// Operations that start or end processes are events instead: [`Event::Start`], [`Event::Remove`].
    ///
    /// [`Event::Finished`]: super::Event::Finished
    /// [`Event::Start`]: super::Event::Start
    /// [`Event::Remove`]: super::Event::Remove
    pub fn begin(
        &mut self,
        key: &TaskKey,
        operation: Operation,
        agent: AgentActivity,
    ) -> Result<(), Refusal> {
        if self.shutdown_phase() != ShutdownPhase::NotShuttingDown {
            return Err(Refusal::ShuttingDown);
        }
        self.may_begin(key, operation, agent)?;
        if let Some(occupation) = operation.occupies() {
            self.works.set(key.clone(), occupation);
        }
        Ok(())
    }

    /// The operation is over, however it ended. One that is not under way any more changes nothing.
    pub(super) fn on_finished(&mut self, now: Time, key: &TaskKey, operation: Operation) -> Vec<Effect> {
        let is_this = match self.works.of(key) {
            Some(Occupation::TearingDown) => operation.occupies() == Some(Occupation::Removing),
            under_way => under_way.is_some() && under_way == operation.occupies(),
        };
        if !is_this {
            return Vec::new();
        }
        self.works.under_way.remove(key);
        self.with_task(now, key, Task::on_files_settled)
    }

    /// A removal was interrupted and can be neither finished nor undone. Until [`Operation::FinishRemoval`] begins
    /// again, nothing may touch what is left of the task.
    pub fn leave_unsettled(&mut self, key: &TaskKey) {
        self.works.set(key.clone(), Occupation::Unsettled);
    }

    /// A run of this task lives, and neither a keeper nor a task owns it.
    pub fn add_orphan(&mut self, key: TaskKey, run: RunId) {
        self.works.orphans.insert(run, key);
    }

    /// The run has ended, or a task owns it again.
    pub fn remove_orphan(&mut self, run: &RunId) {
        self.works.orphans.remove(run);
    }

    /// Begins to empty a project's trash. No entry leaves it before [`Supervisor::end_emptying`].
    pub fn begin_emptying(&mut self, project: &ProjectId) -> Result<(), Refusal> {
        if self.works.is_restoring(project) {
            return Err(Refusal::ComingBack);
        }
        match self.works.emptying.insert(project.clone()) {
            true => Ok(()),
            false => Err(Refusal::EmptyingTrash),
        }
    }

    /// The project's trash is emptied, or could not be.
    pub fn end_emptying(&mut self, project: &ProjectId) {
        self.works.emptying.remove(project);
    }

    /// A turn has ended: whether to take a snapshot now. One at a time for each task; a turn that ends meanwhile is
    /// remembered.
    pub fn begin_snapshot(&mut self, key: &TaskKey) -> bool {
        if self.permit(key, Operation::KeepTurn) == Permit::Refused {
            return false;
        }
        match self.works.snapshots.get_mut(key) {
            Some(once_more) => {
                *once_more = true;
                false
            }
            None => {
                self.works.snapshots.insert(key.clone(), false);
                true
            }
        }
    }

    /// The snapshot is taken, or could not be: whether another turn has ended meanwhile.
    pub fn end_snapshot(&mut self, key: &TaskKey) -> bool {
        self.works.snapshots.remove(key).unwrap_or_default()
    }
}
