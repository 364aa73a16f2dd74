//! Refusals of the supervisor, as failures that a caller reads.
//!
//! Not here: what is refused, and in which words. The supervisor decides both; this file adds the code and the facts
//! that only the daemon knows.

use agency_api::{Failure, FailureCode, ProcessIdentity};
use agency_core::Time;
use agency_core::evidence::Why;
use agency_core::ids::{RunId, TaskId};
use agency_core::supervisor::Refusal;
use agency_keeper::platform;
use agency_run::environment::RUN_ID;

use super::World;
use super::operations::Current;

impl World {
    pub(super) fn refusal_failure(&self, refusal: Refusal) -> Failure {
        let failure = Failure::new(refusal.to_string()).code(code(&refusal));
        let failure = match refusal.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        };
        match &refusal {
            Refusal::Unsettled { key } => match self.current(key) {
                Some(Current::Unsettled { cause, .. }) => add_unsettled_cause(failure, cause),
                _ => failure,
            },
            Refusal::Elsewhere { key } => match self.runs.elsewhere.get(key) {
                Some(host) => Failure { message: format!("task {} runs on {host}", key.task), ..failure },
                None => failure,
            },
            Refusal::Orphaned { run, .. } => {
                let process = self.runs.orphans.get(run).and_then(|orphan| orphan.process.as_ref());
                let pid = process.map_or_else(String::new, |process| format!(" (pid {})", process.pid));
                failure.because(format!("that process{pid} still works there; the daemon cannot control it"))
            }
            Refusal::MaxAgentsReached { .. } => match self.done_longest() {
                done if done.is_empty() => failure,
                done => failure.hint(format!(
                    "stop an agent that is done: agency stop {}; or raise max_agents in config.toml",
                    done.join(" ")
                )),
            },
            Refusal::WontDie { key, run } => match self.runs.live.get(run) {
                Some(live) => add_what_lives(failure, key.task, run, &live.handle.keeper),
                None => failure,
            },
            _ => failure,
        }
    }
}

/// How many agents a hint names.
const MOST_NAMED: usize = 3;

impl World {
    /// The tasks whose agents have waited longest for a next message.
    fn done_longest(&self) -> Vec<String> {
        let mut done: Vec<(Time, String)> = Vec::new();
        for live in self.runs.live.values() {
            if let Some((since, Why::Finished | Why::Prompt)) = live.standing.state.waiting() {
                done.push((since, self.name_of(&live.key)));
            }
        }
        done.sort();
        done.into_iter().take(MOST_NAMED).map(|(_, name)| name).collect()
    }
}

/// Names the process that keeps a run alive: a keeper that cannot send SIGKILL, or processes that have outlived it.
fn add_what_lives(failure: Failure, task: TaskId, run: &RunId, keeper: &ProcessIdentity) -> Failure {
    let pid = keeper.pid;
    let state =
        platform::process(pid).filter(|process| process.has_identity(keeper)).map(|process| process.state);
    match state {
        Some('T' | 't') => failure
            .because(format!("its keeper, process {pid}, is suspended or traced, and cannot send SIGKILL"))
            .hint(format!("kill -CONT {pid}; agency stop {task}")),
        Some('D') => failure
            .because(format!("its keeper, process {pid}, waits for the kernel, and cannot send SIGKILL"))
            .hint("perhaps a file system does not answer"),
        _ => {
            let living = platform::processes_with_environment(RUN_ID, &run.0);
            let named: Vec<String> = living.iter().map(|it| format!("{} ({})", it.pid, it.name)).collect();
            match named.join(", ") {
                none if none.is_empty() => failure.because(format!(
                    "no process of it is left, but its keeper, process {pid}, does not report the end"
                )),
                named => failure
                    .because(format!(
                        "its keeper has the order to send SIGKILL, and these processes are still running: {named}"
                    ))
                    .hint("the kernel holds them, perhaps in a file system that does not answer"),
            }
        }
    }
}

/// Adds why the daemon could not settle the removal.
fn add_unsettled_cause(failure: Failure, cause: &Failure) -> Failure {
    let causes = std::iter::once(cause.message.clone()).chain(cause.causes.clone()).collect();
    let hint = match (&cause.hint, &failure.hint) {
        (Some(first), Some(then)) => Some(format!("{first}; then: {then}")),
        (first, then) => first.clone().or_else(|| then.clone()),
    };
    Failure { causes, hint, ..failure }
}

fn code(refusal: &Refusal) -> FailureCode {
    match refusal {
        Refusal::MaxAgentsReached { .. } | Refusal::TooFewSlots { .. } => FailureCode::MaxAgentsReached,
        Refusal::Transition { .. } => FailureCode::WrongStatus,
        Refusal::NotRunning { .. } => FailureCode::NotRunning,
        Refusal::Busy { .. } | Refusal::EmptyingTrash | Refusal::ComingBack => FailureCode::Busy,
        Refusal::AgentAtWork { .. } => FailureCode::AgentWorking,
        Refusal::AgentLives { .. } | Refusal::HasARun { .. } | Refusal::Orphaned { .. } => {
            FailureCode::AgentRunning
        }
        Refusal::Unsettled { .. } => FailureCode::RemovalUnfinished,
        Refusal::Elsewhere { .. } => FailureCode::RunningElsewhere,
        Refusal::UnknownTask { .. } => FailureCode::TaskNotFound,
        Refusal::Cancelled { .. } => FailureCode::Cancelled,
        Refusal::WorkspaceFailed { .. } | Refusal::KeeperFailed { .. } => FailureCode::StartFailed,
        Refusal::SetupFailed { .. } => FailureCode::SetupFailed,
        Refusal::WontDie { .. } => FailureCode::StopFailed,
        Refusal::ShuttingDown => FailureCode::DaemonLost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsettled_removal_tells_its_cause_and_both_ways_out() {
        let refusal = Failure::new("the removal of task 1 was interrupted").hint("`agency rm 1` tries again");
        let cause = Failure::new("cannot move away what is left").because("no space").hint("delete it");
        let text = add_unsettled_cause(refusal, &cause).to_string();
        assert_eq!(
            text,
            "Error: the removal of task 1 was interrupted\n\
             Caused by: cannot move away what is left\nCaused by: no space\n\
             Hint: delete it; then: `agency rm 1` tries again"
        );
    }
}
