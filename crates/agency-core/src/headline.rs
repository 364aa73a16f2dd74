//! The first words that people read about a task, and which tasks come first in lists.
//!
//! Every surface uses these words and this order. Not here: marks and colours (see `rail`), ages, and the agent's own text.

use std::fmt;

use crate::activity::Why;
use crate::agent_state::AgentState;
use crate::exit::{ExitCode, LastRunExit};
use crate::task_status::TaskStatus;

/// The wish or the work of a task, in a few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Headline {
    /// The agent asks for permission to act.
    AsksPermission,
    /// The agent asks a question.
    Asks,
    /// The agent reports an error, ended with one, or the user marked the task as failed.
    Failed,
    /// The agent has finished its turn, or ended well by itself.
    Done,
    /// The agent waits for a message.
    AtPrompt,
    /// The agent waits, and Agency cannot tell for what.
    Waits,
    /// The agent has shown nothing yet, or its next run is on its way.
    Starting,
    /// The agent works.
    Working,
    /// The run ended, and its exit status is lost.
    Ended,
    /// The user stopped the agent, or no agent is left to say more.
    Stopped,
    /// The task was never started.
    Draft,
    /// The user marked the task as completed.
    Completed,
    /// The user marked the task as reviewed.
    Reviewed,
    /// The work is merged.
    Merged,
    /// Something other than the agent decides.
    Instead(Circumstance),
}

/// Something that matters more than an agent that does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Circumstance {
    /// The task file cannot be read.
    Broken,
    /// The run lives on another host.
    Elsewhere,
    /// The directory of the workspace has disappeared.
    WorkspaceMissing,
    /// A crash interrupted a merge, and Agency undid it.
    MergeInterrupted,
    /// The setup commands run.
    SettingUp,
    /// The setup commands failed.
    SetupFailed,
    /// The setup commands were never run.
    NotSetUp,
}

/// How soon a task needs the user. The most urgent is the smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Urgency {
    /// The task cannot go on without the user.
    Blocked,
    /// The agent has finished, and the user has not looked at it since.
    Unread,
    /// The agent waits for a message, and the user has not looked at it since.
    Waiting,
    /// The agent works.
    Working,
    /// The agent waits, and the user knows.
    Read,
    /// No agent runs.
    Resting,
    /// The work is merged.
    Over,
}

/// Everything that decides about the first words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskFacts {
    /// The status in the task file.
    pub status: TaskStatus,
    /// The state of the live agent, if there is one.
    pub state: Option<AgentState>,
    /// The end of the last run.
    pub last_exit: Option<LastRunExit>,
    /// Whether something happened that the user has not looked at.
    pub unread: bool,
    /// Whether the user has put the task off.
    pub snoozed: bool,
    /// Something that matters more than an agent that does not run.
    pub circumstance: Option<Circumstance>,
}

impl Headline {
    /// The headline of a task.
    pub fn of_task(facts: &TaskFacts) -> Headline {
        let outweighs = |circumstance: &Circumstance| match circumstance {
            Circumstance::Broken | Circumstance::Elsewhere => true,
            _ => facts.state.is_none() && facts.status != TaskStatus::Merged,
        };
        match (facts.circumstance.filter(outweighs), facts.state) {
            (Some(circumstance), _) => Headline::Instead(circumstance),
            (None, Some(AgentState::Exited { .. }) | None) => Self::without_agent(facts),
            (None, Some(state)) => Self::of_state(state),
        }
    }

    /// The headline of an agent in this state.
    pub fn of_state(state: AgentState) -> Headline {
        match state {
            AgentState::Starting => Headline::Starting,
            AgentState::Running => Headline::Working,
            AgentState::NeedsInput { why, .. } | AgentState::Stale { why, .. } => Self::of_wait(why),
            AgentState::Exited { code } => Self::of_exit(LastRunExit { code, asked: false }),
        }
    }

    /// The headline of an agent that waits for this.
    pub fn of_wait(why: Why) -> Headline {
        match why {
            Why::Permission => Headline::AsksPermission,
            Why::Question => Headline::Asks,
            Why::Error => Headline::Failed,
            Why::Finished => Headline::Done,
            Why::Prompt => Headline::AtPrompt,
            Why::Unknown => Headline::Waits,
        }
    }

    fn without_agent(facts: &TaskFacts) -> Headline {
        match facts.status {
            TaskStatus::Draft => Headline::Draft,
            // The status promises a process and there is none, so the next run is on its way.
            TaskStatus::Running | TaskStatus::Idle => Headline::Starting,
            TaskStatus::Stopped => facts.last_exit.map_or(Headline::Stopped, Self::of_exit),
            TaskStatus::Completed => Headline::Completed,
            TaskStatus::Failed => Headline::Failed,
            TaskStatus::Reviewed => Headline::Reviewed,
            TaskStatus::Merged => Headline::Merged,
        }
    }

