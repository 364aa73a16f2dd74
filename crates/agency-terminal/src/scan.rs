//! Splits a terminal stream into units: text, controls, sequences, strings.
//!
//! Does not interpret them. It hands on only complete units, so everything behind the scanner is always between
//! two units, wherever the stream was cut; it holds the bytes of an incomplete unit.

/// The longest unit that is kept. Longer units are handed on in [`Kind::Piece`]s.
const HELD_MAX: usize = 1 << 20;

pub(crate) const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const DEL: u8 = 0x7f;

/// The strings of ECMA-48 that carry a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StringKind {
    Osc,
    Dcs,
    Apc,
    Pm,
    Sos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Printable characters in UTF-8, possibly invalid, never cut inside a character.
    Text,
    /// One control character.
    Control,
    /// `ESC`, intermediates, final byte.
    Escape,
    /// `ESC [` … final byte.
    Csi,
    /// `ESC ]` and similar, with the terminator.
    String(StringKind),
    /// Cancelled by the program, or cut off by the next sequence.
    Aborted,
    /// A part of a unit that is too long to be kept.
    Piece { first: bool, last: bool },
}

/// One complete unit; `raw` is all of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit<'a> {
    pub(crate) kind: Kind,
    pub(crate) raw: &'a [u8],
}

impl<'a> Unit<'a> {
    /// The bytes between the introducer and the terminator of a sequence or string.
    pub(crate) fn body(&self) -> &'a [u8] {
        match self.kind {
            Kind::Escape => &self.raw[1..],
            Kind::Csi => &self.raw[self.introducer()..],
            Kind::String(_) => {
                let body = &self.raw[self.introducer()..];
                body.strip_suffix(b"\x1b\\").or(body.strip_suffix(&[BEL])).unwrap_or(body)
            }
            Kind::Text | Kind::Control | Kind::Aborted | Kind::Piece { .. } => self.raw,
        }
    }

    /// The length of `ESC [` and similar; there may be controls in between.
    fn introducer(&self) -> usize {
        let second = self.raw.iter().position(|byte| *byte >= 0x20 && *byte != DEL);
        second.map_or(self.raw.len(), |at| at + 1)
    }

    /// The controls inside a sequence, which act at once, as if they came before it. Those inside a string do not act.
    pub(crate) fn controls(&self) -> impl Iterator<Item = u8> + 'a {
        // There are almost never any, and this check is quick.
        let any = || self.raw.iter().skip(1).fold(false, |any, byte| any | (*byte < 0x20));
        let raw = match self.kind {
            Kind::Escape | Kind::Csi | Kind::Aborted if any() => self.raw,
            _ => &[],
        };
        raw.iter().copied().filter(|byte| *byte < 0x20 && !matches!(*byte, ESC | CAN | SUB))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Inside a character.
    Utf8,
    Escape,
    EscapeIntermediate,
    Csi,
    String(StringKind),
    /// A string in which `ESC` was seen: the next byte tells whether it ends.
    StringEscape(StringKind),
}

/// The effect of one more byte on an incomplete unit.
enum Step {
    Open(State),
    /// The unit ends with this byte.
    End(Kind),
    /// The unit ended before this byte.
    EndBefore(Kind),
    /// The unit ended before the `ESC` that came before this byte.
    EndBeforeEscape(Kind),
}

#[inline]
fn step(state: State, byte: u8) -> Step {
    match state {
        State::Utf8 => unreachable!("characters are completed by `complete_character`"),
        State::Escape => step_escape(byte),
        State::EscapeIntermediate => match byte {
            0x30..=0x7e => Step::End(Kind::Escape),
            _ => step_sequence(state, byte),
        },
        State::Csi => match byte {
            0x40..=0x7e => Step::End(Kind::Csi),
            _ => step_sequence(state, byte),
        },
        State::String(kind) => match byte {
            ESC => Step::Open(State::StringEscape(kind)),
            CAN | SUB => Step::End(Kind::Aborted),
            BEL if kind == StringKind::Osc => Step::End(Kind::String(kind)),
            _ => Step::Open(state),
        },
        State::StringEscape(kind) => match byte {
            b'\\' => Step::End(Kind::String(kind)),
            _ => Step::EndBeforeEscape(Kind::String(kind)),
        },
    }
}

