//! A conversation as text: messages, tool calls, plans, and requests that wait for an answer.

use std::collections::HashMap;

use agency_api::chat::{Approval, Entry, Item, PlanStep, ToolCall, ToolStatus, TurnEnd, Usage};
use agency_api::view::Task;
use serde_json::Value;

use crate::output::{Colour, Paint, printable};

/// Whether Agency talks to the task's agent over a protocol. Such an agent has no terminal.
pub(crate) fn has_conversation(task: &Task) -> bool {
    task.driver != "terminal"
}

/// The tool of a request that a terminal shows as a dialog.
pub(crate) const TERMINAL: &str = "terminal";

/// How many lines of a tool's output are shown. More would hide the conversation.
const SHOWN_LINES: usize = 10;

/// How many lines of a command or a change are shown with a request.
const DETAIL_LINES: usize = 40;

/// Turns entries into text, and remembers what was printed: when an entry grows, only its new part is printed.
pub(crate) struct Transcript {
    paint: Paint,
    printed: HashMap<u64, Printed>,
    /// The entry whose last line is printed without a line end, because more text may follow.
    open_line: Option<u64>,
}

/// The part of an entry that a reader has.
enum Printed {
    /// So many bytes of its text.
    Text(u64),
    Whole(Box<Item>),
}

impl Transcript {
    pub(crate) fn new(paint: Paint) -> Transcript {
        Transcript { paint, printed: HashMap::new(), open_line: None }
    }

    /// The text to print for an entry that is new or has changed.
    pub(crate) fn text_for(&mut self, entry: &Entry) -> String {
        if let Some((text, colour)) = streamed_text(&entry.item) {
            let known = match self.printed.get(&entry.number) {
                Some(Printed::Text(bytes)) => *bytes,
                Some(Printed::Whole(_)) | None => 0,
            };
            let (new, known) = new_text(entry, text, known);
            self.printed.insert(entry.number, Printed::Text(known));
            return self.continue_text(entry.number, &new, colour);
        }
        if matches!(self.printed.get(&entry.number), Some(Printed::Whole(known)) if **known == entry.item) {
            return String::new();
        }
        self.printed.insert(entry.number, Printed::Whole(Box::new(entry.item.clone())));
        format!("{}{}\n", self.end_line(), self.whole_item(&entry.item))
    }

    /// The line end that is missing after the last text, if any.
    pub(crate) fn end_line(&mut self) -> &'static str {
        if self.open_line.take().is_some() { "\n" } else { "" }
    }

    fn continue_text(&mut self, number: u64, more: &str, colour: Option<Colour>) -> String {
        if more.is_empty() {
            return String::new();
        }
        let is_open = self.open_line == Some(number);
        let end = if is_open { "" } else { self.end_line() };
        self.open_line = Some(number);
        format!("{end}{}", paint_lines(self.paint, colour, more))
    }

    fn whole_item(&self, item: &Item) -> String {
        item_text(self.paint, item)
    }
}

/// The part of a growing text that a reader does not have, and how much of the text the reader has with it.
pub(crate) fn new_text(entry: &Entry, text: &str, known: u64) -> (String, u64) {
    let from = entry.text_from.unwrap_or(0);
    let whole = entry.text_bytes.unwrap_or(from + text.len() as u64);
    let missing = whole.saturating_sub(known);
    // Without its middle, only the second half of the text is surely where it belongs.
    let lacks_middle = entry.text_from.is_none() && entry.text_bytes.is_some();
    let usable = if lacks_middle { text.len() / 2 } else { text.len() };
    let new = match text.len().checked_sub(missing as usize) {
        _ if known == 0 && from == 0 => text.to_owned(),
        Some(at) if text.is_char_boundary(at) && missing as usize <= usable => text[at..].to_owned(),
        _ => format!("\n… ({} bytes left out) …\n{text}", missing.saturating_sub(text.len() as u64)),
    };
    (new, whole.max(known))
}

pub(crate) fn paint_lines(paint: Paint, colour: Option<Colour>, text: &str) -> String {
    let text = text.split('\n').map(printable).collect::<Vec<_>>().join("\n");
    match colour {
        Some(colour) if !text.is_empty() => paint.paint(colour, &text),
        _ => text,
    }
}

