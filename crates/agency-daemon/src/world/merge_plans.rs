//! The way to a merge: every obstacle, at once, and the steps that the caller agrees to.
//!
//! Not here: the merge itself (see `integrations`).

use agency_api::work::{MergeObstacle, MergeParams, MergePlan, MergeStep, Merged};
use agency_api::{Failure, FailureCode, method};
use agency_core::agent_state::AgentState;
use agency_core::evidence::Why;
use agency_core::ids::TaskKey;
use agency_core::supervisor::{AgentActivity, Event, Operation, Outcome, Refusal};
use agency_core::task_status::TaskStatus;
use agency_run::blocking::blocking;
use agency_server::Reply;

use super::integrations::Integration;
use super::loop_event::{InspectedMerge, IntegrationEvent, LoopEvent, MergeRequester};
use super::router::Router;
use super::{Pending, World};

pub(super) fn register(router: &mut Router) {
    router.on_reply(method::TaskMergePlan, World::plan_merge);
    router.on_reply(method::TaskMerge, World::merge);
}

/// A merge that waits until its agent has ended.
pub(super) struct MergeAfterStop {
    integration: Integration,
    params: MergeParams,
}

impl World {
    fn plan_merge(&mut self, (key, params): (TaskKey, MergeParams), reply: Reply<MergePlan>) {
        self.inspect_merge(key, params, MergeRequester::Plan(reply));
    }

    fn merge(&mut self, (key, params): (TaskKey, MergeParams), reply: Reply<Merged>) {
        self.inspect_merge(key, params, MergeRequester::Merge(reply));
    }

    /// A task that is busy is refused at once: git would only wait.
    fn inspect_merge(&mut self, key: TaskKey, params: MergeParams, requester: MergeRequester) {
        let cannot = format!("cannot merge task {}", self.name_of(&key));
        let refuse = |failure: Failure| failure.within(cannot.clone());
        if let Err(failure) = self.refuse_hopeless_merge(&key) {
            return requester.refuse(refuse(failure));
        }
        let integration = match self.integration_of(&key, &params.caller) {
            Ok(integration) => integration,
            Err(failure) => return requester.refuse(failure),
        };
        let (subject, base, reporter) =
            (self.subject(&key), self.base_of(&key), self.context.reporter.clone());
        tokio::spawn(async move {
            let (asked, wanted) = (params.clone(), base);
            let inspected = blocking(move || integration.inspect(&asked, wanted, &subject)).await;
            let event = IntegrationEvent::MergeInspected { key, params, requester, inspected };
            reporter.report(LoopEvent::Integration(Box::new(event))).await;
        });
    }

    /// No step of a merge changes these.
    fn refuse_hopeless_merge(&self, key: &TaskKey) -> Result<(), Failure> {
        let refuse = |cause: &str| Failure::new(cause).code(FailureCode::WrongStatus);
        let id = key.task;
        match self.supervisor.status(key).unwrap_or(TaskStatus::Draft) {
            TaskStatus::Merged => {
                return Err(refuse("it is already merged").hint(format!("agency rm {id}")));
            }
            TaskStatus::Draft => {
                return Err(refuse("it was never started").hint(format!("agency start {id}")));
            }
            TaskStatus::Running
            | TaskStatus::Idle
            | TaskStatus::Stopped
            | TaskStatus::Completed
            | TaskStatus::Failed
            | TaskStatus::Reviewed => {}
        }
        let begun = self.supervisor.may_begin(key, Operation::Finish, AgentActivity::AtRest);
        begun.map_err(|refusal| self.refusal_failure(refusal))
    }

    pub(super) fn on_merge_inspected(
        &mut self,
        key: TaskKey,
        params: MergeParams,
        requester: MergeRequester,
        inspected: Result<InspectedMerge, Failure>,
    ) {
        let InspectedMerge { into, obstacles } = match inspected {
            Ok(inspected) => inspected,
            Err(failure) => return requester.refuse(failure),
        };
        let obstacles: Vec<MergeObstacle> = self.task_obstacles(&key).into_iter().chain(obstacles).collect();
        match requester {
            MergeRequester::Plan(reply) => {
                reply.send(self.view(&key).map(|task| MergePlan { task, into, obstacles }));
            }
            MergeRequester::Merge(reply) => match refuse_merge(&self.name_of(&key), &params, &obstacles) {
                Some(failure) => reply.send(Err(failure)),
                None => self.begin_merge(key, params, reply),
            },
        }
    }

