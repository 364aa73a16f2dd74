//! Keys as people write them: `ctrl-q`, or `ctrl-p,ctrl-q`; mainly the keys that detach a terminal.
//!
//! The encoder and the decoder know the bytes that a keyboard sends for them; the matcher finds them in the input.
//! With one Agency inside another, the outer one sees the key first, as in tmux.

mod decoder;
mod encoder;
mod matcher;

use std::fmt;
use std::str::FromStr;

pub use encoder::Keystroke;
pub use matcher::{Matcher, Typed};

/// A key with its modifiers, as kitty numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    code: Code,
    modifiers: u8,
}

const SHIFT: u8 = 1;
const ALT: u8 = 2;
const CTRL: u8 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    Char(char),
    Escape,
    Enter,
    Tab,
    Backspace,
    Insert,
    Delete,
    Home,
    End,
    PageUp,
    PageDown,
    Up,
    Down,
    Left,
    Right,
    Function(u8),
}

impl Key {
    /// Maps keys that the classic encoding cannot distinguish to one key.
    fn new(code: Code, modifiers: u8) -> Key {
        let code = match code {
            Code::Char(' ') if modifiers & CTRL != 0 => Code::Char('@'),
            Code::Char('/') if modifiers & CTRL != 0 => Code::Char('_'),
            other => other,
        };
        Key { code, modifiers }
    }
}

/// One key or a sequence of keys. `none` is the empty sequence, which never matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetachKeys {
    text: String,
    keys: Vec<Key>,
}

impl DetachKeys {
    /// Parses one key, a sequence of keys separated by commas, or `none`.
    pub fn parse(text: &str) -> Result<DetachKeys, DetachKeysError> {
        let text = text.trim().to_owned();
        if text.eq_ignore_ascii_case("none") {
            return Ok(DetachKeys { text, keys: Vec::new() });
        }
        let keys = text.split(',').map(|name| parse_key(name.trim())).collect::<Result<_, _>>()?;
        Ok(DetachKeys { text, keys })
    }

    /// Whether no key detaches.
    pub fn is_none(&self) -> bool {
        self.keys.is_empty()
    }

    /// A matcher that finds these keys in typed bytes.
    pub fn matcher(&self) -> Matcher {
        Matcher::new(self.keys.clone())
    }
}

impl Default for DetachKeys {
    fn default() -> Self {
        let key = Key::new(Code::Char('q'), CTRL);
        DetachKeys { text: "ctrl-q".to_owned(), keys: vec![key] }
    }
}

impl fmt::Display for DetachKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for DetachKeys {
    type Err = DetachKeysError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        DetachKeys::parse(text)
    }
}

/// Why a text is not a list of keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DetachKeysError {
    /// A key is missing.
    #[error("a key is missing: write ctrl-q, a sequence such as ctrl-p,ctrl-q, or none")]
    Empty,
    /// The text is not a key.
    #[error("{0:?} is not a key: write ctrl-q, alt-x, f12, esc, a single character, or none")]
    Unknown(String),
    /// Terminals have no encoding for this key.
    #[error(
        "many terminals cannot send {0:?}: ctrl goes with a letter, with one of @ [ \\ ] ^ _ / space, or with an arrow or function key"
    )]
    Untypable(String),
}

fn parse_key(name: &str) -> Result<Key, DetachKeysError> {
    if name.is_empty() {
        return Err(DetachKeysError::Empty);
    }
    let (modifiers, base) = split_modifiers(name);
    let code = parse_code(base).ok_or_else(|| DetachKeysError::Unknown(name.to_owned()))?;
    match code {
        _ if modifiers & CTRL == 0 => Ok(Key::new(code, modifiers)),
        Code::Char(c) if c.is_ascii_alphabetic() => {
            Ok(Key::new(Code::Char(c.to_ascii_lowercase()), modifiers))
        }
        Code::Char('@' | '[' | '\\' | ']' | '^' | '_' | '/' | ' ') => Ok(Key::new(code, modifiers)),
        Code::Char(_) | Code::Escape | Code::Enter | Code::Tab | Code::Backspace => {
            Err(DetachKeysError::Untypable(name.to_owned()))
        }
        _ => Ok(Key::new(code, modifiers)),
    }
}

fn split_modifiers(name: &str) -> (u8, &str) {
    let (mut modifiers, mut rest) = (0, name);
    while let Some((word, tail)) = rest.split_once('-') {
        let bit = match word.to_ascii_lowercase().as_str() {
            "ctrl" | "control" | "c" => CTRL,
            "alt" | "meta" | "m" => ALT,
            _ => break,
        };
        if tail.is_empty() {
            break;
        }
        modifiers |= bit;
        rest = tail;
    }
    (modifiers, rest)
}

fn parse_code(base: &str) -> Option<Code> {
    let mut chars = base.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return (!c.is_control()).then_some(Code::Char(c));
    }
    Some(match base.to_ascii_lowercase().as_str() {
        "esc" | "escape" => Code::Escape,
        "enter" | "return" => Code::Enter,
        "tab" => Code::Tab,
        "backspace" => Code::Backspace,
        "space" => Code::Char(' '),
        "comma" => Code::Char(','),
        "insert" => Code::Insert,
        "delete" => Code::Delete,
        "home" => Code::Home,
        "end" => Code::End,
        "pageup" | "pgup" => Code::PageUp,
        "pagedown" | "pgdn" => Code::PageDown,
        "up" => Code::Up,
        "down" => Code::Down,
        "left" => Code::Left,
        "right" => Code::Right,
        function => Code::Function(function_number(function)?),
    })
}

fn function_number(name: &str) -> Option<u8> {
    let number: u8 = name.strip_prefix('f')?.parse().ok()?;
    (1..=24).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_people_write_them() {
        for text in [
            "ctrl-q",
            "Ctrl-Q",
            "C-q",
            "ctrl-p,ctrl-q",
            "ctrl-a, d",
            "alt-x",
            "ctrl-alt-x",
            "esc",
            "f1",
            "F12",
            "ctrl-\\",
            "ctrl-@",
            "ctrl-space",
            "ctrl-]",
            "ctrl-_",
            "~",
            "-",
            "ctrl-f5",
            "alt-enter",
            "none",
            "ä",
        ] {
            assert!(DetachKeys::parse(text).is_ok(), "{text}");
        }
        assert_eq!(DetachKeys::parse("ctrl-Q").unwrap().keys, DetachKeys::default().keys);
        assert_eq!(DetachKeys::parse(" ctrl-p,ctrl-q ").unwrap().to_string(), "ctrl-p,ctrl-q");
        assert!(DetachKeys::parse("none").unwrap().is_none());
    }

    #[test]
    fn an_unknown_key_is_refused_with_examples() {
        let error = |text| DetachKeys::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("ctlr-q"),
            "\"ctlr-q\" is not a key: write ctrl-q, alt-x, f12, esc, a single character, or none"
        );
        assert!(error("").starts_with("a key is missing"));
        assert!(error("ctrl-p,").starts_with("a key is missing"));
        assert!(error("ctrl-").contains("is not a key"));
        assert!(error("f99").contains("is not a key"));
        assert!(error("ctrl-6").starts_with("many terminals cannot send \"ctrl-6\""));
        assert!(error("ctrl-enter").starts_with("many terminals cannot send"));
    }
}