/// A whole entry as text.
pub(crate) fn item_text(paint: Paint, item: &Item) -> String {
    match item {
        Item::User { text } => {
            paint_lines(paint, Some(Colour::Cyan), &format!("> {}", text.trim_end().replace('\n', "\n> ")))
        }
        Item::Assistant { text } | Item::Thinking { text } => paint_lines(paint, None, text),
        Item::Notice { text } => paint_lines(paint, Some(Colour::Faint), text.trim_end()),
        Item::ToolCall(call) => {
            let more = |more| format!("… {more} more lines");
            tool_text(paint, call, SHOWN_LINES, more)
        }
        Item::Plan { steps } => {
            paint_lines(paint, None, &steps.iter().map(plan_step).collect::<Vec<_>>().join("\n"))
        }
        Item::Approval(approval) => approval_text(paint, approval),
        Item::Error { message, cause } => {
            let cause = cause.as_ref().map(|cause| format!("\nCaused by: {cause}")).unwrap_or_default();
            paint_lines(paint, Some(Colour::Red), &format!("Error: {message}{cause}"))
        }
        Item::TurnEnd(end) => {
            let colour = if end.failed { Colour::Red } else { Colour::Faint };
            paint_lines(paint, Some(colour), &turn_end(end))
        }
    }
}

/// A tool call with the first lines of its output. `more` says how many lines are left out.
pub(crate) fn tool_text(
    paint: Paint,
    call: &ToolCall,
    shown: usize,
    more: impl Fn(usize) -> String,
) -> String {
    let title = format!("{} {}", status_mark(call.status), call.title);
    let mut lines = vec![paint_lines(paint, tool_colour(call.status), &title)];
    let output = call.output.as_deref().unwrap_or_default().trim_end();
    let is_diff = is_diff(output);
    let colour = |line: &str| match is_diff {
        true => diff_colour(line),
        false => tool_colour(call.status),
    };
    let shown_lines = output.lines().take(shown);
    lines.extend(shown_lines.map(|line| paint_lines(paint, colour(line), &format!("  {line}"))));
    let left_out = output.lines().count().saturating_sub(shown);
    if left_out > 0 {
        lines.push(paint_lines(paint, Some(Colour::Faint), &format!("  {}", more(left_out))));
    }
    lines.join("\n")
}

/// Whether a text is a change of a file: the name of the file, then lines that begin with a mark.
pub(crate) fn is_diff(text: &str) -> bool {
    let is_marked = |line: &str| line.is_empty() || line.starts_with([' ', '+', '-', '@', '\\']);
    let mut lines = text.lines();
    let is_named = lines.next().is_some_and(|first| !first.is_empty());
    let has_change = |line: &str| line.starts_with(['+', '-']);
    is_named && text.lines().skip(1).any(has_change) && lines.take(SHOWN_LINES).all(is_marked)
}

fn diff_colour(line: &str) -> Option<Colour> {
    match line.as_bytes().first() {
        Some(b'+') => Some(Colour::Green),
        Some(b'-') => Some(Colour::Red),
        Some(b'@') => Some(Colour::Cyan),
        _ => None,
    }
}

/// The text of an item that arrives in parts.
fn streamed_text(item: &Item) -> Option<(&str, Option<Colour>)> {
    match item {
        Item::Assistant { text } => Some((text.as_str(), None)),
        Item::Thinking { text } => Some((text.as_str(), Some(Colour::Faint))),
        _ => None,
    }
}

fn tool_colour(status: ToolStatus) -> Option<Colour> {
    match status {
        ToolStatus::Failed => Some(Colour::Red),
        ToolStatus::Completed => Some(Colour::Green),
        ToolStatus::Pending | ToolStatus::Running => None,
    }
}

pub(crate) fn status_mark(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Pending => "○",
        ToolStatus::Running => "●",
        ToolStatus::Completed => "✓",
        ToolStatus::Failed => "✗",
    }
}

pub(crate) fn plan_step(step: &PlanStep) -> String {
    format!("{} {}", status_mark(step.status), step.text)
}