fn step_escape(byte: u8) -> Step {
    match byte {
        b'[' => Step::Open(State::Csi),
        b']' => Step::Open(State::String(StringKind::Osc)),
        b'P' => Step::Open(State::String(StringKind::Dcs)),
        b'_' => Step::Open(State::String(StringKind::Apc)),
        b'^' => Step::Open(State::String(StringKind::Pm)),
        b'X' => Step::Open(State::String(StringKind::Sos)),
        0x20..=0x2f => Step::Open(State::EscapeIntermediate),
        0x30..=0x7e => Step::End(Kind::Escape),
        _ => step_sequence(State::Escape, byte),
    }
}

/// The reaction of every sequence to a byte that does not belong to it.
fn step_sequence(state: State, byte: u8) -> Step {
    match byte {
        CAN | SUB => Step::End(Kind::Aborted),
        ESC | 0x80.. => Step::EndBefore(Kind::Aborted),
        _ => Step::Open(state),
    }
}

/// Splits a stream into units, wherever it is cut.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scanner {
    /// The bytes of the incomplete unit. Empty between two units.
    held: Vec<u8>,
    state: Option<State>,
    /// The unit is too long: `held` has two bytes that encode its state, then what is not yet handed on.
    overflowed: bool,
}

impl Scanner {
    /// Hands on every complete unit.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(Unit<'_>)) {
        while !bytes.is_empty() {
            bytes = match self.state {
                Some(State::Utf8) => self.complete_character(bytes, &mut each),
                Some(state) => self.complete_sequence(state, bytes, &mut each),
                None => self.next(bytes, &mut each),
            };
        }
    }

    /// Whether the stream is between two units, so nothing is held.
    pub(crate) fn is_idle(&self) -> bool {
        self.state.is_none()
    }

    /// The held bytes, and whether earlier bytes of the same unit were already handed on.
    pub(crate) fn held(&self) -> (&[u8], bool) {
        (&self.held, self.overflowed)
    }

    /// A scanner that holds these bytes. `None` if no scanner could.
    pub(crate) fn holding(held: &[u8], overflowed: bool) -> Option<Self> {
        let mut scanner = Scanner::default();
        let mut whole = 0;
        scanner.feed(held, |_| whole += 1);
        let fits = whole == 0 && scanner.held == held && (!overflowed || scanner.state.is_some());
        scanner.overflowed = overflowed;
        fits.then_some(scanner)
    }

    /// Between two units: hands on the complete unit at the front of `bytes`, or holds the rest.
    fn next<'a>(&mut self, bytes: &'a [u8], each: &mut impl FnMut(Unit<'_>)) -> &'a [u8] {
        match bytes[0] {
            ESC => self.open_sequence(bytes, each),
            ..0x20 | DEL => emit(Kind::Control, bytes, 1, each),
            _ => self.text(bytes, each),
        }
    }

    fn text<'a>(&mut self, bytes: &'a [u8], each: &mut impl FnMut(Unit<'_>)) -> &'a [u8] {
        let run = printable_run(bytes);
        let whole = if run == bytes.len() { whole_characters(bytes) } else { run };
        if whole > 0 {
            return emit(Kind::Text, bytes, whole, each);
        }
        self.hold(State::Utf8, bytes);
        &[]
    }

    fn open_sequence<'a>(&mut self, bytes: &'a [u8], each: &mut impl FnMut(Unit<'_>)) -> &'a [u8] {
        let mut state = State::Escape;
        for (at, byte) in bytes.iter().enumerate().skip(1) {
            match step(state, *byte) {
                Step::Open(next) => state = next,
                Step::End(kind) => return emit(kind, bytes, at + 1, each),
                Step::EndBefore(kind) => return emit(kind, bytes, at, each),
                Step::EndBeforeEscape(kind) => return emit(kind, bytes, at - 1, each),
            }
        }
        self.hold(state, bytes);
        self.shed(state, each);
        &[]
    }

    fn complete_sequence<'a>(
        &mut self,
        mut state: State,
        bytes: &'a [u8],
        each: &mut impl FnMut(Unit<'_>),
    ) -> &'a [u8] {
        for (at, byte) in bytes.iter().enumerate() {
            match step(state, *byte) {
                Step::Open(next) => state = next,
                Step::End(kind) => {
                    self.held.extend_from_slice(&bytes[..=at]);
                    self.finish(kind, each);
                    return &bytes[at + 1..];
                }
                Step::EndBefore(kind) => {
                    self.held.extend_from_slice(&bytes[..at]);
                    self.finish(kind, each);
                    return &bytes[at..];
                }
                Step::EndBeforeEscape(kind) => {
                    self.held.extend_from_slice(&bytes[..at]);
                    self.held.pop();
                    self.finish(kind, each);
                    // The `ESC` may have come with earlier bytes: it starts the next unit here.
                    self.hold(State::Escape, &[ESC]);
                    return &bytes[at..];
                }
            }
        }
        self.hold(state, bytes);
        self.shed(state, each);
        &[]
    }

    fn complete_character<'a>(&mut self, bytes: &'a [u8], each: &mut impl FnMut(Unit<'_>)) -> &'a [u8] {
        self.held.push(bytes[0]);
        match std::str::from_utf8(&self.held) {
            Ok(_) => self.finish(Kind::Text, each),
            Err(error) if error.error_len().is_none() => {}
            // This byte does not belong to the character that started before it.
            Err(_) => {
                self.held.pop();
                self.finish(Kind::Text, each);
                return bytes;
            }
        }
        &bytes[1..]
    }

    fn hold(&mut self, state: State, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        self.state = Some(state);
    }

    /// Hands on a part of a unit that grows too long, and keeps its state.
    fn shed(&mut self, state: State, each: &mut impl FnMut(Unit<'_>)) {
        if !self.overflowed && self.held.len() <= HELD_MAX {
            return;
        }
        let first = !self.overflowed;
        let said = if first { 0 } else { STATE_LEN };
        // This `ESC` may belong to the next unit.
        let open = usize::from(matches!(state, State::StringEscape(_)));
        each(Unit {
            kind: Kind::Piece { first, last: false },
            raw: &self.held[said..self.held.len() - open],
        });
        let kept = [&state_bytes(state)[..], &[ESC][..open]].concat();
        self.held = kept;
        self.overflowed = true;
    }

    /// Hands on the held unit, or the rest of an overflowed one.
    fn finish(&mut self, kind: Kind, each: &mut impl FnMut(Unit<'_>)) {
        let held = std::mem::take(&mut self.held);
        match std::mem::take(&mut self.overflowed) {
            true => each(Unit { kind: Kind::Piece { first: false, last: true }, raw: &held[STATE_LEN..] }),
            false => each(Unit { kind, raw: &held }),
        }
        self.state = None;
        // Most sequences are short, so keep their buffer.
        if held.capacity() <= 4096 {
            self.held = held;
            self.held.clear();
        }
    }
}

const STATE_LEN: usize = 2;

/// The shortest bytes that bring a scanner into this state (or, for a string's `ESC`, just before it).
fn state_bytes(state: State) -> [u8; STATE_LEN] {
    let second = match state {
        State::Utf8 | State::Escape => 0,
        State::EscapeIntermediate => b' ',
        State::Csi => b'[',
        State::String(kind) | State::StringEscape(kind) => match kind {
            StringKind::Osc => b']',
            StringKind::Dcs => b'P',
            StringKind::Apc => b'_',
            StringKind::Pm => b'^',
            StringKind::Sos => b'X',
        },
    };
    [ESC, second]
}

fn emit<'a>(kind: Kind, bytes: &'a [u8], len: usize, each: &mut impl FnMut(Unit<'_>)) -> &'a [u8] {
    let (raw, rest) = bytes.split_at(len);
    each(Unit { kind, raw });
    rest
}

/// The number of bytes at the front that are not control characters, counted eight at a time.
fn printable_run(bytes: &[u8]) -> usize {
    let mut run = 0;
    for word in bytes.chunks_exact(8) {
        let mut eight = [0; 8];
        eight.copy_from_slice(word);
        let stop = controls_in(u64::from_le_bytes(eight));
        if stop != 0 {
            return run + (stop.trailing_zeros() / 8) as usize;
        }
        run += 8;
    }
    let rest = bytes[run..].iter().position(|byte| *byte < 0x20 || *byte == DEL);
    rest.map_or(bytes.len(), |at| run + at)
}

/// The high bit of every byte that is a control character; exact up to the first one.
fn controls_in(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let below_space = word.wrapping_sub(ONES * 0x20) & !word;
    let from_delete = word ^ (ONES * DEL as u64);
    let delete = from_delete.wrapping_sub(ONES) & !from_delete;
    (below_space | delete) & HIGHS
}

/// The number of bytes at the front that do not end inside a character.
fn whole_characters(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    for at in (tail..bytes.len()).rev() {
        // A continuation byte: its character started earlier.
        if (0x80..0xc0).contains(&bytes[at]) {
            continue;
        }
        let unfinished = std::str::from_utf8(&bytes[at..]).is_err_and(|error| {
            // Valid so far, but not complete.
            error.valid_up_to() == 0 && error.error_len().is_none()
        });
        return if unfinished { at } else { bytes.len() };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(chunks: &[&[u8]]) -> Vec<(Kind, Vec<u8>)> {
        let mut scanner = Scanner::default();
        let mut found = Vec::new();
        for chunk in chunks {
            scanner.feed(chunk, |unit| found.push((unit.kind, unit.raw.to_vec())));
        }
        found
    }

    #[test]
    fn a_stream_is_split_into_units() {
        let found = units(&[b"hi\r\n\x1b[1;31mred\x1b]0;t\x07\x1bPq#\x1b\\\x1b(B\x1b7"]);
        let kinds: Vec<Kind> = found.iter().map(|(kind, _)| *kind).collect();
        let osc = Kind::String(StringKind::Osc);
        let dcs = Kind::String(StringKind::Dcs);
        let (text, control) = (Kind::Text, Kind::Control);
        assert_eq!(kinds, [text, control, control, Kind::Csi, text, osc, dcs, Kind::Escape, Kind::Escape]);
    }

    #[test]
    fn a_unit_is_handed_on_only_when_it_is_complete() {
        for part in
            [&b"\x1b"[..], b"\x1b[", b"\x1b[3", b"\x1b]0;x", b"\x1b]0;x\x1b", b"\xe2\x94", b"\xf0\x9f\x92"]
        {
            assert_eq!(units(&[part]), [], "{part:?}");
        }
    }

    #[test]
    fn an_incomplete_sequence_ends_where_the_next_one_starts() {
        assert_eq!(
            units(&[b"\x1b[3", b"\x1b[1m"]),
            [(Kind::Aborted, b"\x1b[3".to_vec()), (Kind::Csi, b"\x1b[1m".to_vec())]
        );
        assert_eq!(
            units(&[b"\x1b]0;x\x1b", b"[1m"]),
            [(Kind::String(StringKind::Osc), b"\x1b]0;x".to_vec()), (Kind::Csi, b"\x1b[1m".to_vec())]
        );
    }

    #[test]
    fn invalid_characters_do_not_swallow_what_follows() {
        assert_eq!(
            units(&[b"\xe2\x94", b"a"]),
            [(Kind::Text, b"\xe2\x94".to_vec()), (Kind::Text, b"a".to_vec())]
        );
        assert_eq!(units(&[b"\xff\xfe"]), [(Kind::Text, b"\xff\xfe".to_vec())]);
    }

    #[test]
    fn an_endless_string_is_not_kept() {
        let mut scanner = Scanner::default();
        let mut said = 0;
        scanner.feed(b"\x1bPq", |_| panic!("not whole"));
        for _ in 0..40 {
            scanner.feed(&[b'x'; 1 << 16], |unit| {
                assert!(matches!(unit.kind, Kind::Piece { .. }));
                said += unit.raw.len();
            });
        }
        assert_eq!(scanner.held(), (&b"\x1bP"[..], true));
        scanner.feed(b"y\x1b\\z", |unit| said += unit.raw.len());
        assert_eq!(said, 3 + 40 * (1 << 16) + 3 + 1);
        assert!(scanner.is_idle());
    }

    #[test]
    fn controls_are_found_at_any_position() {
        for at in 0..24 {
            for control in [0x00, 0x0a, 0x1b, 0x1f, 0x7f] {
                let mut bytes = [b'\xc3'; 24];
                bytes[at] = control;
                assert_eq!(printable_run(&bytes), at);
            }
        }
        assert_eq!(printable_run(&[0xff; 19]), 19);
    }
}
