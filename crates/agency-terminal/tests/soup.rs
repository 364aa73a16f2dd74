//! Random sequences, cut at every byte: a screen that was dumped and restored continues without a difference.

mod common;

use common::reborn;
use common::soup::{bytewise, play, soup, start};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_restored_screen_continues_without_a_difference(soup in soup()) {
        let mut whole = start();
        soup.iter().for_each(|act| play(&mut whole, act));
        let expected = whole.dump();

        let steps = bytewise(&soup);
        let mut running = start();
        for (at, step) in steps.iter().enumerate() {
            play(&mut running, step);
            let mut restored = reborn(&mut running);
            prop_assert_eq!(restored.snapshot(), running.snapshot(), "after step {}", at);
            prop_assert!(restored.dump() == running.dump(), "after step {}", at);
            running = restored;
        }
        prop_assert_eq!(running.snapshot(), whole.snapshot());
        prop_assert!(running.dump() == expected);
    }

    #[test]
    fn one_dump_anywhere_changes_nothing_later(soup in soup(), at in any::<prop::sample::Index>()) {
        let mut whole = start();
        soup.iter().for_each(|act| play(&mut whole, act));
        let steps = bytewise(&soup);
        let (before, after) = steps.split_at(at.index(steps.len() + 1));
        let mut screen = start();
        before.iter().for_each(|act| play(&mut screen, act));
        let mut screen = reborn(&mut screen);
        after.iter().for_each(|act| play(&mut screen, act));
        prop_assert_eq!(screen.snapshot(), whole.snapshot());
        prop_assert!(screen.dump() == whole.dump());
    }
}
