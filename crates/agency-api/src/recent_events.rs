//! Makes the summary of everything that happened since a time: a fold over events.
//!
//! Not here: reading the events, and the agents that wait now. The daemon knows both.

use std::collections::BTreeMap;

use crate::chat::Usage;
use crate::desk::ProjectConflict;
use crate::event::{Event, EventData};
use crate::recent::{Recent, TaskMoment};
use crate::view::{AgentState, Task, Why};

type Place = (Vec<u8>, u64);

/// The last moment of each task.
#[derive(Default)]
struct Moments(BTreeMap<Place, TaskMoment>);

impl Moments {
    fn add(&mut self, event: &Event, detail: Option<String>) {
        let (Some(project), Some(task)) = (&event.project, event.task) else { return };
        let moment =
            TaskMoment { project: project.clone(), task, slug: None, time: event.time.clone(), detail };
        self.0.insert((project.0.clone(), task), moment);
    }

    /// In the order in which they happened.
    fn into_list(self, tasks: &[Task]) -> Vec<TaskMoment> {
        let mut list: Vec<TaskMoment> = self.0.into_values().collect();
        list.sort_by(|one, other| one.time.cmp(&other.time));
        for moment in &mut list {
            let is_it = |task: &&Task| task.project == moment.project && task.id == moment.task;
            moment.slug = tasks.iter().find(is_it).map(|task| task.slug.clone());
        }
        list
    }
}

/// Summarizes events.
///
/// `events` are all stored events, oldest first, each with whether it happened since then. `tasks` and `conflicts` are
/// those of now.
pub fn summarize(
    since: String,
    events: &[(bool, Event)],
    tasks: &[Task],
    conflicts: Vec<ProjectConflict>,
) -> Recent {
    let (mut finished, mut failed, mut merged) = (Moments::default(), Moments::default(), Moments::default());
    let (mut usages, mut has_collided) = (Usages::default(), false);
    for (is_recent, event) in events {
        usages.add(*is_recent, event);
        if !is_recent {
            continue;
        }
        match &event.data {
            EventData::StateChange(change) => match (&change.new, change.why) {
                (_, Some(Why::Finished)) => finished.add(event, None),
                (AgentState::Exited { code }, _) if code == "0" => finished.add(event, None),
                (_, Some(Why::Error)) => failed.add(event, change.evidence.detail.clone()),
                _ => {}
            },
            EventData::Error(error) if event.run.is_some() => {
                failed.add(event, Some(error.cause.clone().unwrap_or_else(|| error.message.clone())));
            }
            EventData::Merged(merge) => merged.add(event, merge.into.clone()),
            EventData::Conflicts(conflicts) => has_collided |= !conflicts.conflicts.is_empty(),
            _ => {}
        }
    }
    let waiting = tasks.iter().filter(|task| task.waiting_for.is_some() && task.urgency.needs_user());
    Recent {
        since,
        finished: finished.into_list(tasks),
        failed: failed.into_list(tasks),
        merged: merged.into_list(tasks),
        waiting: waiting.cloned().collect(),
        collisions: if has_collided { conflicts } else { Vec::new() },
        usage: usages.since(),
    }
}

/// The usage of each conversation before the time, and at its last turn. Agents report sums.
#[derive(Default)]
struct Usages(BTreeMap<Place, (Usage, Usage)>);

impl Usages {
    fn add(&mut self, is_recent: bool, event: &Event) {
        let EventData::TurnEnd(turn) = &event.data else { return };
        let (Some(project), Some(task)) = (&event.project, event.task) else { return };
        let (before, last) = self.0.entry((project.0.clone(), task)).or_default();
        *last = turn.usage;
        if !is_recent {
            *before = turn.usage;
        }
    }

    fn since(self) -> Usage {
        let mut sum = Usage::default();
        for (before, last) in self.0.into_values() {
            sum.input_tokens += last.input_tokens.saturating_sub(before.input_tokens);
            sum.output_tokens += last.output_tokens.saturating_sub(before.output_tokens);
            sum.cached_tokens += last.cached_tokens.saturating_sub(before.cached_tokens);
            if let Some(cost) = last.cost_usd {
                let new = (cost - before.cost_usd.unwrap_or_default()).max(0.0);
                sum.cost_usd = Some(sum.cost_usd.unwrap_or_default() + new);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(seq: u64, task: u64, kind: &str, data: Value) -> Event {
        let written = json!({
            "seq": seq, "time": format!("2026-01-02T03:04:{seq:02}Z"), "project": "/p", "task": task,
            "agent": null, "run": "r", "type": kind, "data": data,
        });
        serde_json::from_value(written).unwrap()
    }

    fn state(seq: u64, task: u64, new: Value, why: Option<&str>) -> Event {
        let evidence = json!({ "source": "status", "rule": "x", "confidence": "high", "detail": "why" });
        let data = json!({ "old": { "state": "running" }, "new": new, "why": why, "evidence": evidence });
        event(seq, task, "StateChange", data)
    }

    fn turn(seq: u64, task: u64, input: u64, cost: f64) -> Event {
        let usage =
            json!({ "input_tokens": input, "output_tokens": 1, "cached_tokens": 0, "cost_usd": cost });
        event(seq, task, "TurnEnd", json!({ "text": null, "reason": null, "failed": false, "usage": usage }))
    }

    #[test]
    fn each_task_is_named_once_for_each_thing_that_happened_to_it() {
        let waits = |why: &str| json!({ "state": "needs_input", "for_seconds": 0, "why": why });
        let events = vec![
            (false, state(1, 9, waits("finished"), Some("finished"))),
            (false, turn(2, 1, 100, 1.0)),
            (true, state(3, 1, waits("finished"), Some("finished"))),
            (true, state(4, 2, json!({ "state": "exited", "code": "0" }), None)),
            (true, state(5, 1, waits("finished"), Some("finished"))),
            (true, state(6, 3, waits("error"), Some("error"))),
            (true, event(7, 4, "Error", json!({ "message": "the agent crashed", "cause": "exit 2" }))),
            (true, turn(8, 1, 150, 1.5)),
            (true, turn(9, 2, 10, 0.25)),
        ];
        let recent = summarize("t".to_owned(), &events, &[], Vec::new());
        let places = |list: &[TaskMoment]| list.iter().map(|moment| moment.task).collect::<Vec<_>>();
        assert_eq!(places(&recent.finished), [2, 1], "the last time of each, in order");
        assert_eq!(places(&recent.failed), [3, 4]);
        assert_eq!(recent.failed[1].detail.as_deref(), Some("exit 2"));
        assert_eq!((recent.usage.input_tokens, recent.usage.cost_usd), (60, Some(0.75)));
        assert_eq!(recent.merged, []);
    }
}
