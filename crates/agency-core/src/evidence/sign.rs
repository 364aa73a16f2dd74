//! Learns how a program shows that it works: words or a spinner near the end of the screen that are there during a whole turn and
//! never while the program waits.
//!
//! Learns from one turn and uses it from the next one on. A sign that turns out to be wrong is forgotten and not learned again.
//! A run may know signs from earlier runs of the program.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::menu::is_furniture;
use crate::Time;

/// Programs show their signs of work in this many of the last rows with text.
const ROWS: usize = 12;
/// A shorter turn teaches nothing.
const SHORTEST_TURN: Duration = Duration::from_secs(2);
/// A sign comes this soon after Enter.
const COMES_WITHIN: Duration = Duration::from_millis(1500);
/// Programs draw in pieces, so a sign may be missing for a moment.
const LONGEST_GAP: Duration = Duration::from_millis(500);
/// A sign that is missing for this long is gone.
const GONE_AFTER: Duration = Duration::from_millis(600);
/// Words are at least this long and at most that long. Shorter ones are names of keys, longer ones are answers.
const LETTERS: std::ops::RangeInclusive<usize> = 4..=40;
/// The most texts that are remembered.
const MOST: usize = 200;

/// How the sign of a spinner begins.
const SPINNER: &str = "a spinner of ";

/// The texts near the end of a screen: phrases without digits, and kinds of spinners.
pub fn sign_texts<R: AsRef<str>>(rows: &[R]) -> BTreeSet<String> {
    let with_text = rows.iter().map(AsRef::as_ref).filter(|row| !is_furniture(row));
    let last: Vec<&str> = with_text.rev().take(ROWS).collect();
    last.into_iter().flat_map(texts_of).collect()
}

fn texts_of(row: &str) -> Vec<String> {
    let edge = |c: char| c.is_whitespace() || ('\u{2500}'..='\u{259f}').contains(&c);
    let row = row.trim_matches(edge);
    let spinner = row.chars().next().and_then(spinner).map(|kind| format!("{SPINNER}{kind}"));
    let is_end = |c: char| "()[]{}⟨⟩•·|│┃,;…".contains(c) || c.is_ascii_digit();
    let phrases = row
        .split(is_end)
        .flat_map(|part| part.split("  "))
        .map(|part| part.trim_matches(|c: char| !c.is_alphabetic()).to_lowercase());
    phrases.filter(|phrase| LETTERS.contains(&phrase.chars().count())).chain(spinner).collect()
}

pub(super) fn spinner(c: char) -> Option<&'static str> {
    match c {
        '\u{2801}'..='\u{28ff}' => Some("dots"),
        '◐' | '◓' | '◑' | '◒' | '◴' | '◷' | '◶' | '◵' | '◜' | '◝' | '◞' | '◟' => {
            Some("circles")
        }
        '✶' | '✢' | '✽' | '✻' | '✳' | '∗' => Some("stars"),
        '▖' | '▘' | '▝' | '▗' => Some("blocks"),
        _ => None,
    }
}

/// Whether a sign may be remembered after the run. It must be plain words of the program: no path, no name with a dot, no
/// long random word.
pub(super) fn is_memorable(sign: &str, is_foreign: impl Fn(&str) -> bool) -> bool {
    const LONGEST_WORD: usize = 16;
    let is_plain = |c: char| c.is_alphabetic() || matches!(c, ' ' | '\'' | '’' | '-' | '+');
    sign.starts_with(SPINNER)
        || sign.chars().all(is_plain)
            && sign.split(' ').all(|word| word.chars().count() <= LONGEST_WORD)
            && is_foreign(sign)
}

/// The meaning of a sign of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SignClaim {
    /// A sign is on the screen.
    Shown(String),
    /// A sign was on the screen in this turn, and is gone.
    Gone(String),
}

