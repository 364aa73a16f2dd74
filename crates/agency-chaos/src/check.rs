//! The checks at a quiet point: no fault and no command is under way.
//!
//! Each waits for a while until it holds, because the daemon may still be at work; the limits are far above what any
//! machine needs.

mod agents;
mod commits;
mod removals;
mod texts;

use std::time::{Duration, Instant};

use crate::subject::Ends;
use crate::world::{PATIENCE, Then, World};

pub use agents::{check_nothing_left, stop, survey};

/// Everything that must hold while agents run.
pub fn quiet(world: &mut World) {
    world.note("quiet check");
    world.figures.add("quiet checks", 1);
    world.wake_all();
    world.settle_all();
    world.close_viewers();
    if agents::survey(world).is_none() {
        return;
    }
    removals::check(world);
    texts::check(world);
    check_lines(world);
    commits::check(world);
    agents::check_stop(world);
    agents::forget_changes(world);
    start_ended(world);
}

/// The end of a run: every agent can be stopped, and nothing stays.
pub fn end(world: &mut World) {
    world.settle_all();
    agents::stop_each(world);
    agents::check_nothing_left(world);
    check_lines(world);
    commits::check(world);
}

/// Starts agents that have ended, so that the next faults meet some. Commands of tasks need the user's trust, which a
/// spoiled file may have lost.
fn start_ended(world: &mut World) {
    if world.enabled.contains("spoil-trust") {
        for project in 0..world.site.projects.len() {
            world.ask(project, &["trust", "--yes"]);
        }
    }
    let ended = world.which(|subject| {
        subject.is_free() && subject.agent.is_none() && !subject.is_merged && subject.kind.ends == Ends::Never
    });
    // Some stay stopped, for removals.
    for index in ended.into_iter().skip(1) {
        let (project, slug) = (world.subjects[index].project, world.subjects[index].slug.clone());
        world.disturb(index);
        world.subjects[index].is_busy = true;
        world.launch(project, [(vec!["start".to_owned(), slug], Then::Freed(index))].into());
    }
}

fn check_lines(world: &mut World) {
    let begin = Instant::now();
    loop {
        let report = world.lines.read(&world.site.state(), &world.site.truth());
        world.figures.add("lines checked", report.checked);
        world.figures.add("lines lost where a gap says so", report.lost);
        for problem in &report.problems {
            world.violate("every line once and in order", problem);
        }
        if report.behind.is_empty() || !report.problems.is_empty() {
            return;
        }
        if begin.elapsed() > PATIENCE {
            world.violate("every printed line reaches the journal", report.behind.join("; "));
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until there are no problems, and returns the last ones otherwise.
fn wait_until_none(within: Duration, mut problems: impl FnMut() -> Vec<String>) -> Vec<String> {
    let deadline = Instant::now() + within;
    loop {
        let is_last = Instant::now() >= deadline;
        let found = problems();
        if found.is_empty() || is_last {
            return found;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}
