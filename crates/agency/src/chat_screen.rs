//! The conversation as a user at a terminal reads it: complete entries as text, the rest as rows that change.
//!
//! Writes nothing: returns the text to print, and the rows to draw below it.

use std::collections::{BTreeMap, HashMap};

use agency_api::chat::{Entry, Item, PlanStep, ToolCall, ToolStatus};
use unicode_width::UnicodeWidthChar;

use crate::conversation::{self, item_text, paint_lines};
use crate::markdown::MarkdownStream;
use crate::output::{Colour, Paint, count, printable};

/// How many lines of a tool's output are shown. `/show` prints all of them.
const TOOL_LINES: usize = 6;

/// How many lines of a change of a file are shown.
const DIFF_LINES: usize = 20;

/// How many rows of a text that grows are shown before its block is complete.
const GROWING_ROWS: usize = 6;

/// How many tools that run, and how many steps of a plan, are shown.
const LISTED_ROWS: usize = 6;

pub(crate) struct ChatScreen {
    paint: Paint,
    columns: usize,
    growing: Option<Growing>,
    /// How much of each text was shown, in bytes.
    known_texts: HashMap<u64, u64>,
    /// The other entries that were printed.
    printed: HashMap<u64, Item>,
    /// The tools that run.
    tools: BTreeMap<u64, ToolCall>,
    /// The plan of this turn.
    plan: Option<(u64, Vec<PlanStep>)>,
    /// The last entry that was not shown in full.
    folded: Option<u64>,
}

/// The message or the thought that is arriving.
struct Growing {
    number: u64,
    text: GrowingText,
}

enum GrowingText {
    Message(MarkdownStream),
    Thought(String),
}

impl ChatScreen {
    pub(crate) fn new(paint: Paint, columns: usize) -> ChatScreen {
        ChatScreen {
            paint,
            columns,
            growing: None,
            known_texts: HashMap::new(),
            printed: HashMap::new(),
            tools: BTreeMap::new(),
            plan: None,
            folded: None,
        }
    }

    pub(crate) fn set_columns(&mut self, columns: usize) {
        self.columns = columns;
    }

    /// The last entry that was not shown in full.
    pub(crate) fn last_folded(&self) -> Option<u64> {
        self.folded
    }

    /// The text to print for an entry that is new or has changed.
    pub(crate) fn text_for(&mut self, entry: &Entry) -> String {
        match &entry.item {
            Item::Assistant { text } | Item::Thinking { text } => self.add_text(entry, text),
            Item::ToolCall(call) if matches!(call.status, ToolStatus::Pending | ToolStatus::Running) => {
                self.tools.insert(entry.number, call.clone());
                self.finish_text()
            }
            Item::Plan { steps } => {
                let before = self.plan.replace((entry.number, steps.clone()));
                let before = before.filter(|(number, _)| *number != entry.number);
                format!("{}{}", self.finish_text(), self.plan_text(before))
            }
            item => {
                self.tools.remove(&entry.number);
                if self.printed.get(&entry.number) == Some(item) {
                    return String::new();
                }
                self.printed.insert(entry.number, item.clone());
                let plan = if matches!(item, Item::TurnEnd(_)) { self.plan.take() } else { None };
                let before = format!("{}{}", self.finish_text(), self.plan_text(plan));
                format!("{before}{}\n", self.whole_item(entry.number, item))
            }
        }
    }

    /// The text of everything that was not complete: no more comes.
    pub(crate) fn finish(&mut self) -> String {
        let mut text = self.finish_text();
        for (number, call) in std::mem::take(&mut self.tools) {
            text.push_str(&format!("{}\n", self.whole_item(number, &Item::ToolCall(call))));
        }
        let plan = self.plan.take();
        text + &self.plan_text(plan)
    }

    fn add_text(&mut self, entry: &Entry, text: &str) -> String {
        let known = self.known_texts.get(&entry.number).copied().unwrap_or(0);
        let (new, known) = conversation::new_text(entry, text, known);
        self.known_texts.insert(entry.number, known);
        if new.is_empty() {
            return String::new();
        }
        let mut out = String::new();
        if self.growing.as_ref().is_none_or(|growing| growing.number != entry.number) {
            out = self.finish_text();
            let text = match &entry.item {
                Item::Thinking { .. } => GrowingText::Thought(String::new()),
                _ => GrowingText::Message(MarkdownStream::default()),
            };
            self.growing = Some(Growing { number: entry.number, text });
        }
        match self.growing.as_mut().map(|growing| &mut growing.text) {
            Some(GrowingText::Message(stream)) => {
                out.push_str(&lines(stream.push(&new, self.columns, self.paint)))
            }
            Some(GrowingText::Thought(thought)) => thought.push_str(&new),
            None => {}
        }
        out
    }

