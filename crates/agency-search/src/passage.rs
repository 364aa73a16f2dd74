//! The searchable text of one entry of a conversation, or of some lines of a terminal.

use agency_api::chat::{Approval, Entry, Item, ToolCall};
use agency_api::search::HitKind;
use serde_json::Value;

/// The numbers of passages from terminals begin above those of conversations.
pub const FIRST_OUTPUT: u64 = 1 << 40;

/// The newest 40,000 lines of a task's terminals are enough, and a chatty program must not fill the disk a second time.
pub const MOST_OUTPUT: u64 = 2_000;

/// The unit of search: a hit is one passage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The number of the entry in its conversation; 0 is the text of the task file.
    pub number: u64,
    pub kind: HitKind,
    /// Milliseconds since 1970, if known.
    pub at_ms: Option<i64>,
    pub text: String,
}

impl Passage {
    pub fn of(entry: &Entry) -> Passage {
        let (kind, text) = item_text(&entry.item);
        Passage { number: entry.number, kind, at_ms: milliseconds(&entry.time), text }
    }
}

pub fn milliseconds(time: &str) -> Option<i64> {
    time.parse::<jiff::Timestamp>().ok().map(|time| time.as_millisecond())
}

fn item_text(item: &Item) -> (HitKind, String) {
    match item {
        Item::User { text } => (HitKind::User, text.clone()),
        Item::Assistant { text } => (HitKind::Assistant, text.clone()),
        Item::Thinking { text } => (HitKind::Thinking, text.clone()),
        Item::ToolCall(call) => (HitKind::ToolCall, tool_call_text(call)),
        Item::Plan { steps } => {
            let steps: Vec<&str> = steps.iter().map(|step| step.text.as_str()).collect();
            (HitKind::Plan, steps.join("\n"))
        }
        Item::Approval(asked) => (HitKind::Approval, approval_text(asked)),
        Item::Notice { text } => (HitKind::Notice, text.clone()),
        Item::Error { message, cause } => {
            (HitKind::Error, join_lines([message.as_str()].into_iter().chain(cause.as_deref())))
        }
        // The text at the end of a turn repeats the last message, unless the turn failed.
        Item::TurnEnd(end) => {
            let text = end.text.as_deref().filter(|_| end.failed);
            (HitKind::Error, text.unwrap_or_default().to_owned())
        }
    }
}

fn tool_call_text(call: &ToolCall) -> String {
    let mut input = Vec::new();
    collect_texts(&call.input, &mut input);
    join_lines([call.title.as_str()].into_iter().chain(input).chain(call.output.as_deref()))
}

/// The tool call is an entry of its own, so only the questions and the answer are new here.
fn approval_text(asked: &Approval) -> String {
    let mut questions = Vec::new();
    collect_texts(&asked.input["questions"], &mut questions);
    let why = asked.outcome.as_ref().and_then(|outcome| outcome.message.as_deref());
    join_lines([asked.title.as_str()].into_iter().chain(questions).chain(why))
}

fn join_lines<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    parts.collect::<Vec<_>>().join("\n")
}

/// Collects every text in a JSON value, without the names of its keys.
fn collect_texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(values) => values.iter().for_each(|value| collect_texts(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| collect_texts(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn passage(item: Value) -> (HitKind, String) {
        let item: Item = serde_json::from_value(item).expect("an item");
        item_text(&item)
    }

    #[test]
    fn a_search_finds_a_tool_call_by_its_input_and_its_output() {
        let call = json!({
            "kind": "tool_call", "id": "t", "name": "Edit", "title": "Edit: a.rs", "status": "completed",
            "input": { "file": "a.rs", "edits": [{ "old": "one", "new": "two" }], "count": 3 },
            "output": "done",
        });
        let (kind, text) = passage(call);
        assert_eq!(kind, HitKind::ToolCall);
        let mut words: Vec<&str> = text.lines().collect();
        words.sort_unstable();
        assert_eq!(words, ["Edit: a.rs", "a.rs", "done", "one", "two"]);
    }

    #[test]
    fn only_a_failed_turn_end_has_a_text() {
        let end = |failed| {
            let usage =
                json!({ "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "cost_usd": null });
            json!({ "kind": "turn_end", "text": "so", "reason": null, "failed": failed, "usage": usage })
        };
        assert_eq!(passage(end(false)).1, "");
        assert_eq!(passage(end(true)), (HitKind::Error, "so".to_owned()));
    }
}
