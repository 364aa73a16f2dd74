//! A simulated world: thousands of stories in which everything that can go wrong does, at any moment.
//!
//! Time is a number, git and processes are entries in maps, and one seed decides what happens when. A story that
//! breaks a law prints its seed; `AGENCY_WORLD_SEED=n cargo test --test world` tells it again, line by line.

#![allow(clippy::disallowed_methods, reason = "a variable can choose the seed")]

mod daemon;
mod dice;
mod laws;
mod person;
mod universe;
mod works;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use universe::{Tally, World};

const STORIES: u64 = 4000;

#[test]
fn no_story_breaks_a_law() {
    if let Ok(seed) = std::env::var("AGENCY_WORLD_SEED") {
        let tally = told_aloud(seed.parse().expect("a number"));
        return println!("{tally:?}");
    }
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let tally = std::thread::scope(|scope| {
        let tellers: Vec<_> = (0..threads).map(|_| scope.spawn(|| tell_from(&next))).collect();
        tellers
            .into_iter()
            .map(|teller| teller.join().expect("no law was broken"))
            .fold(Tally::default(), Tally::and)
    });
    println!("{STORIES} stories: {tally:?}");
    tally.assert_everything_happened();
}

fn tell_from(next: &AtomicU64) -> Tally {
    let mut tally = Tally::default();
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= STORIES {
            return tally;
        }
        tally = tally.and(run_story(seed));
    }
}

/// The same seed gives the same story, so a story that fails can be run again with every line shown.
fn run_story(seed: u64) -> Tally {
    catch_unwind(AssertUnwindSafe(|| World::new(seed).play())).unwrap_or_else(|_| {
        eprintln!("story {seed} broke a law; here it is once more:");
        told_aloud(seed)
    })
}

fn told_aloud(seed: u64) -> Tally {
    let mut world = World::new(seed);
    world.aloud = true;
    world.play()
}