    /// The rest of the text that was arriving.
    fn finish_text(&mut self) -> String {
        match self.growing.take() {
            None => String::new(),
            Some(Growing { text: GrowingText::Message(mut stream), .. }) => {
                lines(stream.finish(self.columns, self.paint))
            }
            Some(Growing { number, text: GrowingText::Thought(thought) }) => {
                self.folded = Some(number);
                format!("{}\n", self.folded_thought(number, &thought))
            }
        }
    }

    fn folded_thought(&self, number: u64, thought: &str) -> String {
        let first = thought.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let more = thought.trim().lines().count().saturating_sub(1);
        let hint = match more {
            0 => String::new(),
            more => format!(" … {} (/show {number})", count(more, "more line")),
        };
        let room = self.columns.saturating_sub(hint.chars().count() + 4).max(20);
        let first = fitting(&printable(first.trim()), room);
        self.paint.paint(Colour::Faint, &format!("∴ {first}{hint}"))
    }

    fn whole_item(&mut self, number: u64, item: &Item) -> String {
        let Item::ToolCall(call) = item else { return item_text(self.paint, item) };
        let output = call.output.as_deref().unwrap_or_default().trim_end();
        let shown = if conversation::is_diff(output) { DIFF_LINES } else { TOOL_LINES };
        if output.lines().count() > shown {
            self.folded = Some(number);
        }
        let more = |more| format!("… {} (/show {number})", count(more, "more line"));
        conversation::tool_text(self.paint, call, shown, more)
    }

    fn plan_text(&self, plan: Option<(u64, Vec<PlanStep>)>) -> String {
        let steps = plan.map(|(_, steps)| steps).unwrap_or_default();
        lines(
            steps.iter().map(|step| paint_lines(self.paint, None, &conversation::plan_step(step))).collect(),
        )
    }

    /// The rows below the printed text: the plan, tools that run, and the text that is arriving.
    pub(crate) fn rows(&self) -> Vec<String> {
        let fit = |text: &str| fitting(&printable(text).replace('\n', " "), self.columns.saturating_sub(1));
        let mut rows = Vec::new();
        if let Some((_, steps)) = &self.plan {
            let is_open = |step: &PlanStep| step.status != ToolStatus::Completed;
            let first = steps.iter().position(is_open).unwrap_or(0).saturating_sub(1);
            let shown = steps.iter().skip(first).take(LISTED_ROWS);
            rows.extend(
                shown.map(|step| self.paint.paint(Colour::Faint, &fit(&conversation::plan_step(step)))),
            );
        }
        let tools = self.tools.values().rev().take(LISTED_ROWS).rev();
        rows.extend(
            tools.map(|call| fit(&format!("{} {}", conversation::status_mark(call.status), call.title))),
        );
        match self.growing.as_ref().map(|growing| &growing.text) {
            Some(GrowingText::Message(stream)) => rows.extend(self.last_rows(stream.pending())),
            Some(GrowingText::Thought(thought)) => {
                let thought = self.last_rows(thought);
                let faint = |row: &String| self.paint.paint(Colour::Faint, &format!("∴ {row}"));
                rows.extend(thought.iter().rev().take(3).rev().map(faint));
            }
            None => {}
        }
        rows
    }

    /// The last rows of a text, without those that are too long ago.
    fn last_rows(&self, text: &str) -> Vec<String> {
        let room = self.columns.saturating_sub(3).max(10);
        // A row has at least one byte for each column, so this is enough.
        let from = text.ceil_char_boundary(text.len().saturating_sub(GROWING_ROWS * room * 4));
        let mut rows = Vec::new();
        for line in text[from..].trim_end_matches('\n').lines() {
            let line = printable(line).replace('\t', "    ");
            let (mut row, mut used) = (String::new(), 0);
            for c in line.chars() {
                let width = c.width().unwrap_or(0);
                if used + width > room {
                    rows.push(std::mem::take(&mut row));
                    used = 0;
                }
                row.push(c);
                used += width;
            }
            rows.push(row);
        }
        rows.split_off(rows.len().saturating_sub(GROWING_ROWS))
    }
}

fn lines(rows: Vec<String>) -> String {
    rows.into_iter().map(|row| row + "\n").collect()
}

