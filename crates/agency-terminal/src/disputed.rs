//! Characters that terminals draw with different widths, so that text after them may move.
//!
//! After such a character, a redraw states the position of the next one: the character may look odd, but
//! nothing after it is displaced.

use rio_vt::crosswords::square::Square;
use unicode_width::UnicodeWidthChar;

/// How far terminals agree on the width of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Agreed,
    /// Narrow, but wide in terminals that are set up for East Asian text: lines, arrows, Greek.
    Ambiguous,
    /// Terminals disagree: clusters, emoji, characters that Unicode changed or added recently.
    Disputed,
}

/// Whether the next cell needs its own position. Within a run of ambiguous characters it does not: either all
/// of them are displaced or none, and text in other alphabets would grow by half.
pub(crate) fn may_displace(cell: Square, next: Square) -> bool {
    width_of(cell).may_displace(Some(width_of(next)))
}

impl Width {
    /// Like [`may_displace`]; `None` if the next cell is not known.
    pub(crate) fn may_displace(self, next: Option<Width>) -> bool {
        match self {
            Width::Agreed => false,
            Width::Ambiguous => next != Some(Width::Ambiguous),
            Width::Disputed => true,
        }
    }
}

pub(crate) fn width_of(cell: Square) -> Width {
    width_of_text(cell.c(), cell.has_grapheme())
}

/// The width of a character, or of the cluster that starts with it.
pub(crate) fn width_of_text(first: char, cluster: bool) -> Width {
    match first {
        _ if cluster => Width::Disputed,
        ..'\u{a1}' => Width::Agreed,
        c if is_disputed(c) => Width::Disputed,
        // East Asian fonts contain Greek and Cyrillic, and draw them wide.
        '\u{391}'..='\u{3c9}' | '\u{401}'..='\u{451}' => Width::Ambiguous,
        c if c.width() != c.width_cjk() => Width::Ambiguous,
        _ => Width::Agreed,
    }
}

fn is_disputed(c: char) -> bool {
    matches!(c,
        // Symbols; terminals draw some of them as emoji.
        '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2300}'..='\u{23ff}'
        | '\u{25aa}'..='\u{25ab}' | '\u{25b6}' | '\u{25c0}' | '\u{25fb}'..='\u{25fe}'
        | '\u{2600}'..='\u{27bf}' | '\u{2934}'..='\u{2935}' | '\u{2b05}'..='\u{2b55}'
        | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}'
        // Hexagrams, wide since Unicode 16; conjoining Hangul; format characters.
        | '\u{4dc0}'..='\u{4dff}' | '\u{d7b0}'..='\u{d7ff}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}'
        // Private-use symbols of fonts.
        | '\u{e000}'..='\u{f8ff}'
        // Emoji, and everything after them.
        | '\u{16fe0}'..='\u{18fff}' | '\u{1d300}'..='\u{1d37f}' | '\u{1f000}'..='\u{1fbff}' | '\u{e0000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_agreed_on_and_emoji_are_not() {
        for (c, width) in [
            ('a', Width::Agreed),
            ('ä', Width::Agreed),
            ('漢', Width::Agreed),
            ('ひ', Width::Agreed),
            ('─', Width::Ambiguous),
            ('…', Width::Ambiguous),
            ('α', Width::Ambiguous),
            ('⏺', Width::Disputed),
            ('✻', Width::Disputed),
            ('👩', Width::Disputed),
            ('\u{e0b0}', Width::Disputed),
            ('䷀', Width::Disputed),
        ] {
            assert_eq!(width_of(Square::from_char(c)), width, "{c}");
        }
    }
}
