//! Disks that are full, and a state directory that is deleted.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agency_testkit::Rng;

use crate::check;
use crate::work::work_for;
use crate::world::World;

pub fn fill_state(world: &mut World, rng: &mut Rng) {
    let dir = world.site.state_disk();
    while_full(world, rng, &dir, |_| {});
}

/// A full disk must not hide tasks from a daemon that starts now.
pub fn fill_state_and_restart(world: &mut World, rng: &mut Rng) {
    let dir = world.site.state_disk();
    while_full(world, rng, &dir, |world| {
        for _ in 0..2 {
            world.close_viewers();
            world.kill_daemons();
            // It must answer, full disk or not.
            world.listing();
        }
    });
    check::survey(world);
}

pub fn fill_project(world: &mut World, rng: &mut Rng) {
    let dir = world.site.projects[1].root.clone();
    while_full(world, rng, &dir, |_| {});
}

fn while_full(world: &mut World, rng: &mut Rng, dir: &Path, act: impl FnOnce(&mut World)) {
    let ballast = dir.join("ballast");
    let size = fill(&ballast);
    world.figures.add("disks filled", 1);
    world.note(format!("filled {} with {size} bytes", dir.display()));
    let time = Duration::from_millis(rng.between(200, 2_500));
    work_for(world, rng, time);
    act(world);
    // Commands that began while the disk was full end before the next fault.
    if let Err(err) = fs::remove_file(&ballast) {
        world.note(format!("cannot remove the ballast: {err}"));
    }
    world.note(format!("freed {}", dir.display()));
}

/// Writes until no byte fits.
fn fill(path: &Path) -> u64 {
    let Ok(mut file) = File::create(path) else { return 0 };
    let mut written = 0;
    for block in [1 << 20, 4096, 1] {
        let bytes = vec![b'x'; block];
        while let Ok(count @ 1..) = file.write(&bytes) {
            written += count as u64;
        }
    }
    written
}

/// `rm -rf` of the state directory under a live daemon; the agents live on.
pub fn delete_state(world: &mut World) {
    world.note("delete the state directory");
    let state: PathBuf = world.site.state();
    if let Err(err) = fs::remove_dir_all(&state) {
        world.note(format!("cannot delete all of {}: {err}", state.display()));
    }
    world.ask(0, &["ls"]);
    check::check_nothing_left(world);
}
