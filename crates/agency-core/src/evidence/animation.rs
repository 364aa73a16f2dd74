//! Counts the different screens that any program drew lately.
//!
//! A spinner draws many, a blinking question two, a prompt one. Only a program that has animated before can stop animating.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Time;
use crate::activity::{Activity, Why};

/// This many different screens within `LIVELY_WITHIN` are an animation or a stream of text.
const LIVELY: usize = 5;
const LIVELY_WITHIN: Duration = Duration::from_secs(2);
/// A blink shows two screens; a third one means work.
const AT_WORK: usize = 3;
/// Frames come unevenly. The animation has stopped when it is late by this many of its slowest frames.
const MISSED: u32 = 8;
/// A part of the time after which silence means waiting, for a program whose sign of work is gone.
const PART_AFTER_END: u32 = 4;
/// More frames would add no information.
const KEPT: usize = 64;

/// Signs of work that the program shows in addition to its animation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shows {
    /// Nothing that is known: it may work without drawing.
    Nothing,
    /// It draws while it works.
    Work,
    /// It draws while it works, and the row that ticked is gone since then.
    EndOfWork(Time),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Animation {
    frames: VecDeque<(Time, u64)>,
    /// The longest recent time between two frames.
    slowest: Duration,
    lively: bool,
    /// When the user typed while the program worked. From then on it gets time to draw more.
    #[serde(default)]
    worked_at: Option<Time>,
}

impl Animation {
    pub(super) fn on_frame(&mut self, at: Time, digest: u64) {
        if let Some((last, seen)) = self.frames.back() {
            if *seen == digest {
                return;
            }
            self.slowest = self.slowest.mul_f32(0.9).max(at.saturating_sub(*last).min(LIVELY_WITHIN));
        }
        self.frames.push_back((at, digest));
        if self.frames.len() > KEPT {
            self.frames.pop_front();
        }
        self.lively |= self.when_drawn(LIVELY).is_some_and(|first| at.saturating_sub(first) <= LIVELY_WITHIN);
    }

    /// The program shows typed text, or its size changed: earlier screens no longer count. A program that works does not
    /// count as stopped because of this.
    pub(super) fn start_over(&mut self, at: Time, digest: u64, works: bool) {
        self.worked_at = works.then_some(at);
        self.frames.clear();
        self.frames.push_back((at, digest));
    }

    /// When the program began its latest different screens, too many for a blink.
    pub(super) fn busy_since(&self) -> Option<Time> {
        self.when_drawn(AT_WORK)
    }

    /// When the program last did more than blink.
    pub(super) fn worked_until(&self) -> Option<Time> {
        self.when_drawn(AT_WORK).max(self.worked_at)
    }

    /// Whether an animation began after this moment.
    pub(super) fn began_after(&self, since: Time) -> bool {
        self.when_drawn(LIVELY).is_some_and(|first| first > since)
    }

    /// Another program draws from now on.
    pub(super) fn forget(&mut self) {
        *self = Animation::default();
    }

    pub(super) fn claim(&self, at: Time, needs_input_after: Duration, shows: Shows) -> Option<Activity> {
        if !self.lively {
            return None;
        }
        match self.ends_at(needs_input_after, shows) {
            Some(end) if at < end => Some(Activity::Working),
            _ => Some(Activity::Waiting(Why::Unknown)),
        }
    }

    /// When the animation counts as stopped, if the program draws nothing more.
    pub(super) fn ends_at(&self, needs_input_after: Duration, shows: Shows) -> Option<Time> {
        let first = self.worked_until().filter(|_| self.lively)?;
        let still = match shows {
            Shows::Nothing => needs_input_after,
            Shows::Work => {
                (self.slowest * MISSED).clamp(needs_input_after / 2, needs_input_after.mul_f32(0.9))
            }
            Shows::EndOfWork(since) => {
                return Some(first.max(since).saturating_add(needs_input_after / PART_AFTER_END));
            }
        };
        Some(first.saturating_add(still))
    }

    /// The latest moment since which the program drew `count` different screens.
    fn when_drawn(&self, count: usize) -> Option<Time> {
        let mut seen: Vec<u64> = Vec::with_capacity(count);
        self.frames.iter().rev().find_map(|(at, digest)| {
            if !seen.contains(digest) {
                seen.push(*digest);
            }
            (seen.len() == count).then_some(*at)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE: Duration = Duration::from_secs(5);

    fn ms(ms: u64) -> Time {
        Duration::from_millis(ms)
    }

    fn is_waiting(animation: &Animation, at: u64) -> Option<bool> {
        animation.claim(ms(at), SILENCE, Shows::Work).map(Activity::is_waiting)
    }

    #[test]
    fn a_spinner_works_and_when_it_stops_the_program_waits() {
        let mut animation = Animation::default();
        for tick in 0..100 {
            // Ten frames again and again, as braille spinners draw.
            animation.on_frame(ms(tick * 100), tick % 10);
        }
        assert_eq!(is_waiting(&animation, 9_950), Some(false));
        assert_eq!(is_waiting(&animation, 11_900), Some(false));
        assert_eq!(is_waiting(&animation, 12_300), Some(true));
        let after_end =
            |at| animation.claim(ms(at), SILENCE, Shows::EndOfWork(ms(9_900))).map(Activity::is_waiting);
        assert_eq!((after_end(11_100), after_end(11_200)), (Some(false), Some(true)));
    }

    #[test]
    fn a_blinking_question_waits_however_long_it_blinks() {
        let mut animation = Animation::default();
        (0..30).for_each(|tick| animation.on_frame(ms(tick * 100), tick));
        (0..100).for_each(|tick| animation.on_frame(ms(3_000 + tick * 600), 1_000 + tick % 2));
        assert_eq!(is_waiting(&animation, 63_000), Some(true));
    }

    #[test]
    fn a_slow_animation_is_given_more_time() {
        let mut animation = Animation::default();
        (0..10).for_each(|tick| animation.on_frame(ms(tick * 100), tick));
        (0..10).for_each(|tick| animation.on_frame(ms(1_000 + tick * 1_200), 100 + tick));
        assert_eq!(is_waiting(&animation, 11_800 + 1_500), Some(false), "the next tick is a little late");
        assert_eq!(is_waiting(&animation, 11_800 + 4_600), Some(true));
    }

    #[test]
    fn typing_neither_ends_work_nor_counts_as_work() {
        let mut animation = Animation::default();
        (0..30).for_each(|tick| animation.on_frame(ms(tick * 100), tick));
        (0..40).for_each(|key| animation.start_over(ms(3_000 + key * 100), 100 + key, true));
        assert_eq!(is_waiting(&animation, 7_500), Some(false), "the user types a prompt for later");
        assert_eq!(is_waiting(&animation, 9_600), Some(true));
        (0..10).for_each(|key| animation.start_over(ms(10_000 + key * 100), 200 + key, false));
        assert_eq!(is_waiting(&animation, 10_950), Some(true));
    }

    #[test]
    fn a_program_that_never_animated_claims_nothing() {
        let mut animation = Animation::default();
        (0..10).for_each(|line| animation.on_frame(ms(line * 1_000), line));
        assert_eq!(is_waiting(&animation, 30_000), None);
        (0..10).for_each(|key| animation.start_over(ms(31_000 + key * 50), 100 + key, false));
        assert_eq!(is_waiting(&animation, 32_000), None, "typing is not the program's work");
    }
}
