//! Operations on a task that exclude each other: one enum of occupations, one of operations, and one table.
//!
//! Not here: the occupation of each task (see `exclusion`), and how an operation continues after it has begun.
//!
//! Invariant: no other code decides that two operations exclude each other.

use std::fmt;

/// The operation that a task is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Occupation {
    /// Nothing is under way and no agent is running.
    Free,
    /// Setup commands run in its workspace.
    SettingUp,
    /// Its workspace or its keeper is being made.
    Starting,
    /// Like `Starting`, for an agent that was there before.
    Restarting,
    /// Its agent is running.
    Live,
    /// Its agent is being stopped.
    Stopping,
    /// A cancelled start is being ended.
    Cancelling,
    /// The workspace of a start that failed is being removed again.
    CleaningUp,
    /// Its work is being merged into its base.
    Merging,
    /// New commits of its base are being taken over into its workspace.
    Syncing,
    /// Its files are being restored as they were after an earlier turn.
    RestoringTurn,
    /// The task, or files of it, are being restored from the trash.
    Restoring,
    /// It is on its way into the trash.
    Removing,
    /// Like `Removing`, while its teardown commands run.
    TearingDown,
    /// Its removal was interrupted and could be neither finished nor undone.
    Unsettled,
    /// A process of an earlier run is still running, and no keeper holds it.
    Orphaned,
    /// Another host runs it.
    Elsewhere,
}

/// An operation that a user, an agent or the daemon itself may want to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Start its agent.
    Start,
    /// Start its agent, and end the one that lives first.
    Restart,
    /// Set up its workspace and start nothing.
    SetUp,
    /// Stop its agent, or cancel its start.
    Stop,
    /// Mark it as idle.
    Pause,
    /// Mark it as completed, failed, reviewed or merged.
    Mark,
    /// Take over a run that no task owns.
    Adopt,
    /// Send a text to its agent.
    Send,
    /// Merge its work into its base.
    Merge,
    /// Stop its agent, then merge its work into its base.
    Finish,
    /// Take new commits of its base over into its workspace.
    Sync,
    /// Put its files back to what they were after an earlier turn.
    RestoreTurn,
    /// Bring files of it back from the trash.
    RestoreFiles,
    /// Bring it back from the trash.
    RestoreTask,
    /// Remove it, unless its agent is running.
    Remove,
    /// Remove it, and stop its agent first.
    Discard,
    /// Run its teardown commands, as a part of its removal.
    TearDown,
    /// Finish or undo an interrupted removal.
    FinishRemoval,
    /// Take a snapshot of its files at the end of a turn.
    KeepTurn,
    /// Open a terminal in its workspace, beside its agent.
    OpenShell,
    /// Replace one file in its workspace.
    WriteFile,
}

/// Whether an operation may begin. In order: where several occupations answer, the last one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permit {
    /// It begins at once.
    Begins,
    /// It joins the operation that is under way and gets the same answer.
    Joins,
    /// It begins after the operation that is under way.
    Follows,
    /// It begins if the agent waits for input, and is refused otherwise.
    IfAtRest,
    /// A text is held in the queue until the files have settled; everything else is refused.
    Waits,
    /// It is refused.
    Refused,
}

impl Occupation {
    /// All occupations, in the order of the table's columns.
    pub const ALL: [Occupation; 17] = [
        Occupation::Free,
        Occupation::SettingUp,
        Occupation::Starting,
        Occupation::Restarting,
        Occupation::Live,
        Occupation::Stopping,
        Occupation::Cancelling,
        Occupation::CleaningUp,
        Occupation::Merging,
        Occupation::Syncing,
        Occupation::RestoringTurn,
        Occupation::Restoring,
        Occupation::Removing,
        Occupation::TearingDown,
        Occupation::Unsettled,
        Occupation::Orphaned,
        Occupation::Elsewhere,
    ];

