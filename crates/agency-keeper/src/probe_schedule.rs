//! The schedule of the probes that the keeper makes by itself.
//!
//! Has no side effects: the loop reports events and the time, and asks when the next probe is due. A probe is due
//! shortly after output or input stops, then at growing intervals while the state can change silently.

use std::time::{Duration, Instant};

use crate::probe::Outlook;

/// A program that prints its prompt reads a moment later, so wait this long after the last activity.
const QUIET_FOR: Duration = Duration::from_millis(20);
/// During continuous output, probe at least this often.
const AT_LEAST_EVERY: Duration = Duration::from_millis(500);
/// Every probe costs this much of a budget that refills with time and holds at most [`BUDGET`]. So the keeper
/// follows a typing user closely, but does not probe after every line of a long build.
const COST: Duration = Duration::from_millis(500);
const BUDGET: Duration = Duration::from_secs(10);

/// Waits between probes while there is no activity, in milliseconds.
const WAITS_MS: [u64; 10] = [100, 300, 1_000, 3_000, 10_000, 30_000, 60_000, 120_000, 240_000, 300_000];
/// After a change without activity, continue at this step: another change is likely, but not at once.
const STEP_AFTER_SILENT_CHANGE: usize = 2;
/// After this many unchanged probes of a program in raw mode, wait until it draws.
const MAX_UNCHANGED_RAW_PROBES: usize = 5;

#[derive(Debug)]
pub(crate) struct ProbeSchedule {
    due: Option<Instant>,
    /// The time of the first output or input since the last probe.
    active_since: Option<Instant>,
    /// The index of the next wait in `WAITS_MS`.
    step: usize,
    unchanged_probes: usize,
    /// When the budget is full again.
    budget_full_at: Instant,
}

impl ProbeSchedule {
    pub(crate) fn started(now: Instant) -> ProbeSchedule {
        let due = Some(now + QUIET_FOR);
        ProbeSchedule { due, active_since: None, step: 0, unchanged_probes: 0, budget_full_at: now }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.due
    }

    /// The agent printed, or got input.
    pub(crate) fn on_activity(&mut self, now: Instant) {
        let since = *self.active_since.get_or_insert(now);
        (self.step, self.unchanged_probes) = (0, 0);
        self.schedule((now + QUIET_FOR).min(since + AT_LEAST_EVERY));
    }

    /// A probe was made; `has_changed` if it differed from the last one in the journal.
    pub(crate) fn on_probe(&mut self, now: Instant, outlook: Outlook, has_changed: bool) {
        self.active_since = None;
        self.budget_full_at = self.budget_full_at.max(now) + COST;
        self.unchanged_probes = if has_changed { 0 } else { self.unchanged_probes + 1 };
        match outlook {
            Outlook::AwaitsInput => self.due = None,
            Outlook::Raw if self.unchanged_probes >= MAX_UNCHANGED_RAW_PROBES => self.due = None,
            Outlook::Raw | Outlook::Open => self.back_off(now, has_changed),
        }
    }

    fn back_off(&mut self, now: Instant, has_changed: bool) {
        if has_changed {
            self.step = self.step.min(STEP_AFTER_SILENT_CHANGE);
        }
        let longest = WAITS_MS.len() - 1;
        let wait = Duration::from_millis(WAITS_MS[self.step.min(longest)]);
        self.step = (self.step + 1).min(longest);
        self.schedule(now + wait);
    }

    fn schedule(&mut self, wanted: Instant) {
        let affordable = self.budget_full_at.checked_sub(BUDGET);
        self.due = Some(affordable.map_or(wanted, |affordable| wanted.max(affordable)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times in milliseconds since the start.
    struct Story {
        start: Instant,
        schedule: ProbeSchedule,
    }

    impl Story {
        fn started() -> Story {
            let start = Instant::now();
            Story { start, schedule: ProbeSchedule::started(start) }
        }

        fn on_activity(&mut self, ms: u64) {
            self.schedule.on_activity(self.start + Duration::from_millis(ms));
        }

        fn due(&self) -> Option<u64> {
            self.schedule.deadline().map(|at| (at - self.start).as_millis() as u64)
        }

        /// Probes whenever one is due up to `until`; returns the times.
        fn run(&mut self, until: u64, outlook: Outlook, has_changed: bool) -> Vec<u64> {
            let mut times = Vec::new();
            while let Some(due) = self.due().filter(|due| *due <= until) {
                self.schedule.on_probe(self.start + Duration::from_millis(due), outlook, has_changed);
                times.push(due);
            }
            times
        }
    }

    #[test]
    fn a_prompt_is_probed_once() {
        let mut story = Story::started();
        assert_eq!(story.run(1_000, Outlook::AwaitsInput, true), [20]);
        assert_eq!(story.due(), None);
        story.on_activity(5_000);
        assert_eq!(story.run(1_000_000, Outlook::AwaitsInput, false), [5_020]);
        assert_eq!(story.due(), None);
    }

    #[test]
    fn during_silence_probes_become_rarer() {
        let mut story = Story::started();
        let times = story.run(1_500_000, Outlook::Open, false);
        let seconds: Vec<u64> = times.iter().map(|ms| ms / 1000).collect();
        assert_eq!(times[..5], [20, 120, 420, 1_420, 4_420]);
        assert_eq!(seconds[5..], [14, 44, 104, 224, 464, 764, 1_064, 1_364]);
        story.on_activity(1_500_000);
        assert_eq!(story.run(1_500_200, Outlook::Open, false), [1_500_020, 1_500_120]);
    }

    #[test]
    fn silent_changes_are_followed_once_a_second() {
        let mut story = Story::started();
        let times = story.run(600_000, Outlook::Open, true);
        assert_eq!(times[..5], [20, 120, 420, 1_420, 2_420]);
        assert!(times.len() < 605);
    }

    #[test]
    fn an_idle_program_in_raw_mode_is_not_probed_again() {
        let mut story = Story::started();
        assert_eq!(story.run(1_000_000, Outlook::Raw, false), [20, 120, 420, 1_420, 4_420]);
        assert_eq!(story.due(), None);
    }

    #[test]
    fn more_output_delays_the_probe_but_not_for_ever() {
        let mut story = Story::started();
        story.on_activity(10);
        assert_eq!(story.due(), Some(30));
        let mut times = Vec::new();
        for ms in 11..20_000 {
            story.on_activity(ms);
            times.extend(story.run(ms, Outlook::Open, false));
        }
        assert_eq!(times[..3], [510, 1_011, 1_512]);
        assert!(times.len() <= 40, "{}", times.len());
    }

    #[test]
    fn typing_is_followed_closely_and_a_build_is_not() {
        let mut story = Story::started();
        story.run(1_000, Outlook::AwaitsInput, false);
        let mut typed = Vec::new();
        for key in 0..15 {
            story.on_activity(60_000 + key * 150);
            typed.extend(story.run(60_000 + key * 150 + 149, Outlook::AwaitsInput, false));
        }
        assert_eq!(typed.len(), 15, "one probe for each key");
        let mut built = 0;
        for line in 0..10_000 {
            story.on_activity(100_000 + line * 30);
            built += story.run(100_000 + line * 30 + 29, Outlook::Open, false).len();
        }
        assert!((500..700).contains(&built), "{built} probes in five minutes of a line every 30 ms");
    }
}