    /// The obstacles that the daemon knows: the agent, its queue and the status.
    fn task_obstacles(&self, key: &TaskKey) -> Vec<MergeObstacle> {
        let status = self.supervisor.status(key);
        let failed = (status == Some(TaskStatus::Failed)).then(|| MergeObstacle {
            code: FailureCode::WrongStatus,
            text: "it is marked as failed".to_owned(),
            step: None,
            hint: Some(format!("`agency start {}` lets its agent go on", key.task)),
        });
        let state = self.supervisor.live_run(key).and_then(|run| self.runs.live.get(run));
        let agent = state.map(|live| agent_obstacle(live.standing.state));
        failed.into_iter().chain(agent).chain(self.queue_obstacle(key)).collect()
    }

    /// The agent must have seen every message before its work is merged.
    fn queue_obstacle(&self, key: &TaskKey) -> Option<MergeObstacle> {
        let (id, queued) = (key.task, self.queue.of(key).count());
        let (text, them) = match queued {
            0 => return None,
            1 => ("1 queued message has not reached its agent".to_owned(), "it"),
            many => (format!("{many} queued messages have not reached its agent"), "them"),
        };
        let deliver = match self.supervisor.live_run(key) {
            Some(_) => format!("its agent gets {them} at its next prompt"),
            None => format!("`agency start {id}` starts its agent, which gets {them}"),
        };
        let hint = Some(format!("{deliver}; `agency queue drop {id}` drops {them}"));
        Some(MergeObstacle { code: FailureCode::NotDelivered, text, step: None, hint })
    }

    /// Merges at once, or first stops the agent that the caller agreed to stop. From now on no agent can start.
    fn begin_merge(&mut self, key: TaskKey, params: MergeParams, reply: Reply<Merged>) {
        let has_agent = self.supervisor.live_run(&key).is_some();
        let operation = if has_agent { Operation::Finish } else { Operation::Merge };
        let integration = match self.begin_integration(&key, &params, operation) {
            Ok(integration) => integration,
            Err(failure) => return reply.send(Err(failure)),
        };
        if !has_agent {
            return self.carry_out_merge(key, integration, params, reply);
        }
        let merge = Box::new(MergeAfterStop { integration, params });
        let ticket = self.ticket(Pending::StopBeforeMerge { key: key.clone(), merge, reply });
        self.decide(Event::Stop { key, ticket });
    }

    pub(super) fn answer_stop_before_merge(
        &mut self,
        key: TaskKey,
        merge: MergeAfterStop,
        reply: Reply<Merged>,
        outcome: Result<Outcome, Refusal>,
    ) {
        self.runs.ended.remove(&key);
        let MergeAfterStop { integration, params } = merge;
        match outcome {
            Err(refusal) if self.supervisor.live_run(&key).is_some() => {
                self.finish_integration(&key, Operation::Finish);
                self.strike_integration(&key);
                let cannot = format!("cannot merge task {}", self.name_of(&key));
                reply.send(Err(self.refusal_failure(refusal).within(cannot)));
            }
            Ok(_) | Err(_) => self.carry_out_merge(key, integration.after_stop(), params, reply),
        }
    }
}

fn agent_obstacle(state: AgentState) -> MergeObstacle {
    let stop = |text: &str| (text.to_owned(), FailureCode::AgentRunning, MergeStep::Stop);
    let interrupt = |text: &str| (text.to_owned(), FailureCode::AgentWorking, MergeStep::Interrupt);
    let (text, code, step) = match (state, state.waiting()) {
        (_, Some((_, Why::Permission))) => interrupt("its agent asks for permission"),
        (_, Some((_, Why::Question))) => stop("its agent asks a question"),
        (_, Some((_, Why::Error))) => stop("its agent reports an error and waits"),
        (_, Some((_, Why::Finished | Why::Prompt))) => stop("its agent is at its prompt"),
        (_, Some((_, Why::Unknown))) => stop("its agent waits for input"),
        (AgentState::Starting, _) => interrupt("its agent is starting"),
        (_, None) => interrupt("its agent is at work"),
    };
    MergeObstacle { code, text, step: Some(step), hint: None }
}