fn approval_text(paint: Paint, approval: &Approval) -> String {
    let mut lines = vec![format!("? {}: {}", approval.action.summary, outcome_text(approval))];
    if approval.outcome.is_none() {
        lines.extend(details(approval).into_iter().map(|line| format!("  {line}")));
        for question in questions(approval) {
            lines.push(format!("  {}", question.text));
            let options = question.options.iter().enumerate();
            lines.extend(options.map(|(at, option)| format!("    {}. {option}", at + 1)));
        }
    }
    let diff = approval.action.diff.as_deref().unwrap_or_default();
    let is_change = |line: &str| line.starts_with(['+', '-']) && diff.lines().any(|known| known == line);
    let paint_line = |line: String| match line.strip_prefix("  ").filter(|line| is_change(line)) {
        Some(change) => paint_lines(paint, diff_colour(change), &line),
        None => paint_lines(paint, Some(Colour::Yellow), &line),
    };
    lines.into_iter().map(paint_line).collect::<Vec<_>>().join("\n")
}

/// Everything that is asked, beyond the one line that says it in short: the whole command, its directory, the files, the
/// change, the agent's own words and the options.
pub(crate) fn details(approval: &Approval) -> Vec<String> {
    let action = &approval.action;
    let mut lines = Vec::new();
    let command = action.command.as_deref().unwrap_or_default();
    if !action.summary.contains(command) {
        lines.extend(shortened("command: ", command));
    }
    lines.extend(action.directory.iter().map(|directory| format!("in {directory}")));
    let is_hidden = |part: &&String| !action.summary.contains(part.as_str());
    lines.extend(action.paths.iter().filter(is_hidden).map(|path| format!("file: {path}")));
    lines.extend(action.address.iter().filter(is_hidden).map(|address| format!("address: {address}")));
    if action.mcp.is_none() && questions(approval).is_empty() {
        lines.extend(action.arguments.iter().map(|arguments| format!("arguments: {arguments}")));
    }
    lines.extend(action.diff.iter().flat_map(|diff| shortened("", diff)));
    lines.extend(
        action
            .words
            .iter()
            .filter(|words| **words != action.summary)
            .map(|words| format!("the agent says: {words}")),
    );
    if questions(approval).is_empty() {
        let is_named = action.command.is_some() || action.address.is_some() || action.mcp.is_some();
        if !is_named && action.paths.is_empty() && action.diff.is_none() && action.arguments.is_none() {
            lines.push(match approval.tool == TERMINAL {
                true => "(a dialog on its terminal: `agency attach` shows it)".to_owned(),
                false => "(the agent's own words: it names no command, file or address)".to_owned(),
            });
        }
        let choices = approval.choices.iter().enumerate();
        lines.extend(choices.map(|(at, choice)| format!("{}. {}", at + 1, choice.label)));
    }
    lines
}

/// The first lines of a text.
fn shortened(label: &str, text: &str) -> Vec<String> {
    let mut lines: Vec<String> =
        text.lines().take(DETAIL_LINES).map(|line| format!("{label}{line}")).collect();
    let more = text.lines().count().saturating_sub(DETAIL_LINES);
    if more > 0 {
        lines.push(format!("… {more} more lines: `agency approvals --json` has them"));
    }
    lines
}

/// How the request was answered, in words.
pub(crate) fn outcome_text(approval: &Approval) -> String {
    let Some(outcome) = &approval.outcome else { return "waiting for your answer".to_owned() };
    let word = match (outcome.cancelled, outcome.allowed) {
        (true, _) => return "withdrawn".to_owned(),
        (false, _) if outcome.answer.is_some() => "answered",
        (false, true) => "allowed",
        (false, false) => "denied",
    };
    let by = outcome.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let why = outcome.message.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    let answer = outcome.answer.as_ref().map(|answer| format!(": {answer}")).unwrap_or_default();
    format!("{word}{by}{why}{answer}")
}

/// A question of an agent, with the answers that it suggests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) options: Vec<String>,
}

impl Question {
    /// The answer for a typed text: a number chooses an option, any other text is the answer itself.
    pub(crate) fn answer_for(&self, typed: &str) -> String {
        let chosen = typed.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        chosen.and_then(|at| self.options.get(at)).cloned().unwrap_or_else(|| typed.trim().to_owned())
    }
}

/// The questions of a request; empty if the agent asks for permission instead.
pub(crate) fn questions(approval: &Approval) -> Vec<Question> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let label = |option: &Value| option["label"].as_str().map(str::to_owned);
    let parse = |question: &Value| {
        let text = question["question"].as_str()?.to_owned();
        Some(Question { text, options: list(&question["options"]).iter().filter_map(label).collect() })
    };
    list(&approval.input["questions"]).iter().filter_map(parse).collect()
}

