//! Views of a conversation: the types of `agency-core` as the types of the API, with long texts cut.
//!
//! Exhaustive on purpose: a new variant or a new field of the conversation does not compile until it has a place here.

use std::time::Duration;

use agency_api::chat;
use agency_core::approval::Action;
use agency_core::conversation::{
    Approval, ApprovalOutcome, Choice, ChoiceKind, Entry, Item, PlanStep, ToolCall, ToolStatus, TurnEnd,
    Usage,
};
use agency_driver::conversation::{AgentSetting, SessionReport, SlashCommand};
use agency_driver::protocol_run::ConversationRun;
use serde_json::Value;

/// The longest text in a view, in bytes. The journal has the whole text.
const LONGEST_TEXT: usize = 100_000;

/// The view of an entry. If the reader has seen a part of its text, only the rest.
pub fn entry_view(entry: &Entry, seen: Option<chat::SeenText>) -> chat::Entry {
    let Entry { number, at, revision, item } = entry;
    let (time, number, revision) = (wall_time(*at), *number, *revision);
    let seen = seen.filter(|seen| seen.entry == number).map_or(0, |seen| seen.bytes as usize);
    let whole = streamed_text(item).map_or(0, str::len);
    match streamed_text(item).and_then(|text| text.get(seen..)).filter(|_| seen > 0) {
        Some(rest) => {
            let rest = &rest[rest.ceil_char_boundary(rest.len().saturating_sub(LONGEST_TEXT))..];
            let text = rest.to_owned();
            let item = match item {
                Item::Thinking { .. } => chat::Item::Thinking { text },
                _ => chat::Item::Assistant { text },
            };
            let text_from = Some((whole - rest.len()) as u64);
            chat::Entry { number, time, revision, text_from, text_bytes: Some(whole as u64), item }
        }
        None => {
            let text_bytes = (whole > LONGEST_TEXT).then_some(whole as u64);
            chat::Entry { number, time, revision, text_from: None, text_bytes, item: item_view(item) }
        }
    }
}

/// The text of an item that arrives in parts.
fn streamed_text(item: &Item) -> Option<&str> {
    match item {
        Item::Assistant { text } | Item::Thinking { text } => Some(text),
        _ => None,
    }
}

/// The status of the session of a live run.
pub fn status_view(run: &ConversationRun) -> chat::SessionStatus {
    let SessionReport { title, context, commands } = run.core().report();
    let command = |command: &SlashCommand| chat::SlashCommand {
        name: command.name.clone(),
        description: command.description.clone(),
        hint: command.hint.clone(),
    };
    chat::SessionStatus {
        working: run.is_working(),
        title: title.clone(),
        context: context.map(|(used, size)| chat::ContextUse { used, size }),
        mode: run.offers(AgentSetting::Mode).current,
        model: run.offers(AgentSetting::Model).current,
        commands: commands.iter().map(command).collect(),
        images: run.takes_images(),
    }
}

/// A time since 1970 in RFC 3339.
pub fn wall_time(at: Duration) -> String {
    jiff::Timestamp::from_millisecond(at.as_millis() as i64).unwrap_or_default().to_string()
}

fn item_view(item: &Item) -> chat::Item {
    match item {
        Item::User { text } => chat::Item::User { text: cut(text) },
        Item::Assistant { text } => chat::Item::Assistant { text: cut(text) },
        Item::Thinking { text } => chat::Item::Thinking { text: cut(text) },
        Item::ToolCall(call) => chat::Item::ToolCall(tool_call_view(call)),
        Item::Plan { steps } => chat::Item::Plan { steps: steps.iter().map(plan_step_view).collect() },
        Item::Approval(approval) => chat::Item::Approval(approval_view(approval)),
        Item::Notice { text } => chat::Item::Notice { text: cut(text) },
        Item::Error { message, cause } => {
            chat::Item::Error { message: cut(message), cause: cause.as_deref().map(cut) }
        }
        Item::TurnEnd(end) => chat::Item::TurnEnd(turn_end_view(end)),
    }
}

fn tool_call_view(call: &ToolCall) -> chat::ToolCall {
    let ToolCall { id, name, title, input, status, output } = call;
    chat::ToolCall {
        id: cut(id),
        name: cut(name),
        title: cut(title),
        input: cut_value(input),
        status: tool_status_view(*status),
        output: output.as_deref().map(cut),
    }
}

fn tool_status_view(status: ToolStatus) -> chat::ToolStatus {
    match status {
        ToolStatus::Pending => chat::ToolStatus::Pending,
        ToolStatus::Running => chat::ToolStatus::Running,
        ToolStatus::Completed => chat::ToolStatus::Completed,
        ToolStatus::Failed => chat::ToolStatus::Failed,
    }
}

fn plan_step_view(step: &PlanStep) -> chat::PlanStep {
    let PlanStep { text, status } = step;
    chat::PlanStep { text: cut(text), status: tool_status_view(*status) }
}