/// Names every obstacle that the caller has not agreed to remove.
fn refuse_merge(name: &str, params: &MergeParams, obstacles: &[MergeObstacle]) -> Option<Failure> {
    let is_agreed = |obstacle: &&MergeObstacle| obstacle.step.is_some_and(|step| params.agrees_to(step));
    let left: Vec<&MergeObstacle> = obstacles.iter().filter(|obstacle| !is_agreed(obstacle)).collect();
    let hard = || left.iter().filter(|obstacle| obstacle.step.is_none());
    let code = hard().chain(&left).next()?.code;
    let failure = Failure::new(format!("cannot merge task {name}")).code(code);
    let failure = left.iter().fold(failure, |failure, obstacle| failure.because(&obstacle.text));
    let steps: Vec<MergeStep> = left.iter().filter_map(|obstacle| obstacle.step).collect();
    let ways: Vec<String> = match hard().next() {
        Some(_) => hard().filter_map(|obstacle| obstacle.hint.clone()).collect(),
        None => vec![finish_hint(name, params, &steps)],
    };
    Some(if ways.is_empty() { failure } else { failure.hint(ways.join("; ")) })
}

fn finish_hint(name: &str, params: &MergeParams, steps: &[MergeStep]) -> String {
    let again = super::integrations::merge_command(name, params);
    let verbs = |step: &MergeStep| match step {
        MergeStep::Stop | MergeStep::Interrupt => "stops its agent",
        MergeStep::Commit => "commits its files",
    };
    let done: Vec<&str> = steps.iter().map(verbs).collect();
    let done = format!("{}, then merges", done.join(", "));
    match steps.contains(&MergeStep::Interrupt) {
        true => format!(
            "`agency wait {name}` waits until its turn ends; `{again} --finish --interrupt` {done} half a turn"
        ),
        false => format!("`{again} --finish` {done}; `agency diff {name}` shows the work"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use agency_api::method::TaskRef;
    use agency_core::Time;

    use super::*;

    fn params(commit: bool, stop: bool, interrupt: bool) -> MergeParams {
        MergeParams {
            task: TaskRef { cwd: Path::new("/").into(), name: "1".to_owned() },
            how: Default::default(),
            into: None,
            message: None,
            commit,
            stop,
            interrupt,
            caller: Default::default(),
        }
    }

    fn files() -> MergeObstacle {
        let text = "2 files are not committed".to_owned();
        MergeObstacle { code: FailureCode::UncommittedWork, text, step: Some(MergeStep::Commit), hint: None }
    }

    #[test]
    fn a_refusal_names_every_obstacle_and_the_command_that_removes_them() {
        let prompt = agent_obstacle(AgentState::NeedsInput { since: Time::default(), why: Why::Prompt });
        let obstacles = [prompt, files()];
        let failure = refuse_merge("1-fix", &params(false, false, false), &obstacles).expect("a refusal");
        assert_eq!(failure.causes, ["its agent is at its prompt", "2 files are not committed"]);
        assert!(failure.hint.expect("a hint").starts_with("`agency merge 1-fix --finish` stops its agent"));
        assert_eq!(refuse_merge("1-fix", &params(true, true, false), &obstacles), None);
    }

    #[test]
    fn an_agent_at_work_needs_a_word_of_its_own() {
        let permission = agent_obstacle(AgentState::Stale { since: Time::default(), why: Why::Permission });
        for obstacle in
            [agent_obstacle(AgentState::Running), agent_obstacle(AgentState::Starting), permission]
        {
            let failure = refuse_merge("1-fix", &params(true, true, false), std::slice::from_ref(&obstacle));
            let failure = failure.expect("a refusal");
            assert_eq!(failure.code, FailureCode::AgentWorking);
            assert!(failure.hint.expect("a hint").contains("--finish --interrupt"));
            assert_eq!(refuse_merge("1-fix", &params(true, true, true), &[obstacle]), None);
        }
    }

    #[test]
    fn an_obstacle_without_a_step_comes_first() {
        let dirty = MergeObstacle {
            code: FailureCode::TargetDirty,
            text: "main is checked out with changes".to_owned(),
            step: None,
            hint: Some("commit them".to_owned()),
        };
        let failure =
            refuse_merge("1-fix", &params(false, false, false), &[files(), dirty]).expect("a refusal");
        assert_eq!((failure.code, failure.hint.as_deref()), (FailureCode::TargetDirty, Some("commit them")));
        assert_eq!(failure.causes.len(), 2);
    }
}
