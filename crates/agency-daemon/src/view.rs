//! The daemon's knowledge as callers see it.

use std::time::Duration;

use agency_api::view;
use agency_core::agent_state::AgentState;
use agency_core::rail::WorkspaceStatus;
use agency_core::task_status::TaskStatus;

pub fn status(status: TaskStatus) -> view::TaskStatus {
    match status {
        TaskStatus::Draft => view::TaskStatus::Draft,
        TaskStatus::Running => view::TaskStatus::Running,
        TaskStatus::Idle => view::TaskStatus::Idle,
        TaskStatus::Stopped => view::TaskStatus::Stopped,
        TaskStatus::Completed => view::TaskStatus::Completed,
        TaskStatus::Failed => view::TaskStatus::Failed,
        TaskStatus::Reviewed => view::TaskStatus::Reviewed,
        TaskStatus::Merged => view::TaskStatus::Merged,
    }
}

pub fn state(state: AgentState, now: Duration) -> view::AgentState {
    let since = |since: Duration| now.saturating_sub(since).as_secs();
    match state {
        AgentState::Starting => view::AgentState::Starting,
        AgentState::Running => view::AgentState::Running,
        AgentState::NeedsInput { since: at } => view::AgentState::NeedsInput { for_seconds: since(at) },
        AgentState::Stale { since: at } => view::AgentState::Stale { for_seconds: since(at) },
        AgentState::Exited { code } => view::AgentState::Exited { code: code.to_string() },
    }
}

pub fn workspace_status(status: WorkspaceStatus) -> view::WorkspaceStatus {
    match status {
        WorkspaceStatus::Idle => view::WorkspaceStatus::Idle,
        WorkspaceStatus::Running => view::WorkspaceStatus::Running,
        WorkspaceStatus::NeedsInput => view::WorkspaceStatus::NeedsInput,
        WorkspaceStatus::Stale => view::WorkspaceStatus::Stale,
        WorkspaceStatus::Completed => view::WorkspaceStatus::Completed,
        WorkspaceStatus::Errored => view::WorkspaceStatus::Errored,
    }
}