fn turn_end(end: &TurnEnd) -> String {
    let reason = end.reason.as_deref().unwrap_or_default();
    let word = match end.failed {
        true => format!("turn failed: {}", end.text.as_deref().unwrap_or(reason)),
        false if reason.starts_with("aborted") || reason == "cancelled" => "turn interrupted".to_owned(),
        false => "turn ended".to_owned(),
    };
    format!("── {word} · {}", usage_text(&end.usage))
}

pub(crate) fn usage_text(usage: &Usage) -> String {
    let cost = usage.cost_usd.map(|cost| format!(" · ${cost:.4} so far")).unwrap_or_default();
    format!("{} tokens in, {} out{cost}", usage.input_tokens + usage.cached_tokens, usage.output_tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64, item: Item) -> Entry {
        Entry { number, time: String::new(), revision: 0, text_from: None, text_bytes: None, item }
    }

    #[test]
    fn only_the_new_part_of_a_growing_text_is_printed() {
        let mut transcript = Transcript::new(Paint::Plain);
        let said = |text: &str| entry(1, Item::Assistant { text: text.into() });
        let notice = entry(2, Item::Notice { text: "so".into() });
        let printed: String = [said("He"), said("Hello"), said("Hello"), notice.clone(), notice]
            .iter()
            .map(|entry| transcript.text_for(entry))
            .collect();
        assert_eq!(printed, "Hello\nso\n");
    }

    #[test]
    fn a_text_that_is_interrupted_is_not_printed_again() {
        let mut transcript = Transcript::new(Paint::Plain);
        let said = |text: &str| entry(1, Item::Assistant { text: text.into() });
        let notice = |number| entry(number, Item::Notice { text: format!("notice {number}") });
        let printed: String = [said("one"), notice(2), said("one two"), notice(3), said("one two three")]
            .iter()
            .map(|entry| transcript.text_for(entry))
            .collect();
        assert_eq!(printed, "one\nnotice 2\n two\nnotice 3\n three");
    }

    #[test]
    fn a_long_text_grows_on_the_screen_although_each_answer_has_only_its_end() {
        let mut transcript = Transcript::new(Paint::Plain);
        let part = |text: &str, from, bytes| Entry {
            text_from: from,
            text_bytes: bytes,
            ..entry(1, Item::Assistant { text: text.into() })
        };
        let printed: String = [
            part("abc", None, None),
            part("de", Some(3), Some(5)),
            // The reader was too slow: the daemon leaves out the bytes between.
            part("xyz", Some(100), Some(103)),
            // A daemon that knows no seen texts repeats the beginning.
            part("yz!", Some(101), Some(104)),
            part("the beginning … 56789", None, Some(109)),
        ]
        .iter()
        .map(|entry| transcript.text_for(entry))
        .collect();
        let expected = "abcde\n… (95 bytes left out) …\nxyz!56789";
        assert_eq!(printed, expected);
    }

    #[test]
    fn changes_of_files_have_colours() {
        let call = |output: &str| ToolCall {
            id: "t".into(),
            name: "edit".into(),
            title: "Edit a.txt".into(),
            input: Value::Null,
            status: ToolStatus::Completed,
            output: Some(output.into()),
        };
        let text = item_text(Paint::Coloured, &Item::ToolCall(call("a.txt\n same\n-old\n+new")));
        assert!(text.contains("\x1b[1;31m  -old\x1b[0m") && text.contains("\x1b[32m  +new"), "{text:?}");
        let text = item_text(Paint::Coloured, &Item::ToolCall(call("total 3\n- a list\nno diff")));
        assert!(!text.contains("\x1b[1;31m"), "{text:?}");
    }

    #[test]
    fn nothing_that_an_agent_says_reaches_the_terminal_as_a_command() {
        let mut transcript = Transcript::new(Paint::Plain);
        let printed = transcript.text_for(&entry(1, Item::Assistant { text: "a\x1b[2Jb".into() }));
        assert!(!printed.contains('\x1b'), "{printed:?}");
    }

    #[test]
    fn a_number_chooses_and_a_text_answers() {
        let question = Question { text: "Which?".into(), options: vec!["Red".into(), "Blue".into()] };
        assert_eq!(question.answer_for("2"), "Blue");
        assert_eq!(question.answer_for(" Green "), "Green");
        assert_eq!(question.answer_for("7"), "7");
    }
}
