//! Character sets: which characters the bytes of a program stand for.
//!
//! Not the encoding, which is always UTF-8. Of all sets, two still matter: ASCII and line drawing.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Charset {
    #[default]
    Ascii,
    /// DEC Special Graphics.
    LineDrawing,
    /// ASCII with a pound sign.
    British,
}

impl Charset {
    /// By the final byte of the sequence that designates it. Unknown sets are read as ASCII.
    pub(crate) fn designated(last: u8) -> Charset {
        match last {
            b'0' => Charset::LineDrawing,
            b'A' => Charset::British,
            _ => Charset::Ascii,
        }
    }

    pub(crate) fn last(self) -> u8 {
        match self {
            Charset::Ascii => b'B',
            Charset::LineDrawing => b'0',
            Charset::British => b'A',
        }
    }

    fn map(self, c: char) -> char {
        match (self, c) {
            (Charset::British, '#') => '£',
            (Charset::LineDrawing, '_'..='~') => LINE_DRAWING[c as usize - '_' as usize],
            _ => c,
        }
    }
}

/// What `_` to `~` are in DEC Special Graphics.
const LINE_DRAWING: [char; 32] = [
    ' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽',
    '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];

/// G0 to G3, and which of them is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charsets {
    pub(crate) sets: [Charset; 4],
    /// The set that characters come from.
    pub(crate) used: u8,
    /// The set that only the next character comes from (SS2, SS3).
    pub(crate) next: Option<u8>,
}

impl Charsets {
    pub(crate) fn are_ascii(&self) -> bool {
        self.next.is_none() && self.sets[usize::from(self.used & 3)] == Charset::Ascii
    }

    pub(crate) fn map(&mut self, c: char) -> char {
        let set = self.next.take().unwrap_or(self.used);
        self.sets[usize::from(set & 3)].map(c)
    }
}