    /// Something is under way that ends by itself.
    pub fn is_busy(self) -> bool {
        match self {
            Occupation::Free
            | Occupation::Live
            | Occupation::Unsettled
            | Occupation::Orphaned
            | Occupation::Elsewhere => false,
            Occupation::SettingUp
            | Occupation::Starting
            | Occupation::Restarting
            | Occupation::Stopping
            | Occupation::Cancelling
            | Occupation::CleaningUp
            | Occupation::Merging
            | Occupation::Syncing
            | Occupation::RestoringTurn
            | Occupation::Restoring
            | Occupation::Removing
            | Occupation::TearingDown => true,
        }
    }

    /// The task is on its way out: nothing else may touch it.
    pub fn is_removal(self) -> bool {
        matches!(self, Occupation::Removing | Occupation::TearingDown | Occupation::Unsettled)
    }
}

impl fmt::Display for Occupation {
    /// Completes the sentence "task 1 is …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Occupation::Free => "free",
            Occupation::SettingUp => "being set up",
            Occupation::Starting => "starting",
            Occupation::Restarting => "restarting",
            Occupation::Live => "running",
            Occupation::Stopping => "stopping",
            Occupation::Cancelling => "being cancelled",
            Occupation::CleaningUp => "cleaning up after a start that failed",
            Occupation::Merging => "being merged",
            Occupation::Syncing => "being synced",
            Occupation::RestoringTurn => "being restored to an earlier turn",
            Occupation::Restoring => "being restored from the trash",
            Occupation::Removing | Occupation::TearingDown => "being removed",
            Occupation::Unsettled => "only partly removed",
            Occupation::Orphaned => "held by a process of an earlier run",
            Occupation::Elsewhere => "running on another host",
        })
    }
}

impl Operation {
    /// All operations, in the order of the table's rows.
    pub const ALL: [Operation; 21] = [
        Operation::Start,
        Operation::Restart,
        Operation::SetUp,
        Operation::Stop,
        Operation::Pause,
        Operation::Mark,
        Operation::Adopt,
        Operation::Send,
        Operation::Merge,
        Operation::Finish,
        Operation::Sync,
        Operation::RestoreTurn,
        Operation::RestoreFiles,
        Operation::RestoreTask,
        Operation::Remove,
        Operation::Discard,
        Operation::TearDown,
        Operation::FinishRemoval,
        Operation::KeepTurn,
        Operation::OpenShell,
        Operation::WriteFile,
    ];

