//! An entry of a conversation as it is looked for: its kind, and everything in it that is text.

use agency_api::chat::{Approval, Entry, Item, ToolCall};
use agency_api::search::HitKind;
use serde_json::Value;

/// What is found, or not, as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Of the entry in its conversation; 0 is the task's own text.
    pub number: u64,
    pub kind: HitKind,
    /// Milliseconds since 1970, where it is known.
    pub at_ms: Option<i64>,
    pub text: String,
}

impl Passage {
    pub fn of(entry: &Entry) -> Passage {
        let (kind, text) = read(&entry.item);
        Passage { number: entry.number, kind, at_ms: milliseconds(&entry.time), text }
    }
}

pub fn milliseconds(time: &str) -> Option<i64> {
    time.parse::<jiff::Timestamp>().ok().map(|time| time.as_millisecond())
}

fn read(item: &Item) -> (HitKind, String) {
    match item {
        Item::User { text } => (HitKind::User, text.clone()),
        Item::Assistant { text } => (HitKind::Assistant, text.clone()),
        Item::Thinking { text } => (HitKind::Thinking, text.clone()),
        Item::ToolCall(call) => (HitKind::ToolCall, tool_call(call)),
        Item::Plan { steps } => {
            let steps: Vec<&str> = steps.iter().map(|step| step.text.as_str()).collect();
            (HitKind::Plan, steps.join("\n"))
        }
        Item::Approval(asked) => (HitKind::Approval, approval(asked)),
        Item::Notice { text } => (HitKind::Notice, text.clone()),
        Item::Error { message, cause } => {
            (HitKind::Error, lines([message.as_str()].into_iter().chain(cause.as_deref())))
        }
        // What a turn ended with was said before; only a failure is told here alone.
        Item::TurnEnd(end) => {
            let text = end.text.as_deref().filter(|_| end.failed);
            (HitKind::Error, text.unwrap_or_default().to_owned())
        }
    }
}

fn tool_call(call: &ToolCall) -> String {
    let mut input = Vec::new();
    texts(&call.input, &mut input);
    lines([call.title.as_str()].into_iter().chain(input).chain(call.output.as_deref()))
}

/// What would be done is in the call itself.
fn approval(asked: &Approval) -> String {
    let mut questions = Vec::new();
    texts(&asked.input["questions"], &mut questions);
    let why = asked.outcome.as_ref().and_then(|outcome| outcome.message.as_deref());
    lines([asked.title.as_str()].into_iter().chain(questions).chain(why))
}

fn lines<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    parts.collect::<Vec<_>>().join("\n")
}

/// Every text in a value, without the names of its keys.
fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn passage(item: Value) -> (HitKind, String) {
        let item: Item = serde_json::from_value(item).expect("an item");
        read(&item)
    }

    #[test]
    fn a_tool_call_is_found_by_what_it_was_given_and_what_it_printed() {
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
    fn a_turn_that_ended_well_says_nothing_twice() {
        let end = |failed| {
            let usage =
                json!({ "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "cost_usd": null });
            json!({ "kind": "turn_end", "text": "so", "reason": null, "failed": failed, "usage": usage })
        };
        assert_eq!(passage(end(false)).1, "");
        assert_eq!(passage(end(true)), (HitKind::Error, "so".to_owned()));
    }
}
