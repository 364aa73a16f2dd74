//! Decodes keys in every encoding that terminals use: classic bytes, SS3 and CSI keys, xterm's modifyOtherKeys,
//! and kitty's protocol with event types, alternates and lock bits.
//!
//! Reads one key at a time and has no state. Does not know which keys are wanted.

use super::{ALT, CTRL, Code, Key, SHIFT};

/// Longer than any key; a longer unfinished sequence is not a key.
const LONGEST_SEQUENCE: usize = 64;

/// Removes the bits of caps lock and num lock, which are states of the keyboard, not of the key.
const WITHOUT_LOCKS: u16 = 0b0011_1111;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) len: usize,
    pub(super) meaning: Meaning,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// All keys that this press may stand for: the classic encoding sends the same byte for Tab and ctrl-i.
    Press(Vec<Key>),
    Release(Vec<Key>),
    /// A modifier alone, the mouse or the focus: may occur between two keys of a sequence.
    Beside,
    PasteBegins,
    Other,
}

/// Whether more bytes may follow soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    MayCome,
    WillNotCome,
}

/// The key at the start of `bytes`; `None` if more bytes are needed.
pub(super) fn read(bytes: &[u8], rest: Rest) -> Option<Token> {
    match bytes {
        [] => None,
        [0x1b, tail @ ..] => read_escape(bytes, tail, rest),
        _ => read_plain(bytes, rest),
    }
}

fn token(len: usize, meaning: Meaning) -> Option<Token> {
    Some(Token { len, meaning })
}

/// An unfinished sequence: waits for the rest, or takes it for the key that it would be alone.
fn unfinished(len: usize, alone: Meaning, rest: Rest) -> Option<Token> {
    match rest {
        Rest::MayCome => None,
        Rest::WillNotCome => token(len, alone),
    }
}

fn read_plain(bytes: &[u8], rest: Rest) -> Option<Token> {
    match bytes[0] {
        byte if byte < 0x20 || byte == 0x7f => token(1, Meaning::Press(control_keys(byte))),
        byte if byte < 0x80 => token(1, Meaning::Press(vec![plain(byte as char)])),
        byte => read_character(bytes, character_len(byte), rest),
    }
}

fn character_len(first: u8) -> usize {
    match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    }
}

fn read_character(bytes: &[u8], len: usize, rest: Rest) -> Option<Token> {
    let have = &bytes[..len.min(bytes.len())];
    match std::str::from_utf8(have) {
        Ok(text) => token(len, Meaning::Press(text.chars().map(plain).collect())),
        // Without an error length the bytes are valid but incomplete.
        Err(error) if error.error_len().is_none() && have.len() < len => {
            unfinished(have.len(), Meaning::Other, rest)
        }
        Err(_) => token(1, Meaning::Other),
    }
}

fn plain(c: char) -> Key {
    Key::new(Code::Char(c), 0)
}

fn control_keys(byte: u8) -> Vec<Key> {
    let ctrl = |c: u8| Key::new(Code::Char(c as char), CTRL);
    let named = |code| Key::new(code, 0);
    match byte {
        0x08 => vec![ctrl(b'h'), named(Code::Backspace)],
        0x09 => vec![named(Code::Tab), ctrl(b'i')],
        0x0d => vec![named(Code::Enter), ctrl(b'm')],
        0x1b => vec![named(Code::Escape), ctrl(b'[')],
        0x7f => vec![named(Code::Backspace)],
        0x01..=0x1a => vec![ctrl(byte + 0x60)],
        _ => vec![ctrl(byte + 0x40)],
    }
}

fn read_escape(bytes: &[u8], tail: &[u8], rest: Rest) -> Option<Token> {
    let alone = || Meaning::Press(control_keys(0x1b));
    match tail {
        [] => unfinished(1, alone(), rest),
        // Escape pressed twice, or Escape before a sequence: each is its own token.
        [0x1b, ..] => token(1, alone()),
        [b'['] => unfinished(2, alt_press(b'['), rest),
        [b'O'] => unfinished(2, alt_press(b'O'), rest),
        [b'[', body @ ..] => read_csi(bytes, body, rest),
        [b'O', last @ 0x40..=0x7e, ..] => token(3, final_letter(*last, 0, Event::Press)),
        _ => {
            let inner = read_plain(tail, rest)?;
            token(inner.len + 1, with_alt(inner.meaning))
        }
    }
}

