//! Spoiled files: one or two files of the state directory are cut, changed, emptied or removed while no daemon runs.
//!
//! Agency must answer at once and know every live agent; what a file held beside that may be lost.

use std::fs;
use std::path::{Path, PathBuf};

use agency_testkit::Rng;

use crate::check;
use crate::world::World;

#[derive(Clone, Copy, Debug)]
enum Way {
    Cut,
    Flip,
    Empty,
    Remove,
    Garbage,
}

const WAYS: &[Way] = &[Way::Cut, Way::Flip, Way::Empty, Way::Remove, Way::Garbage];

pub fn epoch(world: &mut World, rng: &mut Rng) {
    spoil(world, rng, "epoch");
}

pub fn format(world: &mut World, rng: &mut Rng) {
    spoil(world, rng, "format.json");
}

pub fn pid(world: &mut World, rng: &mut Rng) {
    spoil(world, rng, "r/*/pid");
}

pub fn run(world: &mut World, rng: &mut Rng) {
    spoil(world, rng, "r/*/run.json");
}

pub fn project(world: &mut World, rng: &mut Rng) {
    spoil(world, rng, "projects/*/project.json");
}

pub fn mirror(world: &mut World, rng: &mut Rng) {
    spoil(world, rng, "projects/*/tasks/*");
}

pub fn queue(world: &mut World, rng: &mut Rng) {
    spoil(world, rng, "queue.json");
}

pub fn trust(world: &mut World, rng: &mut Rng) {
    spoil(world, rng, "trust.json");
}

pub fn workspace(world: &mut World, rng: &mut Rng) {
    spoil(world, rng, "projects/*/w/*/workspace.json");
}

pub fn lock(world: &mut World, rng: &mut Rng) {
    spoil(world, rng, "*.lock");
}

pub fn index(world: &mut World, rng: &mut Rng) {
    spoil(world, rng, "index-*.sqlite");
}

pub fn events(world: &mut World, rng: &mut Rng) {
    spoil(world, rng, "events.jsonl");
}

pub fn states(world: &mut World, rng: &mut Rng) {
    spoil(world, rng, "r/*/states.jsonl");
}

pub fn wire(world: &mut World, rng: &mut Rng) {
    spoil(world, rng, "w/*/wire.json");
}

/// Only journals of ended agents whose lines are not counted.
pub fn ended_journal(world: &mut World, rng: &mut Rng) {
    let live: Vec<String> = world.site.census().keepers.into_iter().map(|keeper| keeper.run).collect();
    let truth = world.site.truth();
    let is_free = |path: &PathBuf| {
        let run =
            path.ancestors().nth(2).and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        run.is_some_and(|run| !live.contains(&run) && !truth.join(format!("count-{run}")).exists())
    };
    let files: Vec<PathBuf> = find(&world.site.state(), "r/*/j/*").into_iter().filter(is_free).collect();
    spoil_one_of(world, rng, &files);
}

/// The task file is the user's own, so it is put right again afterwards. Meanwhile its agent is listed and can be
/// stopped.
pub fn task(world: &mut World, rng: &mut Rng) {
    let live = world.which(|subject| subject.is_free() && subject.agent.is_some() && !subject.may_change);
    if live.is_empty() {
        return;
    }
    let index = *rng.pick(&live);
    let (root, slug) =
        (&world.site.projects[world.subjects[index].project].root, world.subjects[index].slug.clone());
    let Some(file) = find(root, &format!(".agency/tasks/*-{slug}.md")).pop() else { return };
    let Ok(good) = fs::read(&file) else { return };
    stop_daemon(world);
    damage(world, rng, &file);
    check_known(world, &slug);
    // Without its file the task may have become an orphan, which `agency stop` does not know.
    if rng.one_in(2) && file.exists() {
        check::stop(world, index);
    }
    if let Err(err) = fs::write(&file, good) {
        world.note(format!("cannot put {} right: {err}", file.display()));
    }
    check::survey(world);
}

/// Every live agent is listed, as a task or as an orphan, while a task file is broken.
fn check_known(world: &mut World, spoiled: &str) {
    let Some(listing) = world.listing() else { return };
    let text = listing.to_string();
    let census = world.site.census();
    let lost: Vec<String> = census
        .keepers
        .iter()
        .filter(|keeper| !keeper.is_shared && !text.contains(&format!("\"{}\"", keeper.run)))
        .map(|keeper| keeper.run.clone())
        .collect();
    if !lost.is_empty() {
        world.violate(
            format!("every live run is listed while the file of {spoiled} is broken"),
            lost.join(", "),
        );
    }
}

fn spoil(world: &mut World, rng: &mut Rng, pattern: &str) {
    let files = find(&world.site.state(), pattern);
    spoil_one_of(world, rng, &files);
}

/// Two at once, a third of the time.
fn spoil_one_of(world: &mut World, rng: &mut Rng, files: &[PathBuf]) {
    if files.is_empty() {
        return;
    }
    stop_daemon(world);
    for _ in 0..if rng.one_in(3) { 2 } else { 1 } {
        let file = rng.pick(files).clone();
        damage(world, rng, &file);
    }
    check::survey(world);
}

/// No daemon runs afterwards, and nothing starts one by itself.
fn stop_daemon(world: &mut World) {
    world.close_viewers();
    world.settle_all();
    world.kill_daemons();
}

fn damage(world: &mut World, rng: &mut Rng, file: &Path) {
    let way = *rng.pick(WAYS);
    let Ok(mut bytes) = fs::read(file) else { return };
    let done = match way {
        Way::Cut => fs::write(file, &bytes[..bytes.len() / 2]),
        Way::Flip => {
            for _ in 0..3 {
                let at = rng.below(bytes.len().max(1) as u64) as usize;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << rng.below(8);
                }
            }
            fs::write(file, &bytes)
        }
        Way::Empty => fs::write(file, ""),
        Way::Remove => fs::remove_file(file),
        Way::Garbage => fs::write(file, b"\xff\xfe garbage \x00 {"),
    };
    world.figures.add("files spoiled", 1);
    world.note(format!("spoiled {} ({way:?}): {done:?}", file.display()));
}

/// The files that match; `*` stands for any name or part of a name.
fn find(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![root.to_path_buf()];
    for part in pattern.split('/') {
        let entries = found.iter().filter_map(|dir| fs::read_dir(dir).ok()).flatten();
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        found = paths
            .filter(|path| path.file_name().is_some_and(|name| matches(&name.to_string_lossy(), part)))
            .collect();
    }
    found.retain(|path| path.is_file());
    found.sort();
    found
}

fn matches(name: &str, part: &str) -> bool {
    match part.split_once('*') {
        Some((before, after)) => {
            name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
        }
        None => name == part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_finds_files_and_no_directories() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(dir.path().join("r/one/j")).expect("room");
        for name in ["r/one/pid", "r/one/run.json", "index-a.sqlite", "index-a.sqlite-wal"] {
            fs::write(dir.path().join(name), "x").expect("room");
        }
        assert_eq!(find(dir.path(), "r/*/pid"), [dir.path().join("r/one/pid")]);
        assert_eq!(find(dir.path(), "index-*.sqlite"), [dir.path().join("index-a.sqlite")]);
        assert_eq!(find(dir.path(), "r/*/*").len(), 2);
    }
}
