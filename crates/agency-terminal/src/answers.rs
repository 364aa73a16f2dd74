//! Separates a terminal's answers about its colours from what the user types.
//!
//! Reads no clock: the caller waits as long as [`Answers::pending`] says and then flushes. The question ends
//! with DA1, which every terminal answers, so the answer to DA1 shows that no other answer follows.

use std::time::Duration;

use crate::palette::{Colours, Rgb};

/// Terminals write an answer at once; a pause this long after its first byte means that the user pressed Escape.
const UNFINISHED_KEY: Duration = Duration::from_millis(25);

/// Bytes that no key starts with belong to an answer, so wait longer for its end, for slow connections.
const UNFINISHED_ANSWER: Duration = Duration::from_secs(2);

/// Longer than any answer.
const LONGEST: usize = 96;

/// Asks for foreground, background, cursor and the sixteen named colours; ends with DA1.
pub fn question() -> String {
    let named = (10..=12).map(|number| format!("\x1b]{number};?\x1b\\"));
    let numbered = (0..16).map(|index| format!("\x1b]4;{index};?\x1b\\"));
    named.chain(numbered).chain(["\x1b[c".to_owned()]).collect()
}

/// Finds the answers in the bytes from a terminal.
#[derive(Debug, Default)]
pub struct Answers {
    expected: bool,
    colours: Colours,
    /// Bytes that may be the start of an answer.
    held: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
enum Found<'a> {
    Colour { body: &'a [u8], len: usize },
    Last { len: usize },
    Unfinished,
    Typed,
}

impl Answers {
    /// Starts to look for answers. Call this when the question is sent.
    pub fn expected() -> Answers {
        Answers { expected: true, ..Answers::default() }
    }

    /// Whether more answers may come.
    pub fn are_expected(&self) -> bool {
        self.expected
    }

    /// The colours that the terminal has reported so far.
    pub fn colours(&self) -> &Colours {
        &self.colours
    }

    /// Removes the answers from `bytes` and returns what the user typed.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        if !self.expected {
            return bytes.to_vec();
        }
        let mut all = std::mem::take(&mut self.held);
        all.extend_from_slice(bytes);
        let (mut typed, mut rest) = (Vec::new(), all.as_slice());
        while !rest.is_empty() {
            let len = match find(rest) {
                _ if !self.expected => pass(rest, rest.len(), &mut typed),
                Found::Typed => pass(rest, until_escape(rest), &mut typed),
                Found::Colour { body, len } => {
                    self.colour(body);
                    len
                }
                Found::Last { len } => {
                    self.expected = false;
                    len
                }
                Found::Unfinished => {
                    self.held = rest.to_vec();
                    break;
                }
            };
            rest = &rest[len..];
        }
        typed
    }

    /// How long to wait for more before [`Answers::flush`]; `None` if nothing is held back.
    pub fn pending(&self) -> Option<Duration> {
        match self.held.len() {
            0 => None,
            1 | 2 => Some(UNFINISHED_KEY),
            _ => Some(UNFINISHED_ANSWER),
        }
    }

    /// Returns the held-back bytes as typed, because nothing more came.
    pub fn flush(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// Stores the colour from `10;rgb:…` or `4;7;rgb:…`.
    fn colour(&mut self, body: &[u8]) {
        let mut fields = body.split(|byte| *byte == b';');
        let (first, second, third) = (fields.next(), fields.next(), fields.next());
        match (first, second, third) {
            (Some(b"10"), Some(colour), None) => self.colours.foreground = Rgb::parse(colour),
            (Some(b"11"), Some(colour), None) => self.colours.background = Rgb::parse(colour),
            (Some(b"12"), Some(colour), None) => self.colours.cursor = Rgb::parse(colour),
            (Some(b"4"), Some(index), Some(colour)) => {
                let index = std::str::from_utf8(index).ok().and_then(|index| index.parse().ok());
                if let (Some(index), Some(colour)) = (index, Rgb::parse(colour)) {
                    self.colours.palette.insert(index, colour);
                }
            }
            _ => {}
        }
    }
}

fn pass(rest: &[u8], len: usize, typed: &mut Vec<u8>) -> usize {
    typed.extend_from_slice(&rest[..len]);
    len
}

/// The number of bytes before the next Escape after the first byte.
fn until_escape(bytes: &[u8]) -> usize {
    bytes.iter().skip(1).position(|byte| *byte == 0x1b).map_or(bytes.len(), |at| at + 1)
}

