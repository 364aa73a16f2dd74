//! Tests of the shrinker: laws that are wrong on purpose, and the shortest stories that break them.

use agency_core::ids::TaskKey;
use agency_core::task_status::TaskStatus;

use crate::history::History;
use crate::script;
use crate::shrinker::{ExtraLaw, Shrunk, broken_law, message_of, shortest, shrink};
use crate::universe::World;

/// Plays stories until one breaks the law.
fn break_law(law: ExtraLaw) -> History {
    let broken = (0..100).find_map(|seed| {
        let mut world = World::new(seed);
        world.extra_law = Some(law);
        message_of(|| world.play()).map(|_| world.history())
    });
    broken.expect("one of a hundred stories breaks it")
}

fn shrink_law(law: ExtraLaw) -> Shrunk {
    let history = break_law(law);
    let shrunk = shrink(history.clone(), Some(law)).expect("a replay breaks the law too");
    assert!(shrunk.history.steps.len() <= history.steps.len());
    // A second replay gives the same.
    assert_eq!(broken_law(&shrunk.history, Some(law)), Some(shrunk.message.clone()));
    script::check(&format!("\n{}", shrunk.story));
    shrunk
}

#[test]
fn items_without_effect_are_left_out() {
    let fails = |items: &[u32]| items.contains(&3) && items.contains(&97);
    assert_eq!(shortest((0..100).collect(), fails), [3, 97]);
    assert!(shortest((0..100).collect::<Vec<u32>>(), |_| true).is_empty());
    assert_eq!(shortest(vec![7], |items| items == [7]), [7]);
}

#[test]
fn every_step_of_a_replay_does_what_it_did_before() {
    for seed in 0..40 {
        let mut world = World::new(seed);
        world.account = Some(String::new());
        world.play();
        let mut again = World::new(seed);
        again.account = Some(String::new());
        again.replay(&world.history());
        let (first, second) = (world.account.expect("an account"), again.account.expect("an account"));
        let differing = first.lines().zip(second.lines()).find(|(first, second)| first != second);
        assert_eq!(differing, None, "story {seed}");
        assert_eq!(first.lines().count(), second.lines().count(), "story {seed}");
    }
}

fn is_marked_completed(world: &World) -> Option<&TaskKey> {
    let mut files = world.files.iter().filter(|(_, file)| file.status == TaskStatus::Completed);
    files.find(|(key, _)| world.runs.values().any(|run| run.key == **key)).map(|(key, _)| key)
}

/// The task is made and started, its workspace is made and set up, its keeper starts, and the user marks it.
#[test]
fn a_wrong_law_about_one_task_leaves_only_the_steps_of_this_task() {
    let shrunk = shrink_law(|world| {
        assert!(is_marked_completed(world).is_none(), "no agent ever completes its work");
    });
    assert!(shrunk.history.steps.len() <= 12, "{shrunk}");
    assert!(shrunk.history.tasks.len() <= 1, "{shrunk}");
    assert!(shrunk.story.contains("complete"), "{shrunk}");
}

#[test]
fn a_wrong_law_about_daemons_keeps_only_their_deaths() {
    let shrunk = shrink_law(|world| assert!(world.generation < 3, "a daemon never dies twice"));
    assert!(shrunk.history.steps.len() <= 6, "{shrunk}");
    assert!(shrunk.history.tasks.len() <= 1, "{shrunk}");
}
