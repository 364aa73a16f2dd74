//! Reasons why the supervisor refuses a request, in words for the user.
//!
//! Not here: the command that was refused. The daemon knows it and names it first.

use super::occupation::Occupation;
use crate::ids::{RunId, TaskId, TaskKey};
use crate::task_status::{TaskStatus, TransitionRefused};

/// Why the supervisor refuses a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// All slots for agents are taken.
    #[error("maximum number of agents reached ({max})")]
    MaxAgentsReached {
        /// The limit.
        max: u32,
    },
    /// Several agents need more slots than are free.
    #[error("{wanted} agents cannot start: {free} of {max} slots are free")]
    TooFewSlots {
        /// The number of agents.
        wanted: u32,
        /// The slots that are free.
        free: u32,
        /// The limit.
        max: u32,
    },
    /// The status of the task does not allow this step.
    #[error("task {} {refused}", key.task)]
    Transition {
        /// The task.
        key: TaskKey,
        /// The step that is not allowed.
        refused: TransitionRefused,
    },
    /// The task has no live agent.
    #[error("task {} is not running: it is {status}", key.task)]
    NotRunning {
        /// The task.
        key: TaskKey,
        /// The status of the task.
        status: TaskStatus,
    },
    /// Another operation on the task is under way.
    #[error("task {} is {doing}", key.task)]
    Busy {
        /// The task.
        key: TaskKey,
        /// The operation under way.
        doing: Occupation,
    },
    /// The operation must wait for the end of the turn.
    #[error("the agent of task {} is at work", key.task)]
    AgentAtWork {
        /// The task.
        key: TaskKey,
    },
    /// The operation needs a task without a live agent.
    #[error("the agent of task {} is still running", key.task)]
    AgentLives {
        /// The task.
        key: TaskKey,
    },
    /// An earlier removal did not finish.
    #[error("the removal of task {} was interrupted", key.task)]
    Unsettled {
        /// The task.
        key: TaskKey,
    },
    /// A process of an earlier run still lives.
    #[error("task {} still has a process of an earlier run, {run}", key.task)]
    Orphaned {
        /// The task.
        key: TaskKey,
        /// The run.
        run: RunId,
    },
    /// The daemon deletes old trash entries of the project.
    #[error("the trash of this project is being emptied")]
    EmptyingTrash,
    /// An undo in the project is under way.
    #[error("a restore from the trash of this project is in progress")]
    ComingBack,
    /// Another host that shares this home runs the task.
    #[error("task {} runs on another host", key.task)]
    Elsewhere {
        /// The task.
        key: TaskKey,
    },
    /// The supervisor does not know the task.
    #[error("there is no task {}", key.task)]
    UnknownTask {
        /// The task.
        key: TaskKey,
    },
    /// The task has a live run, so it can neither be set up nor adopt another run.
    #[error("task {} already has a run, {run}", key.task)]
    HasARun {
        /// The task.
        key: TaskKey,
        /// The run.
        run: RunId,
    },
    /// A stop or a removal cancelled the start.
    #[error("the start of task {} was cancelled", key.task)]
    Cancelled {
        /// The task.
        key: TaskKey,
    },
    /// The daemon could not make the workspace.
    #[error("could not make the workspace of task {}: {error}", key.task)]
    WorkspaceFailed {
        /// The task.
        key: TaskKey,
        /// Why, in words.
        error: String,
    },
    /// A setup command failed.
    #[error("could not set up the workspace of task {}: {error}", key.task)]
    SetupFailed {
        /// The task.
        key: TaskKey,
        /// Why, in words.
        error: String,
    },
    /// The daemon could not start the keeper.
    #[error("could not start the agent of task {}: {error}", key.task)]
    KeeperFailed {
        /// The task.
        key: TaskKey,
        /// Why, in words.
        error: String,
    },
    /// The run did not end, although the daemon ordered its keeper to send SIGKILL.
    #[error("run {run} of task {} does not end", key.task)]
    WontDie {
        /// The task.
        key: TaskKey,
        /// The run.
        run: RunId,
    },
    /// The daemon ends all agents and itself.
    #[error("the daemon is shutting down")]
    ShuttingDown,
}

