//! Markdown as rows of a terminal: headings, emphasis, lists, code, tables and links.
//!
//! Writes no control character of the text: only the styles that this file adds reach the terminal.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::{Paint, printable};

/// A block that grows beyond this many bytes is printed before it is complete.
const LONGEST_BLOCK: usize = 16 << 10;

/// The style of a part of a line, as parameters of an SGR sequence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Style(Vec<&'static str>);

impl Style {
    fn with(&self, code: &'static str) -> Style {
        let mut codes = self.0.clone();
        codes.push(code);
        Style(codes)
    }
}

const BOLD: &str = "1";
const FAINT: &str = "2";
const ITALIC: &str = "3";
const UNDERLINED: &str = "4";
const STRUCK: &str = "9";
const CYAN: &str = "36";
const GREEN: &str = "32";
const RED: &str = "31";

/// A message that arrives in parts. A block is rendered once it is complete.
#[derive(Debug, Default)]
pub(crate) struct MarkdownStream {
    pending: String,
    /// A block of this message has been rendered, so the next one begins after an empty row.
    has_rendered: bool,
}

impl MarkdownStream {
    /// Adds text. Returns the rows of the blocks that are complete now.
    pub(crate) fn push(&mut self, more: &str, columns: usize, paint: Paint) -> Vec<String> {
        self.pending.push_str(more);
        let Some(last) = last_block(&self.pending) else { return Vec::new() };
        let mut rows = self.take(last, columns, paint);
        if self.pending.len() > LONGEST_BLOCK
            && let Some(end) = self.pending.rfind('\n')
        {
            let fence = open_fence(&self.pending[..=end]);
            rows.extend(self.take(end + 1, columns, paint));
            if let Some(fence) = fence {
                self.pending.insert_str(0, &fence);
            }
            // The next text belongs to the same block.
            self.has_rendered = false;
        }
        rows
    }

    /// The text is complete. Returns the rows of the rest.
    pub(crate) fn finish(&mut self, columns: usize, paint: Paint) -> Vec<String> {
        let rows = self.take(self.pending.len(), columns, paint);
        self.has_rendered = false;
        rows
    }

    /// The text that is not rendered yet.
    pub(crate) fn pending(&self) -> &str {
        &self.pending
    }

    fn take(&mut self, end: usize, columns: usize, paint: Paint) -> Vec<String> {
        let rest = self.pending.split_off(end);
        let text = std::mem::replace(&mut self.pending, rest);
        let mut rows = render(&text, columns, paint);
        if !rows.is_empty() && std::mem::replace(&mut self.has_rendered, true) {
            rows.insert(0, String::new());
        }
        rows
    }
}

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS
}

/// Where the last block begins.
fn last_block(text: &str) -> Option<usize> {
    let (mut depth, mut last) = (0_usize, None);
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        if depth == 0 && !matches!(event, Event::End(_)) {
            last = Some(range.start);
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    last
}

/// The line that opens a code block, if the text is one.
fn open_fence(text: &str) -> Option<String> {
    let first = text.trim_start_matches('\n').lines().next()?;
    let is_fence = first.trim_start().starts_with("```") || first.trim_start().starts_with("~~~");
    is_fence.then(|| format!("{first}\n"))
}

/// The rows of a whole text.
pub(crate) fn render(text: &str, columns: usize, paint: Paint) -> Vec<String> {
    let mut page = Page::new(columns.max(20), paint);
    for event in Parser::new_ext(text, options()) {
        page.handle(event);
    }
    page.end_block();
    page.rows
}

/// Rows in the making.
struct Page {
    columns: usize,
    paint: Paint,
    rows: Vec<String>,
    /// The parts of the current paragraph, with their styles.
    parts: Vec<(String, Style)>,
    styles: Vec<Style>,
    /// The texts before each row, for quotes and lists.
    prefixes: Vec<Prefix>,
    /// The addresses of the links that are open.
    links: Vec<String>,
    /// The language of the code block that is open.
    code: Option<String>,
    table: Option<Table>,
    /// An empty row comes before the next block.
    needs_gap: bool,
}

/// A text before the rows of a block. The first row may have another one, such as the number of an item.
struct Prefix {
    first: Option<String>,
    others: String,
    /// The number of the next item of a numbered list.
    number: Option<u64>,
    is_list: bool,
}

#[derive(Default)]
struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<String>>,
    head_rows: usize,
}

impl Page {
    fn new(columns: usize, paint: Paint) -> Page {
        Page {
            columns,
            paint,
            rows: Vec::new(),
            parts: Vec::new(),
            styles: vec![Style::default()],
            prefixes: Vec::new(),
            links: Vec::new(),
            code: None,
            table: None,
            needs_gap: false,
        }
    }

