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

/// How many lines of a tool's output are shown. More would hide the conversation.
const SHOWN_LINES: usize = 10;

/// How many lines of a command or a change are shown with a request.
const DETAIL_LINES: usize = 40;

/// Turns entries into text, and remembers what was printed: when an entry grows, only its new part is printed.
pub(crate) struct Transcript {
    paint: Paint,
    printed: HashMap<u64, Item>,
    /// The entry whose last line is printed without a line end, because more text may follow.
    open_line: Option<u64>,
}

impl Transcript {
    pub(crate) fn new(paint: Paint) -> Transcript {
        Transcript { paint, printed: HashMap::new(), open_line: None }
    }

    /// The text to print for an entry that is new or has changed.
    pub(crate) fn text_for(&mut self, entry: &Entry) -> String {
        let before = self.printed.insert(entry.number, entry.item.clone());
        if before.as_ref() == Some(&entry.item) {
            return String::new();
        }
        if let Some((text, colour)) = streamed_text(&entry.item) {
            let known = before.as_ref().and_then(streamed_text).map_or(0, |(known, _)| known.len());
            return self.continue_text(entry.number, text, known, colour);
        }
        format!("{}{}\n", self.end_line(), self.whole_item(&entry.item))
    }

    /// The text of a request that was held back until now.
    pub(crate) fn text_of_request(&mut self, approval: &Approval) -> String {
        format!("{}{}\n", self.end_line(), self.whole_item(&Item::Approval(approval.clone())))
    }

    /// The line end that is missing after the last text, if any.
    pub(crate) fn end_line(&mut self) -> &'static str {
        if self.open_line.take().is_some() { "\n" } else { "" }
    }

    fn continue_text(&mut self, number: u64, text: &str, known: usize, colour: Option<Colour>) -> String {
        let is_open = self.open_line == Some(number);
        let more = if is_open { text.get(known..).unwrap_or(text) } else { text };
        let end = if is_open { "" } else { self.end_line() };
        self.open_line = Some(number);
        format!("{end}{}", self.paint_lines(colour, more))
    }

    fn paint_lines(&self, colour: Option<Colour>, text: &str) -> String {
        let text = text.split('\n').map(printable).collect::<Vec<_>>().join("\n");
        match colour {
            Some(colour) if !text.is_empty() => self.paint.paint(colour, &text),
            _ => text,
        }
    }

    fn whole_item(&self, item: &Item) -> String {
        match item {
            Item::User { text } => {
                self.paint_lines(Some(Colour::Cyan), &format!("> {}", text.trim_end().replace('\n', "\n> ")))
            }
            Item::Assistant { text } | Item::Thinking { text } => self.paint_lines(None, text),
            Item::Notice { text } => self.paint_lines(Some(Colour::Faint), text.trim_end()),
            Item::ToolCall(call) => self.paint_lines(tool_colour(call.status), &tool_call(call)),
            Item::Plan { steps } => {
                self.paint_lines(None, &steps.iter().map(plan_step).collect::<Vec<_>>().join("\n"))
            }
            Item::Approval(approval) => self.paint_lines(Some(Colour::Yellow), &approval_text(approval)),
            Item::Error { message, cause } => {
                let cause = cause.as_ref().map(|cause| format!("\nCaused by: {cause}")).unwrap_or_default();
                self.paint_lines(Some(Colour::Red), &format!("Error: {message}{cause}"))
            }
            Item::TurnEnd(end) => {
                let colour = if end.failed { Colour::Red } else { Colour::Faint };
                self.paint_lines(Some(colour), &turn_end(end))
            }
        }
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

fn status_mark(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Pending => "○",
        ToolStatus::Running => "●",
        ToolStatus::Completed => "✓",
        ToolStatus::Failed => "✗",
    }
}

fn plan_step(step: &PlanStep) -> String {
    format!("{} {}", status_mark(step.status), step.text)
}

fn tool_call(call: &ToolCall) -> String {
    let mut lines = vec![format!("{} {}", status_mark(call.status), call.title)];
    let output = call.output.as_deref().unwrap_or_default().trim_end();
    lines.extend(output.lines().take(SHOWN_LINES).map(|line| format!("  {line}")));
    let more = output.lines().count().saturating_sub(SHOWN_LINES);
    if more > 0 {
        lines.push(format!("  … {more} more lines"));
    }
    lines.join("\n")
}

fn approval_text(approval: &Approval) -> String {
    let mut lines = vec![format!("? {}: {}", approval.action.summary, outcome_text(approval))];
    if approval.outcome.is_none() {
        lines.extend(details(approval).into_iter().map(|line| format!("  {line}")));
        for question in questions(approval) {
            lines.push(format!("  {}", question.text));
            let options = question.options.iter().enumerate();
            lines.extend(options.map(|(at, option)| format!("    {}. {option}", at + 1)));
        }
    }
    lines.join("\n")
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
            lines.push("(the agent's own words: it names no command, file or address)".to_owned());
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
        Entry { number, time: String::new(), revision: 0, item }
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
