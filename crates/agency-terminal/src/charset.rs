//! Character sets: which characters a program's bytes stand for.
//!
//! Not the encoding, which is always UTF-8. Only two sets still matter: ASCII and line drawing.

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
    /// The set for the final byte of a designating sequence. Unknown sets are read as ASCII.
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

/// The characters for `_` to `~` in DEC Special Graphics.
const LINE_DRAWING: [char; 32] = [
    ' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼', '⎺', '⎻', '─', '⎼', '⎽',
    '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
];

/// G0 to G3, and which of them is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Charsets {
    pub(crate) sets: [Charset; 4],
    /// The set in use.
    pub(crate) used: u8,
    /// The set for the next character only (SS2, SS3).
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
