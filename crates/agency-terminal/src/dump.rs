//! Writes a terminal as bytes, and restores a terminal from them that continues exactly like the first.
//!
//! Writing is fast and frequent. Reading is rare and trusts nothing: damaged bytes are an error, never a panic.
//! Equal terminals give equal dumps, whatever happened to them before, so dumps can be compared.
//!
//! Layout: magic, version, CRC-32 of the rest; then the fields of [`Terminal`] in the order below.

use crate::canvas::Canvas;
use crate::cells::Cells;
use crate::charset::{Charset, Charsets};
use crate::dump_cells::{read_cells, write_cells};
use crate::dump_scrollback::{read_scrollback, write_scrollback};
use crate::dump_settings::{read_settings, write_settings};
use crate::dump_style::{read_link, read_style, write_link, write_style};
use crate::encoding::{DumpError, Reader, Writer, read_place};
use crate::kitty::Keyboard;
use crate::modes::{CursorShape, Modes, Mouse, MouseEncoding};
use crate::palette::{Colours, Palette, Rgb};
use crate::scan::Scanner;
use crate::scrollback::Scrollback;
use crate::settings::Settings;
use crate::size::Size;
use crate::tabs::Tabs;
use crate::terminal::{PerScreen, SavedCursor, Terminal};

const MAGIC: [u8; 4] = *b"AgTm";
const VERSION: u8 = 2;
/// In this version the scrollback consists of rows of cells above the screen, and there are no further settings.
const OLD_VERSION: u8 = 1;
const HEADER: usize = MAGIC.len() + 1 + 4;

/// A larger number of history rows means that the dump is damaged.
const SCROLLBACK_MAX: usize = 10_000_000;

pub(crate) fn dump(terminal: &Terminal) -> Vec<u8> {
    let mut out = Writer(vec![0; HEADER]);
    write_size(&mut out, terminal.size);
    write_scanner(&mut out, &terminal.scanner);
    write_modes(&mut out, &terminal.modes);
    write_charsets(&mut out, &terminal.charsets);
    write_tabs(&mut out, &terminal.tabs);
    write_palette(&mut out, &terminal.palette);
    out.text(&terminal.title);
    out.len(terminal.titles.len());
    terminal.titles.iter().for_each(|title| out.text(title));
    write_keyboard(&mut out, &terminal.keyboards.primary);
    write_keyboard(&mut out, &terminal.keyboards.alternate);
    write_saved(&mut out, &terminal.saved.primary);
    write_saved(&mut out, &terminal.saved.alternate);
    out.number(terminal.last_printed.map_or(0, u32::from));
    write_canvas(&mut out, &terminal.canvas);
    write_settings(&mut out, terminal);
    let mut out = out.0;
    let checksum = crc32fast::hash(&out[HEADER..]);
    out[..4].copy_from_slice(&MAGIC);
    out[4] = VERSION;
    out[5..HEADER].copy_from_slice(&checksum.to_le_bytes());
    out
}

pub(crate) fn restore(bytes: &[u8]) -> Result<Terminal, DumpError> {
    let (version, bytes) = body(bytes)?;
    let mut bytes = Reader(bytes);
    let from = &mut bytes;
    let size = read_size(from)?;
    let mut terminal = Terminal {
        size,
        scanner: read_scanner(from)?,
        modes: read_modes(from)?,
        charsets: read_charsets(from)?,
        tabs: read_tabs(from, size.cols)?,
        palette: read_palette(from)?,
        viewer: Colours::default(),
        title: from.text()?.to_owned(),
        titles: (0..from.len()?).map(|_| Ok(from.text()?.to_owned())).collect::<Result<_, _>>()?,
        keyboards: PerScreen { primary: read_keyboard(from)?, alternate: read_keyboard(from)? },
        saved: PerScreen { primary: read_saved(from, size)?, alternate: read_saved(from, size)? },
        last_printed: match from.number::<u32>()? {
            0 => None,
            c => Some(char::from_u32(c).ok_or(DumpError::Damaged)?),
        },
        canvas: read_canvas(from, size, version)?,
        settings: Settings::default(),
    };
    if version > OLD_VERSION {
        read_settings(from, &mut terminal)?;
    }
    if bytes.0.is_empty() { Ok(terminal) } else { Err(DumpError::Damaged) }
}

