//! Errors of `agency-workspace` as failures of the API. Here, and only here, each of them gets its code.

use agency_api::{Failure, FailureCode};
use agency_workspace::{
    ConflictsError, CopyError, CreateCause, CreateError, ExcludeError, OpenError, OperationCause,
    OperationError, RemoveCause, RemoveError, StateError, ToolError, TracesError, TrashError, UndoCause,
    UndoError, WorkAtRisk,
};

/// An error that callers get as a failure.
pub trait AsFailure {
    /// The failure, with its code, its causes and a way out.
    fn as_failure(&self) -> Failure;
}

macro_rules! as_failure {
    ($($error:ty: |$name:ident| $code:expr;)*) => {
        $(impl AsFailure for $error {
            fn as_failure(&self) -> Failure {
                let $name = self;
                Failure::from_error(self, self.hint()).code($code)
            }
        })*
    };
}

as_failure! {
    ConflictsError: |err| tool_code(&err.source);
    CopyError: |err| copy_code(err);
    CreateError: |err| create_code(&err.cause);
    ExcludeError: |err| exclude_code(err);
    OpenError: |err| open_code(err);
    OperationError: |err| operation_code(&err.cause);
    RemoveError: |err| remove_code(&err.cause);
    StateError: |err| operation_code(&err.cause);
    TrashError: |err| tool_code(&err.source);
    UndoError: |err| undo_code(&err.cause);
}

impl AsFailure for TracesError {
    fn as_failure(&self) -> Failure {
        match self {
            TracesError::Git { source, .. } => {
                Failure::from_error(self, source.hint()).code(tool_code(source))
            }
            TracesError::Exclude(err) => err.as_failure(),
        }
    }
}

fn tool_code(error: &ToolError) -> FailureCode {
    match error {
        ToolError::Missing { .. }
        | ToolError::Start { .. }
        | ToolError::Failed { .. }
        | ToolError::Killed { .. } => FailureCode::VcsFailed,
    }
}

fn work_code(work: &WorkAtRisk) -> FailureCode {
    match work.has_uncommitted_files() {
        true => FailureCode::UncommittedWork,
        false => FailureCode::UnmergedWork,
    }
}

fn copy_code(error: &CopyError) -> FailureCode {
    match error {
        CopyError::List(err) => tool_code(err),
        CopyError::File { .. } => FailureCode::IoError,
        CopyError::Stopped => FailureCode::Cancelled,
    }
}

fn exclude_code(error: &ExcludeError) -> FailureCode {
    match error {
        ExcludeError::Git { source, .. } => tool_code(source),
        ExcludeError::Write { .. } => FailureCode::IoError,
    }
}

fn open_code(error: &OpenError) -> FailureCode {
    match error {
        OpenError::Directory { .. }
        | OpenError::NotARepository { .. }
        | OpenError::NotAJjRepository { .. }
        | OpenError::NoMainCheckout { .. } => FailureCode::NotAProject,
        OpenError::JjMissing { .. } => FailureCode::VcsFailed,
        OpenError::Git { source, .. } => tool_code(source),
    }
}

fn create_code(cause: &CreateCause) -> FailureCode {
    match cause {
        CreateCause::NoCommit
        | CreateCause::BaseMissing { .. }
        | CreateCause::RevisionMissing { .. }
        | CreateCause::BookmarkMissing { .. }
        | CreateCause::BranchMissing { .. } => FailureCode::BranchNotFound,
        CreateCause::BookmarkExists { .. }
        | CreateCause::BranchExists { .. }
        | CreateCause::BranchInUse { .. }
        | CreateCause::BranchBlocked { .. }
        | CreateCause::WorkspaceKnown { .. }
        | CreateCause::PathTaken { .. } => FailureCode::AlreadyExists,
        CreateCause::Locked { .. } | CreateCause::DirectoryGone { .. } => FailureCode::WorkspaceMissing,
        CreateCause::Git(err) => tool_code(err),
    }
}

