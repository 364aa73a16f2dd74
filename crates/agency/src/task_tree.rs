//! The order in which tasks are listed: each task that an agent started comes below the task of that agent.

use std::collections::{HashMap, HashSet};

use agency_api::Bytes;
use agency_api::view::Task;

use crate::marks::Marks;

/// Each task with its depth in the tree. A family comes where its first member is; tasks with the same parent keep their
/// order. No task is left out.
pub(crate) fn order_by_parent<'a>(tasks: &[&'a Task]) -> Vec<(&'a Task, usize)> {
    let places: HashMap<TaskName, usize> =
        tasks.iter().enumerate().map(|(at, task)| (task_name(task), at)).collect();
    let parent = |at: usize| parent_of(tasks[at]).and_then(|parent| places.get(&parent)).copied();
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    for at in 0..tasks.len() {
        if let Some(parent) = parent(at) {
            children.entry(parent).or_default().push(at);
        }
    }
    let mut tree = TaskTree { tasks, children, ordered: Vec::new(), done: HashSet::new() };
    for at in 0..tasks.len() {
        // A user can edit task files so that parents form a circle, which has no root.
        let climb = std::iter::successors(Some(at), |at| parent(*at)).take(tasks.len());
        tree.add(climb.last().unwrap_or(at), 0);
        tree.add(at, 0);
    }
    tree.ordered
}

type TaskName<'a> = (&'a Bytes, u64);

fn task_name(task: &Task) -> TaskName<'_> {
    (&task.project, task.id)
}

fn parent_of(task: &Task) -> Option<TaskName<'_>> {
    task.parent.map(|parent| (&task.project, parent))
}

struct TaskTree<'a, 'b> {
    tasks: &'b [&'a Task],
    children: HashMap<usize, Vec<usize>>,
    ordered: Vec<(&'a Task, usize)>,
    done: HashSet<usize>,
}

impl TaskTree<'_, '_> {
    fn add(&mut self, at: usize, depth: usize) {
        if !self.done.insert(at) {
            return;
        }
        self.ordered.push((self.tasks[at], depth));
        for child in self.children.remove(&at).unwrap_or_default() {
            self.add(child, depth + 1);
        }
    }
}

/// The text before the name of a task at this depth.
pub(crate) fn indent(depth: usize, marks: Marks) -> String {
    match depth {
        0 => String::new(),
        deep => format!("{}{}", "  ".repeat(deep - 1), marks.branch()),
    }
}
