//! The visible content of a terminal, cell by cell, from our emulator or another one.

use agency_terminal::{CellSnapshot, Colour, Pen, Screen, ScreenSnapshot, Snapshot};

#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    pub rows: Vec<Vec<Cell>>,
    /// Row and column.
    pub cursor: (usize, usize),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Empty for the second cell of a wide character.
    pub text: String,
    pub foreground: Colour,
    pub background: Colour,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub inverse: bool,
    pub hidden: bool,
    pub strikeout: bool,
    pub underlined: bool,
}

impl Picture {
    pub fn of(screen: &mut Screen) -> Picture {
        Picture::from_snapshot(&screen.snapshot())
    }

    pub fn from_snapshot(snapshot: &Snapshot) -> Picture {
        let ScreenSnapshot { rows, cursor } = snapshot.alternate.as_ref().unwrap_or(&snapshot.primary);
        let cols = usize::from(snapshot.size.cols);
        let row = |cells: &[CellSnapshot]| {
            let untouched = (cells.len()..cols).map(|_| Cell::blank());
            cells.iter().map(Cell::from_snapshot).chain(untouched).collect()
        };
        Picture {
            rows: rows.iter().map(|line| row(&line.cells)).collect(),
            cursor: (cursor.row.into(), cursor.col.into()),
        }
    }

    pub fn lines(&self) -> Vec<String> {
        let text = |row: &Vec<Cell>| row.iter().map(|cell| cell.text.as_str()).collect::<String>();
        self.rows.iter().map(|row| text(row).trim_end().to_owned()).collect()
    }

    pub fn shows(&self, text: &str) -> bool {
        self.lines().iter().any(|line| line.contains(text))
    }

    /// Describes the first difference.
    pub fn difference(&self, other: &Picture) -> Option<String> {
        if self.rows.len() != other.rows.len() {
            return Some(format!("{} rows, not {}", self.rows.len(), other.rows.len()));
        }
        let rows = self.rows.iter().zip(&other.rows).enumerate();
        let cells = rows.flat_map(|(row, (ours, theirs))| {
            ours.iter().zip(theirs).enumerate().map(move |(col, cells)| (row, col, cells))
        });
        let mut differing = cells.filter(|(_, _, (ours, theirs))| ours != theirs);
        if let Some((row, col, (ours, theirs))) = differing.next() {
            let (line, other) = (&self.lines()[row], &other.lines()[row]);
            return Some(format!(
                "row {row}, column {col}: {ours:?}\n not {theirs:?}\nin  {line:?}\nnot {other:?}"
            ));
        }
        (self.cursor != other.cursor).then(|| format!("cursor at {:?}, not {:?}", self.cursor, other.cursor))
    }
}

impl Cell {
    fn blank() -> Cell {
        Cell {
            text: " ".to_owned(),
            foreground: Colour::Default,
            background: Colour::Default,
            bold: false,
            dim: false,
            italic: false,
            inverse: false,
            hidden: false,
            strikeout: false,
            underlined: false,
        }
    }

    fn from_snapshot(cell: &CellSnapshot) -> Cell {
        let Pen { foreground, background, bold, dim, italic, inverse, hidden, strikeout, underline, .. } =
            cell.pen;
        let text = if cell.text.is_empty() && cell.width > 0 { " ".to_owned() } else { cell.text.clone() };
        let underlined = underline > 0;
        Cell { text, foreground, background, bold, dim, italic, inverse, hidden, strikeout, underlined }
            .visible()
    }

    /// Only the background of a blank is visible, unless it is underlined, struck out or inverted.
    pub fn visible(self) -> Cell {
        let is_plain = !(self.inverse || self.strikeout || self.underlined);
        match self.text.trim().is_empty() && is_plain {
            true => Cell { background: self.background, text: self.text, ..Cell::blank() },
            false => self,
        }
    }
}
