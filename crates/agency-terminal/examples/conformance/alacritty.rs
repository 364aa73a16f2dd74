//! Plays the recordings that alacritty_terminal ships and compares the resulting screen cell by cell.

use std::path::Path;

use agency_terminal::{CellSnapshot, Colour, Pen, RowSnapshot, Screen, Size};
use serde_json::Value;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// `recordings` holds one folder per recording.
pub(crate) fn run(recordings: &Path) -> Outcome<()> {
    let mut folders: Vec<_> = std::fs::read_dir(recordings)?.collect::<Result<_, _>>()?;
    folders.sort_by_key(|folder| folder.file_name());
    let mut passed = 0;
    for folder in &folders {
        let name = folder.file_name().to_string_lossy().into_owned();
        match compare(&folder.path())? {
            None => {
                passed += 1;
                println!("{name}\tpass\t");
            }
            Some(difference) => println!("{name}\tfail\t{difference}"),
        }
    }
    println!("alacritty: {passed} of {} recordings", folders.len());
    Ok(())
}

fn read(path: &Path) -> Outcome<Value> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}

/// The first difference between their screen and ours.
fn compare(folder: &Path) -> Outcome<Option<String>> {
    let size = read(&folder.join("size.json"))?;
    let history = read(&folder.join("config.json"))?["history_size"].as_u64().unwrap_or(0);
    let number = |name: &str| size[name].as_u64().unwrap_or(0) as u16;
    let (cols, rows) = (number("columns"), number("screen_lines"));
    let mut screen = Screen::new(Size::cells(cols, rows), history as usize);
    screen.feed(&std::fs::read(folder.join("alacritty.recording"))?);
    let snapshot = screen.snapshot();
    let shown = snapshot.alternate.as_ref().unwrap_or(&snapshot.primary);
    let above = if snapshot.alternate.is_some() { &[][..] } else { &snapshot.scrollback };

    let grid = read(&folder.join("grid.json"))?;
    let meant = their_rows(&grid);
    let cells: Vec<&RowSnapshot> = above.iter().chain(&shown.rows).collect();
    if !grid["raw"]["inner"].is_array() {
        return Err(format!("{}: the grid cannot be read", folder.display()).into());
    }
    // Compare from the bottom. A row above the shorter history must be empty in the longer one.
    let nothing = RowSnapshot { cells: Vec::new(), wrapped: false, prompt: false };
    for up in 0..cells.len().max(meant.len()) {
        let ours = cells.iter().rev().nth(up).copied().unwrap_or(&nothing);
        let theirs = meant.iter().rev().nth(up).map_or(&[][..], |row| row.as_slice());
        if let Some(difference) = row_difference(ours, theirs, cols.into()) {
            return Ok(Some(format!("row {up} from the bottom, {difference}")));
        }
    }
    Ok(None)
}

/// Their rows, from the bottom up. They are stored as a ring that begins at `zero`.
fn their_rows(grid: &Value) -> Vec<&Vec<Value>> {
    let empty = Vec::new();
    let stored = grid["raw"]["inner"].as_array().unwrap_or(&empty);
    let zero = grid["raw"]["zero"].as_u64().unwrap_or(0) as usize;
    let len = grid["raw"]["len"].as_u64().map_or(stored.len(), |len| len as usize);
    let mut rows: Vec<&Vec<Value>> = (0..len.min(stored.len()))
        .filter_map(|at| grid["raw"]["inner"][(zero + at) % stored.len()]["inner"].as_array())
        .collect();
    rows.reverse();
    rows
}

fn row_difference(ours: &RowSnapshot, theirs: &[Value], cols: usize) -> Option<String> {
    (0..cols).find_map(|col| {
        let seen = our_look(ours.cells.get(col));
        let meant = theirs.get(col).map_or_else(|| our_look(None), their_look);
        (seen != meant).then(|| format!("column {col}: {seen} instead of {meant}"))
    })
}

/// One cell as text, in the same form for both sides.
fn our_look(cell: Option<&CellSnapshot>) -> String {
    let Some(cell) = cell else { return look(" ", "-", "-", &[]) };
    let text = if cell.text.is_empty() { " " } else { &cell.text };
    let Pen { foreground, background, .. } = cell.pen;
    look(text, &our_colour(foreground), &our_colour(background), &our_attributes(&cell.pen))
}

fn our_attributes(pen: &Pen) -> Vec<&'static str> {
    let underline =
        ["", "UNDERLINE", "DOUBLE_UNDERLINE", "UNDERCURL", "DOTTED_UNDERLINE", "DASHED_UNDERLINE"];
    let flags = [
        (pen.bold, "BOLD"),
        (pen.dim, "DIM"),
        (pen.italic, "ITALIC"),
        (pen.inverse, "INVERSE"),
        (pen.hidden, "HIDDEN"),
        (pen.strikeout, "STRIKEOUT"),
        (pen.underline > 0, underline[usize::from(pen.underline.min(5))]),
    ];
    flags.into_iter().filter(|(on, _)| *on).map(|(_, name)| name).collect()
}

fn our_colour(colour: Colour) -> String {
    match colour {
        Colour::Default => "-".to_owned(),
        Colour::Indexed(index) => index.to_string(),
        Colour::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
    }
}

fn their_look(cell: &Value) -> String {
    let c = cell["c"].as_str().unwrap_or(" ");
    let marks = cell["extra"]["zerowidth"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let flags: Vec<&str> = cell["flags"].as_str().unwrap_or("").split(" | ").collect();
    let drawn = ["BOLD", "DIM", "ITALIC", "INVERSE", "HIDDEN", "STRIKEOUT"];
    let attributes: Vec<&str> =
        flags.into_iter().filter(|flag| drawn.contains(flag) || flag.contains("UNDER")).collect();
    // Alacritty keeps a tab that was printed over blanks; here a tab only moves the cursor.
    let text: String = std::iter::once(if c == "\t" { " " } else { c }).chain(marks).collect();
    look(&text, &their_colour(&cell["fg"]), &their_colour(&cell["bg"]), &attributes)
}

fn their_colour(colour: &Value) -> String {
    const NAMES: [&str; 8] = ["Black", "Red", "Green", "Yellow", "Blue", "Magenta", "Cyan", "White"];
    if let Some(name) = colour["Named"].as_str() {
        let bright = name.strip_prefix("Bright");
        let at = NAMES.iter().position(|known| *known == bright.unwrap_or(name));
        return at.map_or("-".to_owned(), |at| (at + if bright.is_some() { 8 } else { 0 }).to_string());
    }
    if let Some(index) = colour["Indexed"].as_u64() {
        return index.to_string();
    }
    let part = |name: &str| colour["Spec"][name].as_u64().unwrap_or(0);
    format!("#{:02x}{:02x}{:02x}", part("r"), part("g"), part("b"))
}

fn look(text: &str, foreground: &str, background: &str, attributes: &[&str]) -> String {
    let mut attributes = attributes.to_vec();
    attributes.sort_unstable();
    format!("{text:?} {foreground} on {background} [{}]", attributes.join(" "))
}
