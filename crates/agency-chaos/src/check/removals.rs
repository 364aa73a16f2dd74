//! A removed task comes back with the same files.

use crate::subject::Subject;
use crate::tree::Tree;
use crate::world::{World, find_task};

pub fn check(world: &mut World) {
    for index in world.which(|subject| subject.removed.is_some()) {
        restore(world, index);
    }
}

fn restore(world: &mut World, index: usize) {
    let Some(listing) = world.listing() else { return };
    let Subject { project, slug, .. } = &world.subjects[index];
    let (project, slug) = (*project, slug.clone());
    if find_task(&listing, &slug).is_none() {
        let Some(ended) = world.ask(project, &["undo", &slug]) else { return };
        if !ended.is_ok() {
            world.violate(format!("`agency undo {slug}` restores a removed task"), ended.describe());
            return;
        }
        world.figures.add("removals taken back", 1);
    }
    let subject = &mut world.subjects[index];
    let (Some(before), Some(path)) = (subject.removed.take(), subject.workspace.clone()) else { return };
    let found = match Tree::read(&path) {
        Ok(after) => before.difference(&after),
        Err(err) => return world.violate(format!("the workspace of {slug} is back"), err.to_string()),
    };
    if !found.is_empty() {
        world.violate(format!("{slug} comes back with the same files"), format!("these differ: {found:?}"));
    }
}
