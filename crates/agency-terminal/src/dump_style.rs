//! Links, styles and colours in a dump.

use rio_vt::config::colors::{AnsiColor, ColorRgb, NamedColor};
use rio_vt::crosswords::style::{Style, StyleFlags, UnderlineKind};

use crate::cells::Link;
use crate::encoding::{DumpError, Reader, Writer};
use crate::pen;

pub(crate) fn write_link(out: &mut Writer, link: Option<&Link>) {
    out.flag(link.is_some());
    if let Some(link) = link {
        out.text(&link.id);
        out.text(&link.uri);
    }
}

pub(crate) fn read_link(from: &mut Reader<'_>) -> Result<Option<Link>, DumpError> {
    Ok(match from.flag()? {
        true => Some(Link { id: from.text()?.to_owned(), uri: from.text()?.to_owned() }),
        false => None,
    })
}

pub(crate) fn write_style(out: &mut Writer, style: &Style) {
    write_colour(out, Some(style.fg));
    write_colour(out, Some(style.bg));
    write_colour(out, style.underline_color);
    out.number(style.flags.bits());
}

pub(crate) fn read_style(from: &mut Reader<'_>) -> Result<Style, DumpError> {
    let fg = read_colour(from)?.ok_or(DumpError::Damaged)?;
    let bg = read_colour(from)?.ok_or(DumpError::Damaged)?;
    let underline_color = read_colour(from)?;
    let mut flags = StyleFlags::from_bits(from.number()?).ok_or(DumpError::Damaged)?;
    // The engine expects at most one kind of underline.
    let underline: Option<UnderlineKind> = flags.underline_kind();
    flags.set_underline(underline);
    Ok(Style { fg, bg, underline_color, flags })
}

/// A colour: none, the foreground, the background, one of sixteen, one of 256, or RGB.
fn write_colour(out: &mut Writer, colour: Option<AnsiColor>) {
    match colour {
        None => out.byte(0),
        Some(AnsiColor::Named(NamedColor::Background)) => out.byte(2),
        Some(AnsiColor::Named(name)) => match pen::index_of(name) {
            Some(index) => out.0.extend([3, index]),
            None => out.byte(1),
        },
        Some(AnsiColor::Indexed(index)) => out.0.extend([4, index]),
        Some(AnsiColor::Spec(ColorRgb { r, g, b })) => out.0.extend([5, r, g, b]),
    }
}

fn read_colour(from: &mut Reader<'_>) -> Result<Option<AnsiColor>, DumpError> {
    Ok(Some(match from.byte()? {
        0 => return Ok(None),
        1 => AnsiColor::Named(NamedColor::Foreground),
        2 => AnsiColor::Named(NamedColor::Background),
        3 => pen::named(from.byte()?.into()),
        4 => AnsiColor::Indexed(from.byte()?),
        5 => AnsiColor::Spec(ColorRgb { r: from.byte()?, g: from.byte()?, b: from.byte()? }),
        _ => return Err(DumpError::Damaged),
    }))
}