impl Refusal {
    /// The user's way out, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Refusal::MaxAgentsReached { .. } | Refusal::TooFewSlots { .. } => {
                Some("stop another task, or raise max_agents in config.toml".to_owned())
            }
            Refusal::Transition { refused, .. } => Some(ways_from(refused.from)),
            Refusal::NotRunning { key, status } => Some(way_to_agent(key.task, *status)),
            Refusal::Busy { .. } | Refusal::EmptyingTrash | Refusal::ComingBack => {
                Some("try again in a moment".to_owned())
            }
            Refusal::AgentAtWork { key } => {
                Some(format!("wait until its turn ends, or: agency interrupt {0}, agency stop {0}", key.task))
            }
            Refusal::AgentLives { key } => Some(format!("agency stop {}", key.task)),
            Refusal::Unsettled { key } => Some(format!("`agency rm {}` tries again", key.task)),
            Refusal::Orphaned { run, .. } => Some(format!("agency orphans kill {run}")),
            Refusal::Elsewhere { .. } => Some("use agency on that host".to_owned()),
            Refusal::UnknownTask { .. } => Some("`agency ls` lists all tasks".to_owned()),
            Refusal::HasARun { key, .. } => Some(format!("`agency stop {}` ends that one", key.task)),
            Refusal::WontDie { .. }
            | Refusal::Cancelled { .. }
            | Refusal::WorkspaceFailed { .. }
            | Refusal::SetupFailed { .. }
            | Refusal::KeeperFailed { .. }
            | Refusal::ShuttingDown => None,
        }
    }
}

/// How to get an agent for a task without one. A merged task cannot have one, but its output can be read.
pub fn way_to_agent(task: TaskId, status: TaskStatus) -> String {
    match status {
        TaskStatus::Merged => {
            format!("`agency logs {task}` shows its output; start new work with `agency new`")
        }
        TaskStatus::Draft => format!("`agency start {task}` starts it"),
        TaskStatus::Running
        | TaskStatus::Idle
        | TaskStatus::Stopped
        | TaskStatus::Completed
        | TaskStatus::Failed
        | TaskStatus::Reviewed => {
            format!("`agency start {task}` starts it again; `agency logs {task}` shows its output")
        }
    }
}

fn ways_from(status: TaskStatus) -> String {
    let ways: Vec<&str> = status.leads_to().iter().map(|next| next.as_str()).collect();
    match ways.split_last() {
        None => format!("the task is {status}; start new work with `agency new`"),
        Some((only, [])) => format!("from {status} a task can become {only}"),
        Some((last, others)) => format!("from {status} a task can become {} or {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ProjectId;

    fn key() -> TaskKey {
        TaskKey { project: ProjectId("4f2a".into()), task: TaskId(12) }
    }

    fn check(refusal: Refusal, text: &str, hint: &str) {
        assert_eq!(refusal.to_string(), text);
        assert_eq!(refusal.hint().as_deref().unwrap_or_default(), hint);
    }

    fn no_way(from: TaskStatus, to: TaskStatus) -> Refusal {
        Refusal::Transition { key: key(), refused: from.to(to).expect_err("no such step") }
    }

    #[test]
    fn refusals_name_the_task_the_reason_and_a_way_out() {
        check(
            Refusal::MaxAgentsReached { max: 10 },
            "maximum number of agents reached (10)",
            "stop another task, or raise max_agents in config.toml",
        );
        check(
            Refusal::TooFewSlots { wanted: 3, free: 2, max: 10 },
            "3 agents cannot start: 2 of 10 slots are free",
            "stop another task, or raise max_agents in config.toml",
        );
        check(
            Refusal::NotRunning { key: key(), status: TaskStatus::Completed },
            "task 12 is not running: it is completed",
            "`agency start 12` starts it again; `agency logs 12` shows its output",
        );
        check(
            Refusal::NotRunning { key: key(), status: TaskStatus::Merged },
            "task 12 is not running: it is merged",
            "`agency logs 12` shows its output; start new work with `agency new`",
        );
        check(
            Refusal::Busy { key: key(), doing: Occupation::Restarting },
            "task 12 is restarting",
            "try again in a moment",
        );
        check(Refusal::ShuttingDown, "the daemon is shutting down", "");
    }

    #[test]
    fn a_step_that_does_not_exist_names_both_ends_and_those_that_do() {
        check(
            no_way(TaskStatus::Merged, TaskStatus::Running),
            "task 12 cannot go from merged to running",
            "the task is merged; start new work with `agency new`",
        );
        check(
            no_way(TaskStatus::Draft, TaskStatus::Completed),
            "task 12 cannot go from draft to completed",
            "from draft a task can become running",
        );
        check(
            no_way(TaskStatus::Idle, TaskStatus::Completed),
            "task 12 cannot go from idle to completed",
            "from idle a task can become running or stopped",
        );
        check(
            no_way(TaskStatus::Completed, TaskStatus::Idle),
            "task 12 cannot go from completed to idle",
            "from completed a task can become reviewed, merged or running",
        );
    }
}
