//! The status of a task in its file, and the steps between statuses.
//!
//! Not here: whether a process lives. The supervisor makes `running` true.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskStatus {
    /// Never started.
    Draft,
    /// Its agent runs.
    Running,
    /// The user paused the task; its process lives.
    Idle,
    /// There is no process; `agency start` starts it again.
    Stopped,
    /// The user or the agent itself marked the work as done.
    Completed,
    /// The user or the agent itself marked the work as failed.
    Failed,
    /// The user has reviewed the work.
    Reviewed,
    /// The work is in the base.
    Merged,
}

use TaskStatus::*;

impl TaskStatus {
    /// Every status.
    pub const ALL: [TaskStatus; 8] = [Draft, Running, Idle, Stopped, Completed, Failed, Reviewed, Merged];

    /// Returns `next` if the step is allowed.
    pub fn to(self, next: TaskStatus) -> Result<TaskStatus, TransitionRefused> {
        if self.leads_to().contains(&next) {
            Ok(next)
        } else {
            Err(TransitionRefused { from: self, to: next })
        }
    }

    /// The steps that a merge takes: work that no one has called completed becomes so on the way.
    pub fn steps_to_merged(self) -> Result<&'static [TaskStatus], TransitionRefused> {
        match self {
            Completed | Reviewed => Ok(&[Merged]),
            Running | Stopped => Ok(&[Completed, Merged]),
            Draft | Idle | Failed | Merged => Err(TransitionRefused { from: self, to: Merged }),
        }
    }

    /// The statuses that may follow.
    pub fn leads_to(self) -> &'static [TaskStatus] {
        match self {
            Draft => &[Running],
            Running => &[Stopped, Idle, Completed, Failed, Reviewed],
            Idle => &[Running, Stopped],
            Stopped => &[Running, Completed, Failed, Reviewed],
            Completed => &[Reviewed, Merged, Running],
            Failed => &[Running],
            Reviewed => &[Merged, Running],
            Merged => &[],
        }
    }

    /// Whether this status promises a live process.
    pub fn claims_a_process(self) -> bool {
        match self {
            Running | Idle => true,
            Draft | Stopped | Completed | Failed | Reviewed | Merged => false,
        }
    }

    /// The word in the task file.
    pub fn as_str(self) -> &'static str {
        match self {
            Draft => "draft",
            Running => "running",
            Idle => "idle",
            Stopped => "stopped",
            Completed => "completed",
            Failed => "failed",
            Reviewed => "reviewed",
            Merged => "merged",
        }
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A step that is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot go from {from} to {to}")]
pub struct TransitionRefused {
    /// The status now.
    pub from: TaskStatus,
    /// The status that was wanted.
    pub to: TaskStatus,
}

/// The text is not a status.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a status; expected draft, running, idle, stopped, completed, failed, reviewed or merged"
)]
pub struct NotAStatus(String);

impl FromStr for TaskStatus {
    type Err = NotAStatus;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = TaskStatus::ALL.into_iter().find(|status| status.as_str() == text);
        known.ok_or_else(|| NotAStatus(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_either_in_the_contract_or_refused_by_name() {
        let contract = "
            draft: running
            running: stopped idle completed failed reviewed
            stopped: running completed failed reviewed
            idle: running stopped
            completed: reviewed merged running
            reviewed: merged running
            failed: running
            merged:";
        for from in TaskStatus::ALL {
            let line = contract.lines().find_map(|line| line.trim().strip_prefix(&format!("{from}:")));
            let allowed: Vec<&str> = line.expect("a line for each status").split_whitespace().collect();
            for to in TaskStatus::ALL {
                match from.to(to) {
                    Ok(reached) => assert!(reached == to && allowed.contains(&to.as_str()), "{from} to {to}"),
                    Err(refused) => {
                        assert!(!allowed.contains(&to.as_str()), "{from} to {to}");
                        assert_eq!(refused.to_string(), format!("cannot go from {from} to {to}"));
                    }
                }
            }
        }
    }

    #[test]
    fn a_merge_takes_only_steps_of_the_contract() {
        for from in TaskStatus::ALL {
            let Ok(steps) = from.steps_to_merged() else { continue };
            let reached = steps.iter().try_fold(from, |status, next| status.to(*next));
            assert_eq!(reached, Ok(Merged), "{from}");
        }
        assert!(Failed.steps_to_merged().is_err() && Draft.steps_to_merged().is_err());
    }

    #[test]
    fn words_are_read_back() {
        for status in TaskStatus::ALL {
            assert_eq!(status.to_string().parse(), Ok(status));
        }
        assert!("Running".parse::<TaskStatus>().is_err());
    }
}
