//! The window title as evidence: its meaning by a rule, and whether its spinner turns.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::rules::Matched;
use super::settling::Settling;
use crate::Time;
use crate::activity::{Activity, Why};

/// One glyph of a spinner may look like the glyph of rest, so a title of rest must stay this long.
const REST_AFTER: Duration = Duration::from_millis(250);
/// If a spinning title stops for this long, its program has forgotten it.
const TURNS_WITHIN: Duration = Duration::from_secs(3);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TitleWatch {
    #[serde(rename = "said")]
    meaning: Settling<TitleMeaning>,
    last_set: Time,
    turns: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct TitleMeaning {
    activity: Activity,
    rule: String,
    detail: Option<String>,
}

impl TitleWatch {
    pub(super) fn on_title(&mut self, matched: Option<Matched>, at: Time) {
        self.tick(at);
        let worked = self.meaning.believed().is_some_and(|meaning| meaning.activity == Activity::Working);
        let in_time = at.saturating_sub(self.last_set) <= TURNS_WITHIN;
        self.turns = if in_time { self.turns.saturating_add(1) } else { 0 };
        self.last_set = at;
        let meaning = match matched {
            Some(Matched { rule, activity, detail, .. }) => Some(TitleMeaning { activity, rule, detail }),
            None if worked => Some(TitleMeaning {
                activity: Activity::Waiting(Why::Unknown),
                rule: "the title has come to rest".to_owned(),
                detail: None,
            }),
            None => None,
        };
        self.meaning.observe(meaning, at);
        self.tick(at);
    }

    pub(super) fn tick(&mut self, now: Time) {
        self.meaning.tick(now, settles_after);
        if self.lapses_at().is_some_and(|due| due <= now) {
            self.meaning.forget();
        }
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        [self.meaning.believe_at(settles_after), self.lapses_at()].into_iter().flatten().min()
    }

    pub(super) fn claim(&self) -> Option<(Activity, &str, Option<&str>)> {
        self.meaning
            .believed()
            .map(|meaning| (meaning.activity, meaning.rule.as_str(), meaning.detail.as_deref()))
    }

    pub(super) fn forget(&mut self) {
        *self = TitleWatch::default();
    }

    fn lapses_at(&self) -> Option<Time> {
        let works = self.meaning.believed().is_some_and(|meaning| meaning.activity == Activity::Working);
        (works && self.turns >= 3).then(|| self.last_set.saturating_add(TURNS_WITHIN))
    }
}

fn settles_after(meaning: Option<&TitleMeaning>) -> Duration {
    match meaning.map(|meaning| meaning.activity) {
        Some(Activity::Working) => Duration::ZERO,
        Some(Activity::Waiting(_)) | None => REST_AFTER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::Rules;

    fn is_waiting(titles: &[(u64, &str)], at: u64) -> Option<bool> {
        let (rules, mut watch) = (Rules::shipped(), TitleWatch::default());
        for (at, title) in titles {
            watch.on_title(rules.on_title(title, "x"), Duration::from_millis(*at));
        }
        watch.tick(Duration::from_millis(at));
        watch.claim().map(|(activity, ..)| activity.is_waiting())
    }

    #[test]
    fn a_spinner_in_the_title_works_and_rests() {
        assert_eq!(is_waiting(&[(0, "✳ Claude Code")], 300), Some(true));
        assert_eq!(is_waiting(&[(0, "✳ Claude Code"), (900, "◐ Claude Code")], 900), Some(false));
        assert_eq!(is_waiting(&[(0, "◐ x"), (900, "◑ x"), (1000, "✳ x"), (1100, "◐ x")], 1200), Some(false));
        assert_eq!(is_waiting(&[(0, "⠋ work"), (100, "⠙ work"), (200, "work")], 500), Some(true));
        assert_eq!(is_waiting(&[(0, "bash: ~/work")], 500), None);
        assert_eq!(
            is_waiting(&[(0, "✦ Working…")], 60_000),
            Some(false),
            "a title that never turned may stay"
        );
    }

    #[test]
    fn a_spinner_that_stopped_for_long_claims_nothing() {
        let turning: Vec<(u64, &str)> =
            (0..6).map(|tick| (tick * 100, if tick % 2 == 0 { "⠋ x" } else { "⠙ x" })).collect();
        assert_eq!(is_waiting(&turning, 3_000), Some(false));
        assert_eq!(is_waiting(&turning, 3_600), None);
    }
}
