//! The workload: one small function for each thing that a user does. A new one needs a row in `WORK`.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use agency_testkit::{Pty, Rng};

use crate::site::Vcs;
use crate::subject::{Ends, KINDS, Kind, Listens, Subject};
use crate::tree::Tree;
use crate::world::{Then, Viewer, World};

pub struct Work {
    pub name: &'static str,
    /// How often it is chosen, beside the others.
    pub weight: u64,
    pub run: fn(&mut World, &mut Rng),
}

pub const WORK: &[Work] = &[
    Work { name: "send", weight: 12, run: send },
    Work { name: "queue", weight: 5, run: queue },
    Work { name: "look", weight: 4, run: look },
    Work { name: "view", weight: 5, run: view },
    Work { name: "leave", weight: 2, run: leave },
    Work { name: "new", weight: 1, run: new },
    Work { name: "brief", weight: 2, run: brief },
    Work { name: "stop", weight: 2, run: stop },
    Work { name: "restart", weight: 1, run: restart },
    Work { name: "start", weight: 3, run: start },
    Work { name: "sync", weight: 2, run: sync },
    Work { name: "merge", weight: 2, run: merge },
    Work { name: "remove", weight: 2, run: remove },
    Work { name: "undo", weight: 2, run: undo },
    Work { name: "turn", weight: 3, run: turn },
    Work { name: "undo-turn", weight: 2, run: undo_turn },
    Work { name: "user-commit", weight: 1, run: user_commit },
];

/// More commands at once only make the machine slow.
const MOST_FLIGHTS: usize = 6;
const MOST_VIEWERS: usize = 5;
const MOST_SUBJECTS_ALIVE: usize = 18;

/// One random thing that a user does, and a short pause.
pub fn step(world: &mut World, rng: &mut Rng) {
    world.settle();
    let work = pick_weighted(WORK, |work| work.weight, rng);
    let mut own = Rng::seeded(rng.next_u64());
    let pause = Duration::from_millis(rng.below(90));
    if world.flights.len() < MOST_FLIGHTS {
        world.note(format!("work {}", work.name));
        (work.run)(world, &mut own);
    }
    std::thread::sleep(pause);
}

/// Some work while a fault lasts.
pub fn work_for(world: &mut World, rng: &mut Rng, time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        step(world, rng);
    }
}

pub fn pick_weighted<'a, T>(table: &'a [T], weight: impl Fn(&T) -> u64, rng: &mut Rng) -> &'a T {
    let mut left = rng.below(table.iter().map(&weight).sum::<u64>().max(1));
    let found = table.iter().find(|row| match left.checked_sub(weight(row)) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    });
    found.unwrap_or(&table[0])
}

/// The tasks that every run begins with. jj is slow, so only its own kind begins there.
pub fn begin(world: &mut World) {
    for kind in KINDS {
        let vcs = kind.vcs.unwrap_or(Vcs::Git);
        let projects: Vec<usize> = projects_for(world, kind)
            .into_iter()
            .filter(|project| world.site.projects[*project].vcs == vcs)
            .collect();
        for project in projects.iter().cycle().take(if projects.is_empty() { 0 } else { kind.copies }) {
            while world.flights.len() >= 3 {
                world.settle();
                std::thread::sleep(Duration::from_millis(5));
            }
            world.create(kind, *project);
        }
    }
    world.settle_all();
}

fn projects_for(world: &World, kind: &Kind) -> Vec<usize> {
    let suits = |vcs: Vcs| kind.vcs.is_none_or(|wanted| wanted == vcs);
    (0..world.site.projects.len()).filter(|index| suits(world.site.projects[*index].vcs)).collect()
}

/// A random subject for which the condition holds.
fn choose(world: &World, rng: &mut Rng, is_wanted: impl Fn(&Subject) -> bool) -> Option<usize> {
    let found = world.which(is_wanted);
    (!found.is_empty()).then(|| *rng.pick(&found))
}