    fn handle(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.open(tag),
            Event::End(tag) => self.close(tag),
            Event::Text(text) if self.code.is_some() => self.add_code(&text),
            Event::Text(text) => self.add(&text),
            Event::Code(code) => {
                let style = self.style().with(CYAN);
                self.add_styled(&code, style);
            }
            Event::Html(text) | Event::InlineHtml(text) => self.add(&text),
            // Agents do not fill their lines, so each line end has a meaning.
            Event::SoftBreak | Event::HardBreak => self.add("\n"),
            Event::Rule => {
                self.begin_block();
                let rule = "─".repeat(self.columns.min(40));
                self.push_row(self.styled(&rule, &Style(vec![FAINT])));
                self.end_block();
            }
            Event::TaskListMarker(is_done) => self.add(if is_done { "[x] " } else { "[ ] " }),
            Event::FootnoteReference(name) => self.add(&format!("[{name}]")),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.add(&text),
        }
    }

    fn open(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.begin_block();
                let style = self.style().with(BOLD);
                self.styles.push(if level == HeadingLevel::H1 { style.with(UNDERLINED) } else { style });
            }
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::BlockQuote(_) => {
                self.begin_block();
                let others = self.styled("│ ", &Style(vec![FAINT]));
                self.prefixes.push(Prefix { first: None, others, number: None, is_list: false });
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                self.code = Some(match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                });
            }
            Tag::List(number) => {
                if self.list_depth() == 0 {
                    self.begin_block();
                }
                self.flush();
                self.needs_gap = false;
                self.prefixes.push(Prefix { first: None, others: String::new(), number, is_list: true });
            }
            Tag::Item => self.open_item(),
            Tag::Emphasis => self.push_style(ITALIC),
            Tag::Strong => self.push_style(BOLD),
            Tag::Strikethrough => self.push_style(STRUCK),
            Tag::Link { dest_url, .. } => {
                self.links.push(dest_url.to_string());
                self.push_style(UNDERLINED);
            }
            Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.to_string());
                self.add("[image: ");
            }
            Tag::Table(alignments) => {
                self.begin_block();
                self.table = Some(Table { alignments, ..Table::default() });
            }
            Tag::TableRow | Tag::TableHead => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.end_block();
                self.styles.pop();
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.end_block(),
            TagEnd::BlockQuote(_) => {
                self.end_block();
                self.prefixes.pop();
            }
            TagEnd::CodeBlock => {
                self.code = None;
                self.end_block();
            }
            TagEnd::List(_) => {
                self.flush();
                self.prefixes.pop();
                self.needs_gap = self.list_depth() == 0;
            }
            TagEnd::Item => self.flush(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link => {
                self.styles.pop();
                self.close_link();
            }
            TagEnd::Image => {
                self.add("]");
                self.close_link();
            }
            TagEnd::TableCell => self.close_cell(),
            TagEnd::TableHead => {
                if let Some(table) = &mut self.table {
                    table.head_rows = table.rows.len();
                }
            }
            TagEnd::Table => self.close_table(),
            _ => {}
        }
    }

    fn style(&self) -> Style {
        self.styles.last().cloned().unwrap_or_default()
    }

    fn push_style(&mut self, code: &'static str) {
        let style = self.style().with(code);
        self.styles.push(style);
    }

    fn list_depth(&self) -> usize {
        self.prefixes.iter().filter(|prefix| prefix.is_list).count()
    }

    fn open_item(&mut self) {
        self.flush();
        let Some(list) = self.prefixes.last_mut() else { return };
        let mark = match &mut list.number {
            Some(number) => {
                let mark = format!("{number}. ");
                *number += 1;
                mark
            }
            None => "• ".to_owned(),
        };
        list.others = " ".repeat(mark.width());
        list.first = Some(mark);
        self.needs_gap = false;
    }

    /// Shows the address of a link, unless its text is the address.
    fn close_link(&mut self) {
        let Some(address) = self.links.pop().filter(|address| !address.is_empty()) else { return };
        let is_shown = self.parts.last().is_some_and(|(text, _)| *text == printable(&address));
        if !is_shown {
            self.add_styled(&format!(" ({address})"), Style(vec![FAINT]));
        }
    }

    fn add(&mut self, text: &str) {
        let style = self.style();
        self.add_styled(text, style);
    }

    fn add_styled(&mut self, text: &str, style: Style) {
        self.parts.push((printable(text), style));
    }

    fn add_code(&mut self, text: &str) {
        let is_diff = self.code.as_deref().is_some_and(|language| language.trim() == "diff");
        let code = Style(vec![CYAN]);
        for line in text.lines() {
            let style = if is_diff { diff_style(line) } else { code.clone() };
            let row = format!("  {}", self.styled(&printable(&line.replace('\t', "    ")), &style));
            self.push_row(row);
        }
    }

    fn close_cell(&mut self) {
        let cell: String = std::mem::take(&mut self.parts).into_iter().map(|(text, _)| text).collect();
        if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
            row.push(cell.replace('\n', " "));
        }
    }

    fn close_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let columns = table.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &Vec<String>, at: usize| row.get(at).cloned().unwrap_or_default();
        let width = |at: usize| table.rows.iter().map(|row| cell(row, at).width()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (index, row) in table.rows.iter().enumerate() {
            let is_head = index < table.head_rows;
            let cells = widths.iter().enumerate().map(|(at, width)| {
                let text = cell(row, at);
                let space = width.saturating_sub(text.width());
                let left = match table.alignments.get(at) {
                    Some(Alignment::Right) => space,
                    Some(Alignment::Center) => space / 2,
                    _ => 0,
                };
                let text = if is_head { self.styled(&text, &Style(vec![BOLD])) } else { text };
                format!("{}{text}{}", " ".repeat(left), " ".repeat(space - left))
            });
            let line = cells.collect::<Vec<_>>().join(" │ ");
            self.push_row(line.trim_end().to_owned());
            if index + 1 == table.head_rows {
                let rule = widths.iter().map(|width| "─".repeat(*width)).collect::<Vec<_>>().join("─┼─");
                self.push_row(rule);
            }
        }
        self.end_block();
    }

    fn begin_block(&mut self) {
        self.flush();
        if std::mem::take(&mut self.needs_gap) && !self.rows.is_empty() {
            let row = self.prefix().trim_end().to_owned();
            self.rows.push(row);
        }
    }

    fn end_block(&mut self) {
        self.flush();
        self.needs_gap = true;
    }

    /// Writes the paragraph that was collected.
    fn flush(&mut self) {
        let parts = std::mem::take(&mut self.parts);
        if parts.iter().all(|(text, _)| text.trim().is_empty()) {
            return;
        }
        let used: usize = self.prefixes.iter().map(|prefix| visible_width(&prefix.others)).sum();
        let room = self.columns.saturating_sub(used + 1).max(10);
        for line in wrap(&parts, room) {
            let row: String = line.iter().map(|(text, style)| self.styled(text, style)).collect();
            self.push_row(row);
        }
    }

    fn push_row(&mut self, row: String) {
        let prefix = self.prefix();
        self.rows.push(format!("{prefix}{row}"));
    }

    /// The text before the next row.
    fn prefix(&mut self) -> String {
        self.prefixes
            .iter_mut()
            .map(|prefix| prefix.first.take().unwrap_or_else(|| prefix.others.clone()))
            .collect()
    }

    fn styled(&self, text: &str, style: &Style) -> String {
        match self.paint {
            Paint::Coloured if !style.0.is_empty() && !text.is_empty() => {
                format!("\x1b[{}m{text}\x1b[0m", style.0.join(";"))
            }
            _ => text.to_owned(),
        }
    }
}

