//! The desk: everything that a surface shows of all projects, as one value and its changes.
//!
//! A client reads the desk once and applies the updates that follow. [`Desk::apply`] says when the client has missed one
//! and must read the desk again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::chat::{OpenApproval, Usage};
use crate::connection::Connection;
use crate::queue::Queued;
use crate::view::{AgentState, Orphan, Task};
use crate::work::TaskConflict;

/// Everything that a surface shows, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Desk {
    /// The number of the last update that is part of it. Counts up, and every daemon begins with a higher number than the
    /// daemon before.
    pub seq: u64,
    /// The tasks of all projects, by project and id.
    pub tasks: Vec<Task>,
    /// The requests that wait for an answer.
    pub approvals: Vec<OpenApproval>,
    /// The messages that wait for their agents.
    pub queue: Vec<Queued>,
    /// The conflicts between workspaces that the daemon has found.
    pub conflicts: Vec<ProjectConflict>,
    /// Tokens and cost of the tasks whose agents report them.
    pub costs: Vec<TaskCost>,
    /// The connections to agents that serve many tasks.
    pub connections: Vec<Connection>,
    /// Live keepers and processes that belong to no task.
    pub orphans: Vec<Orphan>,
    /// Problems that the user should know about.
    pub warnings: Vec<String>,
    /// The user's setting `ui.marks`: `auto`, `ascii` or `emoji`.
    pub marks: String,
}

/// A conflict, with its project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProjectConflict {
    /// The root directory of the project.
    pub project: Bytes,
    /// The conflict.
    #[serde(flatten)]
    pub conflict: TaskConflict,
}

/// Tokens and cost of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskCost {
    /// The root directory of the project.
    pub project: Bytes,
    /// The id of the task.
    pub task: u64,
    /// As the agent reports it.
    #[serde(flatten)]
    pub usage: Usage,
}

/// One change of the desk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeskUpdate {
    /// One more than the number of the update before. 0 for a `Gap`.
    pub seq: u64,
    /// The kind of change and its data.
    #[serde(flatten)]
    pub change: DeskChange,
}

/// The kind of change (`type`) and its `data`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data")]
pub enum DeskChange {
    /// A task is new or has changed.
    Task(Box<Task>),
    /// A task is gone.
    TaskGone(TaskPlace),
    /// All requests that wait for an answer from now on.
    Approvals(Vec<OpenApproval>),
    /// All messages that wait from now on.
    Queue(Vec<Queued>),
    /// All conflicts from now on.
    Conflicts(Vec<ProjectConflict>),
    /// All costs from now on.
    Costs(Vec<TaskCost>),
    /// All connections from now on.
    Connections(Vec<Connection>),
    /// All orphans from now on.
    Orphans(Vec<Orphan>),
    /// All warnings from now on.
    Warnings(Vec<String>),
    /// The setting `ui.marks` from now on.
    Marks(String),
    /// This subscriber was too slow and has missed updates: it has to read the desk again. Later updates follow.
    Gap(Gap),
    /// A change that this version does not know.
    #[serde(untagged)]
    #[schemars(skip)]
    Unknown(serde_json::Value),
}

/// A subscriber has missed updates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {}

/// A task, by project and id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskPlace {
    /// The root directory of the project.
    pub project: Bytes,
    /// The id of the task.
    pub task: u64,
}

/// From where on a subscriber wants updates.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeskSubscribeParams {
    /// The `seq` of the desk that the caller has. Absent: the caller reads the desk after it has subscribed.
    #[serde(default)]
    pub since: Option<u64>,
}

/// The beginning of a subscription.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeskStart {
    /// The number of the last update so far. Updates with higher numbers follow as `desk` notifications.
    pub seq: u64,
    /// The updates between `since` and `seq`.
    pub updates: Vec<DeskUpdate>,
    /// The daemon no longer has all of these updates: the caller has to read the desk again.
    pub gap: bool,
}

/// The result of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// The desk has changed.
    Changed,
    /// The desk had this update already.
    Known,
    /// Updates are missing between the desk and this one. Read the desk again.
    Gap,
}

impl Desk {
    /// Brings the desk up to date with the next update.
    pub fn apply(&mut self, update: DeskUpdate) -> Applied {
        match update {
            DeskUpdate { change: DeskChange::Gap(_), .. } => Applied::Gap,
            DeskUpdate { seq, .. } if seq <= self.seq => Applied::Known,
            DeskUpdate { seq, .. } if seq != self.seq + 1 => Applied::Gap,
            DeskUpdate { seq, change } => {
                self.seq = seq;
                self.change(change);
                Applied::Changed
            }
        }
    }

    fn change(&mut self, change: DeskChange) {
        match change {
            DeskChange::Task(task) => self.put(*task),
            DeskChange::TaskGone(gone) => self.tasks.retain(|task| place(task) != gone),
            DeskChange::Approvals(approvals) => self.approvals = approvals,
            DeskChange::Queue(queue) => self.queue = queue,
            DeskChange::Conflicts(conflicts) => self.conflicts = conflicts,
            DeskChange::Costs(costs) => self.costs = costs,
            DeskChange::Connections(connections) => self.connections = connections,
            DeskChange::Orphans(orphans) => self.orphans = orphans,
            DeskChange::Warnings(warnings) => self.warnings = warnings,
            DeskChange::Marks(marks) => self.marks = marks,
            DeskChange::Gap(_) | DeskChange::Unknown(_) => {}
        }
    }

