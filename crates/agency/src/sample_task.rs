//! Tasks for tests, as the daemon would send them.

use agency_api::view::{AgentState, Task, TaskStatus, Urgency, Why, WorkspaceStatus};
use serde_json::json;

/// A draft.
pub(crate) fn draft(id: u64, slug: &str) -> Task {
    let task = json!({
        "id": id, "slug": slug, "project": "/p", "status": "draft", "headline": "draft",
        "workspace_status": "idle", "agent": "shell", "agent_name": "Shell", "driver": "terminal",
        "labels": [], "file": "/p/task.md", "age_seconds": 200, "viewers": 0,
    });
    serde_json::from_value(task).expect("a task of the API")
}

/// A task whose agent works.
pub(crate) fn working(id: u64, slug: &str, for_seconds: u64) -> Task {
    Task {
        status: TaskStatus::Running,
        headline: "working".to_owned(),
        urgency: Urgency::Working,
        workspace_status: WorkspaceStatus::Running,
        state: Some(AgentState::Running { for_seconds }),
        run: Some("r".to_owned()),
        ..draft(id, slug)
    }
}

/// A task whose agent waits for something that no user has looked at.
pub(crate) fn waiting(id: u64, slug: &str, why: Why, for_seconds: u64) -> Task {
    let (headline, urgency) = match why {
        Why::Permission => ("asks permission", Urgency::Blocked),
        Why::Question => ("asks", Urgency::Blocked),
        Why::Error => ("failed", Urgency::Blocked),
        Why::Finished => ("done", Urgency::Unread),
        Why::Prompt => ("at its prompt", Urgency::Waiting),
        Why::Unknown => ("waits", Urgency::Waiting),
    };
    Task {
        headline: headline.to_owned(),
        urgency,
        waiting_for: Some(why),
        unread: true,
        workspace_status: WorkspaceStatus::NeedsInput,
        state: Some(AgentState::NeedsInput { for_seconds, why }),
        ..working(id, slug, 0)
    }
}

/// The same after a user has looked at it.
pub(crate) fn read(task: Task) -> Task {
    let urgency = match task.urgency {
        Urgency::Unread | Urgency::Waiting => Urgency::Read,
        other => other,
    };
    Task { urgency, unread: false, seen: true, ..task }
}

/// The same with the agent's own text about what it waits for.
pub(crate) fn with_detail(task: Task, detail: &str) -> Task {
    let evidence = json!({ "source": "status", "rule": "x", "confidence": "high", "detail": detail });
    Task { evidence: serde_json::from_value(evidence).expect("evidence"), ..task }
}

/// A task whose last run ended.
pub(crate) fn ended(id: u64, slug: &str, code: &str, asked: bool) -> Task {
    let (headline, workspace_status) = match (code, asked) {
        (_, true) => ("stopped", WorkspaceStatus::Idle),
        ("0", false) => ("done", WorkspaceStatus::Completed),
        (_, false) => ("failed", WorkspaceStatus::Errored),
    };
    Task {
        status: TaskStatus::Stopped,
        headline: headline.to_owned(),
        workspace_status,
        last_exit: Some(code.to_owned()),
        asked_to_stop: asked,
        ended_seconds: Some(300),
        ..draft(id, slug)
    }
}

/// A task whose work is merged.
pub(crate) fn merged(id: u64, slug: &str) -> Task {
    let merged = "merged".to_owned();
    Task {
        status: TaskStatus::Merged,
        headline: merged,
        urgency: Urgency::Over,
        ..ended(id, slug, "-15", true)
    }
}
