//! A window onto a screen: the part that a viewer with a terminal of another size sees.
//!
//! It follows the cursor. It knows what the viewer's terminal already shows and sends only the differences, as one
//! frame; each row is positioned separately, so nothing scrolls or wraps.

use std::fmt::Write;

use crate::palette::{self, Rgb};
use crate::picture::{Corner, Keys, PICTURE, Picture, picture};
use crate::screen::Screen;
use crate::size::Size;

/// One viewer's window and what its terminal shows.
#[derive(Clone, Debug)]
pub struct Window {
    size: Size,
    corner: Corner,
    /// The picture on the viewer's terminal; `None` before the first frame.
    shown: Option<Picture>,
}

impl Window {
    /// A window of this size on a terminal in any state.
    pub fn new(size: Size) -> Window {
        Window { size: size.bounded(), corner: Corner::default(), shown: None }
    }

    /// Moves as little as needed for the cursor to be visible. A new window shows the rows above the cursor rather
    /// than those below, and the first column whenever the cursor allows it.
    fn follow(&mut self, cursor: Corner, screen: Size) {
        let fresh = self.shown.is_none();
        let top = if fresh { 0 } else { self.corner.row };
        let lowest_top = cursor.row.saturating_sub(self.size.rows - 1);
        self.corner.row = top.max(lowest_top).min(cursor.row).min(screen.rows.saturating_sub(self.size.rows));
        let seen = self.corner.col..self.corner.col.saturating_add(self.size.cols);
        if cursor.col < self.size.cols {
            self.corner.col = 0;
        } else if fresh || !seen.contains(&cursor.col) {
            // Move by half a window, so that typing does not move everything with every key.
            self.corner.col = cursor.col - self.size.cols / 2;
        }
        self.corner.col = self.corner.col.min(screen.cols.saturating_sub(self.size.cols));
    }

    /// The bytes that make the viewer's terminal show this picture; none if it already does.
    fn draw(&mut self, picture: Picture) -> Vec<u8> {
        let old = self.shown.take();
        let mut out = Vec::new();
        if old.as_ref() != Some(&picture) {
            frame(&mut out, old.as_ref(), &picture);
        }
        self.shown = Some(picture);
        out
    }
}

impl Screen {
    /// The bytes that bring a viewer's terminal from the window's last frame to the current one; none if both are the
    /// same.
    pub fn frame(&mut self, window: &mut Window, keys: Keys) -> Vec<u8> {
        let (row, col) = self.cursor();
        window.follow(Corner { row, col }, self.size());
        let (size, corner) = (window.size, window.corner);
        let picture = self.read(|terminal| picture(terminal, size, corner, keys));
        window.draw(picture)
    }
}

/// From any state to plain drawing without wraps, on the right screen.
fn begin(out: &mut Vec<u8>, picture: &Picture) {
    let screen = if picture.alternate { 'h' } else { 'l' };
    let clusters = if picture.clusters { 'h' } else { 'l' };
    say(out, format_args!("\x1b[?1049{screen}\x1b[?2027{clusters}"));
    say(out, format_args!("\x1b[?69l\x1b[r\x1b[?6l\x1b[4l\x1b[?7l\x1b[20l\x1b(B\x1b)B\x1b*B\x1b+B\x0f"));
    say(out, format_args!("\x1b[0m\x1bW\x1b[0\"q\x1b]8;;\x1b\\\x1b[?5l"));
}

fn frame(out: &mut Vec<u8>, old: Option<&Picture>, new: &Picture) {
    say(out, format_args!("{PICTURE}"));
    palette_colours(out, old.map_or(&[], |old| &old.palette), &new.palette);
    // The other screen may contain anything, so redraw all of it.
    let old = old.filter(|old| (old.alternate, old.clusters) == (new.alternate, new.clusters));
    if old.is_none() {
        begin(out, new);
    }
    let differs = |part: fn(&Picture) -> &String| old.map(part) != Some(part(new));
    rows(out, old.map_or(&[], |old| &old.rows), &new.rows);
    if differs(|picture| &picture.keyboard) {
        say(out, format_args!("{}", new.keyboard));
    }
    if differs(|picture| &picture.title) {
        say(out, format_args!("\x1b]2;{}\x1b\\", new.title));
    }
    if differs(|picture| &picture.cursor_shape) {
        say(out, format_args!("{}", new.cursor_shape));
    }
    let visible = if new.cursor_visible { 'h' } else { 'l' };
    let Corner { row, col } = new.cursor;
    say(out, format_args!("\x1b[{};{}H\x1b[?25{visible}\x1b[?2026l", row + 1, col + 1));
}

fn rows(out: &mut Vec<u8>, old: &[Vec<u8>], new: &[Vec<u8>]) {
    let changed: Vec<usize> = (0..new.len()).filter(|at| old.get(*at) != Some(&new[*at])).collect();
    if !changed.is_empty() {
        // Hide the cursor: in terminals that do not draw frames at once, it would jump around.
        say(out, format_args!("\x1b[?25l"));
    }
    for at in changed {
        say(out, format_args!("\x1b[{}H", at + 1));
        out.extend_from_slice(&new[at]);
    }
}

fn palette_colours(out: &mut Vec<u8>, old: &[(u16, Rgb)], new: &[(u16, Rgb)]) {
    for (index, _) in old.iter().filter(|(index, _)| !new.iter().any(|(kept, _)| kept == index)) {
        match *index {
            ..palette::FOREGROUND => say(out, format_args!("\x1b]104;{index}\x1b\\")),
            _ => say(out, format_args!("\x1b]{}\x1b\\", index - palette::FOREGROUND + 110)),
        }
    }
    for (index, colour) in new.iter().filter(|pair| !old.contains(pair)) {
        match *index {
            ..palette::FOREGROUND => say(out, format_args!("\x1b]4;{index};{colour}\x1b\\")),
            _ => say(out, format_args!("\x1b]{};{colour}\x1b\\", index - palette::FOREGROUND + 10)),
        }
    }
}

fn say(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let mut written = String::new();
    written.write_fmt(text).expect("writing to a string does not fail");
    out.extend_from_slice(written.as_bytes());
}
