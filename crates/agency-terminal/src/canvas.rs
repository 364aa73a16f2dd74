//! The cells of both screens and the cursor on them, drawn by the rio-vt engine.
//!
//! Not the terminal: modes, tabs, character sets, titles and answers are kept outside, because the engine hides
//! its own. Margins and three modes that the engine hides are mirrored here, so that a canvas can be dumped and
//! restored exactly. Other modules use the engine's types for cells and styles, but only the canvas draws.
//!
//! The alternate screen exists only while it is shown. Then `under` is the primary screen.
//!
//! Rows that leave the primary screen stay in the engine until [`Canvas::settle`] moves them to the scrollback.
//! That happens for many rows at a time, and before anything reads them.

use rio_vt::ansi::CursorShape;
use rio_vt::ansi::mode::{NamedMode, NamedPrivateMode};
use rio_vt::config::colors::{AnsiColor, NamedColor};
use rio_vt::crosswords::grid::Dimensions;
use rio_vt::crosswords::pos::{Column, Line};
use rio_vt::crosswords::square::{Hyperlink, Square};
use rio_vt::crosswords::style::Style;
use rio_vt::crosswords::{Crosswords, CrosswordsSize};
use rio_vt::event::{VoidListener, WindowId};
use rio_vt::performer::handler::Handler;

use crate::cells::{Cells, Link, cut_to, link_of};
use crate::scrollback::{Scrollback, resize};
use crate::size::Size;

mod area;
mod columns;
mod draw;

pub(crate) use area::Area;
pub(crate) use draw::Erase;

/// The width of the engine's own second screen, which we do not use.
const IDLE_COLUMNS: usize = 2;

/// More rows than the engine ever holds above the screen; the scrollback limits how many are kept.
const ENGINE_ROWS_MAX: usize = 1 << 30;

/// At least this many rows may leave the screen before they are moved to the scrollback.
const SPARE_ROWS_MIN: usize = 64;

pub(crate) struct Canvas {
    engine: Crosswords<VoidListener>,
    under: Option<Cells>,
    scrollback: Scrollback,
    /// The first and last row of the scrolling region.
    margins: (u16, u16),
    /// The first and last column of the scrolling region, unless it is as wide as the screen.
    columns: Option<(u16, u16)>,
    insert: bool,
    autowrap: bool,
    clusters: bool,
}

impl Canvas {
    pub(crate) fn new(size: Size, scrollback_lines: usize) -> Canvas {
        let cells = Canvas::primary_cells(size, scrollback_lines);
        Canvas::of(cells, None, Scrollback::of(scrollback_lines))
    }

    /// A blank primary screen. The engine drops the rows that leave a screen without scrollback.
    pub(crate) fn primary_cells(size: Size, scrollback_lines: usize) -> Cells {
        let above = if scrollback_lines == 0 { 0 } else { ENGINE_ROWS_MAX };
        Cells::new(size.rows.into(), size.cols.into(), above)
    }

    /// A canvas with these cells, all of one size; its margins and modes are the initial ones.
    pub(crate) fn of(shown: Cells, under: Option<Cells>, scrollback: Scrollback) -> Canvas {
        let rows = shown.screen_lines();
        let no_window = WindowId::from(0);
        let size = CrosswordsSize::new(IDLE_COLUMNS, rows);
        let mut engine = Crosswords::new(size, CursorShape::Block, VoidListener, no_window, 0, 0);
        engine.grid = shown;
        Canvas {
            engine,
            under,
            scrollback,
            margins: (0, rows as u16 - 1),
            columns: None,
            insert: false,
            autowrap: true,
            clusters: true,
        }
    }

    /// The screen that is shown.
    pub(crate) fn shown(&self) -> &Cells {
        &self.engine.grid
    }

    pub(crate) fn shown_mut(&mut self) -> &mut Cells {
        &mut self.engine.grid
    }

    /// The primary screen, which has the history.
    pub(crate) fn primary(&self) -> &Cells {
        self.under.as_ref().unwrap_or(&self.engine.grid)
    }

