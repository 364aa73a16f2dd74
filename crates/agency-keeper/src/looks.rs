//! When the keeper looks at what the kernel says, without being asked.
//!
//! Touches nothing: it is told what happened and when, and says when the next look is due. After output and input,
//! as soon as it is quiet; then ever more rarely, for as long as things can change without a word. Never by a tick.

use std::time::{Duration, Instant};

use crate::probe::Outlook;

/// A program that prints its prompt reads a moment later.
const QUIET: Duration = Duration::from_millis(20);
/// Where it is never quiet, a look all the same.
const DURING_A_FLOOD: Duration = Duration::from_millis(500);
/// Each look is paid for, at this price, out of a purse that holds [`BURST`]: someone who types is followed closely,
/// a build that prints a line now and then does not cost a look for each of them.
const PRICE: Duration = Duration::from_millis(500);
const BURST: Duration = Duration::from_secs(10);

/// Between looks while nothing is heard, in milliseconds.
const BACKING_OFF_MS: [u64; 10] = [100, 300, 1_000, 3_000, 10_000, 30_000, 60_000, 120_000, 240_000, 300_000];
/// What changed in silence may change again soon, but needs no close following.
const AFTER_A_SILENT_CHANGE: usize = 2;
/// So many looks without news, and a program in raw mode is left alone until it draws.
const RAW_LOOKS: usize = 5;

#[derive(Debug)]
pub(crate) struct Looks {
    due: Option<Instant>,
    /// The first output or input that no look has followed.
    unseen_since: Option<Instant>,
    /// Which of the waits comes next.
    step: usize,
    looks_without_news: usize,
    /// When all looks so far are paid.
    paid_by: Instant,
}

impl Looks {
    pub(crate) fn begun(now: Instant) -> Looks {
        let due = Some(now + QUIET);
        Looks { due, unseen_since: None, step: 0, looks_without_news: 0, paid_by: now }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// There was output or input.
    pub(crate) fn stirred(&mut self, now: Instant) {
        let since = *self.unseen_since.get_or_insert(now);
        (self.step, self.looks_without_news) = (0, 0);
        self.due_at((now + QUIET).min(since + DURING_A_FLOOD));
    }

    /// What was seen is in the journal, and `is_news` if it was not before.
    pub(crate) fn looked(&mut self, now: Instant, outlook: Outlook, is_news: bool) {
        self.unseen_since = None;
        self.paid_by = self.paid_by.max(now) + PRICE;
        self.looks_without_news = if is_news { 0 } else { self.looks_without_news + 1 };
        match outlook {
            Outlook::AwaitsInput => self.due = None,
            Outlook::Raw if self.looks_without_news >= RAW_LOOKS => self.due = None,
            Outlook::Raw | Outlook::Open => self.back_off(now, is_news),
        }
    }

    fn back_off(&mut self, now: Instant, is_news: bool) {
        if is_news {
            self.step = self.step.min(AFTER_A_SILENT_CHANGE);
        }
        let longest = BACKING_OFF_MS.len() - 1;
        let wait = Duration::from_millis(BACKING_OFF_MS[self.step.min(longest)]);
        self.step = (self.step + 1).min(longest);
        self.due_at(now + wait);
    }

    fn due_at(&mut self, wanted: Instant) {
        let affordable = self.paid_by.checked_sub(BURST);
        self.due = Some(affordable.map_or(wanted, |affordable| wanted.max(affordable)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times in milliseconds since the beginning.
    struct Story {
        start: Instant,
        looks: Looks,
    }

    impl Story {
        fn begun() -> Story {
            let start = Instant::now();
            Story { start, looks: Looks::begun(start) }
        }

        fn stirred(&mut self, ms: u64) {
            self.looks.stirred(self.start + Duration::from_millis(ms));
        }

        fn due(&self) -> Option<u64> {
            self.looks.deadline().map(|at| (at - self.start).as_millis() as u64)
        }

        /// Looks whenever it is due until `ms`; says when.
        fn run(&mut self, until: u64, outlook: Outlook, is_news: bool) -> Vec<u64> {
            let mut times = Vec::new();
            while let Some(due) = self.due().filter(|due| *due <= until) {
                self.looks.looked(self.start + Duration::from_millis(due), outlook, is_news);
                times.push(due);
            }
            times
        }
    }

    #[test]
    fn a_prompt_is_looked_at_once_and_never_again() {
        let mut story = Story::begun();
        assert_eq!(story.run(1_000, Outlook::AwaitsInput, true), [20]);
        assert_eq!(story.due(), None);
        story.stirred(5_000);
        assert_eq!(story.run(1_000_000, Outlook::AwaitsInput, false), [5_020]);
        assert_eq!(story.due(), None);
    }

    #[test]
    fn silence_is_looked_at_ever_more_rarely() {
        let mut story = Story::begun();
        let times = story.run(1_500_000, Outlook::Open, false);
        let seconds: Vec<u64> = times.iter().map(|ms| ms / 1000).collect();
        assert_eq!(times[..5], [20, 120, 420, 1_420, 4_420]);
        assert_eq!(seconds[5..], [14, 44, 104, 224, 464, 764, 1_064, 1_364]);
        story.stirred(1_500_000);
        assert_eq!(story.run(1_500_200, Outlook::Open, false), [1_500_020, 1_500_120]);
    }

    #[test]
    fn what_changes_without_a_word_is_followed_once_a_second() {
        let mut story = Story::begun();
        let times = story.run(600_000, Outlook::Open, true);
        assert_eq!(times[..5], [20, 120, 420, 1_420, 2_420]);
        assert!(times.len() < 605);
    }

    #[test]
    fn a_program_in_raw_mode_that_does_nothing_is_left_alone() {
        let mut story = Story::begun();
        assert_eq!(story.run(1_000_000, Outlook::Raw, false), [20, 120, 420, 1_420, 4_420]);
        assert_eq!(story.due(), None);
    }

    #[test]
    fn more_output_puts_the_look_off_but_not_for_ever() {
        let mut story = Story::begun();
        story.stirred(10);
        assert_eq!(story.due(), Some(30));
        let mut times = Vec::new();
        for ms in 11..20_000 {
            story.stirred(ms);
            times.extend(story.run(ms, Outlook::Open, false));
        }
        assert_eq!(times[..3], [510, 1_011, 1_512]);
        assert!(times.len() <= 40, "{}", times.len());
    }

    #[test]
    fn typing_is_followed_closely_and_a_build_is_not() {
        let mut story = Story::begun();
        story.run(1_000, Outlook::AwaitsInput, false);
        let mut typed = Vec::new();
        for key in 0..15 {
            story.stirred(60_000 + key * 150);
            typed.extend(story.run(60_000 + key * 150 + 149, Outlook::AwaitsInput, false));
        }
        assert_eq!(typed.len(), 15, "one look for each key");
        let mut built = 0;
        for line in 0..10_000 {
            story.stirred(100_000 + line * 30);
            built += story.run(100_000 + line * 30 + 29, Outlook::Open, false).len();
        }
        assert!((500..700).contains(&built), "{built} looks in five minutes of a line every 30 ms");
    }
}
