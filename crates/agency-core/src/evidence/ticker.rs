//! Finds rows that tick: a spinner turns or seconds count while the words stay. Programs show such a row while they work.
//!
//! A row that ticked until the program drew for the last time and is gone then is the end of a turn, also in the first one.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::menu::is_furniture;
use super::sign::spinner;
use crate::Time;

/// Programs tick in this many of the last rows with text.
const ROWS: usize = 16;
/// A blink shows two pictures of a row; a third one is a tick.
const PICTURES: usize = 3;
/// A row that is gone for this long is forgotten.
const KEPT_FOR: Duration = Duration::from_secs(10);
/// The most rows that are remembered.
const MOST: usize = 64;
/// The program drew at most this long after the row was gone, if it ticked to the end.
const ENDS_WITHIN: Duration = Duration::from_millis(1500);
/// At the end of its work a program may draw in pieces.
const LAST_PIECES: Duration = Duration::from_millis(300);

/// A row at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticker {
    /// A hash of its words, or of the kind of its spinner.
    pub words: u64,
    /// A hash of all of it.
    pub picture: u64,
}

/// The rows near the end of the screen, each with its words.
pub fn tickers<R: AsRef<str>>(rows: &[R]) -> Vec<Ticker> {
    let with_text = rows.iter().map(AsRef::as_ref).filter(|row| !is_furniture(row));
    with_text.rev().take(ROWS).flat_map(of_row).collect()
}

fn of_row(row: &str) -> Vec<Ticker> {
    let edge = |c: char| c.is_whitespace() || ('\u{2500}'..='\u{259f}').contains(&c);
    let row = row.trim_matches(edge);
    let words: String = row.chars().filter(|c| c.is_alphabetic()).collect();
    let by_words = (words.chars().count() >= 3).then(|| Ticker { words: hash(&words), picture: hash(row) });
    let by_spinner = row.chars().next().filter(|c| spinner(*c).is_some());
    let by_spinner = by_spinner.map(|c| Ticker { words: hash(&spinner(c)), picture: hash(&c) });
    by_words.into_iter().chain(by_spinner).collect()
}

fn hash(of: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TickerWatch {
    rows: BTreeMap<u64, Seen>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    /// Its last different pictures.
    pictures: Vec<u64>,
    /// When its picture last changed.
    ticked_at: Time,
    /// When it disappeared.
    gone_at: Option<Time>,
}

impl TickerWatch {
    /// The user answered a question, so the program may work on without the row that ticked.
    pub(super) fn on_answer(&mut self) {
        self.rows.clear();
    }

    pub(super) fn on_screen(&mut self, tickers: &[Ticker], at: Time) {
        let is_old = |since: Time| at.saturating_sub(since) > KEPT_FOR;
        self.rows.retain(|_, seen| !seen.gone_at.is_some_and(is_old));
        for (words, seen) in &mut self.rows {
            match tickers.iter().any(|ticker| ticker.words == *words) {
                true => seen.gone_at = None,
                false => drop(seen.gone_at.get_or_insert(at)),
            }
        }
        for Ticker { words, picture } in tickers {
            if self.rows.len() >= MOST && !self.rows.contains_key(words) {
                continue;
            }
            let seen = self.rows.entry(*words).or_default();
            if seen.pictures.last() != Some(picture) {
                seen.ticked_at = at;
            }
            if !seen.pictures.contains(picture) {
                seen.pictures.push(*picture);
                seen.pictures.truncate(PICTURES);
            }
        }
    }

    /// When the row that ticked disappeared, if the program drew little after that until `drawn_at`, and no other row ticks since.
    pub(super) fn gone_at(&self, drawn_at: Time) -> Option<Time> {
        let ticking = || self.rows.values().filter(|seen| seen.pictures.len() >= PICTURES);
        let gone_at = ticking().filter_map(|seen| seen.gone_at).max()?;
        let ticks =
            |seen: &Seen| seen.gone_at.is_none() && seen.ticked_at > gone_at.saturating_add(LAST_PIECES);
        let is_end = drawn_at.saturating_sub(gone_at) <= ENDS_WITHIN && !ticking().any(ticks);
        is_end.then_some(gone_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(watch: &mut TickerWatch, rows: &[&str], at: u64) {
        watch.on_screen(&tickers(rows), Duration::from_millis(at));
    }

    fn is_gone(watch: &TickerWatch, drawn_at: u64) -> bool {
        watch.gone_at(Duration::from_millis(drawn_at)).is_some()
    }

    fn works(watch: &mut TickerWatch) {
        for (tick, sign) in ["|", "/", "-", "\\"].iter().enumerate() {
            let row = format!("{sign} Cooking… ({tick}s)");
            show(watch, &["an answer", &row, "> "], tick as u64 * 300);
            assert!(!is_gone(watch, tick as u64 * 300));
        }
    }

    #[test]
    fn a_row_that_ticked_to_the_end_and_is_gone_ends_the_turn() {
        let mut watch = TickerWatch::default();
        works(&mut watch);
        show(&mut watch, &["an answer", "> "], 1_200);
        assert!(is_gone(&watch, 1_200));
        show(&mut watch, &["| Cooking… (5s)", "> "], 1_300);
        assert!(!is_gone(&watch, 1_300), "it came back");
    }

    #[test]
    fn a_spinner_that_gives_way_to_seconds_that_count_is_no_end() {
        let mut watch = TickerWatch::default();
        works(&mut watch);
        (0..4).for_each(|s| show(&mut watch, &[&format!("Running the tests ({s} s)")], 1_200 + s * 1_000));
        assert!(!is_gone(&watch, 2_200));
    }

    #[test]
    fn an_answer_that_is_written_long_after_the_last_tick_proves_nothing() {
        let mut watch = TickerWatch::default();
        works(&mut watch);
        (0..20).for_each(|line| {
            show(&mut watch, &["an answer", &"word ".repeat(line)], 1_200 + line as u64 * 200)
        });
        assert!(!is_gone(&watch, 5_000));
    }

    #[test]
    fn a_row_that_stays_and_one_that_blinks_prove_nothing() {
        let mut watch = TickerWatch::default();
        works(&mut watch);
        assert!(!is_gone(&watch, 900), "it stands still");
        let mut watch = TickerWatch::default();
        (0..8).for_each(|blink| show(&mut watch, &[["Name: ", "Name: _"][blink % 2]], blink as u64 * 500));
        show(&mut watch, &["Size: "], 4_100);
        assert!(!is_gone(&watch, 4_100));
    }

    #[test]
    fn a_spinner_before_the_answer_ticks_too() {
        let mut watch = TickerWatch::default();
        show(&mut watch, &["⠋ One"], 0);
        show(&mut watch, &["⠙ One two"], 200);
        show(&mut watch, &["⠹ One two three"], 400);
        show(&mut watch, &["* One two three."], 600);
        assert!(is_gone(&watch, 600));
    }
}