fn words(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

/// Runs commands about one task, which is busy until the last one has ended.
fn launch_about(world: &mut World, index: usize, commands: &[&[&str]], last: Then) {
    let subject = &mut world.subjects[index];
    subject.is_busy = true;
    let (project, slug) = (subject.project, subject.slug.clone());
    let count = commands.len();
    let commands = commands.iter().enumerate().map(|(at, args)| {
        let mut args = words(args);
        args.push(slug.clone());
        (args, if at + 1 == count { last } else { Then::Nothing })
    });
    world.launch(project, commands.collect());
}

fn is_listening(subject: &Subject) -> bool {
    subject.is_free() && subject.agent.is_some() && subject.kind.listens != Listens::No
}

fn send(world: &mut World, rng: &mut Rng) {
    if let Some(index) = choose(world, rng, is_listening) {
        world.send(index, &[]);
    }
}

fn queue(world: &mut World, rng: &mut Rng) {
    if let Some(index) = choose(world, rng, is_listening) {
        world.send(index, &["--queue"]);
    }
}

fn look(world: &mut World, rng: &mut Rng) {
    let Some(index) = choose(world, rng, |subject| subject.is_free()) else { return };
    let (project, slug) = (world.subjects[index].project, world.subjects[index].slug.clone());
    let looks: &[&[&str]] =
        &[&["ls"], &["ls", "--all"], &["explain", &slug], &["diff", &slug], &["logs", &slug]];
    let args = words(rng.pick::<&[&str]>(looks));
    world.launch(project, VecDeque::from([(args, Then::Nothing)]));
}

/// Every third viewer never reads its terminal.
fn view(world: &mut World, rng: &mut Rng) {
    let Some(index) = choose(world, rng, |subject| subject.is_free() && subject.agent.is_some()) else {
        return;
    };
    if world.viewers.len() >= MOST_VIEWERS {
        return;
    }
    let subject = &world.subjects[index];
    let args = if rng.one_in(4) { words(&["events"]) } else { words(&["attach", &subject.slug]) };
    let terminal = Pty::spawn(world.site.agency(subject.project, &args), 80, 24);
    world.viewers.push(Viewer { terminal, reads: !rng.one_in(3) });
    world.figures.add("viewers started", 1);
}

/// The user closes the window of a viewer.
fn leave(world: &mut World, rng: &mut Rng) {
    if !world.viewers.is_empty() {
        let index = rng.below(world.viewers.len() as u64) as usize;
        world.viewers.swap_remove(index);
    }
}

fn new(world: &mut World, rng: &mut Rng) {
    let alive = world.which(|subject| subject.agent.is_some()).len();
    let kind = rng.pick(KINDS);
    let projects = projects_for(world, kind);
    if alive < MOST_SUBJECTS_ALIVE && !projects.is_empty() {
        world.create(kind, *rng.pick(&projects));
    }
}

/// A task whose agent ends at once.
fn brief(world: &mut World, rng: &mut Rng) {
    let Some(kind) = KINDS.iter().find(|kind| kind.ends == Ends::Soon) else { return };
    let project = rng.below(world.site.projects.len() as u64) as usize;
    world.create(kind, project);
}

fn stop(world: &mut World, rng: &mut Rng) {
    if let Some(index) = choose(world, rng, |subject| subject.is_free() && subject.agent.is_some()) {
        world.disturb(index);
        launch_about(world, index, &[&["stop"]], Then::Freed(index));
    }
}

fn restart(world: &mut World, rng: &mut Rng) {
    if let Some(index) = choose(world, rng, |subject| subject.is_free() && subject.agent.is_some()) {
        world.disturb(index);
        launch_about(world, index, &[&["restart"]], Then::Freed(index));
    }
}

fn start(world: &mut World, rng: &mut Rng) {
    let is_ended = |subject: &Subject| {
        subject.is_free() && subject.may_change && !subject.is_merged && subject.kind.ends == Ends::Never
    };
    if let Some(index) = choose(world, rng, is_ended) {
        launch_about(world, index, &[&["start"]], Then::Freed(index));
    }
}

fn sync(world: &mut World, rng: &mut Rng) {
    if let Some(index) = choose(world, rng, |subject| subject.is_free() && subject.kind.vcs.is_some()) {
        launch_about(world, index, &[&["sync"]], Then::Freed(index));
    }
}

fn merge(world: &mut World, rng: &mut Rng) {
    let is_ready = |subject: &Subject| {
        subject.is_free() && subject.kind.vcs.is_some() && !subject.is_merged && subject.agent.is_some()
    };
    let Some(index) = choose(world, rng, is_ready) else { return };
    const WAYS: &[&[&[&str]]] = &[
        &[&["complete"], &["stop"], &["merge", "--commit"]],
        &[&["stop"], &["merge", "--commit", "--squash", "-m", "squashed"]],
        &[&["complete"], &["stop"], &["merge", "--commit", "--rebase"]],
        &[&["merge", "--finish", "--interrupt"]],
    ];
    let way = *rng.pick::<&[&[&str]]>(WAYS);
    world.disturb(index);
    launch_about(world, index, way, Then::Merged(index));
}

/// Removes a task without an agent, so that its files do not change under the comparison.
fn remove(world: &mut World, rng: &mut Rng) {
    let is_still = |subject: &Subject| {
        subject.is_free() && subject.agent.is_none() && !subject.may_change && !subject.is_merged
    };
    let Some(index) = choose(world, rng, is_still) else { return };
    let Some(tree) = world.subjects[index].workspace.as_ref().and_then(|path| Tree::read(path).ok()) else {
        return;
    };
    world.disturb(index);
    launch_about(world, index, &[&["rm", "--discard"]], Then::Freed(index));
    world.subjects[index].removed = Some(tree);
}

/// The check compares the files; until then the task counts as removed.
fn undo(world: &mut World, rng: &mut Rng) {
    if let Some(index) = choose(world, rng, |subject| subject.removed.is_some() && !subject.is_busy) {
        launch_about(world, index, &[&["undo"]], Then::Freed(index));
    }
}

/// A message after a change of a file, so that the turn is kept.
fn turn(world: &mut World, rng: &mut Rng) {
    let talks = |subject: &Subject| {
        subject.is_free() && subject.kind.listens == Listens::Messages && subject.agent.is_some()
    };
    let Some(index) = choose(world, rng, talks) else { return };
    let number = world.texts.len();
    if let Some(path) = world.subjects[index].workspace.clone()
        && let Err(err) = std::fs::write(path.join(format!("turn-{number}")), format!("{number}\n"))
    {
        world.note(format!("cannot write into {}: {err}", path.display()));
    }
    world.send(index, &[]);
}

fn undo_turn(world: &mut World, rng: &mut Rng) {
    let talks = |subject: &Subject| subject.is_free() && subject.kind.listens == Listens::Messages;
    if let Some(index) = choose(world, rng, talks) {
        launch_about(world, index, &[&["undo", "--turn"]], Then::Freed(index));
    }
}

/// The user commits to the base, so that syncs and merges have something to do.
fn user_commit(world: &mut World, rng: &mut Rng) {
    let gits: Vec<usize> =
        (0..world.site.projects.len()).filter(|index| world.site.projects[*index].vcs == Vcs::Git).collect();
    let root = world.site.projects[*rng.pick(&gits)].root.clone();
    let name = format!("user-{}", rng.next_u64());
    let added = std::fs::write(root.join(&name), &name).map_err(|err| err.to_string()).and_then(|()| {
        world.site.tool(&root, "git", &["add", &name])?;
        world.site.tool(&root, "git", &["commit", "-q", "-m", &name, "--", &name])
    });
    if let Err(why) = added {
        world.note(format!("the user cannot commit: {why}"));
        // A file that stays uncommitted would refuse every merge; it may also be gone already.
        let _gone = std::fs::remove_file(root.join(&name)).is_ok();
        world.site.tool(&root, "git", &["reset", "-q", "--", &name]).unwrap_or_else(|why| why);
    }
}