/// The version, and the bytes after a valid header.
fn body(bytes: &[u8]) -> Result<(u8, &[u8]), DumpError> {
    let (header, body) = bytes.split_at_checked(HEADER).ok_or(DumpError::Foreign)?;
    if header[..4] != MAGIC {
        return Err(DumpError::Foreign);
    }
    if ![VERSION, OLD_VERSION].contains(&header[4]) {
        return Err(DumpError::Version(header[4]));
    }
    if header[5..] != crc32fast::hash(body).to_le_bytes() {
        return Err(DumpError::Damaged);
    }
    Ok((header[4], body))
}

fn write_size(out: &mut Writer, size: Size) {
    for number in [size.cols, size.rows, size.x_pixels, size.y_pixels] {
        out.number(number);
    }
}

fn read_size(from: &mut Reader<'_>) -> Result<Size, DumpError> {
    let size = Size {
        cols: from.number()?,
        rows: from.number()?,
        x_pixels: from.number()?,
        y_pixels: from.number()?,
    };
    if size == size.bounded() { Ok(size) } else { Err(DumpError::Damaged) }
}

fn write_scanner(out: &mut Writer, scanner: &Scanner) {
    let (held, overflowed) = scanner.held();
    out.bytes(held);
    out.flag(overflowed);
}

fn read_scanner(from: &mut Reader<'_>) -> Result<Scanner, DumpError> {
    let held = from.bytes()?;
    Scanner::holding(held, from.flag()?).ok_or(DumpError::Damaged)
}

fn write_modes(out: &mut Writer, modes: &Modes) {
    for flag in [
        modes.app_cursor,
        modes.app_keypad,
        modes.bracketed_paste,
        modes.focus_events,
        modes.alternate_scroll,
        modes.cursor_visible,
        modes.cursor_blinking,
        modes.synchronized,
        modes.linefeed_newline,
        modes.origin,
    ] {
        out.flag(flag);
    }
    out.byte(modes.mouse as u8);
    out.byte(modes.mouse_encoding as u8);
    out.byte(modes.cursor_shape as u8);
    out.byte(modes.modify_other_keys);
}

fn read_modes(from: &mut Reader<'_>) -> Result<Modes, DumpError> {
    Ok(Modes {
        app_cursor: from.flag()?,
        app_keypad: from.flag()?,
        bracketed_paste: from.flag()?,
        focus_events: from.flag()?,
        alternate_scroll: from.flag()?,
        cursor_visible: from.flag()?,
        cursor_blinking: from.flag()?,
        synchronized: from.flag()?,
        linefeed_newline: from.flag()?,
        origin: from.flag()?,
        mouse: choice(from, [Mouse::Off, Mouse::Press, Mouse::Click, Mouse::Drag, Mouse::Motion])?,
        mouse_encoding: choice(
            from,
            [
                MouseEncoding::Bytes,
                MouseEncoding::Utf8,
                MouseEncoding::Sgr,
                MouseEncoding::Urxvt,
                MouseEncoding::SgrPixels,
            ],
        )?,
        cursor_shape: choice(from, [CursorShape::Block, CursorShape::Underline, CursorShape::Bar])?,
        modify_other_keys: from.byte()?,
    })
}

/// One of `all`, stored as its index.
fn choice<T: Copy, const N: usize>(from: &mut Reader<'_>, all: [T; N]) -> Result<T, DumpError> {
    all.get(usize::from(from.byte()?)).copied().ok_or(DumpError::Damaged)
}

fn write_charsets(out: &mut Writer, charsets: &Charsets) {
    out.0.extend(charsets.sets.map(|set| set as u8));
    out.byte(charsets.used);
    out.byte(charsets.next.map_or(0, |next| next + 1));
}

fn read_charsets(from: &mut Reader<'_>) -> Result<Charsets, DumpError> {
    let mut sets = [Charset::Ascii; 4];
    for set in &mut sets {
        *set = choice(from, [Charset::Ascii, Charset::LineDrawing, Charset::British])?;
    }
    let used = choice(from, [0, 1, 2, 3])?;
    let next = choice(from, [None, Some(0), Some(1), Some(2), Some(3)])?;
    Ok(Charsets { sets, used, next })
}