    pub(crate) fn primary_mut(&mut self) -> &mut Cells {
        self.under.as_mut().unwrap_or(&mut self.engine.grid)
    }

    pub(crate) fn is_alternate(&self) -> bool {
        self.under.is_some()
    }

    pub(crate) fn scrollback(&self) -> &Scrollback {
        &self.scrollback
    }

    pub(crate) fn scrollback_mut(&mut self) -> &mut Scrollback {
        &mut self.scrollback
    }

    /// Moves the rows that have left the primary screen to the scrollback.
    pub(crate) fn settle(&mut self) {
        self.scrollback.take_from(self.under.as_mut().unwrap_or(&mut self.engine.grid));
    }

    pub(crate) fn cols(&self) -> u16 {
        self.shown().columns() as u16
    }

    pub(crate) fn rows(&self) -> u16 {
        self.shown().screen_lines() as u16
    }

    // The cursor.

    /// Row and column of the cursor.
    pub(crate) fn cursor(&self) -> (u16, u16) {
        let pos = self.shown().cursor.pos;
        (pos.row.0 as u16, pos.col.0 as u16)
    }

    /// Whether the line is full, so that the next character goes to the next line.
    pub(crate) fn wrap_pending(&self) -> bool {
        self.shown().cursor.should_wrap
    }

    pub(crate) fn set_wrap_pending(&mut self, pending: bool) {
        self.shown_mut().cursor.should_wrap = pending;
    }

    pub(crate) fn move_to(&mut self, row: u16, col: u16) {
        let (row, col) = (row.min(self.rows() - 1), col.min(self.cols() - 1));
        let cursor = &mut self.engine.grid.cursor;
        cursor.pos.row = Line(row.into());
        cursor.pos.col = Column(col.into());
        cursor.should_wrap = false;
    }

    /// The first and last row that scroll.
    pub(crate) fn margins(&self) -> (u16, u16) {
        self.margins
    }

    /// Leaves the cursor where it is. `false`, without any change, for fewer than two rows.
    pub(crate) fn set_margins(&mut self, first: u16, last: u16) -> bool {
        let last = last.min(self.rows() - 1);
        let whole = (first, last) == (0, self.rows() - 1);
        if first >= last && !whole {
            return false;
        }
        let cursor = self.engine.grid.cursor.clone();
        self.engine.set_scrolling_region(usize::from(first) + 1, Some(usize::from(last) + 1));
        self.engine.grid.cursor = cursor;
        self.margins = (first, last);
        true
    }

    // The pen.

    pub(crate) fn style(&self) -> Style {
        self.shown().template_style()
    }

    pub(crate) fn set_style(&mut self, style: Style) {
        self.shown_mut().set_template_style(style);
    }

    pub(crate) fn link(&self) -> Option<Link> {
        let cells = self.shown();
        link_of(cells, cells.cursor.template)
    }

    pub(crate) fn set_link(&mut self, link: Option<&Link>) {
        self.engine.set_hyperlink(link.map(|link| Hyperlink::new(Some(&link.id), &link.uri)));
    }

    /// The style of erased cells: only the background of the pen.
    fn erasing_style(&self) -> Style {
        Style { bg: self.style().bg, ..Style::default() }
    }

    /// Lets the engine blank whole rows; at most `leaving` rows leave the screen. The engine would fill them with
    /// the complete pen, including underlines, so the pen is reduced meanwhile.
    fn erasing(&mut self, leaving: usize, act: impl FnOnce(&mut Crosswords<VoidListener>)) {
        self.make_room(leaving);
        let pen = self.style();
        if only_background(&pen) {
            act(&mut self.engine);
            return;
        }
        self.engine.grid.set_template_style(self.erasing_style());
        act(&mut self.engine);
        self.engine.grid.set_template_style(pen);
    }

