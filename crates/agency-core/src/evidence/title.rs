//! The window title as a sign of life: its class by a rule, and whether it turns.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::claim::{Activity, Why};
use super::rules::Matched;
use super::settling::Settling;
use crate::Time;

/// A glyph of the spinner may look like the one of rest.
const REST_AFTER: Duration = Duration::from_millis(250);
/// A title that turned and stands still for so long has been forgotten by its program.
const TURNS_WITHIN: Duration = Duration::from_secs(3);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TitleWatch {
    said: Settling<Said>,
    last_set: Time,
    turns: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Said {
    activity: Activity,
    rule: String,
    detail: Option<String>,
}

impl TitleWatch {
    pub(super) fn on_title(&mut self, matched: Option<Matched>, at: Time) {
        self.tick(at);
        let worked = self.said.believed().is_some_and(|said| said.activity == Activity::Working);
        let in_time = at.saturating_sub(self.last_set) <= TURNS_WITHIN;
        self.turns = if in_time { self.turns.saturating_add(1) } else { 0 };
        self.last_set = at;
        let said = match matched {
            Some(Matched { rule, activity, detail }) => Some(Said { activity, rule, detail }),
            None if worked => Some(Said {
                activity: Activity::Waiting(Why::Unknown),
                rule: "the title has come to rest".to_owned(),
                detail: None,
            }),
            None => None,
        };
        self.said.see(said, at);
        self.tick(at);
    }

    pub(super) fn tick(&mut self, now: Time) {
        self.said.tick(now, settles_after);
        if self.lapses_at().is_some_and(|due| due <= now) {
            self.said.forget();
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        [self.said.believe_at(settles_after), self.lapses_at()].into_iter().flatten().min()
    }

    pub(super) fn claim(&self) -> Option<(Activity, &str, Option<&str>)> {
        self.said.believed().map(|said| (said.activity, said.rule.as_str(), said.detail.as_deref()))
    }

    pub(super) fn forget(&mut self) {
        *self = TitleWatch::default();
    }

    fn lapses_at(&self) -> Option<Time> {
        let works = self.said.believed().is_some_and(|said| said.activity == Activity::Working);
        (works && self.turns >= 3).then(|| self.last_set.saturating_add(TURNS_WITHIN))
    }
}

fn settles_after(said: Option<&Said>) -> Duration {
    match said.map(|said| said.activity) {
        Some(Activity::Working) => Duration::ZERO,
        Some(Activity::Waiting(_)) | None => REST_AFTER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Rules;

    fn told(titles: &[(u64, &str)], at: u64) -> Option<bool> {
        let (rules, mut watch) = (Rules::shipped(), TitleWatch::default());
        for (at, title) in titles {
            watch.on_title(rules.on_title(title, "x"), Duration::from_millis(*at));
        }
        watch.tick(Duration::from_millis(at));
        watch.claim().map(|(activity, ..)| activity.is_waiting())
    }

    #[test]
    fn a_spinner_in_the_title_works_and_rests() {
        assert_eq!(told(&[(0, "✳ Claude Code")], 300), Some(true));
        assert_eq!(told(&[(0, "✳ Claude Code"), (900, "◐ Claude Code")], 900), Some(false));
        assert_eq!(told(&[(0, "◐ x"), (900, "◑ x"), (1000, "✳ x"), (1100, "◐ x")], 1200), Some(false));
        assert_eq!(told(&[(0, "⠋ work"), (100, "⠙ work"), (200, "work")], 500), Some(true));
        assert_eq!(told(&[(0, "bash: ~/work")], 500), None);
        assert_eq!(told(&[(0, "✦ Working…")], 60_000), Some(false), "one that never turned may stand");
    }

    #[test]
    fn a_spinner_that_is_left_standing_says_nothing() {
        let turning: Vec<(u64, &str)> =
            (0..6).map(|tick| (tick * 100, if tick % 2 == 0 { "⠋ x" } else { "⠙ x" })).collect();
        assert_eq!(told(&turning, 3_000), Some(false));
        assert_eq!(told(&turning, 3_600), None);
    }
}
