//! Reads and writes SGR, the sequence that sets how characters look.
//!
//! Does not find the sequence in the stream, and does not store the look in cells.

use std::fmt::Write;

use rio_vt::config::colors::{AnsiColor, ColorRgb, NamedColor};
use rio_vt::crosswords::style::{Style, StyleFlags, UnderlineKind};

use crate::csi::Csi;

const COLOURS: [NamedColor; 16] = [
    NamedColor::Black,
    NamedColor::Red,
    NamedColor::Green,
    NamedColor::Yellow,
    NamedColor::Blue,
    NamedColor::Magenta,
    NamedColor::Cyan,
    NamedColor::White,
    NamedColor::LightBlack,
    NamedColor::LightRed,
    NamedColor::LightGreen,
    NamedColor::LightYellow,
    NamedColor::LightBlue,
    NamedColor::LightMagenta,
    NamedColor::LightCyan,
    NamedColor::LightWhite,
];

/// Attributes that are on or off: number to set, number to clear, flag.
const FLAGS: [(u16, u16, StyleFlags); 8] = [
    (1, 22, StyleFlags::BOLD),
    (2, 22, StyleFlags::DIM),
    (3, 23, StyleFlags::ITALIC),
    (5, 25, StyleFlags::SLOW_BLINK),
    (6, 25, StyleFlags::RAPID_BLINK),
    (7, 27, StyleFlags::INVERSE),
    (8, 28, StyleFlags::HIDDEN),
    (9, 29, StyleFlags::STRIKEOUT),
];

/// Underlines by the number after `4:`.
const UNDERLINES: [Option<UnderlineKind>; 6] = [
    None,
    Some(UnderlineKind::Single),
    Some(UnderlineKind::Double),
    Some(UnderlineKind::Curly),
    Some(UnderlineKind::Dotted),
    Some(UnderlineKind::Dashed),
];

/// One of the sixteen named colours.
pub(crate) fn named(index: u16) -> AnsiColor {
    AnsiColor::Named(COLOURS[usize::from(index & 15)])
}

/// The index among the sixteen, if it is one of them.
pub(crate) fn index_of(colour: NamedColor) -> Option<u8> {
    COLOURS.iter().position(|named| *named == colour).map(|index| index as u8)
}

/// Changes a style according to `CSI … m`.
pub(crate) fn apply(style: &mut Style, csi: &Csi) {
    let mut at = 0;
    while at < csi.parameters().len() {
        at += apply_one(style, csi, at);
    }
}

/// Applies the attribute at parameter `at`. Returns how many parameters it used.
fn apply_one(style: &mut Style, csi: &Csi, at: usize) -> usize {
    let group = csi.group_len(at);
    match csi.get(at) {
        0 => *style = Style::default(),
        4 if group > 1 => {
            if let Some(kind) = UNDERLINES.get(usize::from(csi.get(at + 1))) {
                style.flags.set_underline(*kind);
            }
        }
        4 => style.flags.set_underline(Some(UnderlineKind::Single)),
        21 => style.flags.set_underline(Some(UnderlineKind::Double)),
        24 => style.flags.set_underline(None),
        number @ 30..=37 => style.fg = named(number - 30),
        number @ 40..=47 => style.bg = named(number - 40),
        number @ 90..=97 => style.fg = named(number - 90 + 8),
        number @ 100..=107 => style.bg = named(number - 100 + 8),
        39 => style.fg = AnsiColor::Named(NamedColor::Foreground),
        49 => style.bg = AnsiColor::Named(NamedColor::Background),
        59 => style.underline_color = None,
        number @ (38 | 48 | 58) => return apply_colour(style, number, csi, at, group),
        number => apply_flag(style, number),
    }
    group
}

fn apply_flag(style: &mut Style, number: u16) {
    for (set, clear, flag) in FLAGS {
        if number == set {
            // Slow and fast blinking exclude each other.
            style.flags.remove(if StyleFlags::ALL_BLINK.contains(flag) {
                StyleFlags::ALL_BLINK
            } else {
                flag
            });
            style.flags.insert(flag);
        } else if number == clear {
            style.flags.remove(flag);
        }
    }
}