fn operation_code(cause: &OperationCause) -> FailureCode {
    match cause {
        OperationCause::Plain { .. } | OperationCause::OtherVcs { .. } => FailureCode::Unsupported,
        OperationCause::NotReady { .. } | OperationCause::Forgotten { .. } => FailureCode::WorkspaceMissing,
        OperationCause::BaseMissing { .. }
        | OperationCause::TargetMissing { .. }
        | OperationCause::RemoteBase { .. }
        | OperationCause::NoCurrentBranch
        | OperationCause::RevisionMissing { .. }
        | OperationCause::BookmarkMissing { .. }
        | OperationCause::NoBookmark => FailureCode::BranchNotFound,
        OperationCause::OwnBranch { .. } => FailureCode::InvalidArgument,
        OperationCause::Unresolved { .. }
        | OperationCause::BookmarkConflicted { .. }
        | OperationCause::Conflicts { .. } => FailureCode::Conflict,
        OperationCause::SnapshotMissing { .. } | OperationCause::TrashMissing { .. } => FailureCode::NotFound,
        OperationCause::HasWork(work) => work_code(work),
        OperationCause::UnfinishedCommits { .. } => FailureCode::UnmergedWork,
        OperationCause::InTheWay { .. } => FailureCode::UncommittedWork,
        OperationCause::TargetDirty { .. }
        | OperationCause::TargetBlocked { .. }
        | OperationCause::InterruptedMerge { .. } => FailureCode::TargetDirty,
        OperationCause::NeverMerged => FailureCode::NotFound,
        OperationCause::BuiltUpon { .. } => FailureCode::ChangedMeanwhile,
        OperationCause::TargetMoved { .. } => FailureCode::ChangedMeanwhile,
        OperationCause::OtherBranch { .. } => FailureCode::WorkspaceMissing,
        OperationCause::Busy { .. } => FailureCode::Busy,
        OperationCause::NothingNew { .. } => FailureCode::NothingToMerge,
        OperationCause::NotFastForward { .. } => FailureCode::NotFastForward,
        OperationCause::PathTaken { .. } | OperationCause::BranchExists { .. } => FailureCode::AlreadyExists,
        OperationCause::RecoveryFailed { .. }
        | OperationCause::RolledBack { .. }
        | OperationCause::MergeUncertain { .. }
        | OperationCause::NotMoved { .. } => FailureCode::VcsFailed,
        OperationCause::Write { .. } | OperationCause::NotRestored { .. } => FailureCode::IoError,
        OperationCause::Save(cause) => remove_code(cause),
        OperationCause::Create(cause) => create_code(cause),
        OperationCause::Git(err) => tool_code(err),
    }
}

fn remove_code(cause: &RemoveCause) -> FailureCode {
    match cause {
        RemoveCause::HasWork(work) => work_code(work),
        RemoveCause::NotOurs { .. } => FailureCode::WorkspaceMissing,
        RemoveCause::Locked { .. } | RemoveCause::BranchInUse { .. } => FailureCode::Busy,
        RemoveCause::NestedRepositories { .. } => FailureCode::Unsupported,
        RemoveCause::IgnoredRepositories { .. } => FailureCode::UnmergedWork,
        RemoveCause::Index { .. } => FailureCode::IoError,
        RemoveCause::Unfinished { source, .. } => tool_code(source),
        RemoveCause::Unreadable(cause) => operation_code(cause),
        RemoveCause::Git(err) => tool_code(err),
    }
}

fn undo_code(cause: &UndoCause) -> FailureCode {
    match cause {
        UndoCause::HasWork(work) => work_code(work),
        UndoCause::NotOurs { .. } => FailureCode::WorkspaceMissing,
        UndoCause::Unreadable(cause) => operation_code(cause),
        UndoCause::Git(err) => tool_code(err),
    }
}

#[cfg(test)]
mod tests {
    use agency_workspace::{Operation, WorkspaceName};

    use super::*;

    fn merge_code(cause: OperationCause) -> FailureCode {
        let workspace = WorkspaceName::new(1, "fix").unwrap();
        OperationError { operation: Operation::Merge, workspace, cause }.as_failure().code
    }

    #[test]
    fn programs_can_tell_why_a_merge_failed() {
        let target = || "main".to_owned();
        assert_eq!(merge_code(OperationCause::NothingNew { target: target() }), FailureCode::NothingToMerge);
        assert_eq!(
            merge_code(OperationCause::Conflicts { with: target(), files: Vec::new() }),
            FailureCode::Conflict
        );
        assert_eq!(
            merge_code(OperationCause::TargetMoved { branch: target() }),
            FailureCode::ChangedMeanwhile
        );
        let locked = RemoveCause::Locked { path: "/w".into(), reason: String::new() };
        assert_eq!(merge_code(OperationCause::Save(locked)), FailureCode::Busy);
    }

    #[test]
    fn a_directory_outside_a_repository_is_not_a_project() {
        let error = OpenError::NotARepository { path: "/tmp".into() };
        let failure = error.as_failure();
        assert_eq!(failure.code, FailureCode::NotAProject);
        assert!(failure.hint.is_some());
    }
}