/// The width of a text without its styles.
fn visible_width(text: &str) -> usize {
    let mut width = 0;
    let mut is_in_style = false;
    for c in text.chars() {
        match c {
            '\x1b' => is_in_style = true,
            'm' if is_in_style => is_in_style = false,
            _ if is_in_style => {}
            c => width += c.width().unwrap_or(0),
        }
    }
    width
}

type StyledLine = Vec<(String, Style)>;

/// Breaks a paragraph into lines of at most `room` columns, between words where that is possible.
fn wrap(parts: &[(String, Style)], room: usize) -> Vec<StyledLine> {
    let mut lines: Vec<StyledLine> = vec![Vec::new()];
    let mut used = 0;
    for (text, style) in parts {
        for piece in text.split_inclusive(['\n', ' ']) {
            let word = piece.trim_end_matches(['\n', ' ']);
            if used > 0 && used + word.width() > room {
                lines.push(Vec::new());
                used = 0;
            }
            for c in piece.chars() {
                let width = c.width().unwrap_or(0);
                if c == '\n' || used + width > room {
                    lines.push(Vec::new());
                    used = 0;
                }
                if c == '\n' || (c == ' ' && used == 0) {
                    continue;
                }
                used += width;
                let Some(line) = lines.last_mut() else { continue };
                match line.last_mut() {
                    Some((last, known)) if known == style => last.push(c),
                    _ => line.push((c.to_string(), style.clone())),
                }
            }
        }
    }
    for (text, _) in lines.iter_mut().filter_map(|line| line.last_mut()) {
        text.truncate(text.trim_end_matches(' ').len());
    }
    lines
}

