//! Tasks with those that their agents started below them.

use std::collections::{HashMap, HashSet};

use agency_api::Bytes;
use agency_api::view::Task;

/// Each task with how deep it stands, those of one parent in the order that they came in. Nobody is left out.
pub(crate) fn in_order(tasks: &[Task]) -> Vec<(&Task, usize)> {
    let known: HashSet<Name> = tasks.iter().map(name).collect();
    let parent = |task| parent_of(task).filter(|parent| known.contains(parent));
    let mut below: HashMap<Name, Vec<usize>> = HashMap::new();
    for (at, task) in tasks.iter().enumerate() {
        if let Some(parent) = parent(task) {
            below.entry(parent).or_default().push(at);
        }
    }
    let mut family = Family { tasks, below, shown: Vec::new(), seen: HashSet::new() };
    let roots = tasks.iter().enumerate().filter(|(_, task)| parent(task).is_none());
    roots.for_each(|(at, _)| family.show(at, 0));
    // Files can be edited by hand into a circle, which has no root.
    (0..tasks.len()).for_each(|at| family.show(at, 0));
    family.shown
}

type Name<'a> = (&'a Bytes, u64);

fn name(task: &Task) -> Name<'_> {
    (&task.project, task.id)
}

fn parent_of(task: &Task) -> Option<Name<'_>> {
    task.parent.map(|parent| (&task.project, parent))
}

struct Family<'a> {
    tasks: &'a [Task],
    below: HashMap<Name<'a>, Vec<usize>>,
    shown: Vec<(&'a Task, usize)>,
    seen: HashSet<usize>,
}

impl Family<'_> {
    fn show(&mut self, at: usize, depth: usize) {
        if !self.seen.insert(at) {
            return;
        }
        let task = &self.tasks[at];
        self.shown.push((task, depth));
        for child in self.below.remove(&name(task)).unwrap_or_default() {
            self.show(child, depth + 1);
        }
    }
}

/// What stands before the name.
pub(crate) fn indent(depth: usize) -> String {
    match depth {
        0 => String::new(),
        deep => format!("{}└ ", "  ".repeat(deep - 1)),
    }
}