    /// The table: whether this operation may begin in a task that is in the middle of `occupation`.
    pub fn permit(self, occupation: Occupation) -> Permit {
        const B: Permit = Permit::Begins;
        const J: Permit = Permit::Joins;
        const F: Permit = Permit::Follows;
        const R: Permit = Permit::IfAtRest;
        const W: Permit = Permit::Waits;
        const N: Permit = Permit::Refused;
        #[rustfmt::skip]
        let row: [Permit; Occupation::ALL.len()] = match self {
            //                            Free
            //                            |  SettingUp
            //                            |  |  Starting
            //                            |  |  |  Restarting
            //                            |  |  |  |  Live
            //                            |  |  |  |  |  Stopping
            //                            |  |  |  |  |  |  Cancelling
            //                            |  |  |  |  |  |  |  CleaningUp
            //                            |  |  |  |  |  |  |  |  Merging
            //                            |  |  |  |  |  |  |  |  |  Syncing
            //                            |  |  |  |  |  |  |  |  |  |  RestoringTurn
            //                            |  |  |  |  |  |  |  |  |  |  |  Restoring
            //                            |  |  |  |  |  |  |  |  |  |  |  |  Removing
            //                            |  |  |  |  |  |  |  |  |  |  |  |  |  TearingDown
            //                            |  |  |  |  |  |  |  |  |  |  |  |  |  |  Unsettled
            //                            |  |  |  |  |  |  |  |  |  |  |  |  |  |  |  Orphaned
            //                            |  |  |  |  |  |  |  |  |  |  |  |  |  |  |  |  Elsewhere
            Operation::Start          => [B, J, J, J, J, F, F, F, N, N, N, N, N, N, N, N, N],
            Operation::Restart        => [B, J, J, J, F, F, F, F, N, N, N, N, N, N, N, N, N],
            Operation::SetUp          => [B, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N],
            Operation::Stop           => [N, B, B, B, B, J, J, N, B, B, B, B, J, B, N, B, N],
            Operation::Pause          => [B, N, N, N, B, N, N, N, B, B, B, B, N, N, N, B, N],
            Operation::Mark           => [B, N, N, N, B, B, B, B, B, B, B, B, N, N, N, B, N],
            Operation::Adopt          => [B, N, N, N, J, N, N, N, N, N, N, N, N, N, N, B, N],
            Operation::Send           => [N, N, N, B, B, B, N, N, W, W, W, W, N, N, N, B, N],
            Operation::Merge          => [B, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N],
            Operation::Finish         => [B, N, N, N, R, B, N, N, N, N, N, N, N, N, N, N, N],
            Operation::Sync           => [B, N, N, N, R, N, N, N, N, N, N, N, N, N, N, N, N],
            Operation::RestoreTurn    => [B, N, N, N, R, N, N, N, N, N, N, N, N, N, N, N, N],
            Operation::RestoreFiles   => [B, N, N, N, R, N, N, N, N, N, N, N, N, N, N, N, N],
            Operation::RestoreTask    => [B, N, N, N, N, N, N, N, N, N, N, N, N, N, N, B, N],
            Operation::Remove         => [B, F, F, F, N, N, F, F, N, N, N, N, N, N, N, N, N],
            Operation::Discard        => [B, F, F, F, F, F, F, F, N, N, N, N, N, N, N, N, N],
            Operation::TearDown       => [N, N, N, N, N, N, N, N, N, N, N, N, B, N, N, B, N],
            Operation::FinishRemoval  => [B, N, N, N, N, N, N, N, N, N, N, N, N, N, B, B, N],
            Operation::KeepTurn       => [B, B, B, B, B, B, B, B, B, B, B, B, N, N, N, B, N],
            Operation::OpenShell      => [B, B, N, B, B, N, N, N, B, B, B, N, N, N, N, B, B],
            Operation::WriteFile      => [B, B, N, B, B, B, N, N, N, N, N, N, N, N, N, B, B],
        };
        row[occupation as usize]
    }

    /// The occupation while the daemon carries this operation out. None for operations that take no time, and for those
    /// whose steps the supervisor orders itself.
    pub(super) fn occupies(self) -> Option<Occupation> {
        match self {
            Operation::Merge | Operation::Finish => Some(Occupation::Merging),
            Operation::Sync => Some(Occupation::Syncing),
            Operation::RestoreTurn => Some(Occupation::RestoringTurn),
            Operation::RestoreFiles | Operation::RestoreTask => Some(Occupation::Restoring),
            Operation::TearDown => Some(Occupation::TearingDown),
            Operation::Remove | Operation::Discard | Operation::FinishRemoval => Some(Occupation::Removing),
            Operation::Start
            | Operation::Restart
            | Operation::SetUp
            | Operation::Stop
            | Operation::Pause
            | Operation::Mark
            | Operation::Adopt
            | Operation::Send
            | Operation::KeepTurn
            | Operation::OpenShell
            | Operation::WriteFile => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_in_the_order_of_the_occupations() {
        for (column, occupation) in Occupation::ALL.into_iter().enumerate() {
            assert_eq!(occupation as usize, column, "{occupation:?}");
        }
    }

    #[test]
    fn while_files_change_no_other_operation_changes_them() {
        let changing =
            [Occupation::Merging, Occupation::Syncing, Occupation::RestoringTurn, Occupation::Restoring];
        for operation in Operation::ALL.into_iter().filter(|operation| operation.occupies().is_some()) {
            for occupation in changing {
                assert_eq!(
                    operation.permit(occupation),
                    Permit::Refused,
                    "{operation:?} during {occupation:?}"
                );
            }
        }
    }
}
