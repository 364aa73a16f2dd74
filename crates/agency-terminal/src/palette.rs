//! The numbered colours that a program changes and asks for.
//!
//! Not the colours that a viewer sees: those are the viewer's own until a program changes them. A program that asks
//! for a colour it did not change gets what the viewer's terminal reported ([`Colours`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) const FOREGROUND: u16 = 256;
pub(crate) const BACKGROUND: u16 = 257;
pub(crate) const CURSOR: u16 = 258;

/// Red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// The colours of a viewer's terminal, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Colours {
    /// The colour of text.
    pub foreground: Option<Rgb>,
    /// The colour behind text.
    pub background: Option<Rgb>,
    /// The colour of the cursor.
    pub cursor: Option<Rgb>,
    /// Numbered colours.
    pub palette: BTreeMap<u8, Rgb>,
}

impl Colours {
    /// If the cursor's colour is not known, it is the foreground's.
    fn get(&self, index: u16) -> Option<Rgb> {
        match index {
            FOREGROUND => self.foreground,
            BACKGROUND => self.background,
            CURSOR => self.cursor.or(self.foreground),
            _ => self.palette.get(&u8::try_from(index).ok()?).copied(),
        }
    }
}

/// xterm's first sixteen.
const NAMED: [Rgb; 16] = [
    Rgb(0x00, 0x00, 0x00),
    Rgb(0xcd, 0x00, 0x00),
    Rgb(0x00, 0xcd, 0x00),
    Rgb(0xcd, 0xcd, 0x00),
    Rgb(0x00, 0x00, 0xee),
    Rgb(0xcd, 0x00, 0xcd),
    Rgb(0x00, 0xcd, 0xcd),
    Rgb(0xe5, 0xe5, 0xe5),
    Rgb(0x7f, 0x7f, 0x7f),
    Rgb(0xff, 0x00, 0x00),
    Rgb(0x00, 0xff, 0x00),
    Rgb(0xff, 0xff, 0x00),
    Rgb(0x5c, 0x5c, 0xff),
    Rgb(0xff, 0x00, 0xff),
    Rgb(0x00, 0xff, 0xff),
    Rgb(0xff, 0xff, 0xff),
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Palette {
    changed: BTreeMap<u16, Rgb>,
}

impl Palette {
    /// The program's colour, otherwise the viewer's, otherwise the default.
    pub(crate) fn get(&self, index: u16, viewer: &Colours) -> Rgb {
        let changed = self.changed.get(&index).copied();
        changed.or_else(|| viewer.get(index)).unwrap_or_else(|| unchanged(index))
    }

    pub(crate) fn set(&mut self, index: u16, colour: Rgb) {
        self.changed.insert(index, colour);
    }

    pub(crate) fn reset(&mut self, index: u16) {
        self.changed.remove(&index);
    }

    /// Resets the 256 numbered colours, but not foreground, background and cursor.
    pub(crate) fn reset_numbered(&mut self) {
        self.changed.retain(|index, _| *index >= FOREGROUND);
    }

    pub(crate) fn changed(&self) -> impl Iterator<Item = (u16, Rgb)> + '_ {
        self.changed.iter().map(|(index, colour)| (*index, *colour))
    }
}

/// The default colours: light on dark.
fn unchanged(index: u16) -> Rgb {
    match index {
        0..=15 => NAMED[usize::from(index)],
        16..=231 => {
            let level = |step: u16| if step == 0 { 0 } else { (55 + step * 40) as u8 };
            let cube = index - 16;
            Rgb(level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        232..=255 => {
            let grey = (8 + (index - 232) * 10) as u8;
            Rgb(grey, grey, grey)
        }
        BACKGROUND => Rgb(0, 0, 0),
        _ => Rgb(0xe5, 0xe5, 0xe5),
    }
}

impl Rgb {
    /// Whether light text is more readable on it than dark text.
    pub(crate) fn is_dark(self) -> bool {
        let Rgb(r, g, b) = self;
        299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b) < 128 * 1000
    }

    /// Parses a colour as terminals write it: `rgb:r/g/b` with one to four digits each, or `#rgb` to `#rrrrggggbbbb`.
    pub fn parse(text: &[u8]) -> Option<Rgb> {
        let text = std::str::from_utf8(text).ok()?;
        if let Some(parts) = text.strip_prefix("rgb:") {
            let mut parts = parts.split('/').map(scaled);
            let colour = Rgb(parts.next()??, parts.next()??, parts.next()??);
            return parts.next().is_none().then_some(colour);
        }
        let digits = text.strip_prefix('#')?;
        let each = digits.len() / 3;
        if !digits.is_ascii() || digits.len() % 3 != 0 {
            return None;
        }
        Some(Rgb(
            topmost(digits.get(..each)?)?,
            topmost(digits.get(each..2 * each)?)?,
            topmost(&digits[2 * each..])?,
        ))
    }
}

impl std::fmt::Display for Rgb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Rgb(r, g, b) = self;
        write!(f, "rgb:{r:02x}{r:02x}/{g:02x}{g:02x}/{b:02x}{b:02x}")
    }
}

/// Scales to one byte: `f` and `ff` are both the maximum.
fn scaled(digits: &str) -> Option<u8> {
    let value = hex(digits)?;
    let most = (1u32 << (4 * digits.len())) - 1;
    Some((value * 255 / most) as u8)
}

/// The highest byte: after a hash sign, missing digits are zeros, so `f` is `f0`.
fn topmost(digits: &str) -> Option<u8> {
    let value = hex(digits)?;
    Some(if digits.len() == 1 { value << 4 } else { value >> (4 * (digits.len() - 2)) } as u8)
}

fn hex(digits: &str) -> Option<u32> {
    let plain = (1..=4).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_as_xterm_reads_them() {
        assert_eq!(Rgb::parse(b"rgb:ff/80/0"), Some(Rgb(0xff, 0x80, 0)));
        assert_eq!(Rgb::parse(b"rgb:ffff/8080/0000"), Some(Rgb(0xff, 0x80, 0)));
        assert_eq!(Rgb::parse(b"#f80"), Some(Rgb(0xf0, 0x80, 0)));
        assert_eq!(Rgb::parse(b"#ff8000"), Some(Rgb(0xff, 0x80, 0)));
        for bad in [
            &b"red"[..],
            b"#",
            b"#ff",
            b"rgb:1/2",
            b"rgb:1/2/3/4",
            b"rgb:+1/2/3",
            b"#\xc3\xa9\xc3\xa9\xc3\xa9",
        ] {
            assert_eq!(Rgb::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_cube_and_the_greys_are_where_programs_expect_them() {
        assert_eq!(
            [16, 196, 231, 232, 255].map(unchanged),
            [Rgb(0, 0, 0), Rgb(255, 0, 0), Rgb(255, 255, 255), Rgb(8, 8, 8), Rgb(238, 238, 238),]
        );
    }
}
