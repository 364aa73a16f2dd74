//! A terminal emulator of another project that gets the same bytes, for comparison.

use agency_terminal::Colour;
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell as Square, Flags};
use alacritty_terminal::term::{Config, Term};
use alacritty_terminal::vte::ansi::{Color, NamedColor, Processor};

use crate::picture::{Cell, Picture};

pub struct SecondOpinion {
    term: Term<VoidListener>,
    parser: Processor,
}

struct Extent {
    cols: usize,
    rows: usize,
}

impl Dimensions for Extent {
    fn total_lines(&self) -> usize {
        self.rows
    }

    fn screen_lines(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.cols
    }
}

impl SecondOpinion {
    pub fn new(cols: u16, rows: u16) -> SecondOpinion {
        let extent = Extent { cols: cols.into(), rows: rows.into() };
        SecondOpinion { term: Term::new(Config::default(), &extent, VoidListener), parser: Processor::new() }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.parser.advance(&mut self.term, bytes);
    }

    pub fn resize(&mut self, cols: u16, rows: u16) {
        self.term.resize(Extent { cols: cols.into(), rows: rows.into() });
    }

    pub fn picture(&self) -> Picture {
        let grid = self.term.grid();
        let row = |line: usize| {
            (0..grid.columns()).map(|col| cell(&grid[Line(line as i32)][Column(col)])).collect()
        };
        let cursor = grid.cursor.point;
        Picture {
            rows: (0..grid.screen_lines()).map(row).collect(),
            cursor: (cursor.line.0 as usize, cursor.column.0),
        }
    }
}

fn cell(square: &Square) -> Cell {
    let has = |flag| square.flags.intersects(flag);
    let text = match has(Flags::WIDE_CHAR_SPACER) {
        true => String::new(),
        false => {
            std::iter::once(square.c).chain(square.zerowidth().unwrap_or_default().iter().copied()).collect()
        }
    };
    Cell {
        text,
        foreground: colour(square.fg),
        background: colour(square.bg),
        bold: has(Flags::BOLD),
        dim: has(Flags::DIM),
        italic: has(Flags::ITALIC),
        inverse: has(Flags::INVERSE),
        hidden: has(Flags::HIDDEN),
        strikeout: has(Flags::STRIKEOUT),
        underlined: has(Flags::ALL_UNDERLINES),
    }
    .visible()
}

fn colour(colour: Color) -> Colour {
    match colour {
        Color::Named(name) if (name as usize) <= NamedColor::BrightWhite as usize => {
            Colour::Indexed(name as u8)
        }
        Color::Named(_) => Colour::Default,
        Color::Indexed(index) => Colour::Indexed(index),
        Color::Spec(rgb) => Colour::Rgb(rgb.r, rgb.g, rgb.b),
    }
}
