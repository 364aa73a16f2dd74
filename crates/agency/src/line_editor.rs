//! Edits a message: applies keys to it, keeps earlier messages, and renders it in rows.
//!
//! Touches no terminal: takes bytes from a keyboard and returns messages.

use unicode_width::UnicodeWidthChar;

/// Printed before the first row of the message. Other rows are indented by its width.
const PROMPT: &str = "> ";

/// A longer message shows the rows around the cursor.
const MOST_ROWS: usize = 8;

/// No key has more bytes. A longer sequence without an end is not a key.
const LONGEST_KEY: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct LineEditor {
    text: Vec<char>,
    /// Characters before the cursor.
    at: usize,
    /// The first bytes of a key or a character whose other bytes have not arrived.
    unread: Vec<u8>,
    is_pasting: bool,
    /// Earlier messages, oldest first.
    history: Vec<String>,
    /// The earlier message that the user looks at, and the text that they had typed before.
    recalled: Option<(usize, Vec<char>)>,
}

/// The message as rows of a terminal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InputRows {
    pub(crate) rows: Vec<String>,
    /// The row of the cursor, counted from 0.
    pub(crate) row: usize,
    /// The column of the cursor, counted from 0.
    pub(crate) column: usize,
}

/// An action of the user.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineEvent {
    Entered(String),
    /// Ctrl-d on an empty line.
    EndOfInput,
    /// The user pressed Tab.
    Complete,
}

enum Key {
    Char(char),
    Control(u8),
    /// The end of a sequence after `ESC [` or `ESC O`.
    Sequence(Vec<u8>),
    /// Alt and Enter.
    NewLine,
}

impl LineEditor {
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Sets the earlier messages, oldest first.
    pub(crate) fn set_history(&mut self, history: Vec<String>) {
        (self.history, self.recalled) = (history, None);
    }

    /// The word before the cursor, and whether the message begins with it.
    pub(crate) fn word_before_cursor(&self) -> (String, bool) {
        let from = self.word_start();
        (self.text[from..self.at].iter().collect(), from == 0)
    }

    /// Replaces the word before the cursor.
    pub(crate) fn replace_word(&mut self, word: &str) {
        let from = self.word_start();
        self.text.splice(from..self.at, word.chars());
        self.at = from + word.chars().count();
    }