pub fn approval_view(approval: &Approval) -> chat::Approval {
    let Approval { id, tool, title, input, choices, outcome } = approval;
    chat::Approval {
        id: cut(id),
        tool: cut(tool),
        title: cut(title),
        input: cut_value(input),
        action: Box::new(action_view(approval, cut)),
        choices: choices.iter().map(choice_view).collect(),
        outcome: outcome.as_ref().map(outcome_view),
    }
}

/// The action of a request. `cut` shortens each of its texts.
pub(crate) fn action_view(approval: &Approval, cut: impl Fn(&str) -> String) -> chat::Action {
    let Action { command, paths, diff, address, mcp, directory, arguments, words } = Action::of(approval);
    chat::Action {
        command: command.as_deref().map(&cut),
        paths: paths.iter().map(|path| cut(path)).collect(),
        diff: diff.as_deref().map(&cut),
        address: address.as_deref().map(&cut),
        mcp: mcp.as_ref().map(|mcp| chat::McpTool { server: cut(&mcp.server), tool: cut(&mcp.tool) }),
        directory: directory.as_deref().map(&cut),
        arguments: arguments.as_deref().map(&cut),
        words: words.as_deref().map(&cut),
        summary: cut(&Action::headline(approval)),
    }
}

fn choice_view(choice: &Choice) -> chat::Choice {
    let Choice { id, kind, label } = choice;
    chat::Choice { id: cut(id), kind: choice_kind_view(*kind), label: cut(label) }
}

pub(crate) fn choice_kind_view(kind: ChoiceKind) -> chat::ChoiceKind {
    match kind {
        ChoiceKind::AllowOnce => chat::ChoiceKind::AllowOnce,
        ChoiceKind::AllowAlways => chat::ChoiceKind::AllowAlways,
        ChoiceKind::RejectOnce => chat::ChoiceKind::RejectOnce,
        ChoiceKind::RejectAlways => chat::ChoiceKind::RejectAlways,
        ChoiceKind::Other => chat::ChoiceKind::Other,
    }
}

fn outcome_view(outcome: &ApprovalOutcome) -> chat::ApprovalOutcome {
    let ApprovalOutcome { allowed, cancelled, message, by, answer } = outcome;
    chat::ApprovalOutcome {
        allowed: *allowed,
        cancelled: *cancelled,
        message: message.as_deref().map(cut),
        by: by.as_deref().map(cut),
        answer: answer.as_deref().map(cut),
    }
}

fn turn_end_view(end: &TurnEnd) -> chat::TurnEnd {
    let TurnEnd { text, reason, failed, usage } = end;
    chat::TurnEnd {
        text: text.as_deref().map(cut),
        reason: reason.as_deref().map(cut),
        failed: *failed,
        usage: usage_view(*usage),
    }
}

pub fn usage_view(usage: Usage) -> chat::Usage {
    let Usage { input_tokens, output_tokens, cached_tokens, cost_usd } = usage;
    chat::Usage { input_tokens, output_tokens, cached_tokens, cost_usd }
}

fn cut(text: &str) -> String {
    shorten_middle(text, LONGEST_TEXT)
}

fn cut_value(value: &Value) -> Value {
    shorten_value_by(value, &cut)
}

/// Cuts every text in a value to `longest` bytes, and adds a remark about the rest.
pub fn shorten_value(value: &Value, longest: usize) -> Value {
    shorten_value_by(value, &|text| shorten_text(text, longest))
}

fn shorten_value_by(value: &Value, shorten: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(shorten(text)),
        Value::Array(values) => values.iter().map(|value| shorten_value_by(value, shorten)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), shorten_value_by(value, shorten))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Cuts a text to `longest` bytes, and adds a remark about the rest.
pub fn shorten_text(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(longest);
    format!("{}… ({} bytes more)", &text[..end], text.len() - end)
}