    fn put(&mut self, task: Task) {
        match self.tasks.iter_mut().find(|known| place(known) == place(&task)) {
            Some(known) => *known = task,
            None => self.tasks.push(task),
        }
        self.tasks.sort_by(|one, other| (&one.project.0, one.id).cmp(&(&other.project.0, other.id)));
    }

    /// The changes that make `newer` of this desk. Ages do not count: every client can compute them.
    pub fn changes_to(&self, newer: &Desk) -> Vec<DeskChange> {
        let old = |task: &Task| self.tasks.iter().find(|known| place(known) == place(task));
        let is_news = |task: &&Task| old(task).is_none_or(|old| ageless(old) != ageless(task));
        let news = newer.tasks.iter().filter(is_news).map(|task| DeskChange::Task(Box::new(task.clone())));
        let is_gone = |task: &&Task| !newer.tasks.iter().any(|known| place(known) == place(task));
        let gone = self.tasks.iter().filter(is_gone).map(|task| DeskChange::TaskGone(place(task)));
        let mut changes: Vec<DeskChange> = gone.chain(news).collect();
        let mut add = |has_changed: bool, change: DeskChange| changes.extend(has_changed.then_some(change));
        add(self.approvals != newer.approvals, DeskChange::Approvals(newer.approvals.clone()));
        add(self.queue != newer.queue, DeskChange::Queue(newer.queue.clone()));
        add(self.conflicts != newer.conflicts, DeskChange::Conflicts(newer.conflicts.clone()));
        add(self.costs != newer.costs, DeskChange::Costs(newer.costs.clone()));
        let is_retry_news = without_countdown(&self.connections) != without_countdown(&newer.connections);
        add(is_retry_news, DeskChange::Connections(newer.connections.clone()));
        add(self.orphans != newer.orphans, DeskChange::Orphans(newer.orphans.clone()));
        add(self.warnings != newer.warnings, DeskChange::Warnings(newer.warnings.clone()));
        add(self.marks != newer.marks, DeskChange::Marks(newer.marks.clone()));
        changes
    }
}

fn place(task: &Task) -> TaskPlace {
    TaskPlace { project: task.project.clone(), task: task.id }
}

/// The task without anything that changes by itself as time goes by.
fn ageless(task: &Task) -> Task {
    let mut task = Task { age_seconds: None, ended_seconds: None, ..task.clone() };
    if let Some(
        AgentState::Starting { for_seconds }
        | AgentState::Running { for_seconds }
        | AgentState::NeedsInput { for_seconds, .. }
        | AgentState::Stale { for_seconds, .. },
    ) = &mut task.state
    {
        *for_seconds = 0;
    }
    task
}

fn without_countdown(connections: &[Connection]) -> Vec<Connection> {
    connections.iter().map(|connection| Connection { retry_in_ms: None, ..connection.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task(id: u64, slug: &str, for_seconds: u64) -> Task {
        let task = json!({
            "id": id, "slug": slug, "project": "/p", "status": "running", "workspace_status": "running",
            "state": { "state": "running", "for_seconds": for_seconds }, "agent": "shell", "agent_name": "Shell",
            "driver": "terminal", "labels": [], "file": "/p/t", "age_seconds": for_seconds, "viewers": 0,
        });
        serde_json::from_value(task).unwrap()
    }

    fn desk(seq: u64, tasks: &[Task]) -> Desk {
        Desk { seq, tasks: tasks.to_vec(), ..Desk::default() }
    }

    #[test]
    fn the_changes_of_a_desk_lead_to_the_newer_one() {
        let old = desk(7, &[task(1, "a", 1), task(2, "b", 1), task(3, "c", 1)]);
        let mut newer = desk(7, &[task(1, "a", 99), task(2, "renamed", 99), task(4, "new", 99)]);
        newer.warnings.push("careful".to_owned());
        let changes = old.changes_to(&newer);
        assert_eq!(changes.len(), 4, "a task that is only older has not changed: {changes:?}");
        let mut followed = old.clone();
        for (at, change) in changes.into_iter().enumerate() {
            let update = DeskUpdate { seq: 8 + at as u64, change };
            let written = serde_json::to_string(&update).unwrap();
            assert_eq!(followed.apply(serde_json::from_str(&written).unwrap()), Applied::Changed);
        }
        assert_eq!(followed.changes_to(&newer), []);
        assert_eq!(followed.seq, 11);
    }

    #[test]
    fn a_missing_update_is_noticed_and_a_known_one_changes_nothing() {
        let update = |seq| DeskUpdate { seq, change: DeskChange::Task(Box::new(task(1, "x", 0))) };
        let mut desk = desk(5, &[]);
        assert_eq!(desk.apply(update(5)), Applied::Known);
        assert_eq!(desk.apply(update(7)), Applied::Gap);
        assert_eq!((desk.seq, desk.tasks.len()), (5, 0), "nothing is applied across a gap");
        assert_eq!(desk.apply(update(6)), Applied::Changed);
        let gap = DeskUpdate { seq: 0, change: DeskChange::Gap(Gap {}) };
        assert_eq!(desk.apply(gap), Applied::Gap);
    }

    #[test]
    fn a_change_of_a_later_version_is_passed_over() {
        let later = json!({ "seq": 6, "type": "Weather", "data": { "rain": true } });
        let mut desk = desk(5, &[]);
        assert_eq!(desk.apply(serde_json::from_value(later).unwrap()), Applied::Changed);
        assert_eq!(desk.seq, 6);
    }
}
