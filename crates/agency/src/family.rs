//! Tasks with those that their agents started below them.

use std::collections::{HashMap, HashSet};

use agency_api::Bytes;
use agency_api::view::Task;

/// Each task with how deep it stands, those of one parent in the order that they came in.
pub(crate) fn in_order(tasks: &[Task]) -> Vec<(&Task, usize)> {
    let known: HashSet<(&Bytes, u64)> = tasks.iter().map(|task| (&task.project, task.id)).collect();
    let mut below: HashMap<(&Bytes, u64), Vec<&Task>> = HashMap::new();
    let mut roots = Vec::new();
    for task in tasks {
        match task.parent.map(|parent| (&task.project, parent)).filter(|parent| known.contains(parent)) {
            Some(parent) => below.entry(parent).or_default().push(task),
            None => roots.push(task),
        }
    }
    let mut family = Family { below, shown: Vec::new(), seen: HashSet::new() };
    roots.into_iter().for_each(|root| family.show(root, 0));
    // Files can be edited by hand into a circle, which has no root.
    tasks.iter().for_each(|task| family.show(task, 0));
    family.shown
}

struct Family<'a> {
    below: HashMap<(&'a Bytes, u64), Vec<&'a Task>>,
    shown: Vec<(&'a Task, usize)>,
    seen: HashSet<(&'a Bytes, u64)>,
}

impl<'a> Family<'a> {
    fn show(&mut self, task: &'a Task, depth: usize) {
        let key = (&task.project, task.id);
        if !self.seen.insert(key) {
            return;
        }
        self.shown.push((task, depth));
        for child in self.below.remove(&key).unwrap_or_default() {
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
