//! The mark of each workspace in the rail, derived from the status, the state and the last exit, and never stored.
//!
//! Not here: colours and pulsing. Colour is never the only sign, so each mark has a word.

use std::fmt;

use crate::agent_state::AgentState;
use crate::exit::LastRunExit;
use crate::task_status::TaskStatus;

/// The status of a workspace in the rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WorkspaceStatus {
    /// No agent has run here, or the user stopped it.
    Idle,
    /// An agent works.
    Running,
    /// An agent waits for the user.
    NeedsInput,
    /// An agent has waited for long.
    Stale,
    /// The last run ended with 0.
    Completed,
    /// The last run ended otherwise, without a request.
    Errored,
}

impl WorkspaceStatus {
    /// Derives the mark. `state` is the state of the newest run if the daemon follows one; `last_exit` comes from the task file.
    pub fn derive(status: TaskStatus, state: Option<AgentState>, last_exit: Option<LastRunExit>) -> Self {
        match state {
            Some(AgentState::Starting | AgentState::Running) => WorkspaceStatus::Running,
            Some(AgentState::NeedsInput { .. }) => WorkspaceStatus::NeedsInput,
            Some(AgentState::Stale { .. }) => WorkspaceStatus::Stale,
            Some(AgentState::Exited { code }) => {
                Self::between_runs(status, Some(LastRunExit { code, asked: false }))
            }
            None => Self::between_runs(status, last_exit),
        }
    }

    fn between_runs(status: TaskStatus, last_exit: Option<LastRunExit>) -> Self {
        // The status promises a process and there is none, so the next run is on its way.
        if status.claims_a_process() {
            return WorkspaceStatus::Running;
        }
        match last_exit {
            Some(exit) if exit.is_failure() => WorkspaceStatus::Errored,
            Some(exit) if exit.code.is_success() => WorkspaceStatus::Completed,
            Some(_) | None => WorkspaceStatus::Idle,
        }
    }

    /// The sign.
    pub fn mark(self) -> &'static str {
        match self {
            WorkspaceStatus::Idle => "⚪",
            WorkspaceStatus::Running => "🟢",
            WorkspaceStatus::NeedsInput => "🟡",
            WorkspaceStatus::Stale => "🟠",
            WorkspaceStatus::Completed => "✅",
            WorkspaceStatus::Errored => "🔴",
        }
    }

    /// The sign for terminals that show only ASCII.
    pub fn ascii_mark(self) -> &'static str {
        match self {
            WorkspaceStatus::Idle => ".",
            WorkspaceStatus::Running => ">",
            WorkspaceStatus::NeedsInput => "?",
            WorkspaceStatus::Stale => "~",
            WorkspaceStatus::Completed => "+",
            WorkspaceStatus::Errored => "!",
        }
    }

    /// The word for the sign.
    pub fn word(self) -> &'static str {
        match self {
            WorkspaceStatus::Idle => "idle",
            WorkspaceStatus::Running => "running",
            WorkspaceStatus::NeedsInput => "needs input",
            WorkspaceStatus::Stale => "stale",
            WorkspaceStatus::Completed => "completed",
            WorkspaceStatus::Errored => "errored",
        }
    }
}

impl fmt::Display for WorkspaceStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;
    use crate::evidence::Why;
    use crate::exit::ExitCode;

    const SINCE: Time = Time::ZERO;

    fn shown(status: TaskStatus, state: Option<AgentState>, last_exit: Option<ExitCode>) -> &'static str {
        let by_itself = last_exit.map(|code| LastRunExit { code, asked: false });
        WorkspaceStatus::derive(status, state, by_itself).word()
    }

    #[test]
    fn a_live_run_decides_whatever_the_file_says() {
        for status in TaskStatus::ALL {
            let failed_before = Some(ExitCode::Code(1));
            assert_eq!(shown(status, Some(AgentState::Starting), failed_before), "running");
            assert_eq!(shown(status, Some(AgentState::Running), failed_before), "running");
            assert_eq!(
                shown(status, Some(AgentState::NeedsInput { since: SINCE, why: Why::Prompt }), failed_before),
                "needs input"
            );
            assert_eq!(
                shown(status, Some(AgentState::Stale { since: SINCE, why: Why::Prompt }), failed_before),
                "stale"
            );
        }
    }

    #[test]
    fn without_one_the_last_exit_decides() {
        assert_eq!(shown(TaskStatus::Draft, None, None), "idle");
        assert_eq!(shown(TaskStatus::Stopped, None, Some(ExitCode::Code(0))), "completed");
        assert_eq!(shown(TaskStatus::Stopped, None, Some(ExitCode::Code(3))), "errored");
        assert_eq!(shown(TaskStatus::Stopped, None, Some(ExitCode::Signal(15))), "errored");
        assert_eq!(shown(TaskStatus::Stopped, None, Some(ExitCode::Unknown)), "errored");
        let over = Some(AgentState::Exited { code: ExitCode::Code(0) });
        assert_eq!(shown(TaskStatus::Completed, over, Some(ExitCode::Code(1))), "completed");
    }

    #[test]
    fn a_stop_that_somebody_asked_for_is_no_error() {
        for code in [ExitCode::Signal(15), ExitCode::Signal(9)] {
            let asked = Some(LastRunExit { code, asked: true });
            assert_eq!(WorkspaceStatus::derive(TaskStatus::Stopped, None, asked), WorkspaceStatus::Idle);
            assert_eq!(WorkspaceStatus::derive(TaskStatus::Merged, None, asked), WorkspaceStatus::Idle);
        }
    }

    #[test]
    fn between_a_run_and_its_successor_a_task_is_running() {
        assert_eq!(shown(TaskStatus::Running, None, Some(ExitCode::Code(1))), "running");
        let over = Some(AgentState::Exited { code: ExitCode::Code(1) });
        assert_eq!(shown(TaskStatus::Idle, over, None), "running");
    }

    #[test]
    fn no_two_marks_look_or_read_alike() {
        use WorkspaceStatus::*;
        let all = [Idle, Running, NeedsInput, Stale, Completed, Errored];
        for (i, one) in all.iter().enumerate() {
            for other in &all[i + 1..] {
                assert_ne!(one.mark(), other.mark());
                assert_ne!(one.ascii_mark(), other.ascii_mark());
                assert_ne!(one.word(), other.word());
            }
        }
    }
}
