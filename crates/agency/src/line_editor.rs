//! Edits one line: applies keys to it and renders it in one row.
//!
//! Touches no terminal: takes bytes from a keyboard and returns lines.

use unicode_width::UnicodeWidthChar;

/// Printed before the line.
const PROMPT: &str = "> ";

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
}

/// An action of the user.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineEvent {
    Entered(String),
    /// Ctrl-d on an empty line.
    EndOfInput,
}

enum Key {
    Char(char),
    Control(u8),
    /// The end of a sequence after `ESC [` or `ESC O`.
    Sequence(Vec<u8>),
}

impl LineEditor {
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
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
            Key::Control(b'\t') => self.insert('\t'),
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
            1 => self.at = 0,
            5 => self.at = self.text.len(),
            2 => self.at = self.at.saturating_sub(1),
            6 => self.at = (self.at + 1).min(self.text.len()),
            11 => self.text.truncate(self.at),
            21 => {
                self.text.drain(..self.at);
                self.at = 0;
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
            b"D" => self.press_control(2),
            b"C" => self.press_control(6),
            b"H" | b"1~" | b"7~" => self.at = 0,
            b"F" | b"4~" | b"8~" => self.at = self.text.len(),
            b"3~" => self.delete(),
            _ => {}
        }
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
        self.at = 0;
        std::mem::take(&mut self.text).into_iter().collect()
    }

    /// The bytes that draw the line in one row of `columns`, with the cursor where the next key goes.
    pub(crate) fn render(&self, columns: usize) -> String {
        let room = columns.saturating_sub(PROMPT.len() + 1).max(1);
        let shown = |c: &char| if c.is_control() { '␤' } else { *c };
        let width = |c: &char| shown(c).width().unwrap_or(0);
        // First as much as fits before the cursor, then as much as fits after it.
        let mut used = 0;
        let fits = |used: &mut usize, c: &char| {
            *used += width(c);
            *used <= room
        };
        let from = self.at - self.text[..self.at].iter().rev().take_while(|c| fits(&mut used, c)).count();
        let before: String = self.text[from..self.at].iter().map(shown).collect();
        let mut used: usize = self.text[from..self.at].iter().map(width).sum();
        let behind: Vec<&char> = self.text[self.at..].iter().take_while(|c| fits(&mut used, c)).collect();
        let back: usize = behind.iter().map(|c| width(c)).sum();
        let behind: String = behind.into_iter().map(shown).collect();
        let back = if back > 0 { format!("\x1b[{back}D") } else { String::new() };
        format!("\r\x1b[K{PROMPT}{before}{behind}{back}")
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

    fn after(keys: &[u8]) -> (String, Vec<LineEvent>) {
        let mut line = LineEditor::default();
        // Byte by byte, as a slow connection brings them.
        let done = keys.iter().flat_map(|byte| line.feed(&[*byte])).collect();
        (line.render(80).replace("\r\x1b[K", ""), done)
    }

    #[test]
    fn keys_do_what_they_do_in_a_shell() {
        for (keys, shown) in [
            ("hello", "> hello"),
            ("hellp\x7fo", "> hello"),
            ("h\u{e4}\u{1f600}", "> h\u{e4}\u{1f600}"),
            ("one two \x17three", "> one three"),
            ("one\x15two", "> two"),
            ("ac\x1b[Db", "> abc\x1b[1D"),
            ("ab\x01\x0b", "> "),
            ("abc\x01\x1b[3~", "> bc\x1b[2D"),
            ("ab\x1bOHx\x1b[Fy", "> xaby"),
            ("a\x1b[1;5Db\x1bzc", "> abzc"),
            ("\x1b[200~two\rlines\x1b[201~", "> two␤lines"),
        ] {
            assert_eq!(after(keys.as_bytes()).0, shown, "{keys:?}");
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
    }

    #[test]
    fn a_long_line_stays_in_its_row() {
        let mut line = LineEditor::default();
        line.feed("x".repeat(100).as_bytes());
        assert_eq!(line.render(20), format!("\r\x1b[K> {}", "x".repeat(17)));
        line.feed(b"\x01");
        assert_eq!(line.render(20), format!("\r\x1b[K> {}\x1b[17D", "x".repeat(17)));
        line.feed("漢字".as_bytes());
        assert!(line.render(20).starts_with("\r\x1b[K> 漢字xxx"));
    }
}
