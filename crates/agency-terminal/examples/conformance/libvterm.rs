//! Runs libvterm's test files, as the `shpool-vterm` package ships them, against our screen.
//!
//! Checks what they expect of the screen, the cursor, the pen and the answers. Does not count expectations about
//! libvterm's own calls (parser callbacks, damage, keys and mouse, selections) or about encodings other than UTF-8.

use std::path::Path;

use agency_terminal::{Colour, Pen, Screen, ScreenSnapshot, Size, Snapshot};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const SIZE: Size = Size { cols: 80, rows: 25, x_pixels: 0, y_pixels: 0 };

pub(crate) fn run(folder: &Path) -> Outcome<()> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "test"));
    paths.sort();
    let (mut passed, mut asked) = (0, 0);
    for path in &paths {
        let mut file = File::new();
        std::fs::read_to_string(path)?.lines().enumerate().for_each(|(at, line)| file.line(at + 1, line));
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        println!("{name}\t{} of {}\t{} skipped", file.passed, file.asked, file.skipped);
        file.failures.iter().for_each(|failure| println!("  {failure}"));
        passed += file.passed;
        asked += file.asked;
    }
    println!("libvterm: {passed} of {asked} expectations");
    Ok(())
}

/// The state of one test file.
struct File {
    screen: Screen,
    /// Answers that no expectation has consumed yet.
    replies: Vec<u8>,
    subject: String,
    /// The last step wrote UTF-8. Otherwise the next expectations are not about our screen.
    wrote: bool,
    in_utf8: bool,
    passed: usize,
    asked: usize,
    skipped: usize,
    failures: Vec<String>,
}

impl File {
    fn new() -> File {
        File {
            screen: Screen::new(SIZE, 100),
            replies: Vec::new(),
            subject: String::new(),
            wrote: false,
            in_utf8: false,
            passed: 0,
            asked: 0,
            skipped: 0,
            failures: Vec::new(),
        }
    }

    fn line(&mut self, at: usize, line: &str) {
        let line = line.trim();
        if let Some(lines) = repetitions(line) {
            return lines.iter().for_each(|line| self.line(at, line));
        }
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "" => {}
            _ if line.starts_with('#') => {}
            _ if line.starts_with('!') => self.subject = line[1..].to_owned(),
            "INIT" => self.screen = Screen::new(SIZE, 100),
            "RESET" => self.screen = Screen::new(self.screen.size(), 100),
            "UTF8" => self.in_utf8 = rest.trim() == "1",
            "RESIZE" => self.resize(rest),
            "PUSH" => self.push(rest),
            _ if verb.bytes().all(|byte| byte.is_ascii_uppercase()) => self.wrote = false,
            _ => self.expect(at, line),
        }
    }

    fn push(&mut self, text: &str) {
        self.replies.clear();
        let bytes = unescaped(text).unwrap_or_default();
        self.wrote = !bytes.is_empty() && (self.in_utf8 || bytes.is_ascii());
        self.replies = self.screen.feed(&bytes).replies;
    }

    fn resize(&mut self, rest: &str) {
        let numbers = numbers(rest);
        if let [rows, cols, ..] = numbers[..] {
            self.screen.resize(Size::cells(cols, rows));
        }
    }

    fn expect(&mut self, at: usize, line: &str) {
        let Some((seen, meant)) = self.seen_and_meant(line) else {
            self.skipped += 1;
            return;
        };
        self.asked += 1;
        if seen == meant {
            self.passed += 1;
        } else {
            self.failures.push(format!("{at} {}: {line} but {seen}", self.subject));
        }
    }

    /// The actual and the expected value. `None` if the expectation does not apply to us.
    fn seen_and_meant(&mut self, line: &str) -> Option<(String, String)> {
        if let Some(meant) = line.strip_prefix("output ") {
            return self.wrote.then(|| self.output(&unescaped(meant)?)).flatten();
        }
        if let Some(glyph) = line.strip_prefix("putglyph ") {
            return self.wrote.then(|| self.glyph(glyph)).flatten();
        }
        let (what, meant) = line.split_once('=')?;
        let (query, place) = what.trim().split_once(' ').unwrap_or((what.trim(), ""));
        // Blanks at the end of a row do not count.
        let meant = match meant.trim().strip_suffix('"') {
            Some(text) if text.len() > 1 => format!("{}\"", text.trim_end()),
            _ => meant.trim().to_owned(),
        };
        Some((self.query(query, place.trim(), &meant)?, meant))
    }

    /// Compares the next answer. Each answer has its own line.
    fn output(&mut self, meant: &[u8]) -> Option<(String, String)> {
        let next = meant.len().min(self.replies.len());
        let seen: Vec<u8> = self.replies.drain(..next).collect();
        Some((seen.escape_ascii().to_string(), meant.escape_ascii().to_string()))
    }

    /// `characters width row,column`: this cell contains them.
    fn glyph(&mut self, glyph: &str) -> Option<(String, String)> {
        let mut fields = glyph.split(' ');
        let (codes, width, place) = (fields.next()?, fields.next()?, numbers(fields.next()?));
        let snapshot = self.screen.snapshot();
        let shown = snapshot.alternate.as_ref().unwrap_or(&snapshot.primary);
        let cell = shown.rows.get(usize::from(*place.first()?))?.cells.get(usize::from(*place.get(1)?));
        let meant: Option<String> = codes
            .split(',')
            .map(|code| char::from_u32(u32::from_str_radix(code.strip_prefix("0x")?, 16).ok()?))
            .collect();
        let seen = cell.map_or((String::new(), 1), |cell| (cell.text.clone(), cell.width));
        Some((format!("{:?} {}", seen.0, seen.1), format!("{:?} {width}", meant?)))
    }

    fn query(&mut self, query: &str, place: &str, meant: &str) -> Option<String> {
        let snapshot = self.screen.snapshot();
        let shown = snapshot.alternate.as_ref().unwrap_or(&snapshot.primary);
        match query {
            "?cursor" => Some(format!("{},{}", shown.cursor.row, shown.cursor.col)),
            "?pen" => pen(&shown.cursor.pen, place),
            "?screen_row" => row(shown, numbers(place).first().copied()?, meant),
            "?screen_chars" => chars(shown, &numbers(place), meant),
            "?screen_cell" => cell(&snapshot, shown, &numbers(place), meant),
            _ => None,
        }
    }
}