fn write_tabs(out: &mut Writer, tabs: &Tabs) {
    out.len(tabs.stops().count());
    tabs.stops().for_each(|stop| out.number(stop));
}

fn read_tabs(from: &mut Reader<'_>, cols: u16) -> Result<Tabs, DumpError> {
    let mut tabs = Tabs::new(cols);
    tabs.clear();
    for _ in 0..from.len()? {
        tabs.set(from.number()?, true);
    }
    Ok(tabs)
}

fn write_palette(out: &mut Writer, palette: &Palette) {
    out.len(palette.changed().count());
    for (index, Rgb(r, g, b)) in palette.changed() {
        out.number(index);
        out.0.extend([r, g, b]);
    }
}

fn read_palette(from: &mut Reader<'_>) -> Result<Palette, DumpError> {
    let mut palette = Palette::default();
    for _ in 0..from.len()? {
        palette.set(from.number()?, Rgb(from.byte()?, from.byte()?, from.byte()?));
    }
    Ok(palette)
}

fn write_keyboard(out: &mut Writer, keyboard: &Keyboard) {
    out.byte(keyboard.flags);
    out.bytes(&keyboard.covered);
}

fn read_keyboard(from: &mut Reader<'_>) -> Result<Keyboard, DumpError> {
    Keyboard::from_parts(from.byte()?, from.bytes()?.to_vec()).ok_or(DumpError::Damaged)
}

fn write_saved(out: &mut Writer, saved: &SavedCursor) {
    out.number(saved.row);
    out.number(saved.col);
    out.flag(saved.wrap_pending);
    write_style(out, &saved.style);
    write_link(out, saved.link.as_ref());
    write_charsets(out, &saved.charsets);
    out.flag(saved.origin);
}

fn read_saved(from: &mut Reader<'_>, size: Size) -> Result<SavedCursor, DumpError> {
    let (row, col) = read_place(from, size)?;
    Ok(SavedCursor {
        row,
        col,
        wrap_pending: from.flag()?,
        style: read_style(from)?,
        link: read_link(from)?,
        charsets: read_charsets(from)?,
        origin: from.flag()?,
        protecting: false,
    })
}

fn write_canvas(out: &mut Writer, canvas: &Canvas) {
    out.len(canvas.scrollback().limit());
    let (first, last) = canvas.margins();
    out.number(first);
    out.number(last);
    for flag in [canvas.insert(), canvas.autowrap(), canvas.clusters(), canvas.is_alternate()] {
        out.flag(flag);
    }
    write_scrollback(out, canvas.scrollback());
    write_cells(out, canvas.primary());
    if canvas.is_alternate() {
        write_cells(out, canvas.shown());
    }
}

fn read_canvas(from: &mut Reader<'_>, size: Size, version: u8) -> Result<Canvas, DumpError> {
    let scrollback_lines: usize = from.number()?;
    if scrollback_lines > SCROLLBACK_MAX {
        return Err(DumpError::Damaged);
    }
    let (first, last) = (from.number()?, from.number()?);
    let (insert, autowrap, clusters, alternate) = (from.flag()?, from.flag()?, from.flag()?, from.flag()?);
    let (scrollback, above) = match version {
        OLD_VERSION => (Scrollback::of(scrollback_lines), scrollback_lines),
        _ => (read_scrollback(from, scrollback_lines)?, 0),
    };
    let mut primary = Canvas::primary_cells(size, scrollback_lines);
    read_cells(from, size, above, &mut primary)?;
    let (shown, under) = match alternate {
        true => {
            let mut shown = Cells::new(size.rows.into(), size.cols.into(), 0);
            read_cells(from, size, 0, &mut shown)?;
            (shown, Some(primary))
        }
        false => (primary, None),
    };
    let mut canvas = Canvas::of(shown, under, scrollback);
    canvas.settle();
    canvas.set_insert(insert);
    canvas.set_autowrap(autowrap);
    canvas.set_clusters(clusters);
    let fits = last < size.rows && canvas.set_margins(first, last);
    if fits { Ok(canvas) } else { Err(DumpError::Damaged) }
}
