//! A seeded stream of random numbers: the same seed gives the same numbers.

/// SplitMix64: tiny, and good enough to choose which process to kill, and when.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    pub fn seeded(seed: u64) -> Rng {
        Rng { state: seed }
    }

    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to, not including, `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        assert!(limit > 0, "nothing is below 0");
        // The bias of the remainder is too small to matter for a test.
        self.next_u64() % limit
    }

    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// True with a probability of `1 / times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

/// `$AGENCY_SEED`, which repeats one run, else the given seed.
pub fn seed_or(usual: u64) -> u64 {
    match std::env::var("AGENCY_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("AGENCY_SEED is not a number: {text}")),
        Err(_) => usual,
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn a_seed_always_gives_the_same_numbers() {
        let mut rng = Rng::seeded(1234567);
        assert_eq!([rng.next_u64(), rng.next_u64()], [6457827717110365317, 3203168211198807973]);
    }

    #[test]
    fn choices_stay_in_their_range_and_reach_its_ends() {
        let mut rng = Rng::seeded(7);
        let drawn: Vec<u64> = (0..1000).map(|_| rng.between(3, 5)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&3), Some(&5)));
        assert!((0..100).any(|_| rng.one_in(10)));
    }
}