    fn word_start(&self) -> usize {
        self.text[..self.at].iter().rposition(|c| c.is_whitespace()).map_or(0, |blank| blank + 1)
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<LineEvent> {
        self.unread.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some((key, len)) = next_key(&self.unread) {
            self.unread.drain(..len);
            events.extend(key.and_then(|key| self.press(key)));
        }
        events
    }

    fn press(&mut self, key: Key) -> Option<LineEvent> {
        match key {
            Key::Char(c) => self.insert(c),
            // A line end in a paste is part of the text.
            Key::Control(b'\r' | b'\n') if self.is_pasting => self.insert('\n'),
            Key::Control(b'\t') if self.is_pasting => self.insert('\t'),
            Key::Control(b'\t') => return Some(LineEvent::Complete),
            Key::NewLine => self.insert('\n'),
            // A backslash at the end of a line continues the message.
            Key::Control(b'\r' | b'\n') if self.at > 0 && self.text[self.at - 1] == '\\' => {
                self.at -= 1;
                self.text.remove(self.at);
                self.insert('\n');
            }
            Key::Control(b'\r' | b'\n') => return Some(LineEvent::Entered(self.take_text())),
            Key::Control(4) if self.text.is_empty() => return Some(LineEvent::EndOfInput),
            Key::Control(control) => self.press_control(control),
            Key::Sequence(sequence) => self.press_sequence(&sequence),
        }
        None
    }

    fn press_control(&mut self, control: u8) {
        match control {
            0x7f | 8 if self.at > 0 => {
                self.at -= 1;
                self.text.remove(self.at);
            }
            4 => self.delete(),
            1 => self.at = self.line_start(),
            5 => self.at = self.line_end(),
            14 => self.press_down(),
            16 => self.press_up(),
            2 => self.at = self.at.saturating_sub(1),
            6 => self.at = (self.at + 1).min(self.text.len()),
            11 => drop(self.text.drain(self.at..self.line_end())),
            21 => {
                let from = self.line_start();
                self.text.drain(from..self.at);
                self.at = from;
            }
            23 => {
                let is_blank = |c: &char| c.is_whitespace();
                let before = &self.text[..self.at];
                let word = before.iter().rposition(|c| !is_blank(c)).map_or(0, |last| last + 1);
                let from = before[..word].iter().rposition(is_blank).map_or(0, |blank| blank + 1);
                self.text.drain(from..self.at);
                self.at = from;
            }
            _ => {}
        }
    }

    fn press_sequence(&mut self, sequence: &[u8]) {
        match sequence {
            b"200~" => self.is_pasting = true,
            b"201~" => self.is_pasting = false,
            b"A" => self.press_up(),
            b"B" => self.press_down(),
            b"D" => self.press_control(2),
            b"C" => self.press_control(6),
            b"H" | b"1~" | b"7~" => self.press_control(1),
            b"F" | b"4~" | b"8~" => self.press_control(5),
            // Shift and Enter, in terminals that report it.
            b"13;2u" | b"27;2;13~" => self.insert('\n'),
            b"3~" => self.delete(),
            _ => {}
        }
    }

    fn line_start(&self) -> usize {
        self.text[..self.at].iter().rposition(|c| *c == '\n').map_or(0, |end| end + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.at..].iter().position(|c| *c == '\n').map_or(self.text.len(), |end| self.at + end)
    }

    /// Moves to the line above; from the first line to the earlier message.
    fn press_up(&mut self) {
        let start = self.line_start();
        if start > 0 {
            let column = self.at - start;
            self.at = start - 1;
            self.at = (self.line_start() + column).min(start - 1);
            return;
        }
        let before = self.recalled.as_ref().map_or(self.history.len(), |(at, _)| *at);
        if let Some(at) = before.checked_sub(1) {
            self.recall(Some(at));
        }
    }

    /// Moves to the line below; from the last line to the later message, and in the end to the text that was typed.
    fn press_down(&mut self) {
        let (start, end) = (self.line_start(), self.line_end());
        if end < self.text.len() {
            let column = self.at - start;
            self.at = end + 1;
            self.at = (end + 1 + column).min(self.line_end());
            return;
        }
        if let Some((at, _)) = &self.recalled {
            let next = at + 1;
            self.recall(Some(next).filter(|next| *next < self.history.len()));
        }
    }

    /// Shows an earlier message, or the typed text again.
    fn recall(&mut self, at: Option<usize>) {
        let typed = self.recalled.take().map_or_else(|| std::mem::take(&mut self.text), |(_, typed)| typed);
        match at.and_then(|at| Some((at, self.history.get(at)?.chars().collect()))) {
            Some((at, text)) => (self.text, self.recalled) = (text, Some((at, typed))),
            None => self.text = typed,
        }
        self.at = self.text.len();
    }

    fn insert(&mut self, c: char) {
        self.text.insert(self.at, c);
        self.at += 1;
    }

    fn delete(&mut self) {
        if self.at < self.text.len() {
            self.text.remove(self.at);
        }
    }

    fn take_text(&mut self) -> String {
        (self.at, self.recalled) = (0, None);
        std::mem::take(&mut self.text).into_iter().collect()
    }

    /// The rows that show the message in a terminal of `columns`, and the place of the cursor.
    pub(crate) fn render(&self, columns: usize) -> InputRows {
        let room = columns.saturating_sub(PROMPT.len() + 1).max(1);
        let mut rows = vec![String::new()];
        let (mut used, mut cursor) = (0, (0, 0));
        for (index, c) in self.text.iter().enumerate() {
            let shown = if c.is_control() && *c != '\n' { '\u{fffd}' } else { *c };
            let width = if *c == '\n' { 0 } else { shown.width().unwrap_or(0) };
            if used + width > room {
                rows.push(String::new());
                used = 0;
            }
            if index == self.at {
                cursor = (rows.len() - 1, used);
            }
            match (*c, rows.last_mut()) {
                ('\n', _) => {
                    rows.push(String::new());
                    used = 0;
                }
                (_, Some(row)) => {
                    row.push(shown);
                    used += width;
                }
                (_, None) => {}
            }
        }
        if self.at == self.text.len() {
            cursor = (rows.len() - 1, used);
        }
        let first = (cursor.0 + 1).saturating_sub(MOST_ROWS);
        let indent = " ".repeat(PROMPT.len());
        let rows = rows.iter().enumerate().skip(first).take(MOST_ROWS);
        let rows = rows.map(|(at, row)| format!("{}{row}", if at == 0 { PROMPT } else { &indent }));
        InputRows { rows: rows.collect(), row: cursor.0 - first, column: PROMPT.len() + cursor.1 }
    }
}

/// The first key in the bytes and its length, `None` if more bytes are needed. The key itself is `None` if it has
/// no meaning here.
fn next_key(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    match bytes {
        [] => None,
        [0x1b, b'[' | b'O', rest @ ..] => match rest.iter().position(|byte| (0x40..=0x7e).contains(byte)) {
            Some(end) => Some((Some(Key::Sequence(rest[..=end].to_vec())), end + 3)),
            None if rest.len() > LONGEST_KEY => Some((None, 1)),
            None => None,
        },
        [0x1b] => None,
        [0x1b, b'\r' | b'\n', ..] => Some((Some(Key::NewLine), 2)),
        [0x1b, ..] => Some((None, 1)),
        [control @ (0..0x20 | 0x7f), ..] => Some((Some(Key::Control(*control)), 1)),
        bytes => next_character(bytes),
    }
}

fn next_character(bytes: &[u8]) -> Option<(Option<Key>, usize)> {
    let most = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(most) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => std::str::from_utf8(&most[..error.valid_up_to()]).ok()?,
        Err(error) if error.error_len().is_none() => return None,
        Err(_) => return Some((None, 1)),
    };
    let c = valid.chars().next()?;
    Some((Some(Key::Char(c)), c.len_utf8()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message with `|` where the cursor is, and the events.
    fn after(keys: &[u8]) -> (String, Vec<LineEvent>) {
        let mut line = LineEditor::default();
        // Byte by byte, as a slow connection brings them.
        let done = keys.iter().flat_map(|byte| line.feed(&[*byte])).collect();
        (shown(&line), done)
    }

    fn shown(line: &LineEditor) -> String {
        let mut text = line.text.clone();
        text.insert(line.at, '|');
        text.into_iter().collect()
    }

    #[test]
    fn keys_do_what_they_do_in_a_shell() {
        for (keys, expected) in [
            ("hello", "hello|"),
            ("hellp\x7fo", "hello|"),
            ("h\u{e4}\u{1f600}", "h\u{e4}\u{1f600}|"),
            ("one two \x17three", "one three|"),
            ("one\x15two", "two|"),
            ("ac\x1b[Db", "ab|c"),
            ("ab\x01\x0b", "|"),
            ("abc\x01\x1b[3~", "|bc"),
            ("ab\x1bOHx\x1b[Fy", "xaby|"),
            ("a\x1b[1;5Db\x1bzc", "abzc|"),
            ("\x1b[200~two\rlines\t\x1b[201~", "two\nlines\t|"),
            ("one\x1b\ntwo", "one\ntwo|"),
            ("one\\\ntwo", "one\ntwo|"),
            ("one\x1b[13;2utwo\x01x", "one\nx|two"),
            ("one\x1b\ntwo\x1b[Ax", "onex|\ntwo"),
            ("one\x1b\nlonger\x1b[A\x01\x1b[B\x1b[By", "one\ny|longer"),
            ("a\x1b\nb\x15\x0b", "a\n|"),
        ] {
            assert_eq!(after(keys.as_bytes()).0, expected, "{keys:?}");
        }
    }

    #[test]
    fn enter_sends_and_ctrl_d_leaves_an_empty_line() {
        assert_eq!(after(b"hi\r").1, [LineEvent::Entered("hi".into())]);
        assert_eq!(after(b"a\nb\n").1, [LineEvent::Entered("a".into()), LineEvent::Entered("b".into())]);
        assert_eq!(after(b"\x04").1, [LineEvent::EndOfInput]);
        assert_eq!(after(b"a\x04").1, []);
        assert_eq!(after(b"\x1b[200~a\nb\x1b[201~\r").1, [LineEvent::Entered("a\nb".into())]);
        assert_eq!(after(b"\xff\xc3\xa4\r").1, [LineEvent::Entered("\u{e4}".into())]);
        assert_eq!(after(b"a\\\nb\n").1, [LineEvent::Entered("a\nb".into())]);
        assert_eq!(after(b"a\t").1, [LineEvent::Complete]);
    }

    #[test]
    fn up_and_down_walk_through_earlier_messages_and_keep_what_was_typed() {
        let mut line = LineEditor::default();
        line.set_history(vec!["first".into(), "second".into()]);
        for (keys, expected) in [
            ("typ", "typ|"),
            ("\x1b[A", "second|"),
            ("\x1b[A", "first|"),
            ("\x1b[A", "first|"),
            ("\x1b[B", "second|"),
            ("\x1b[B", "typ|"),
            ("\x1b[B", "typ|"),
            ("\x10\x10!", "first!|"),
        ] {
            line.feed(keys.as_bytes());
            assert_eq!(shown(&line), expected, "{keys:?}");
        }
        assert_eq!(line.feed(b"\n"), [LineEvent::Entered("first!".into())]);
        assert_eq!(shown(&line), "|");
    }

    #[test]
    fn tab_completes_the_word_before_the_cursor() {
        let mut line = LineEditor::default();
        line.feed(b"see @sr now\x01\x06\x06\x06\x06\x06\x06\x06");
        assert_eq!(line.word_before_cursor(), ("@sr".into(), false));
        line.replace_word("@src/");
        assert_eq!(shown(&line), "see @src/| now");
        let mut line = LineEditor::default();
        line.feed(b"/mo");
        assert_eq!(line.word_before_cursor(), ("/mo".into(), true));
    }

    #[test]
    fn a_long_message_has_several_rows_and_the_cursor_stays_in_sight() {
        let mut line = LineEditor::default();
        line.feed("x".repeat(40).as_bytes());
        let InputRows { rows, row, column } = line.render(20);
        assert_eq!(
            rows,
            [format!("> {}", "x".repeat(17)), format!("  {}", "x".repeat(17)), "  xxxxxx".into()]
        );
        assert_eq!((row, column), (2, 8));
        line.feed(b"\x01");
        let InputRows { row, column, .. } = line.render(20);
        assert_eq!((row, column), (0, 2));
        line.feed("漢字".as_bytes());
        let InputRows { rows, column, .. } = line.render(20);
        assert!(rows[0].starts_with("> 漢字xxx") && column == 6, "{rows:?}");
        line.feed(b"\x05");
        line.feed("\x1b\ny".repeat(20).as_bytes());
        let InputRows { rows, row, .. } = line.render(20);
        assert_eq!((rows.len(), row), (MOST_ROWS, MOST_ROWS - 1));
        assert_eq!(LineEditor::default().render(20).rows, ["> "]);
    }
}
