//! Where a task stands, as its file says, and where it may go from there.
//!
//! Not here: whether a process lives. `running` on paper is made true by the supervisor.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskStatus {
    Draft,
    Running,
    /// A pause that the user asked for; the process lives on.
    Idle,
    /// The process is not there; a start brings it back.
    Stopped,
    Completed,
    Failed,
    Reviewed,
    Merged,
}

use TaskStatus::*;

impl TaskStatus {
    pub const ALL: [TaskStatus; 8] = [Draft, Running, Idle, Stopped, Completed, Failed, Reviewed, Merged];

    /// Takes the step to `next`, if there is one.
    pub fn to(self, next: TaskStatus) -> Result<TaskStatus, TransitionRefused> {
        if self.leads_to().contains(&next) {
            Ok(next)
        } else {
            Err(TransitionRefused { from: self, to: next })
        }
    }

    /// The steps there are from here.
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

    /// Says that a process is there, which must be true or be made true.
    pub fn claims_a_process(self) -> bool {
        match self {
            Running | Idle => true,
            Draft | Stopped | Completed | Failed | Reviewed | Merged => false,
        }
    }

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

/// A step that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot go from {from} to {to}")]
pub struct TransitionRefused {
    pub from: TaskStatus,
    pub to: TaskStatus,
}

/// A word that is no status.
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
    fn words_are_read_back() {
        for status in TaskStatus::ALL {
            assert_eq!(status.to_string().parse(), Ok(status));
        }
        assert!("Running".parse::<TaskStatus>().is_err());
    }
}
