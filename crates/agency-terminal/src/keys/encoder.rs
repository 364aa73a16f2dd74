//! Encodes a key as the bytes that a keyboard sends, in the encoding that the program asked for.

use super::{ALT, CTRL, Code, DetachKeysError, Key, SHIFT, parse_key};

/// One key, as people write it: `enter`, `down`, `ctrl-c`, `1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keystroke(Key);

/// kitty's flag for keys that could be mistaken for the start of a sequence.
const DISAMBIGUATE: u8 = 1;
/// kitty's flag for reporting every key as a sequence.
const ALL_AS_SEQUENCES: u8 = 8;

impl Keystroke {
    /// The Enter key.
    pub const ENTER: Keystroke = Keystroke(Key { code: Code::Enter, modifiers: 0 });

    /// Parses one key.
    pub fn parse(name: &str) -> Result<Keystroke, DetachKeysError> {
        parse_key(name.trim()).map(Keystroke)
    }

    /// The bytes to send. `app_cursor` is DECCKM, `kitty` the active flags of the keyboard protocol.
    pub fn bytes(self, app_cursor: bool, kitty: u8) -> Vec<u8> {
        let Key { code, modifiers } = self.0;
        match code {
            Code::Up => letter(b'A', modifiers, app_cursor),
            Code::Down => letter(b'B', modifiers, app_cursor),
            Code::Right => letter(b'C', modifiers, app_cursor),
            Code::Left => letter(b'D', modifiers, app_cursor),
            Code::Home => letter(b'H', modifiers, app_cursor),
            Code::End => letter(b'F', modifiers, app_cursor),
            Code::Insert => tilde(2, modifiers),
            Code::Delete => tilde(3, modifiers),
            Code::PageUp => tilde(5, modifiers),
            Code::PageDown => tilde(6, modifiers),
            Code::Function(number @ 1..=4) => letter(b'P' + number - 1, modifiers, modifiers == 0),
            Code::Function(number) => tilde(function_code(number), modifiers),
            Code::Escape if kitty & (DISAMBIGUATE | ALL_AS_SEQUENCES) != 0 => unicode(27, modifiers),
            Code::Escape => classic(vec![0x1b], modifiers),
            Code::Enter => plain(13, modifiers, kitty),
            Code::Tab => plain(9, modifiers, kitty),
            Code::Backspace => plain(127, modifiers, kitty),
            Code::Char(c) => character(c, modifiers, kitty),
        }
    }
}

/// Keys that keep their classic byte unless the program wants every key as a sequence.
fn plain(byte: u8, modifiers: u8, kitty: u8) -> Vec<u8> {
    let as_sequence = kitty & ALL_AS_SEQUENCES != 0 || (kitty & DISAMBIGUATE != 0 && modifiers != 0);
    if as_sequence { unicode(u32::from(byte), modifiers) } else { classic(vec![byte], modifiers) }
}

fn character(c: char, modifiers: u8, kitty: u8) -> Vec<u8> {
    let held = modifiers & (ALT | CTRL) != 0;
    if kitty & ALL_AS_SEQUENCES != 0 || (kitty & DISAMBIGUATE != 0 && held) {
        return unicode(u32::from(c), modifiers);
    }
    if modifiers & CTRL != 0 && c.is_ascii() {
        return classic(vec![c.to_ascii_uppercase() as u8 & 0x1f], modifiers);
    }
    classic(c.to_string().into_bytes(), modifiers)
}

/// Alt sends an Escape before the key.
fn classic(mut bytes: Vec<u8>, modifiers: u8) -> Vec<u8> {
    if modifiers & ALT != 0 {
        bytes.insert(0, 0x1b);
    }
    bytes
}

fn unicode(code: u32, modifiers: u8) -> Vec<u8> {
    match modifiers {
        0 => format!("\x1b[{code}u"),
        held => format!("\x1b[{code};{}u", parameter(held)),
    }
    .into_bytes()
}

fn letter(letter: u8, modifiers: u8, single_shift: bool) -> Vec<u8> {
    match (modifiers, single_shift) {
        (0, true) => vec![0x1b, b'O', letter],
        (0, false) => vec![0x1b, b'[', letter],
        (held, _) => format!("\x1b[1;{}{}", parameter(held), char::from(letter)).into_bytes(),
    }
}

fn tilde(number: u8, modifiers: u8) -> Vec<u8> {
    match modifiers {
        0 => format!("\x1b[{number}~"),
        held => format!("\x1b[{number};{}~", parameter(held)),
    }
    .into_bytes()
}

fn parameter(modifiers: u8) -> u8 {
    1 + (modifiers & (SHIFT | ALT | CTRL))
}

/// xterm's numbers, which have gaps.
fn function_code(number: u8) -> u8 {
    match number {
        0..=5 => number + 10,
        6..=10 => number + 11,
        11..=14 => number + 12,
        15 | 16 => number + 13,
        _ => number + 14,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::DetachKeys;

    fn pressed(name: &str, app_cursor: bool, kitty: u8) -> String {
        let bytes = Keystroke::parse(name).expect(name).bytes(app_cursor, kitty);
        String::from_utf8(bytes).expect("text").replace('\x1b', "^")
    }

    #[test]
    fn keys_are_sent_as_the_program_asked_for_them() {
        for (name, classic, in_kitty) in [
            ("enter", "\r", "\r"),
            ("escape", "^", "^[27u"),
            ("tab", "\t", "\t"),
            ("ctrl-c", "\x03", "^[99;5u"),
            ("alt-x", "^x", "^[120;3u"),
            ("1", "1", "1"),
            ("é", "é", "é"),
            ("down", "^[B", "^[B"),
            ("ctrl-right", "^[1;5C", "^[1;5C"),
            ("pageup", "^[5~", "^[5~"),
            ("f1", "^OP", "^OP"),
            ("f5", "^[15~", "^[15~"),
            ("f12", "^[24~", "^[24~"),
        ] {
            assert_eq!(pressed(name, false, 0), classic, "{name}");
            assert_eq!(pressed(name, false, 7), in_kitty, "{name}");
        }
        assert_eq!(pressed("down", true, 0), "^OB");
        assert_eq!(pressed("enter", false, 8), "^[13u");
    }

    #[test]
    fn the_decoder_recognises_every_encoded_key() {
        for name in ["ctrl-q", "alt-x", "esc", "f5", "ctrl-f5", "up", "delete", "a"] {
            for kitty in [0, 7, 15] {
                let mut matcher = DetachKeys::parse(name).expect(name).matcher();
                let typed = matcher.feed(&Keystroke::parse(name).expect(name).bytes(false, kitty));
                let typed = if typed.detached { typed } else { matcher.flush() };
                assert!(typed.detached, "{name} with {kitty}");
            }
        }
    }
}