/// Cuts the middle out of a text longer than `longest` bytes: its end says what happened last, so it stays.
fn shorten_middle(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(longest / 5);
    let tail = text.ceil_char_boundary(text.len() - (longest - longest / 5));
    format!("{}\n… ({} bytes left out) …\n{}", &text[..head], tail - head, &text[tail..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(allowed: bool) -> ApprovalOutcome {
        ApprovalOutcome {
            allowed,
            cancelled: !allowed,
            message: Some("because".into()),
            by: Some("me".into()),
            answer: Some("blue".into()),
        }
    }

    fn approvals() -> Vec<Item> {
        let kinds = [
            ChoiceKind::AllowOnce,
            ChoiceKind::AllowAlways,
            ChoiceKind::RejectOnce,
            ChoiceKind::RejectAlways,
            ChoiceKind::Other,
        ];
        let approval = Approval {
            id: "a".into(),
            tool: "Bash".into(),
            title: "Bash: ls".into(),
            input: json!({ "command": "ls" }),
            choices: kinds.map(|kind| Choice { id: "c".into(), kind, label: "C".into() }).into(),
            outcome: None,
        };
        let outcomes = [None, Some(outcome(true)), Some(outcome(false))];
        outcomes.map(|outcome| Item::Approval(Approval { outcome, ..approval.clone() })).into()
    }

    fn tools() -> Vec<Item> {
        let statuses = [ToolStatus::Pending, ToolStatus::Running, ToolStatus::Completed, ToolStatus::Failed];
        let call = |status| {
            Item::ToolCall(ToolCall {
                id: "t".into(),
                name: "Read".into(),
                title: "Read: a".into(),
                input: json!({ "path": ["a", 1, null, true] }),
                status,
                output: Some("text".into()),
            })
        };
        let step = |status| PlanStep { text: "first".into(), status };
        let plan = Item::Plan { steps: statuses.map(step).into() };
        statuses.map(call).into_iter().chain([plan]).collect()
    }

    fn others() -> Vec<Item> {
        let usage = Usage { input_tokens: 1, output_tokens: 2, cached_tokens: 3, cost_usd: Some(0.5) };
        let end = TurnEnd { text: Some("done".into()), reason: Some("end_turn".into()), failed: true, usage };
        vec![
            Item::User { text: "hi".into() },
            Item::Assistant { text: "hello".into() },
            Item::Thinking { text: "hm".into() },
            Item::Notice { text: "slow".into() },
            Item::Error { message: "no".into(), cause: Some("disk".into()) },
            Item::Error { message: "no".into(), cause: None },
            Item::TurnEnd(end),
            Item::TurnEnd(TurnEnd::default()),
        ]
    }

    /// Callers know the JSON of the conversation, so a view must not change it. Only `answer` is left out if absent, and
    /// an approval also has its action.
    #[test]
    fn the_view_of_every_item_has_the_json_of_the_item() {
        for item in approvals().into_iter().chain(tools()).chain(others()) {
            let mut view = serde_json::to_value(item_view(&item)).expect("a view");
            if let Item::Approval(_) = item {
                let action = view.as_object_mut().and_then(|view| view.remove("action"));
                assert_eq!(action, Some(json!({ "command": "ls", "summary": "Bash: ls" })));
            }
            assert_eq!(view, serde_json::to_value(&item).expect("an item"));
        }
    }

    #[test]
    fn an_entry_keeps_its_number_its_revision_and_its_time() {
        let item = Item::User { text: "hi".into() };
        let view =
            entry_view(&Entry { number: 3, at: Duration::from_millis(1_500), revision: 7, item }, None);
        assert_eq!((view.number, view.revision), (3, 7));
        assert_eq!(view.time, "1970-01-01T00:00:01.5Z");
    }

    #[test]
    fn long_texts_are_cut_between_characters_also_inside_values() {
        assert_eq!(shorten_text("äöü", 6), "äöü");
        assert_eq!(shorten_text("äöü", 3), "ä… (4 bytes more)");
        let value = json!({ "a": ["äöü", 5], "b": null });
        assert_eq!(shorten_value(&value, 2), json!({ "a": ["ä… (4 bytes more)", 5], "b": null }));
        let long = Item::Assistant { text: format!("{}the end", "x".repeat(LONGEST_TEXT)) };
        let chat::Item::Assistant { text } = item_view(&long) else { panic!("another item") };
        assert!(
            text.contains("x\n… (7 bytes left out) …\nx") && text.ends_with("xthe end"),
            "{}",
            text.len()
        );
        assert_eq!(shorten_middle("äöüß", 5), "\n… (4 bytes left out) …\nüß");
    }

    #[test]
    fn a_reader_that_has_the_beginning_of_a_text_gets_the_rest_and_the_end_of_a_long_rest() {
        let view = |text: &str, bytes| {
            let item = Item::Thinking { text: text.to_owned() };
            let entry = Entry { number: 3, at: Duration::ZERO, revision: 7, item };
            let view = entry_view(&entry, Some(chat::SeenText { entry: 3, bytes }));
            let chat::Item::Thinking { text } = view.item else { panic!("another item") };
            (text, view.text_from, view.text_bytes)
        };
        assert_eq!(view("hello", 2), ("llo".into(), Some(2), Some(5)));
        assert_eq!(view("hello", 5), (String::new(), Some(5), Some(5)));
        assert_eq!(view("hello", 9), ("hello".into(), None, None), "the reader has another text");
        assert_eq!(view("äö", 1), ("äö".into(), None, None), "not between two characters");
        let long = format!("{}end", "x".repeat(2 * LONGEST_TEXT));
        let (text, from, bytes) = view(&long, 10);
        assert_eq!((text.len(), from, bytes), (LONGEST_TEXT, Some(LONGEST_TEXT as u64 + 3), Some(200_003)));
        assert!(text.ends_with("end"));
    }
}