    /// Called before up to `leaving` rows leave the screen. The engine would reserve a thousand rows, about a
    /// megabyte; one screenful is enough if the rows are moved on.
    fn make_room(&mut self, leaving: usize) {
        let cells = &self.engine.grid;
        let spare = cells.raw.rows().len() - cells.raw.len();
        if spare >= leaving || self.under.is_some() || self.scrollback.limit() == 0 {
            return;
        }
        self.settle();
        let cells = &mut self.engine.grid;
        let (rows, spare) = (cells.screen_lines(), cells.raw.rows().len() - cells.raw.len());
        let wanted = rows.max(SPARE_ROWS_MIN);
        if spare < wanted {
            cells.raw.grow_visible_lines(rows + wanted);
            cells.raw.shrink_visible_lines(rows);
        }
    }

    // Modes the engine needs to know.

    pub(crate) fn insert(&self) -> bool {
        self.insert
    }

    pub(crate) fn set_insert(&mut self, on: bool) {
        self.insert = on;
        match on {
            true => self.engine.set_mode(NamedMode::Insert.into()),
            false => self.engine.unset_mode(NamedMode::Insert.into()),
        }
    }

    /// Lets the engine print in a place where space was already made.
    fn without_insert(&mut self, act: impl FnOnce(&mut Crosswords<VoidListener>)) {
        let insert = self.insert;
        self.set_insert(false);
        act(&mut self.engine);
        self.set_insert(insert);
    }

    pub(crate) fn autowrap(&self) -> bool {
        self.autowrap
    }

    pub(crate) fn set_autowrap(&mut self, on: bool) {
        self.autowrap = on;
        self.set_engine_mode(NamedPrivateMode::LineWrap, on);
    }

    /// Whether a grapheme cluster of many characters takes one place (mode 2027).
    pub(crate) fn clusters(&self) -> bool {
        self.clusters
    }

    pub(crate) fn set_clusters(&mut self, on: bool) {
        self.clusters = on;
        self.set_engine_mode(NamedPrivateMode::GraphemeCluster, on);
    }

    fn set_engine_mode(&mut self, mode: NamedPrivateMode, on: bool) {
        match on {
            true => self.engine.set_private_mode(mode.into()),
            false => self.engine.unset_private_mode(mode.into()),
        }
    }

    // Both screens.

    /// Shows a blank alternate screen, with the cursor where it was on the primary screen.
    pub(crate) fn show_alternate(&mut self) {
        if self.is_alternate() {
            return;
        }
        let (link, erasing, protecting) = (self.link(), self.erasing_style(), self.protecting());
        let mut cells = Cells::new(self.rows().into(), self.cols().into(), 0);
        cells.cursor = self.shown().cursor.clone();
        cells.cursor.template = Square::default();
        let pen = self.style();
        cells.set_template_style(erasing);
        cells.sync_template_style();
        cells.reset_region(..);
        cells.set_template_style(pen);
        self.under = Some(std::mem::replace(&mut self.engine.grid, cells));
        self.set_link(link.as_ref());
        self.set_protecting(protecting);
    }

    /// Shows the primary screen as it was left, including its cursor and pen.
    pub(crate) fn show_primary(&mut self) {
        if let Some(cells) = self.under.take() {
            self.engine.grid = cells;
        }
    }

    /// Reflows the rows of the primary screen to the new width, and cuts those of the alternate one.
    pub(crate) fn resize(&mut self, size: Size) {
        if (size.cols, size.rows) == (self.cols(), self.rows()) {
            return;
        }
        // The engine resizes its hidden screen along with its grid, so give it a small grid meanwhile.
        let stand_in = Cells::new(self.rows().into(), IDLE_COLUMNS, 0);
        let mut shown = std::mem::replace(&mut self.engine.grid, stand_in);
        self.engine.resize(CrosswordsSize::new(IDLE_COLUMNS, size.rows.into()));
        match &mut self.under {
            Some(primary) => {
                resize(primary, &mut self.scrollback, size);
                cut_to(&mut shown, size);
            }
            None => resize(&mut shown, &mut self.scrollback, size),
        }
        self.engine.grid = shown;
        self.set_margins(0, size.rows - 1);
        self.release_columns();
    }
}

/// Whether the pen draws the same blanks when it erases and when it writes.
fn only_background(pen: &Style) -> bool {
    pen.flags.is_empty()
        && pen.underline_color.is_none()
        && pen.fg == AnsiColor::Named(NamedColor::Foreground)
}
