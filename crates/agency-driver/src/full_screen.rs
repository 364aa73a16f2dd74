//! The text of a full-screen program: what a person would have read on the alternate screen, each line once.
//!
//! Such a program prints no lines. It paints pictures, and a picture replaces the one before. So this keeps the current
//! picture as a document: rows that stay are the same lines, wherever they move. A line is written when it scrolls off at the
//! top, or when the program leaves the screen. A line that another one replaced keeps its place in the document if it stood
//! long enough to be read; spinners and counters do not.
//!
//! Text that the program never painted is not known here.

mod alignment;

use std::collections::VecDeque;
use std::time::Duration;

use alignment::align;

/// Spinners repaint many times a second and counters once a second. A line that stood longer than two of those could be read.
const READABLE_AFTER: Duration = Duration::from_secs(2);

/// Replaced lines that wait for their place in the text. A program that never scrolls would collect them without end.
const MOST_REPLACED: usize = 500;

/// Hints and input boxes come and go with every turn. Each is written once within so many replaced lines.
const REMEMBERED: usize = 500;

/// Shorter words are in many other lines by chance.
const LONG_ENOUGH_TO_FIND: usize = 8;

/// A line of text, and when it appeared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadLine {
    /// The time of the picture that first had it.
    pub at: Duration,
    /// Without colours and trailing blanks.
    pub text: String,
}

/// A line of the document.
#[derive(Debug, Clone)]
struct Entry {
    line: ReadLine,
    place: Place,
    is_written: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// On the screen. Only the text of an agent scrolls; its frame and its input box stay where they are.
    Shown { has_scrolled: bool },
    /// Another line took its row.
    Replaced,
}

/// The pictures of one stay on the alternate screen, as text.
#[derive(Debug, Default)]
pub struct FullScreenText {
    document: Vec<Entry>,
    /// Replaced lines, without blanks and frames.
    remembered: VecDeque<String>,
    ready: Vec<ReadLine>,
}

impl FullScreenText {
    /// The program has painted a picture.
    pub fn look(&mut self, rows: Vec<String>, at: Duration) {
        let readable: Vec<String> = rows.iter().map(|row| squeeze(row)).collect();
        let new_rows: Vec<Option<usize>> = {
            let shown = self.document.iter().filter(|entry| entry.place != Place::Replaced);
            let old: Vec<&str> = shown.map(|entry| entry.line.text.as_str()).collect();
            align(&old, &rows)
        };
        self.write_scrolled_off(&new_rows);
        let skipped = new_rows.len() - self.shown_count();
        let mut merge = Merge { rows: rows.into_iter().enumerate(), at, document: Vec::new() };
        let mut old_rows = new_rows.into_iter().enumerate().skip(skipped);
        for entry in std::mem::take(&mut self.document) {
            match entry.place {
                Place::Replaced => merge.document.push(entry),
                Place::Shown { .. } => match old_rows.next() {
                    Some((old_row, Some(new_row))) => merge.keep(entry, old_row, new_row),
                    _ => merge.document.extend(self.replaced(entry, &readable, at)),
                },
            }
        }
        self.document = merge.finish();
        self.limit_replaced();
    }

    /// Writes every line that stood long enough, in order. Later calls do not write it again.
    pub fn write_settled(&mut self, now: Duration) {
        for entry in &mut self.document {
            let is_due = is_settled(entry, now) && !self.remembered.contains(&squeeze(&entry.line.text));
            if is_due || entry.place == Place::Replaced {
                write(entry, &mut self.ready);
            }
        }
        self.document.retain(|entry| entry.place != Place::Replaced);
    }

    /// When [`Self::write_settled`] next has a line to write.
    pub fn settles_at(&self) -> Option<Duration> {
        let waiting = |entry: &&Entry| {
            !entry.is_written && !is_blank(entry) && !self.remembered.contains(&squeeze(&entry.line.text))
        };
        self.document.iter().filter(waiting).map(|entry| entry.line.at + READABLE_AFTER).min()
    }

    /// The program has left the screen, or ended: writes the last picture.
    pub fn finish(&mut self) {
        self.document.iter_mut().for_each(|entry| write(entry, &mut self.ready));
        self.document.clear();
        while self.ready.last().is_some_and(|line| line.text.is_empty()) {
            self.ready.pop();
        }
    }

    /// The lines that were written since the last call.
    pub fn take(&mut self) -> Vec<ReadLine> {
        std::mem::take(&mut self.ready)
    }

    fn shown_count(&self) -> usize {
        self.document.iter().filter(|entry| entry.place != Place::Replaced).count()
    }