/// Words that mean work in any program, if they stand alone.
const WORDS: &[&str] = &["working", "thinking", "loading", "processing", "generating", "please wait"];

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SignWatch {
    learned: BTreeSet<String>,
    /// Texts that were there while the program waited.
    idle: BTreeSet<String>,
    /// Words of work that this program showed in a wrong place.
    #[serde(default)]
    wrong: BTreeSet<String>,
    turn: Option<Turn>,
    /// The last texts on the screen.
    shown: BTreeSet<String>,
    /// The sign of the present turn, and when it was last seen.
    last: Option<(String, Time)>,
    /// When a sign was found to be gone. If it comes back in the same turn, it is wrong.
    gone_at: Option<Time>,
    /// Signs that were on the screen when the user typed. They count again after they have disappeared.
    left_over: BTreeSet<String>,
    /// Signs that this run did not learn itself.
    #[serde(default)]
    known: BTreeSet<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Turn {
    began: Time,
    /// Each text that was there from the beginning, and when it was last seen.
    seen: BTreeMap<String, Time>,
}

impl SignWatch {
    /// The program took a line: a turn begins. What is on the screen now is not a sign of work.
    pub(super) fn on_turn(&mut self, at: Time) {
        let idle = self.shown.iter().filter(|text| !self.is_sign(text)).cloned().collect::<Vec<_>>();
        self.remember_idle(idle);
        self.turn = Some(Turn { began: at, seen: BTreeMap::new() });
        self.on_input();
    }

    /// The user typed. A draft or another view may hide the sign now, and an interrupt may leave it on the screen. If it comes back
    /// after it was gone, that is another turn.
    pub(super) fn on_input(&mut self) {
        self.left_over = self.shown.iter().filter(|text| self.is_sign(text)).cloned().collect();
        (self.last, self.gone_at) = (None, None);
    }

    pub(super) fn on_screen(&mut self, texts: BTreeSet<String>, at: Time) {
        self.left_over.retain(|text| texts.contains(text));
        let counts = |text: &&String| self.is_sign(text) && !self.left_over.contains(*text);
        if let Some(sign) = texts.iter().find(counts) {
            if self.gone_at.take().is_some() {
                // It came back in the same turn, so its absence does not mean the end of the work.
                let sign = sign.clone();
                self.learned.remove(&sign);
                self.last = None;
                self.remember_idle(vec![sign]);
            } else {
                self.last = Some((sign.clone(), at));
            }
        }
        if let Some(turn) = &mut self.turn {
            let is_early = at.saturating_sub(turn.began) <= COMES_WITHIN;
            turn.seen.retain(|text, seen| texts.contains(text) || at.saturating_sub(*seen) <= LONGEST_GAP);
            for text in &texts {
                match turn.seen.get_mut(text) {
                    Some(seen) => *seen = at,
                    None if is_early && !self.idle.contains(text) => drop(turn.seen.insert(text.clone(), at)),
                    None => {}
                }
            }
        }
        self.shown = texts;
    }

    /// Another witness found that the program waits, and no dialog is open. `drawn_at` is when it drew last.
    pub(super) fn on_rest(&mut self, drawn_at: Time, now: Time) {
        // The other witness may not have noticed the beginning of the turn yet.
        let is_over = |turn: &mut Turn| now.saturating_sub(turn.began) >= SHORTEST_TURN;
        let Some(turn) = self.turn.take_if(is_over) else { return };
        let shown = self.shown.iter().cloned().collect();
        self.remember_idle(shown);
        if drawn_at.saturating_sub(turn.began) < SHORTEST_TURN {
            return;
        }
        let until_end = |(_, seen): &(&String, &Time)| drawn_at.saturating_sub(**seen) <= LONGEST_GAP;
        let texts = turn.seen.iter().filter(until_end).map(|(text, _)| text.clone());
        let learned: Vec<String> = texts.filter(|text| !self.idle.contains(text)).take(8).collect();
        self.learned.extend(learned);
    }

    /// The program shows a dialog in the middle of a turn. Nothing can be learned from this turn.
    pub(super) fn on_dialog(&mut self) {
        self.turn = None;
        (self.last, self.gone_at) = (None, None);
    }

    /// The claim of the sign. `busy_since` is when the program began its latest pictures: it may write its answer without a sign.
    /// A sign that stays for long while nothing is drawn may be an old line of the transcript, so it claims nothing from `lapses_at` on.
    pub(super) fn claim(&mut self, at: Time, busy_since: Option<Time>, lapses_at: Time) -> Option<SignClaim> {
        let (sign, seen) = self.last.clone().filter(|(sign, _)| self.is_sign(sign))?;
        if self.shown.contains(&sign) && at >= lapses_at {
            return None;
        }
        match self.shown.contains(&sign) || at < gone_after(seen, busy_since) && self.gone_at.is_none() {
            true => Some(SignClaim::Shown(sign)),
            false => {
                self.gone_at.get_or_insert(at);
                Some(SignClaim::Gone(sign))
            }
        }
    }

    /// Whether a sign is on the screen.
    pub(super) fn is_shown(&self) -> bool {
        self.last.as_ref().is_some_and(|(sign, _)| self.shown.contains(sign) && self.is_sign(sign))
    }

    /// When the sign counts as gone, if it does not come back.
    pub(super) fn deadline(&self, busy_since: Option<Time>) -> Option<Time> {
        let (sign, seen) = self.last.as_ref()?;
        let is_missing = !self.shown.contains(sign) && self.gone_at.is_none() && self.is_sign(sign);
        is_missing.then(|| gone_after(*seen, busy_since))
    }

    /// Whether this text means work: the program taught it, or any program means it.
    fn is_sign(&self, text: &str) -> bool {
        self.learned.contains(text) || WORDS.contains(&text) && !self.wrong.contains(text)
    }

    /// Whether the program has shown in a whole turn that the end of this sign is the end of the work.
    pub(super) fn is_learned(&self, sign: &str) -> bool {
        self.learned.contains(sign)
    }

    /// The signs that were learned.
    pub(super) fn learned(&self) -> &BTreeSet<String> {
        &self.learned
    }

    /// Another program came to the front. The signs of the one before mean nothing for it.
    pub(super) fn on_other_program(&mut self) {
        *self = SignWatch { shown: std::mem::take(&mut self.shown), ..SignWatch::default() };
    }

    /// Signs that earlier runs of the program learned.
    pub(super) fn know<'a>(&mut self, signs: impl IntoIterator<Item = &'a String>) {
        for sign in signs.into_iter().take(MOST) {
            if !self.idle.contains(sign) && self.learned.insert(sign.clone()) {
                self.known.insert(sign.clone());
            }
        }
    }

    /// Another run found that these signs are wrong.
    pub(super) fn forget<'a>(&mut self, signs: impl IntoIterator<Item = &'a String>) {
        self.remember_idle(signs.into_iter().cloned().collect());
    }

    /// Whether the sign was learned by an earlier run.
    pub(super) fn is_known(&self, sign: &str) -> bool {
        self.known.contains(sign)
    }

    /// Whether the text was there while the program waited.
    pub(super) fn is_wrong(&self, sign: &str) -> bool {
        self.idle.contains(sign)
    }

    fn remember_idle(&mut self, texts: Vec<String>) {
        for text in texts {
            self.learned.remove(&text);
            self.known.remove(&text);
            if WORDS.contains(&text.as_str()) {
                self.wrong.insert(text.clone());
            }
            if self.idle.len() < MOST {
                self.idle.insert(text);
            }
        }
    }
}

