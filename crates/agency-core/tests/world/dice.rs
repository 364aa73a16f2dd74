//! Random numbers, repeatable from a seed.

use std::time::Duration;

pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbouring seeds must not start with similar numbers.
        let mut dice = Dice(seed.wrapping_mul(0xd134_2543_de82_ef95));
        dice.next();
        dice
    }

    /// SplitMix64: short and random enough for tests.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize].clone()
    }

    /// Mostly short, sometimes long, and often zero: equal times and overtaking messages test the order of events.
    pub(crate) fn delay(&mut self) -> Duration {
        let longest = self.one_of(&[1, 1, 50, 500, 3_000, 20_000]);
        Duration::from_millis(self.below(longest))
    }
}