fn pen(pen: &Pen, what: &str) -> Option<String> {
    let flag = |on: bool| Some(if on { "on" } else { "off" }.to_owned());
    match what {
        "bold" => flag(pen.bold),
        "italic" => flag(pen.italic),
        "blink" => flag(pen.blink),
        "reverse" => flag(pen.inverse),
        "underline" => Some(pen.underline.to_string()),
        "foreground" => Some(colour(pen.foreground, "rgb(240,240,240,is_default_fg)")),
        "background" => Some(colour(pen.background, "rgb(0,0,0,is_default_bg)")),
        _ => None,
    }
}

fn colour(colour: Colour, default: &str) -> String {
    match colour {
        Colour::Default => default.to_owned(),
        Colour::Indexed(index) => format!("idx({index})"),
        Colour::Rgb(r, g, b) => format!("rgb({r},{g},{b})"),
    }
}

/// A row's text, in the notation of the expectation.
fn row(screen: &ScreenSnapshot, row: u16, meant: &str) -> Option<String> {
    Some(written(
        screen.rows.get(usize::from(row))?.cells.iter().map(|cell| (&*cell.text, cell.width)),
        meant,
    ))
}

/// The characters in a rectangle of one row.
fn chars(screen: &ScreenSnapshot, place: &[u16], meant: &str) -> Option<String> {
    let [top, left, bottom, right] = *place else { return None };
    if bottom != top + 1 {
        return None;
    }
    let cells = &screen.rows.get(usize::from(top))?.cells;
    let cells = cells.iter().take(right.into()).skip(left.into());
    Some(written(cells.map(|cell| (&*cell.text, cell.width)), meant))
}

fn written<'a>(cells: impl Iterator<Item = (&'a str, u8)>, meant: &str) -> String {
    let text: String = cells.filter(|(_, width)| *width > 0).map(|(text, _)| or_blank(text)).collect();
    let text = text.trim_end_matches(' ');
    if meant.starts_with("0x") {
        let codes: Vec<String> = text.chars().map(|c| format!("0x{:02x}", u32::from(c))).collect();
        return codes.join(",");
    }
    if meant.is_empty() && text.is_empty() { String::new() } else { format!("\"{text}\"") }
}

fn or_blank(text: &str) -> &str {
    if text.is_empty() { " " } else { text }
}

