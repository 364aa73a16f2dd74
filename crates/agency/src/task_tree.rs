//! The order in which tasks are listed: each task that an agent started comes below the task of that agent.

use std::collections::{HashMap, HashSet};

use agency_api::Bytes;
use agency_api::view::Task;

/// Each task with its depth in the tree. Tasks with the same parent keep their order. No task is left out.
pub(crate) fn order_by_parent(tasks: &[Task]) -> Vec<(&Task, usize)> {
    let known: HashSet<TaskName> = tasks.iter().map(task_name).collect();
    let parent = |task| parent_of(task).filter(|parent| known.contains(parent));
    let mut children: HashMap<TaskName, Vec<usize>> = HashMap::new();
    for (at, task) in tasks.iter().enumerate() {
        if let Some(parent) = parent(task) {
            children.entry(parent).or_default().push(at);
        }
    }
    let mut tree = TaskTree { tasks, children, ordered: Vec::new(), done: HashSet::new() };
    let roots = tasks.iter().enumerate().filter(|(_, task)| parent(task).is_none());
    roots.for_each(|(at, _)| tree.add(at, 0));
    // A user can edit task files so that parents form a circle, which has no root.
    (0..tasks.len()).for_each(|at| tree.add(at, 0));
    tree.ordered
}

type TaskName<'a> = (&'a Bytes, u64);

fn task_name(task: &Task) -> TaskName<'_> {
    (&task.project, task.id)
}

fn parent_of(task: &Task) -> Option<TaskName<'_>> {
    task.parent.map(|parent| (&task.project, parent))
}

struct TaskTree<'a> {
    tasks: &'a [Task],
    children: HashMap<TaskName<'a>, Vec<usize>>,
    ordered: Vec<(&'a Task, usize)>,
    done: HashSet<usize>,
}

impl TaskTree<'_> {
    fn add(&mut self, at: usize, depth: usize) {
        if !self.done.insert(at) {
            return;
        }
        let task = &self.tasks[at];
        self.ordered.push((task, depth));
        for child in self.children.remove(&task_name(task)).unwrap_or_default() {
            self.add(child, depth + 1);
        }
    }
}

/// The text before the name of a task at this depth.
pub(crate) fn indent(depth: usize) -> String {
    match depth {
        0 => String::new(),
        deep => format!("{}└ ", "  ".repeat(deep - 1)),
    }
}