    /// The first line that stays has moved up, so the program scrolled the lines above it off the screen.
    fn write_scrolled_off(&mut self, new_rows: &[Option<usize>]) {
        let first = new_rows.iter().enumerate().find_map(|(old, new)| new.map(|new| (old, new)));
        let Some((old_row, _)) = first.filter(|(old, new)| new < old) else { return };
        let mut shown = self.document.iter().enumerate().filter(|(_, entry)| entry.place != Place::Replaced);
        let Some((end, _)) = shown.nth(old_row) else { return };
        for mut entry in self.document.drain(..end) {
            write(&mut entry, &mut self.ready);
        }
    }

    /// Keeps a line that another one replaced, if it is worth reading and new.
    fn replaced(&mut self, entry: Entry, readable: &[String], at: Duration) -> Option<Entry> {
        let words = squeeze(&entry.line.text);
        let has_scrolled = entry.place == Place::Shown { has_scrolled: true };
        if words.is_empty() || is_readable(&words, readable) || self.remembered.contains(&words) {
            return None;
        }
        if !(has_scrolled || is_settled(&entry, at)) {
            return None;
        }
        if self.remembered.len() == REMEMBERED {
            self.remembered.pop_front();
        }
        self.remembered.push_back(words);
        (!entry.is_written).then_some(Entry { place: Place::Replaced, ..entry })
    }

    fn limit_replaced(&mut self) {
        let mut surplus = (self.document.len() - self.shown_count()).saturating_sub(MOST_REPLACED);
        let ready = &mut self.ready;
        self.document.retain_mut(|entry| {
            let stays = surplus == 0 || entry.place != Place::Replaced;
            if !stays {
                surplus -= 1;
                write(entry, ready);
            }
            stays
        });
    }
}

/// Builds the next document from the old entries and the new rows.
struct Merge<Rows: Iterator<Item = (usize, String)>> {
    rows: Rows,
    at: Duration,
    document: Vec<Entry>,
}

impl<Rows: Iterator<Item = (usize, String)>> Merge<Rows> {
    fn keep(&mut self, entry: Entry, old_row: usize, new_row: usize) {
        while let Some((row, text)) = self.rows.next() {
            if row == new_row {
                break;
            }
            self.add(text);
        }
        let moved_before = entry.place == Place::Shown { has_scrolled: true };
        let place = Place::Shown { has_scrolled: moved_before || new_row < old_row };
        self.document.push(Entry { place, ..entry });
    }

    fn add(&mut self, text: String) {
        let line = ReadLine { at: self.at, text };
        self.document.push(Entry { line, place: Place::Shown { has_scrolled: false }, is_written: false });
    }

    fn finish(mut self) -> Vec<Entry> {
        while let Some((_, text)) = self.rows.next() {
            self.add(text);
        }
        self.document
    }
}

fn is_blank(entry: &Entry) -> bool {
    entry.line.text.is_empty()
}

fn is_settled(entry: &Entry, now: Duration) -> bool {
    !is_blank(entry) && now.saturating_sub(entry.line.at) >= READABLE_AFTER
}

/// Whether the words are still on the screen: in a row of their own, in a row that grew, or wrapped in another way.
fn is_readable(words: &str, rows: &[String]) -> bool {
    let is_long = words.chars().count() >= LONG_ENOUGH_TO_FIND;
    rows.iter().any(|row| row == words) || is_long && rows.concat().contains(words)
}

/// Writes a line once. Blank lines separate texts, so one of them is enough.
fn write(entry: &mut Entry, ready: &mut Vec<ReadLine>) {
    if std::mem::replace(&mut entry.is_written, true) {
        return;
    }
    let follows_text = ready.last().is_some_and(|line| !line.text.is_empty());
    if !is_blank(entry) || follows_text {
        ready.push(entry.line.clone());
    }
}