fn diff_style(line: &str) -> Style {
    Style(match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => vec![BOLD],
        [b'+', ..] => vec![GREEN],
        [b'-', ..] => vec![RED],
        [b'@', b'@', ..] => vec![CYAN],
        _ => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        render(text, 40, Paint::Plain).join("\n")
    }

    #[test]
    fn blocks_become_rows() {
        for (text, rows) in [
            ("# Title\n\nSome **bold** and `code`.", "Title\n\nSome bold and code."),
            ("- one\n- two\n  - inner\n\nafter", "• one\n• two\n  • inner\n\nafter"),
            ("3. three\n4. four", "3. three\n4. four"),
            ("- [x] done\n- [ ] open", "• [x] done\n• [ ] open"),
            ("```rust\nfn a() {\n\tb();\n}\n```\nend", "  fn a() {\n      b();\n  }\n\nend"),
            ("> said\n> so", "│ said\n│ so"),
            ("[text](https://a.b) <https://c.d>", "text (https://a.b) https://c.d"),
            ("| a | long |\n|---|---:|\n| x | 1 |", "a │ long\n──┼─────\nx │    1"),
            ("a  \nb", "a\nb"),
            ("one\n\n---\n\ntwo", &format!("one\n\n{}\n\ntwo", "─".repeat(40))),
        ] {
            assert_eq!(plain(text), rows, "{text:?}");
        }
    }

    #[test]
    fn long_lines_break_between_words_and_lists_keep_their_indent() {
        let rows = render("- alpha beta gamma delta epsilon", 20, Paint::Plain);
        assert_eq!(rows, ["• alpha beta gamma", "  delta epsilon"]);
        let rows = render(&"x".repeat(45), 20, Paint::Plain);
        assert_eq!(rows.iter().map(|row| row.width()).collect::<Vec<_>>(), [19, 19, 7]);
        assert_eq!(render("漢字漢字漢字漢字漢字漢字", 20, Paint::Plain).len(), 2);
    }

    #[test]
    fn styles_appear_in_colour_only_and_control_characters_never() {
        let rows = render("# T\n\n**b** `c\x1b[2J`\n\n```\n\x1b]0;x\x07\n```", 40, Paint::Coloured);
        assert_eq!(rows[0], "\x1b[1;4mT\x1b[0m");
        assert_eq!(rows[2], "\x1b[1mb\x1b[0m \x1b[36mc\\u{1b}[2J\x1b[0m");
        let all = rows.join("\n");
        assert!(!all.contains("\x1b[2J") && !all.contains("\x1b]") && !all.contains('\x07'), "{all:?}");
        let diff = render("```diff\n+a\n-b\n```", 40, Paint::Coloured);
        assert_eq!(diff, ["  \x1b[32m+a\x1b[0m", "  \x1b[31m-b\x1b[0m"]);
    }

    #[test]
    fn a_growing_text_is_rendered_block_by_block_and_ends_as_the_whole_text() {
        let text = "# Title\n\nfirst paragraph\n\n- a\n- b\n\n```\ncode\n\nmore\n```\nlast *word*";
        let mut stream = MarkdownStream::default();
        let mut rows = Vec::new();
        for piece in text.as_bytes().chunks(3) {
            rows.extend(stream.push(std::str::from_utf8(piece).expect("ASCII"), 40, Paint::Plain));
        }
        assert_eq!(stream.pending(), "last *word*");
        rows.extend(stream.finish(40, Paint::Plain));
        assert_eq!(rows, render(text, 40, Paint::Plain));
    }

    #[test]
    fn a_long_code_block_appears_before_it_is_complete() {
        let mut stream = MarkdownStream::default();
        let mut rows = stream.push("```\n", 40, Paint::Plain);
        for number in 0..4000 {
            rows.extend(stream.push(&format!("line {number}\n"), 40, Paint::Plain));
        }
        assert!(rows.len() > 2000 && stream.pending().len() <= LONGEST_BLOCK, "{}", rows.len());
        rows.extend(stream.push("```\n", 40, Paint::Plain));
        rows.extend(stream.finish(40, Paint::Plain));
        let expected: Vec<String> = (0..4000).map(|number| format!("  line {number}")).collect();
        assert_eq!(rows, expected);
    }
}