    fn of_exit(exit: LastRunExit) -> Headline {
        match exit.code {
            _ if exit.asked => Headline::Stopped,
            ExitCode::Unknown => Headline::Ended,
            code if code.is_success() => Headline::Done,
            ExitCode::Code(_) | ExitCode::Signal(_) => Headline::Failed,
        }
    }

    /// Every headline.
    pub const ALL: [Headline; 21] = [
        Headline::AsksPermission,
        Headline::Asks,
        Headline::Failed,
        Headline::Done,
        Headline::AtPrompt,
        Headline::Waits,
        Headline::Starting,
        Headline::Working,
        Headline::Ended,
        Headline::Stopped,
        Headline::Draft,
        Headline::Completed,
        Headline::Reviewed,
        Headline::Merged,
        Headline::Instead(Circumstance::Broken),
        Headline::Instead(Circumstance::Elsewhere),
        Headline::Instead(Circumstance::WorkspaceMissing),
        Headline::Instead(Circumstance::MergeInterrupted),
        Headline::Instead(Circumstance::SettingUp),
        Headline::Instead(Circumstance::SetupFailed),
        Headline::Instead(Circumstance::NotSetUp),
    ];

    /// The words that people read.
    pub fn words(self) -> &'static str {
        match self {
            Headline::AsksPermission => "asks permission",
            Headline::Asks => "asks",
            Headline::Failed => "failed",
            Headline::Done => "done",
            Headline::AtPrompt => "at its prompt",
            Headline::Waits => "waits",
            Headline::Starting => "starting",
            Headline::Working => "working",
            Headline::Ended => "ended",
            Headline::Stopped => "stopped",
            Headline::Draft => "draft",
            Headline::Completed => "completed",
            Headline::Reviewed => "reviewed",
            Headline::Merged => "merged",
            Headline::Instead(circumstance) => circumstance.words(),
        }
    }
}

impl fmt::Display for Headline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.words())
    }
}

impl Circumstance {
    fn words(self) -> &'static str {
        match self {
            Circumstance::Broken => "task file broken",
            Circumstance::Elsewhere => "on another host",
            Circumstance::WorkspaceMissing => "workspace missing",
            Circumstance::MergeInterrupted => "merge interrupted",
            Circumstance::SettingUp => "setting up",
            Circumstance::SetupFailed => "setup failed",
            Circumstance::NotSetUp => "not set up",
        }
    }
}

impl Urgency {
    /// How soon the task needs the user. A task that was put off can wait like one that the user has looked at.
    pub fn of_task(facts: &TaskFacts) -> Urgency {
        match Self::without_snooze(facts) {
            Urgency::Blocked | Urgency::Unread | Urgency::Waiting if facts.snoozed => Urgency::Read,
            urgency => urgency,
        }
    }