fn apply_colour(style: &mut Style, number: u16, csi: &Csi, at: usize, group: usize) -> usize {
    let rest = &csi.parameters()[at + 1..];
    let (colour, taken) = match (group, rest) {
        (1, [5, index, ..]) => (indexed(*index), 3),
        (1, [2, r, g, b, ..]) => (rgb(*r, *g, *b), 5),
        // An incomplete colour uses up all remaining parameters, because its end is not known.
        (1, _) => (None, 1 + rest.len()),
        (3.., [5, index, ..]) => (indexed(*index), group),
        (5, [2, r, g, b, ..]) => (rgb(*r, *g, *b), group),
        // With the colour space that the standard puts in second place.
        (6.., [2, _, r, g, b, ..]) => (rgb(*r, *g, *b), group),
        _ => (None, group),
    };
    match (number, colour) {
        (_, None) => {}
        (38, Some(colour)) => style.fg = colour,
        (48, Some(colour)) => style.bg = colour,
        (_, Some(colour)) => style.underline_color = Some(colour),
    }
    taken
}

fn indexed(index: u16) -> Option<AnsiColor> {
    u8::try_from(index).ok().map(AnsiColor::Indexed)
}

fn rgb(r: u16, g: u16, b: u16) -> Option<AnsiColor> {
    let [r, g, b] = [r, g, b].map(|part| u8::try_from(part).ok());
    Some(AnsiColor::Spec(ColorRgb { r: r?, g: g?, b: b? }))
}

/// The parameters of the SGR sequence that turns any pen into this one.
pub(crate) fn parameters(style: &Style) -> String {
    let mut text = String::from("0");
    for (set, _, flag) in FLAGS {
        if style.flags.contains(flag) {
            push(&mut text, format_args!(";{set}"));
        }
    }
    match style.flags.underline_kind() {
        None => {}
        Some(UnderlineKind::Single) => text.push_str(";4"),
        Some(UnderlineKind::Double) => text.push_str(";4:2"),
        Some(UnderlineKind::Curly) => text.push_str(";4:3"),
        Some(UnderlineKind::Dotted) => text.push_str(";4:4"),
        Some(UnderlineKind::Dashed) => text.push_str(";4:5"),
    }
    push_colour(&mut text, 30, style.fg);
    push_colour(&mut text, 40, style.bg);
    if let Some(colour) = style.underline_color {
        push_underline_colour(&mut text, colour);
    }
    text
}

/// `base`: 30 for the foreground, 40 for the background.
fn push_colour(text: &mut String, base: u8, colour: AnsiColor) {
    match colour {
        AnsiColor::Named(name) => match index_of(name) {
            Some(index @ 0..8) => push(text, format_args!(";{}", base + index)),
            Some(index) => push(text, format_args!(";{}", base + 60 + index - 8)),
            // The default colour, which the leading 0 already set.
            None => {}
        },
        AnsiColor::Indexed(index) => push(text, format_args!(";{};5;{index}", base + 8)),
        AnsiColor::Spec(rgb) => push(text, format_args!(";{};2;{};{};{}", base + 8, rgb.r, rgb.g, rgb.b)),
    }
}

/// Uses only colons: terminals that do not know 58 would read its parts as attributes.
fn push_underline_colour(text: &mut String, colour: AnsiColor) {
    match colour {
        AnsiColor::Named(name) => {
            if let Some(index) = index_of(name) {
                push(text, format_args!(";58:5:{index}"));
            }
        }
        AnsiColor::Indexed(index) => push(text, format_args!(";58:5:{index}")),
        AnsiColor::Spec(rgb) => push(text, format_args!(";58:2::{}:{}:{}", rgb.r, rgb.g, rgb.b)),
    }
}

fn push(text: &mut String, part: std::fmt::Arguments<'_>) {
    text.write_fmt(part).expect("writing to a string does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(sequences: &[&str]) -> Style {
        let mut style = Style::default();
        for sequence in sequences {
            apply(&mut style, &Csi::parse(sequence.as_bytes()).unwrap());
        }
        style
    }

    #[test]
    fn a_written_style_reads_back_the_same() {
        for text in [
            "m",
            "1m",
            "1;2;3;4;5;7;8;9m",
            "6m",
            "4:3m",
            "4:5m",
            "21m",
            "31;42m",
            "95;106m",
            "38;5;200;48;5;3m",
            "38;2;1;2;3;48;2;4;5;6m",
            "38:2::7:8:9m",
            "38:2:7:8:9m",
            "38:5:17m",
            "58:2::1:2:3m",
            "58;5;9m",
        ] {
            let first = style(&[text]);
            let again = style(&[&format!("{}m", parameters(&first))]);
            assert_eq!(first, again, "{text}");
        }
    }

    #[test]
    fn each_attribute_can_be_cleared() {
        let all_off = style(&["1;2;3;4;5;7;8;9;31;42;58;5;1m", "22;23;24;25;27;28;29;39;49;59m"]);
        assert_eq!(all_off, Style::default());
        assert_eq!(style(&["31m", "38;5m"]).fg, named(1));
        assert_eq!(style(&["38;5;300m"]), Style::default());
    }
}