fn gone_after(seen: Time, busy_since: Option<Time>) -> Time {
    busy_since.map_or(seen, |busy| busy.max(seen)).saturating_add(GONE_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Duration::from_millis(ms)
    }

    const NEVER: Time = Duration::MAX;

    fn show(watch: &mut SignWatch, rows: &[&str], at: u64) {
        watch.on_screen(sign_texts(rows), ms(at));
    }

    /// One turn of four seconds with a spinner, and its end.
    fn turn(watch: &mut SignWatch, begin: u64) {
        show(watch, &["> hello", "? for shortcuts"], begin);
        watch.on_turn(ms(begin));
        for frame in 0..40 {
            let working =
                format!("{} Pondering… ({}s · esc to interrupt)", ["⠋", "⠙"][frame as usize % 2], frame / 10);
            show(watch, &["an answer", &working, "> "], begin + frame * 100);
        }
        show(watch, &["an answer", "> ", "? for shortcuts"], begin + 4_000);
    }

    #[test]
    fn texts_have_no_digits_and_spinners_have_a_kind() {
        let texts = sign_texts(&["────", "│ ⠋ Thinking hard… (12s • esc to interrupt) │"]);
        let expected = ["a spinner of dots", "esc to interrupt", "thinking hard"];
        assert_eq!(texts.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_sign_is_learned_in_one_turn_and_used_in_the_next() {
        let mut watch = SignWatch::default();
        turn(&mut watch, 0);
        assert_eq!(watch.claim(ms(4_000), None, NEVER), None, "nothing is known in the first turn");
        watch.on_rest(ms(4_000), ms(7_000));
        assert!(watch.learned().contains("esc to interrupt"), "{:?}", watch.learned());
        assert!(!watch.learned().contains("an answer"), "it stayed on the screen");
        assert_eq!(watch.claim(ms(5_000), None, NEVER), None, "no turn has begun");
        turn(&mut watch, 10_000);
        assert!(
            matches!(watch.claim(ms(14_100), None, NEVER), Some(SignClaim::Shown(_))),
            "it may come back"
        );
        assert_eq!(watch.deadline(None), Some(ms(14_500)));
        assert!(matches!(watch.claim(ms(14_500), None, NEVER), Some(SignClaim::Gone(_))));
    }

    #[test]
    fn a_word_of_work_needs_no_lesson_until_a_program_shows_it_while_it_waits() {
        let mut watch = SignWatch::default();
        watch.on_turn(ms(0));
        show(&mut watch, &["Working", "a command"], 100);
        assert!(matches!(watch.claim(ms(200), None, NEVER), Some(SignClaim::Shown(_))));
        show(&mut watch, &["Finished", "a command"], 5_000);
        assert!(matches!(watch.claim(ms(5_700), None, NEVER), Some(SignClaim::Gone(_))));
        assert!(!watch.is_learned("working"));
        show(&mut watch, &["Working", "a command"], 6_000);
        watch.on_turn(ms(7_000));
        show(&mut watch, &["a command"], 7_100);
        show(&mut watch, &["Working"], 7_200);
        assert_eq!(watch.claim(ms(7_300), None, NEVER), None, "it showed it while it waited");
    }

    #[test]
    fn a_sign_that_comes_back_in_the_same_turn_is_forgotten() {
        let mut watch = SignWatch::default();
        watch.know(&["thinking".to_owned()]);
        watch.on_turn(ms(0));
        show(&mut watch, &["Thinking…"], 100);
        show(&mut watch, &["an answer"], 900);
        assert!(matches!(watch.claim(ms(1_000), None, NEVER), Some(SignClaim::Gone(_))));
        show(&mut watch, &["Thinking…"], 2_000);
        assert_eq!(watch.claim(ms(2_000), None, NEVER), None);
        assert!(watch.learned().is_empty());
    }

    #[test]
    fn a_text_that_is_there_while_the_program_waits_is_no_sign() {
        let mut watch = SignWatch::default();
        show(&mut watch, &["escape interrupts", "> "], 0);
        watch.on_turn(ms(0));
        (1..50).for_each(|frame| show(&mut watch, &["escape interrupts", "Working"], frame * 100));
        show(&mut watch, &["escape interrupts", "> "], 5_000);
        watch.on_rest(ms(5_000), ms(7_000));
        assert_eq!(watch.learned().iter().map(String::as_str).collect::<Vec<_>>(), ["working"]);
    }

    #[test]
    fn a_sign_that_an_interrupt_left_on_the_screen_does_not_count() {
        let mut watch = SignWatch::default();
        watch.know(&["thinking".to_owned()]);
        watch.on_turn(ms(0));
        show(&mut watch, &["Thinking…"], 100);
        assert!(matches!(watch.claim(ms(100), None, NEVER), Some(SignClaim::Shown(_))));
        assert_eq!(watch.claim(ms(9_000), None, ms(9_000)), None, "nothing was drawn for long");
        watch.on_input();
        show(&mut watch, &["Thinking…", "interrupted"], 200);
        assert_eq!(watch.claim(ms(200), None, NEVER), None);
        show(&mut watch, &["> "], 300);
        show(&mut watch, &["Thinking…"], 400);
        assert!(matches!(watch.claim(ms(400), None, NEVER), Some(SignClaim::Shown(_))));
    }
}