    fn without_snooze(facts: &TaskFacts) -> Urgency {
        let is_live = facts.state.is_some_and(|state| !matches!(state, AgentState::Exited { .. }));
        match Headline::of_task(facts) {
            Headline::AsksPermission | Headline::Asks => Urgency::Blocked,
            Headline::Failed if is_live || facts.unread => Urgency::Blocked,
            Headline::Done if facts.unread => Urgency::Unread,
            Headline::Ended if facts.unread => Urgency::Unread,
            Headline::AtPrompt | Headline::Waits if facts.unread => Urgency::Waiting,
            Headline::Starting | Headline::Working => Urgency::Working,
            Headline::Done | Headline::AtPrompt | Headline::Waits if is_live => Urgency::Read,
            Headline::Done
            | Headline::AtPrompt
            | Headline::Waits
            | Headline::Failed
            | Headline::Ended
            | Headline::Stopped
            | Headline::Draft
            | Headline::Completed
            | Headline::Reviewed => Urgency::Resting,
            Headline::Merged => Urgency::Over,
            Headline::Instead(circumstance) => match circumstance {
                Circumstance::Broken
                | Circumstance::WorkspaceMissing
                | Circumstance::MergeInterrupted
                | Circumstance::SetupFailed => Urgency::Blocked,
                Circumstance::SettingUp => Urgency::Working,
                Circumstance::Elsewhere | Circumstance::NotSetUp => Urgency::Resting,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;

    fn resting(status: TaskStatus) -> TaskFacts {
        TaskFacts { status, state: None, last_exit: None, unread: false, snoozed: false, circumstance: None }
    }

    fn waiting(why: Why, unread: bool) -> TaskFacts {
        let state = Some(AgentState::NeedsInput { since: Time::ZERO, why });
        TaskFacts { state, unread, ..resting(TaskStatus::Running) }
    }

    fn ended(code: ExitCode, asked: bool, unread: bool) -> TaskFacts {
        TaskFacts { last_exit: Some(LastRunExit { code, asked }), unread, ..resting(TaskStatus::Stopped) }
    }

    fn shown(facts: TaskFacts) -> (&'static str, Urgency) {
        (Headline::of_task(&facts).words(), Urgency::of_task(&facts))
    }

    #[test]
    fn what_the_agent_wants_comes_first() {
        for (why, words, new, known) in [
            (Why::Permission, "asks permission", Urgency::Blocked, Urgency::Blocked),
            (Why::Question, "asks", Urgency::Blocked, Urgency::Blocked),
            (Why::Error, "failed", Urgency::Blocked, Urgency::Blocked),
            (Why::Finished, "done", Urgency::Unread, Urgency::Read),
            (Why::Prompt, "at its prompt", Urgency::Waiting, Urgency::Read),
            (Why::Unknown, "waits", Urgency::Waiting, Urgency::Read),
        ] {
            assert_eq!(shown(waiting(why, true)), (words, new));
            assert_eq!(shown(waiting(why, false)), (words, known));
            let stale = Some(AgentState::Stale { since: Time::ZERO, why });
            let stale = TaskFacts { state: stale, ..waiting(why, true) };
            assert_eq!(shown(stale), (words, new), "the age is a number and not a state");
        }
        let working = |state| shown(TaskFacts { state: Some(state), ..resting(TaskStatus::Running) });
        assert_eq!(working(AgentState::Running), ("working", Urgency::Working));
        assert_eq!(working(AgentState::Starting), ("starting", Urgency::Working));
    }

    #[test]
    fn only_an_end_that_nobody_asked_for_is_a_failure() {
        assert_eq!(shown(ended(ExitCode::Signal(15), true, false)), ("stopped", Urgency::Resting));
        assert_eq!(shown(ended(ExitCode::Signal(15), false, true)), ("failed", Urgency::Blocked));
        assert_eq!(shown(ended(ExitCode::Code(2), false, true)), ("failed", Urgency::Blocked));
        assert_eq!(shown(ended(ExitCode::Code(2), false, false)), ("failed", Urgency::Resting));
        assert_eq!(shown(ended(ExitCode::Code(0), false, true)), ("done", Urgency::Unread));
        assert_eq!(shown(ended(ExitCode::Code(0), false, false)), ("done", Urgency::Resting));
        assert_eq!(shown(ended(ExitCode::Unknown, false, true)), ("ended", Urgency::Unread));
        assert_eq!(shown(resting(TaskStatus::Stopped)), ("stopped", Urgency::Resting));
    }

    #[test]
    fn without_an_agent_the_users_own_word_counts() {
        let exit = ended(ExitCode::Code(1), false, false);
        for (status, words, urgency) in [
            (TaskStatus::Draft, "draft", Urgency::Resting),
            (TaskStatus::Running, "starting", Urgency::Working),
            (TaskStatus::Completed, "completed", Urgency::Resting),
            (TaskStatus::Reviewed, "reviewed", Urgency::Resting),
            (TaskStatus::Failed, "failed", Urgency::Resting),
            (TaskStatus::Merged, "merged", Urgency::Over),
        ] {
            assert_eq!(shown(TaskFacts { status, ..exit }), (words, urgency));
        }
    }

    #[test]
    fn a_live_agent_outweighs_its_circumstances_but_a_broken_file_does_not_wait() {
        let setup = |facts| shown(TaskFacts { circumstance: Some(Circumstance::SetupFailed), ..facts });
        assert_eq!(setup(resting(TaskStatus::Stopped)), ("setup failed", Urgency::Blocked));
        assert_eq!(setup(resting(TaskStatus::Merged)), ("merged", Urgency::Over));
        assert_eq!(setup(waiting(Why::Question, true)).0, "asks");
        let broken = TaskFacts { circumstance: Some(Circumstance::Broken), ..waiting(Why::Finished, false) };
        assert_eq!(shown(broken), ("task file broken", Urgency::Blocked));
    }

    #[test]
    fn a_task_that_was_put_off_does_not_need_the_user() {
        for facts in [
            waiting(Why::Permission, true),
            waiting(Why::Finished, true),
            ended(ExitCode::Code(1), false, true),
        ] {
            assert_eq!(Urgency::of_task(&TaskFacts { snoozed: true, ..facts }), Urgency::Read);
        }
        let works =
            TaskFacts { state: Some(AgentState::Running), snoozed: true, ..resting(TaskStatus::Running) };
        assert_eq!(Urgency::of_task(&works), Urgency::Working);
    }

    #[test]
    fn the_blocked_come_first_and_the_merged_last() {
        let mut all = [
            shown(resting(TaskStatus::Merged)),
            shown(resting(TaskStatus::Draft)),
            shown(waiting(Why::Finished, false)),
            shown(TaskFacts { state: Some(AgentState::Running), ..resting(TaskStatus::Running) }),
            shown(waiting(Why::Prompt, true)),
            shown(waiting(Why::Finished, true)),
            shown(waiting(Why::Permission, false)),
        ];
        all.sort_by_key(|(_, urgency)| *urgency);
        let words = all.map(|(words, _)| words);
        assert_eq!(words, ["asks permission", "done", "at its prompt", "working", "done", "draft", "merged"]);
    }
}
