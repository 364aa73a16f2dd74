//! A simulated world: thousands of stories in which everything that can go wrong does, at any moment.
//!
//! Time is a number, git and processes are entries in maps, and one seed decides what happens when. A story that
//! breaks a law is made as short as possible and printed, in the language of `tests/stories`.
//! `AGENCY_WORLD_SEED=n cargo test --test world` tells the whole story of a seed, line by line, and
//! `AGENCY_WORLD_STORIES=n` tells more stories, or fewer.

#![allow(clippy::disallowed_methods, reason = "a variable can choose the seed")]

mod connections;
mod daemon;
mod dice;
mod history;
mod laws;
mod person;
mod scribe;
#[allow(dead_code, reason = "this test only prints stories")]
#[path = "../stories/script.rs"]
mod script;
mod shrinker;
mod shrinking;
mod spoiled_files;
mod universe;
mod works;

use std::sync::atomic::{AtomicU64, Ordering};

use universe::{Tally, World};

const STORIES: u64 = 4000;

#[test]
fn no_story_breaks_a_law() {
    if let Ok(seed) = std::env::var("AGENCY_WORLD_SEED") {
        let tally = told_aloud(seed.parse().expect("a number"));
        return println!("{tally:?}");
    }
    let stories = std::env::var("AGENCY_WORLD_STORIES");
    let stories = stories.map_or(STORIES, |number| number.parse().expect("a number"));
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let tally = std::thread::scope(|scope| {
        let tellers: Vec<_> = (0..threads).map(|_| scope.spawn(|| tell_from(&next, stories))).collect();
        tellers
            .into_iter()
            .map(|teller| teller.join().expect("no story breaks a law"))
            .fold(Tally::default(), Tally::and)
    });
    println!("{stories} stories: {tally:?}");
    if stories >= STORIES {
        tally.assert_everything_happened();
    }
}

fn tell_from(next: &AtomicU64, stories: u64) -> Tally {
    let mut tally = Tally::default();
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= stories {
            return tally;
        }
        tally = tally.and(run_story(seed));
    }
}

/// The same seed gives the same story, so one that fails can be made shorter.
fn run_story(seed: u64) -> Tally {
    let mut world = World::new(seed);
    match shrinker::message_of(|| world.play()) {
        None => world.tally,
        Some(message) => match shrinker::shrink(world.history(), None) {
            Some(shrunk) => panic!("a story broke a law\n{shrunk}"),
            None => panic!("story {seed} broke a law, and its replay did not: {message}"),
        },
    }
}

fn told_aloud(seed: u64) -> Tally {
    let mut world = World::new(seed);
    world.aloud = true;
    world.play();
    world.tally
}