/// The words of a line without blanks and frames, so that a line is recognized after a change of the width.
fn squeeze(text: &str) -> String {
    let is_frame = |c: char| c.is_whitespace() || c == '|' || ('\u{2500}'..='\u{259f}').contains(&c);
    text.chars().filter(|c| !is_frame(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each picture comes with the seconds that it stays. Rows are separated by `/`.
    fn read(pictures: &[(u64, &str)]) -> Vec<String> {
        let (mut text, mut at) = (FullScreenText::default(), Duration::ZERO);
        for (seconds, picture) in pictures {
            text.look(picture.split('/').map(|row| row.trim_end().to_owned()).collect(), at);
            at += Duration::from_secs(*seconds);
        }
        text.finish();
        text.take().into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn lines_that_scroll_off_are_written_once_and_in_order() {
        let lines =
            read(&[(0, "a/b/c/> "), (0, "b/c/d/> "), (0, "d/e/f/> "), (0, "e/f/}/> "), (0, "}/}/}/> ")]);
        assert_eq!(lines, ["a", "b", "c", "d", "e", "f", "}", "}", "}", ">"]);
    }

    #[test]
    fn a_spinner_and_a_growing_line_are_not_repeated() {
        let lines = read(&[
            (1, "task/* 1s/> "),
            (1, "task/- 2s/> "),
            (1, "task/I will/> "),
            (5, "task/I will fix/> "),
            (5, "task/I will fix it/done/> "),
        ]);
        assert_eq!(lines, ["task", "I will fix it", "done", ">"]);
    }

    #[test]
    fn a_dialog_keeps_its_place_after_it_was_answered() {
        let lines = read(&[
            (5, "task/Run rm -r x?/1. yes/2. no/> "),
            (5, "task/removed x/> "),
            (0, "task/removed x/ok/> "),
        ]);
        assert_eq!(lines, ["task", "Run rm -r x?", "1. yes", "2. no", "removed x", "ok", ">"]);
    }

    #[test]
    fn a_hint_that_comes_and_goes_is_written_once() {
        let turn = |n: u64| [(3, format!("task/{n}/? for help")), (3, format!("task/{n}/esc stops"))];
        let turns: Vec<(u64, String)> = (0..4).flat_map(turn).collect();
        let pictures: Vec<(u64, &str)> = turns.iter().map(|(at, text)| (*at, text.as_str())).collect();
        let lines = read(&pictures);
        let count = |wanted: &str| lines.iter().filter(|line| *line == wanted).count();
        assert_eq!((count("? for help"), count("esc stops")), (1, 2), "{lines:?}");
        assert!(["0", "1", "2", "3"].iter().all(|n| count(n) == 1), "{lines:?}");
    }

    #[test]
    fn a_page_that_was_read_stays_and_a_page_that_flew_by_does_not() {
        let lines = read(&[(5, "one/two"), (0, "three/four"), (5, "five/six")]);
        assert_eq!(lines, ["one", "two", "five", "six"]);
    }

    #[test]
    fn a_short_line_is_not_lost_because_longer_ones_contain_it() {
        let lines = read(&[(0, "1/2/3"), (0, "2/3/4"), (0, "12/13/14")]);
        assert_eq!(lines, ["1", "2", "3", "12", "13", "14"], "4 was never read");
        let lines = read(&[(5, "1/2/3"), (5, "11/12/13")]);
        assert_eq!(lines, ["1", "2", "3", "11", "12", "13"]);
    }

    #[test]
    fn another_width_writes_no_line_twice() {
        let lines =
            read(&[(5, "│ one two three │/│ four          │"), (5, "│ one two│/│ three  │/│ four   │")]);
        assert_eq!(lines, ["│ one two│", "│ three  │", "│ four   │"]);
    }

    #[test]
    fn a_follower_gets_a_line_after_it_settled_and_never_again() {
        let mut text = FullScreenText::default();
        let look = |text: &mut FullScreenText, picture: &str, at| {
            text.look(picture.split('/').map(str::to_owned).collect(), Duration::from_secs(at));
        };
        let written = |text: &mut FullScreenText, at| {
            text.write_settled(Duration::from_secs(at));
            text.take().into_iter().map(|line| line.text).collect::<Vec<_>>()
        };
        look(&mut text, "a/b/> ", 1);
        assert_eq!(text.settles_at(), Some(Duration::from_secs(3)));
        assert!(written(&mut text, 2).is_empty());
        look(&mut text, "a/c/> ", 2);
        assert_eq!(written(&mut text, 3), ["a", "> "]);
        assert_eq!(written(&mut text, 4), ["c"]);
        assert_eq!(text.settles_at(), None);
        look(&mut text, "c/d/> ", 5);
        text.finish();
        assert_eq!(text.take().into_iter().map(|line| line.text).collect::<Vec<_>>(), ["d"]);
    }

    #[test]
    fn a_program_that_never_scrolls_keeps_a_bounded_document() {
        let mut text = FullScreenText::default();
        for n in 0..2_000 {
            text.look(vec![format!("clock {n}")], Duration::from_secs(3 * n));
        }
        assert!(text.document.len() <= MOST_REPLACED + 1);
        assert_eq!(text.take().len(), 2_000 - MOST_REPLACED - 1);
    }
}
