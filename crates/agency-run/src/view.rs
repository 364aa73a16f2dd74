//! Conversions between the daemon's types and the types of the API.

use std::time::Duration;

use agency_api::view;
use agency_core::agent_state::AgentState;
use agency_core::evidence::{Belief, Correction, DetectedState, Evidence, Why};
use agency_core::headline::Urgency;
use agency_core::rail::WorkspaceStatus;
use agency_core::task_status::TaskStatus;
use agency_store::workspace_record::SetupProgress;
use agency_terminal::{Colours, Rgb, Size};

/// The status of a task.
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

/// The state of a setup. `runs`: its commands run at this moment.
pub fn setup(mark: SetupProgress, runs: bool) -> Option<view::SetupState> {
    match mark {
        _ if runs => Some(view::SetupState::Running),
        SetupProgress::None => None,
        SetupProgress::Pending => Some(view::SetupState::Pending),
        SetupProgress::Failed => Some(view::SetupState::Failed),
        SetupProgress::Skipped => Some(view::SetupState::Skipped),
        SetupProgress::Done => Some(view::SetupState::Done),
    }
}

/// The state of an agent. `since` is when it began; a waiting state holds its own time.
pub fn state(state: AgentState, since: Duration, now: Duration) -> view::AgentState {
    let waited = state.waiting().map_or(since, |(since, _)| since);
    let for_seconds = now.saturating_sub(waited).as_secs();
    match state {
        AgentState::Starting => view::AgentState::Starting { for_seconds },
        AgentState::Running => view::AgentState::Running { for_seconds },
        AgentState::NeedsInput { why: for_what, .. } => {
            view::AgentState::NeedsInput { for_seconds, why: why(for_what) }
        }
        AgentState::Stale { why: for_what, .. } => {
            view::AgentState::Stale { for_seconds, why: why(for_what) }
        }
        AgentState::Exited { code } => view::AgentState::Exited { code: code.to_string() },
    }
}

/// Why an agent needs input.
pub fn why(why: Why) -> view::Why {
    match why {
        Why::Prompt => view::Why::Prompt,
        Why::Permission => view::Why::Permission,
        Why::Question => view::Why::Question,
        Why::Finished => view::Why::Finished,
        Why::Error => view::Why::Error,
        Why::Unknown => view::Why::Unknown,
    }
}

/// The evidence that decides a state.
pub fn evidence(evidence: &Evidence) -> view::Evidence {
    view::Evidence {
        source: evidence.source.as_str().to_owned(),
        rule: evidence.rule.clone(),
        confidence: evidence.confidence.as_str().to_owned(),
        detail: evidence.detail.clone(),
    }
}

/// A change of state. `began` is the beginning of the run on the same clock.
pub fn change(new: &DetectedState, began: Duration, time: Option<String>) -> view::StateChange {
    let (name, code) = match new.state {
        AgentState::Starting => (view::StateName::Starting, None),
        AgentState::Running => (view::StateName::Running, None),
        AgentState::NeedsInput { .. } => (view::StateName::NeedsInput, None),
        AgentState::Stale { .. } => (view::StateName::Stale, None),
        AgentState::Exited { code } => (view::StateName::Exited, Some(code.to_string())),
    };
    let t = new.since.at.saturating_sub(began).as_millis() as f64 / 1000.0;
    view::StateChange {
        time,
        t,
        state: name,
        why: new.state.waiting().map(|(_, for_what)| why(for_what)),
        evidence: evidence(&new.evidence),
        offset: new.since.offset,
        code,
    }
}

/// A correction of the user.
pub fn correction(correction: &Correction) -> view::Correction {
    view::Correction {
        source: correction.source.as_str().to_owned(),
        rule: correction.rule.clone(),
        wrong: match correction.wrong {
            Belief::Working => view::Belief::Working,
            Belief::Waiting => view::Belief::Waiting,
        },
        one_question: correction.question.is_some(),
        time: correction.time.clone(),
    }
}

/// The status of a workspace in the rail.
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

/// How soon a task needs the user.
pub fn urgency(urgency: Urgency) -> view::Urgency {
    match urgency {
        Urgency::Blocked => view::Urgency::Blocked,
        Urgency::Unread => view::Urgency::Unread,
        Urgency::Waiting => view::Urgency::Waiting,
        Urgency::Working => view::Urgency::Working,
        Urgency::Read => view::Urgency::Read,
        Urgency::Resting => view::Urgency::Resting,
        Urgency::Over => view::Urgency::Over,
    }
}

/// A size as the API and the keeper have it.
pub fn api_size(size: Size) -> agency_api::keeper::Size {
    let Size { cols, rows, x_pixels, y_pixels } = size;
    agency_api::keeper::Size { cols, rows, x_pixels, y_pixels }
}

/// A size as the screen has it.
pub fn screen_size(size: agency_api::keeper::Size) -> Size {
    let agency_api::keeper::Size { cols, rows, x_pixels, y_pixels } = size;
    // Some callers report a terminal without any cell, which can show nothing.
    Size { cols: cols.max(1), rows: rows.max(1), x_pixels, y_pixels }
}

/// Colours as the screen has them.
pub fn screen_colours(colours: &agency_api::pty::Colours) -> Colours {
    let rgb = |[r, g, b]: [u8; 3]| Rgb(r, g, b);
    Colours {
        foreground: colours.foreground.map(rgb),
        background: colours.background.map(rgb),
        cursor: colours.cursor.map(rgb),
        palette: colours.palette.iter().map(|(index, colour)| (*index, rgb(*colour))).collect(),
    }
}