/// The beginning of a text that fits into so many columns.
pub(crate) fn fitting(text: &str, columns: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= columns
    };
    let shown: String = text.chars().take_while(fits).collect();
    if shown.len() == text.len() {
        shown
    } else {
        format!("{}…", &shown[..shown.floor_char_boundary(shown.len().saturating_sub(1))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64, item: Item) -> Entry {
        Entry { number, time: String::new(), revision: 0, text_from: None, text_bytes: None, item }
    }

    fn message(number: u64, text: &str) -> Entry {
        entry(number, Item::Assistant { text: text.into() })
    }

    fn tool(status: ToolStatus, output: &str) -> Item {
        Item::ToolCall(ToolCall {
            id: "t".into(),
            name: "Bash".into(),
            title: "make".into(),
            input: serde_json::Value::Null,
            status,
            output: Some(output.into()),
        })
    }

    #[test]
    fn a_message_is_printed_block_by_block_and_its_last_block_is_a_row() {
        let mut screen = ChatScreen::new(Paint::Plain, 40);
        assert_eq!(screen.text_for(&message(1, "one **tw")), "");
        assert_eq!(screen.rows(), ["one **tw"]);
        assert_eq!(screen.text_for(&message(1, "one **two**\n\n- three")), "one two\n");
        assert_eq!(screen.rows(), ["- three"]);
        let notice = entry(2, Item::Notice { text: "slow".into() });
        assert_eq!(screen.text_for(&notice), "\n• three\nslow\n");
        assert_eq!(screen.text_for(&notice), "");
        assert!(screen.rows().is_empty());
        screen.text_for(&message(3, "end"));
        assert_eq!(screen.finish(), "end\n");
    }

    #[test]
    fn thoughts_and_long_outputs_are_folded_and_running_tools_are_rows() {
        let mut screen = ChatScreen::new(Paint::Plain, 60);
        let thought = entry(1, Item::Thinking { text: "First this.\nThen that.\nSo.".into() });
        assert_eq!(screen.text_for(&thought), "");
        assert_eq!(screen.rows(), ["∴ First this.", "∴ Then that.", "∴ So."]);
        let text = screen.text_for(&entry(2, tool(ToolStatus::Running, "")));
        assert_eq!(text, "∴ First this. … 2 more lines (/show 1)\n");
        assert_eq!((screen.rows(), screen.last_folded()), (vec!["● make".into()], Some(1)));
        let output: String = (1..=8).map(|number| format!("line {number}\n")).collect();
        let text = screen.text_for(&entry(2, tool(ToolStatus::Completed, &output)));
        assert!(
            text.starts_with("✓ make\n  line 1\n") && text.ends_with("  … 2 more lines (/show 2)\n"),
            "{text}"
        );
        assert_eq!((screen.rows().len(), screen.last_folded()), (0, Some(2)));
    }

    #[test]
    fn a_plan_stays_in_one_place_until_the_turn_ends() {
        let mut screen = ChatScreen::new(Paint::Plain, 60);
        let plan = |status| entry(1, Item::Plan { steps: vec![PlanStep { text: "first".into(), status }] });
        assert_eq!(screen.text_for(&plan(ToolStatus::Running)), "");
        assert_eq!(screen.text_for(&plan(ToolStatus::Completed)), "");
        assert_eq!(screen.rows(), ["✓ first"]);
        let usage = agency_api::chat::Usage::default();
        let end = agency_api::chat::TurnEnd { text: None, reason: None, failed: false, usage };
        assert!(screen.text_for(&entry(2, Item::TurnEnd(end))).starts_with("✓ first\n── turn ended"));
        assert!(screen.rows().is_empty());
    }

    #[test]
    fn no_control_character_of_an_agent_is_in_text_or_rows() {
        let mut screen = ChatScreen::new(Paint::Plain, 60);
        let mut all = screen.text_for(&message(1, "a\x1b[2Jb"));
        all.push_str(&screen.rows().join("\n"));
        all.push_str(&screen.text_for(&entry(2, Item::Thinking { text: "c\x1b]0;t\x07".into() })));
        all.push_str(&screen.rows().join("\n"));
        all.push_str(&screen.text_for(&entry(3, tool(ToolStatus::Running, "\x1b[1A"))));
        all.push_str(&screen.text_for(&entry(3, tool(ToolStatus::Completed, "\x1b[1A"))));
        assert!(!all.contains(['\x1b', '\x07']), "{all:?}");
    }
}