fn alt_press(byte: u8) -> Meaning {
    Meaning::Press(vec![Key::new(Code::Char(byte as char), ALT)])
}

fn with_alt(meaning: Meaning) -> Meaning {
    match meaning {
        Meaning::Press(keys) => Meaning::Press(
            keys.into_iter().map(|key| Key { modifiers: key.modifiers | ALT, ..key }).collect(),
        ),
        other => other,
    }
}

fn read_csi(bytes: &[u8], body: &[u8], rest: Rest) -> Option<Token> {
    match body {
        // The Linux console's F1 to F5.
        [b'['] => unfinished(3, Meaning::Other, rest),
        [b'[', key @ b'A'..=b'E', ..] => {
            token(4, Meaning::Press(vec![Key::new(Code::Function(key - b'A' + 1), 0)]))
        }
        // The classic mouse report: three bytes of any value follow.
        [b'M', report @ ..] if report.len() >= 3 => token(6, Meaning::Beside),
        [b'M', ..] => unfinished(bytes.len(), Meaning::Other, rest),
        _ => read_parameters(bytes, body, rest),
    }
}

fn read_parameters(bytes: &[u8], body: &[u8], rest: Rest) -> Option<Token> {
    let body = &body[..body.len().min(LONGEST_SEQUENCE)];
    match body.iter().position(|byte| !(0x20..=0x3f).contains(byte)) {
        Some(at) if (0x40..=0x7e).contains(&body[at]) => token(at + 3, csi_meaning(&body[..at], body[at])),
        Some(at) => token(at + 2, Meaning::Other),
        None if body.len() == LONGEST_SEQUENCE => token(body.len() + 2, Meaning::Other),
        None => unfinished(bytes.len(), Meaning::Other, rest),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Press,
    Release,
}

impl Event {
    fn of(self, keys: Vec<Key>) -> Meaning {
        match self {
            Event::Press => Meaning::Press(keys),
            Event::Release => Meaning::Release(keys),
        }
    }
}

fn csi_meaning(parameters: &[u8], last: u8) -> Meaning {
    match (parameters.first(), last) {
        (Some(b'<'), b'M' | b'm') | (None, b'I' | b'O') => return Meaning::Beside,
        (Some(b'<' | b'=' | b'>' | b'?'), _) => return Meaning::Other,
        _ => {}
    }
    let Some(fields) = Fields::parse(parameters) else { return Meaning::Other };
    match last {
        b'u' => unicode_key(&fields),
        b'~' => tilde_key(&fields),
        _ => final_letter(last, fields.modifiers(), fields.event()),
    }
}

/// `113:81;5:1;113` as numbers; missing ones are `None`.
struct Fields(Vec<Vec<Option<u32>>>);

impl Fields {
    fn parse(parameters: &[u8]) -> Option<Fields> {
        let text = std::str::from_utf8(parameters).ok()?;
        let number = |part: &str| match part {
            "" => Some(None),
            digits => digits.parse().ok().map(Some),
        };
        let fields = text.split(';').map(|field| field.split(':').map(number).collect::<Option<_>>());
        fields.collect::<Option<_>>().map(Fields)
    }

    fn get(&self, field: usize, part: usize) -> Option<u32> {
        *self.0.get(field)?.get(part)?
    }

    fn modifiers(&self) -> u8 {
        modifier_bits(self.get(1, 0))
    }

    fn event(&self) -> Event {
        // A repeat (2) counts as a press, as it does in the classic encoding.
        match self.get(1, 1) {
            Some(3) => Event::Release,
            _ => Event::Press,
        }
    }
}

fn modifier_bits(parameter: Option<u32>) -> u8 {
    let bits = parameter.unwrap_or(1).saturating_sub(1) as u16;
    (bits & WITHOUT_LOCKS) as u8
}

fn unicode_key(fields: &Fields) -> Meaning {
    let Some(number) = fields.get(0, 0) else { return Meaning::Other };
    match number {
        // Caps, num and scroll lock; then the left and right shift, control, alt, super and so on.
        57358..=57360 | 57441..=57454 => Meaning::Beside,
        _ => {
            let alternates = Alternates { shifted: fields.get(0, 1), base_layout: fields.get(0, 2) };
            fields.event().of(keys_of(number, alternates, fields.modifiers()))
        }
    }
}

fn tilde_key(fields: &Fields) -> Meaning {
    let code = match fields.get(0, 0) {
        Some(200) => return Meaning::PasteBegins,
        Some(27) if fields.0.len() >= 3 => {
            let number = fields.get(2, 0).unwrap_or_default();
            return Meaning::Press(keys_of(number, Alternates::default(), fields.modifiers()));
        }
        Some(1 | 7) => Code::Home,
        Some(2) => Code::Insert,
        Some(3) => Code::Delete,
        Some(4 | 8) => Code::End,
        Some(5) => Code::PageUp,
        Some(6) => Code::PageDown,
        Some(number @ 11..=15) => Code::Function(number as u8 - 10),
        Some(number @ 17..=21) => Code::Function(number as u8 - 11),
        Some(number @ 23..=26) => Code::Function(number as u8 - 12),
        Some(number @ 28..=29) => Code::Function(number as u8 - 13),
        Some(number @ 31..=34) => Code::Function(number as u8 - 14),
        _ => return Meaning::Other,
    };
    fields.event().of(vec![Key::new(code, fields.modifiers())])
}

fn final_letter(last: u8, modifiers: u8, event: Event) -> Meaning {
    let code = match last {
        b'A' => Code::Up,
        b'B' => Code::Down,
        b'C' => Code::Right,
        b'D' => Code::Left,
        b'H' => Code::Home,
        b'F' => Code::End,
        b'P'..=b'S' => Code::Function(last - b'P' + 1),
        b'Z' => return event.of(vec![Key::new(Code::Tab, modifiers | SHIFT)]),
        _ => return Meaning::Other,
    };
    event.of(vec![Key::new(code, modifiers)])
}

/// The alternates that kitty may report: the key with shift, and the key on a Latin keyboard.
#[derive(Debug, Clone, Copy, Default)]
struct Alternates {
    shifted: Option<u32>,
    base_layout: Option<u32>,
}

fn keys_of(number: u32, alternates: Alternates, modifiers: u8) -> Vec<Key> {
    let named = |code| vec![Key::new(code, modifiers)];
    match number {
        9 => named(Code::Tab),
        13 => named(Code::Enter),
        27 => named(Code::Escape),
        8 | 127 => named(Code::Backspace),
        57376..=57387 => named(Code::Function((number - 57376) as u8 + 13)),
        _ => match char::from_u32(number) {
            Some(c) => character_keys(c, alternates, modifiers),
            None => Vec::new(),
        },
    }
}

fn character_keys(c: char, alternates: Alternates, modifiers: u8) -> Vec<Key> {
    let unshifted = modifiers & !SHIFT;
    let mut keys = vec![Key::new(Code::Char(lower(c)), modifiers)];
    if modifiers & SHIFT != 0 {
        let shifted = alternates.shifted.and_then(char::from_u32).unwrap_or_else(|| shifted_on_us_layout(c));
        // ctrl-shift-q is not ctrl-q, but a shifted symbol is that symbol.
        if !(c.is_alphabetic() && modifiers & CTRL != 0) {
            keys.push(Key::new(Code::Char(shifted), unshifted));
        }
    }
    // For example ctrl-q on a Cyrillic keyboard. On Latin layouts the letter printed on the key counts.
    if let (false, Some(base)) = (c.is_ascii(), alternates.base_layout.and_then(char::from_u32)) {
        keys.push(Key::new(Code::Char(base), modifiers));
    }
    keys
}

/// With caps lock some terminals report the capital letter, without shift.
fn lower(c: char) -> char {
    let mut lowered = c.to_lowercase();
    match (lowered.next(), lowered.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// The shifted symbol, for terminals that report only the unshifted key.
fn shifted_on_us_layout(c: char) -> char {
    match c {
        '2' => '@',
        '6' => '^',
        '-' => '_',
        letter if letter.is_ascii_lowercase() => letter.to_ascii_uppercase(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(bytes: &[u8]) -> Vec<Key> {
        match read(bytes, Rest::MayCome) {
            Some(Token { len, meaning: Meaning::Press(keys) }) if len == bytes.len() => keys,
            other => panic!("{bytes:?}: {other:?}"),
        }
    }

    #[test]
    fn ctrl_q_is_ctrl_q_in_every_encoding() {
        let ctrl_q = Key::new(Code::Char('q'), CTRL);
        for bytes in [
            "\x11",
            "\x1b[113;5u",
            "\x1b[113;5:1u",
            "\x1b[113;5:2u",
            "\x1b[113:81;5u",
            "\x1b[113;5;113u",
            "\x1b[113;69u",
            "\x1b[113;133u",
            "\x1b[113;197:1u",
            "\x1b[27;5;113~",
            "\x1b[27;5;81~",
            "\x1b[1081:1049:113;5u",
            "\x1b[1081::113;5u",
        ] {
            assert!(press(bytes.as_bytes()).contains(&ctrl_q), "{bytes:?}");
        }
        for bytes in ["q", "\x1b[113;6u", "\x1b[113;13u", "\x1b[39::113;5u", "\x1b[113u", "\x1b[27;6;81~"] {
            assert!(!press(bytes.as_bytes()).contains(&ctrl_q), "{bytes:?}");
        }
    }

    #[test]
    fn signs_that_need_shift_are_found() {
        let underscore = Key::new(Code::Char('_'), CTRL);
        for bytes in ["\x1f", "\x1b[45;6u", "\x1b[45:95;6u", "\x1b[95;5u", "\x1b[27;6;95~", "\x1b[47;5u"] {
            assert!(press(bytes.as_bytes()).contains(&underscore), "{bytes:?}");
        }
        let at = Key::new(Code::Char('@'), CTRL);
        for bytes in ["\0", "\x1b[32;5u", "\x1b[50:64;6u", "\x1b[27;5;32~"] {
            assert!(press(bytes.as_bytes()).contains(&at), "{bytes:?}");
        }
    }

    #[test]
    fn named_and_alt_keys_are_found() {
        let cases: [(&str, Key); 12] = [
            ("\x1bOP", Key::new(Code::Function(1), 0)),
            ("\x1b[11~", Key::new(Code::Function(1), 0)),
            ("\x1b[[A", Key::new(Code::Function(1), 0)),
            ("\x1b[24~", Key::new(Code::Function(12), 0)),
            ("\x1b[1;5S", Key::new(Code::Function(4), CTRL)),
            ("\x1b[57376u", Key::new(Code::Function(13), 0)),
            ("\x1b[27u", Key::new(Code::Escape, 0)),
            ("\x1bx", Key::new(Code::Char('x'), ALT)),
            ("\x1b[120;3u", Key::new(Code::Char('x'), ALT)),
            ("\x1b\x18", Key::new(Code::Char('x'), ALT | CTRL)),
            ("\x1b[A", Key::new(Code::Up, 0)),
            ("ä", Key::new(Code::Char('ä'), 0)),
        ];
        for (bytes, key) in cases {
            assert!(press(bytes.as_bytes()).contains(&key), "{bytes:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_key_are_recognised_as_such() {
        let meaning = |bytes: &str| read(bytes.as_bytes(), Rest::MayCome).unwrap().meaning;
        assert_eq!(meaning("\x1b[200~"), Meaning::PasteBegins);
        assert_eq!(meaning("\x1b[<35;10;10M"), Meaning::Beside);
        assert_eq!(meaning("\x1b[57442;5u"), Meaning::Beside);
        assert_eq!(meaning("\x1b[I"), Meaning::Beside);
        assert_eq!(meaning("\x1b[?62;22c"), Meaning::Other);
        assert!(matches!(meaning("\x1b[113;5:3u"), Meaning::Release(_)));
    }

    #[test]
    fn an_unfinished_key_waits_until_nothing_more_comes() {
        for (bytes, len) in [("\x1b", 1), ("\x1b[", 2), ("\x1b[113;", 6), ("\x1bO", 2), ("\x1b[Mab", 5)] {
            assert_eq!(read(bytes.as_bytes(), Rest::MayCome), None, "{bytes:?}");
            assert_eq!(
                read(bytes.as_bytes(), Rest::WillNotCome).map(|token| token.len),
                Some(len),
                "{bytes:?}"
            );
        }
        assert_eq!(read(b"\xc3", Rest::MayCome), None);
        assert_eq!(read(b"\xff", Rest::MayCome).map(|token| token.len), Some(1));
        let endless = format!("\x1b[{}", "1".repeat(LONGEST_SEQUENCE));
        assert!(read(endless.as_bytes(), Rest::MayCome).is_some());
    }
}