fn find(bytes: &[u8]) -> Found<'_> {
    match bytes {
        [0x1b] | [0x1b, b']' | b'['] => Found::Unfinished,
        [0x1b, b']', body @ ..] => find_colour(body),
        [0x1b, b'[', b'?', body @ ..] => find_attributes(body),
        _ => Found::Typed,
    }
}

fn find_colour(body: &[u8]) -> Found<'_> {
    let starts = [&b"4;"[..], b"10;", b"11;", b"12;"];
    let begun = |start: &&[u8]| body.iter().zip(start.iter()).all(|(byte, wanted)| byte == wanted);
    if !starts.iter().any(begun) {
        return Found::Typed;
    }
    match body.iter().position(|byte| *byte < 0x20) {
        Some(at) if body[at] == 0x07 => Found::Colour { body: &body[..at], len: at + 3 },
        Some(at) if body[at..].starts_with(b"\x1b\\") => Found::Colour { body: &body[..at], len: at + 4 },
        Some(at) if body[at..] == [0x1b] => Found::Unfinished,
        Some(_) => Found::Typed,
        None if body.len() > LONGEST => Found::Typed,
        None => Found::Unfinished,
    }
}

/// DA1: `?62;22c`.
fn find_attributes(body: &[u8]) -> Found<'_> {
    match body.iter().position(|byte| !(byte.is_ascii_digit() || *byte == b';')) {
        Some(at) if body[at] == b'c' => Found::Last { len: at + 4 },
        Some(_) => Found::Typed,
        None if body.len() > LONGEST => Found::Typed,
        None => Found::Unfinished,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWERS: &str = "\x1b]10;rgb:3030/3030/3030\x1b\\\x1b]11;rgb:fd/f6/e3\x07\x1b]4;1;rgb:dcdc/3232/2f2f\x1b\\\x1b[?62;22c";

    fn colours() -> Colours {
        Colours {
            foreground: Some(Rgb(0x30, 0x30, 0x30)),
            background: Some(Rgb(0xfd, 0xf6, 0xe3)),
            cursor: None,
            palette: [(1, Rgb(0xdc, 0x32, 0x2f))].into(),
        }
    }

    #[test]
    fn answers_are_found_among_keys_wherever_they_are_cut() {
        let typed = format!("a\x1b[A{ANSWERS}\x1b]11;b\x1b");
        for size in 1..typed.len() {
            let mut answers = Answers::expected();
            let passed: Vec<u8> =
                typed.as_bytes().chunks(size).flat_map(|chunk| answers.feed(chunk)).collect();
            assert_eq!(String::from_utf8_lossy(&passed), "a\x1b[A\x1b]11;b\x1b", "in pieces of {size}");
            assert_eq!((answers.colours(), answers.are_expected()), (&colours(), false));
        }
    }

    #[test]
    fn keys_that_begin_as_answers_do_are_typed() {
        for keys in
            ["\x1b", "\x1b\x1b", "\x1b]", "\x1b[", "\x1b[?", "\x1b]2", "\x1b[200~x\x1b[201~", "\x1b[?1;2R"]
        {
            let mut answers = Answers::expected();
            let mut passed = answers.feed(keys.as_bytes());
            passed.extend(answers.flush());
            assert_eq!(passed, keys.as_bytes());
            assert_eq!(answers.pending(), None);
        }
    }

    #[test]
    fn escape_is_held_shortly_and_an_answer_longer() {
        let mut answers = Answers::expected();
        assert_eq!(answers.feed(b"\x1b"), b"");
        assert_eq!(answers.pending(), Some(UNFINISHED_KEY));
        answers.feed(b"]11;rgb:");
        assert_eq!(answers.pending(), Some(UNFINISHED_ANSWER));
        let mut unasked = Answers::default();
        assert_eq!(unasked.feed(b"\x1b"), b"\x1b");
    }

    #[test]
    fn our_own_screen_answers_the_question() {
        let mut screen = crate::Screen::new(crate::Size::cells(20, 5), 0);
        let replies = screen.feed(question().as_bytes()).replies;
        let mut answers = Answers::expected();
        assert_eq!(answers.feed(&replies), b"");
        assert!(!answers.are_expected());
        assert_eq!(answers.colours().palette.len(), 16);
        assert_eq!(answers.colours().background, Some(Rgb(0, 0, 0)));
    }
}