/// Characters, width and attributes. Colours there are libvterm's own; `?pen` checks them.
fn cell(snapshot: &Snapshot, screen: &ScreenSnapshot, place: &[u16], meant: &str) -> Option<String> {
    let [row, col] = *place else { return None };
    let cells = &screen.rows.get(usize::from(row))?.cells;
    let cell = cells.get(usize::from(col));
    let codes: Vec<String> = cell
        .map(|cell| cell.text.chars().map(|c| format!("0x{:02x}", u32::from(c))).collect())
        .unwrap_or_default();
    let width = cell.map_or(1, |cell| cell.width.max(1));
    let mut attributes = cell.map_or(String::new(), |cell| attributes(&cell.pen));
    // libvterm reports reverse video for each cell.
    if snapshot.other_modes.contains(&5) {
        attributes = if attributes.contains('R') { attributes.replace('R', "") } else { attributes + "R" };
    }
    let (_, colours) = meant.split_once(" fg=").unwrap_or((meant, ""));
    let colours = if colours.is_empty() { String::new() } else { format!(" fg={colours}") };
    let dwl = meant
        .split_once("attrs={")?
        .1
        .split_once('}')?
        .1
        .split_once(" fg=")
        .map_or("", |(between, _)| between);
    Some(format!("{{{}}} width={width} attrs={{{attributes}}}{dwl}{colours}", codes.join(",")))
}

fn attributes(pen: &Pen) -> String {
    let underline = format!("U{}", pen.underline);
    let all = [
        (pen.bold, "B"),
        (pen.underline > 0, underline.as_str()),
        (pen.italic, "I"),
        (pen.blink, "K"),
        (pen.inverse, "R"),
    ];
    all.into_iter().filter(|(on, _)| *on).map(|(_, name)| name).collect()
}

fn numbers(text: &str) -> Vec<u16> {
    text.split(',').filter_map(|number| number.trim().parse().ok()).collect()
}

/// The bytes of quoted strings, joined and possibly repeated (`"…" . "…"x20`). `None` for anything else.
fn unescaped(mut text: &str) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        text = text.trim().trim_start_matches('.').trim_start();
        if text.is_empty() {
            return Some(all);
        }
        let (one, rest) = quoted(text.strip_prefix('"')?)?;
        let (times, rest) = repeated(rest.trim_start());
        all.extend(one.repeat(times));
        text = rest;
    }
}

/// The count in `x20`, and the rest.
fn repeated(rest: &str) -> (usize, &str) {
    let Some(digits) = rest.strip_prefix('x') else { return (1, rest) };
    let digits = digits.trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().map_or((1, rest), |times| (times, &digits[end..]))
}

/// The text before the closing quote, and the rest after it.
fn quoted(text: &str) -> Option<(Vec<u8>, &str)> {
    let (mut bytes, mut chars) = (Vec::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((bytes, &text[at + 1..])),
            '\\' => bytes.push(escape(&mut chars)?),
            _ => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    None
}

/// The byte that a backslash and the characters after it stand for.
fn escape(chars: &mut std::str::CharIndices<'_>) -> Option<u8> {
    Some(match chars.next()?.1 {
        'e' => 0x1b,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'b' => 0x08,
        'x' => {
            let rest = chars.as_str();
            let (digits, taken) = match rest.strip_prefix('{') {
                Some(inner) => (inner.split('}').next()?, inner.find('}')? + 2),
                None => (rest.get(..2)?, 2),
            };
            (0..taken).for_each(|_| {
                chars.next();
            });
            u8::from_str_radix(digits, 16).ok()?
        }
        other => u8::try_from(other).ok()?,
    })
}

/// `$REP 60: …` and `$SEQ 1 60: …`: repeats the rest of the line, with the number in place of `\\#`.
fn repetitions(line: &str) -> Option<Vec<String>> {
    let (head, rest) = line.strip_prefix('$')?.split_once(':')?;
    let mut words = head.split(' ');
    let kind = words.next()?;
    let bounds: Vec<u16> = words.filter_map(|word| word.parse().ok()).collect();
    let numbers = match (kind, &bounds[..]) {
        ("REP", [times]) => 1..=*times,
        ("SEQ", [first, last]) => *first..=*last,
        _ => return None,
    };
    Some(numbers.map(|number| rest.replace("\\#", &number.to_string())).collect())
}
