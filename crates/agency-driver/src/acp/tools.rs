//! The tool calls of a session: the agent reports each in pieces, and the conversation shows it as one entry.

use std::collections::BTreeMap;

use agency_core::approval::Action;
use agency_core::conversation::{Conversation, Item, ToolCall, ToolStatus};
use agency_core::plain::one_line;
use agent_client_protocol_schema::v1::{
    Diff, ToolCall as AcpToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
    ToolKind,
};
use serde_json::{Value, json};

use super::content::block_text;
use crate::conversation::{ConversationCore, ConversationEvent};

/// Unchanged lines around a change that show where it is.
const AROUND: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Tools {
    known: BTreeMap<String, Tool>,
}

#[derive(Debug, Default)]
struct Tool {
    /// Its `ToolUse` event was announced.
    is_announced: bool,
    /// The event named the command.
    has_named_command: bool,
    /// Its `ToolResult` event was announced.
    has_ended: bool,
    diffs: String,
    text: String,
}

/// One report about a call: its beginning or an update.
pub(super) struct ToolReport {
    id: String,
    fields: ToolCallUpdateFields,
    meta: Value,
}

impl From<AcpToolCall> for ToolReport {
    fn from(call: AcpToolCall) -> ToolReport {
        let fields = ToolCallUpdateFields::new()
            .title(call.title)
            .name(call.name)
            .kind(call.kind)
            .status(call.status)
            .content(Some(call.content).filter(|content| !content.is_empty()))
            .raw_input(call.raw_input)
            .raw_output(call.raw_output);
        ToolReport {
            id: call.tool_call_id.to_string(),
            fields,
            meta: call.meta.map_or(Value::Null, Value::Object),
        }
    }
}

impl From<ToolCallUpdate> for ToolReport {
    fn from(update: ToolCallUpdate) -> ToolReport {
        let meta = update.meta.map_or(Value::Null, Value::Object);
        ToolReport { id: update.tool_call_id.to_string(), fields: update.fields, meta }
    }
}

impl Tools {
    pub(super) fn apply_report(&mut self, core: &mut ConversationCore, report: &ToolReport) {
        let tool = self.known.entry(report.id.clone()).or_default();
        let output = tool.apply_output(report);
        let new = || {
            let name = String::new();
            let (title, input) = (String::new(), json!({}));
            Item::ToolCall(ToolCall {
                id: report.id.clone(),
                name,
                title,
                input,
                status: ToolStatus::Pending,
                output: None,
            })
        };
        core.upsert(&key(&report.id), new, |item| apply_fields(item, report, output));
        let Some(Item::ToolCall(call)) = core.conversation.get(&key(&report.id)) else { return };
        tool.news(call).into_iter().for_each(|event| core.announce_news(event));
    }

    /// Marks every call that has not ended as failed: no more reports about it will come.
    pub(super) fn fail(&mut self, conversation: &mut Conversation) {
        for (id, _) in self.known.iter().filter(|(_, tool)| !tool.has_ended) {
            conversation.update(&key(id), |item| match item {
                Item::ToolCall(call) if matches!(call.status, ToolStatus::Pending | ToolStatus::Running) => {
                    call.status = ToolStatus::Failed;
                    true
                }
                _ => false,
            });
        }
        self.forget();
    }

    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// Forgets the calls that have ended. Some calls continue after the turn.
    pub(super) fn end_turn(&mut self) {
        self.known.retain(|_, tool| !tool.has_ended);
    }
}

/// The reports of the agent about a call so far, as one call.
pub(super) fn find<'a>(conversation: &'a Conversation, id: &str) -> Option<&'a ToolCall> {
    match conversation.get(&key(id))? {
        Item::ToolCall(call) => Some(call),
        _ => None,
    }
}

impl Tool {
    /// The events that are due after a report.
    fn news(&mut self, call: &ToolCall) -> Vec<ConversationEvent> {
        let mut events = Vec::new();
        let is_known = call.input.as_object().is_none_or(|input| !input.is_empty());
        let command = Action::of_call(call).command;
        // Some agents name the command in a later report only.
        let is_named_later = self.is_announced && command.is_some() && !self.has_named_command;
        let is_begun = !self.is_announced && (is_known || call.status != ToolStatus::Pending);
        if is_begun || is_named_later {
            (self.is_announced, self.has_named_command) = (true, command.is_some());
            events.push(ConversationEvent::ToolUse {
                id: call.id.clone(),
                name: call.name.clone(),
                title: call.title.clone(),
                command,
                input: call.input.clone(),
            });
        }
        if !self.has_ended && matches!(call.status, ToolStatus::Completed | ToolStatus::Failed) {
            self.has_ended = true;
            events.push(ConversationEvent::ToolResult {
                id: call.id.clone(),
                name: call.name.clone(),
                output: call.output.clone().unwrap_or_default(),
                success: call.status == ToolStatus::Completed,
            });
        }
        events
    }

    /// The whole output after a report. `None` if the report says nothing about it.
    fn apply_output(&mut self, report: &ToolReport) -> Option<String> {
        let content = report.fields.content.as_deref().map(content_parts);
        let more = report.meta["terminal_output_delta"]["data"].as_str();
        match (content, &report.fields.raw_output, more) {
            (Some((diffs, text)), raw, _) => {
                self.diffs = diffs;
                self.text =
                    if text.is_empty() { raw.as_ref().map(raw_text).unwrap_or_default() } else { text };
            }
            (None, Some(raw), _) => self.text = raw_text(raw),
            (None, None, Some(more)) => self.text.push_str(more),
            (None, None, None) => return None,
        }
        let parts = [self.diffs.trim_end(), self.text.trim_end()];
        Some(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n"))
    }
}

fn key(id: &str) -> String {
    format!("tool {id}")
}

fn apply_fields(item: &mut Item, report: &ToolReport, output: Option<String>) -> bool {
    let Item::ToolCall(call) = item else { return false };
    let before = call.clone();
    let fields = &report.fields;
    if let Some(title) = &fields.title {
        call.title = one_line(title, 300);
    }
    let named =
        fields.name.clone().or_else(|| report.meta["claudeCode"]["toolName"].as_str().map(str::to_owned));
    match (named, fields.kind) {
        (Some(name), _) => call.name = name,
        (None, Some(kind)) if call.name.is_empty() => call.name = kind_word(kind).to_owned(),
        _ => {}
    }
    if let Some(input) = &fields.raw_input {
        call.input = input.clone();
    }
    if let Some(status) = fields.status {
        call.status = status_of(status);
    }
    if let Some(output) = output {
        call.output = Some(output).filter(|output| !output.is_empty());
    }
    *call != before
}

fn status_of(status: ToolCallStatus) -> ToolStatus {
    match status {
        ToolCallStatus::InProgress => ToolStatus::Running,
        ToolCallStatus::Completed => ToolStatus::Completed,
        ToolCallStatus::Failed => ToolStatus::Failed,
        _ => ToolStatus::Pending,
    }
}

pub(super) fn kind_word(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Execute => "execute",
        ToolKind::Think => "think",
        ToolKind::Fetch => "fetch",
        ToolKind::SwitchMode => "switch_mode",
        _ => "tool",
    }
}

/// The diffs and the texts of a content.
pub(super) fn content_parts(content: &[ToolCallContent]) -> (String, String) {
    let (mut diffs, mut texts) = (Vec::new(), Vec::new());
    for part in content {
        match part {
            ToolCallContent::Content(content) => texts.push(block_text(&content.content)),
            ToolCallContent::Diff(diff) => diffs.push(diff_lines(diff)),
            // The agent's own terminal: its output comes with the reports.
            _ => {}
        }
    }
    (diffs.join("\n"), texts.join("\n"))
}

/// The text of a raw result, or its JSON.
fn raw_text(raw: &Value) -> String {
    let named = ["output", "stdout", "formatted_output"].iter().find_map(|name| raw[*name].as_str());
    match raw.as_str().or(named) {
        Some(text) => text.to_owned(),
        None if raw.is_null() => String::new(),
        None => raw.to_string(),
    }
}

/// A change of a file: removed lines, added lines, and some lines around them.
fn diff_lines(diff: &Diff) -> String {
    let (old, new) = (diff.old_text.as_deref().unwrap_or_default(), diff.new_text.as_str());
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - before;
    let after = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
    let lines =
        |mark: char, lines: &[&str]| lines.iter().map(|line| format!("{mark}{line}")).collect::<Vec<_>>();
    let tail = old.len() - after;
    let mut all = vec![diff.path.display().to_string()];
    all.extend(lines(' ', &old[before.saturating_sub(AROUND)..before]));
    all.extend(lines('-', &old[before..tail]));
    all.extend(lines('+', &new[before..new.len() - after]));
    all.extend(lines(' ', &old[tail..old.len().min(tail + AROUND)]));
    all.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_shows_removed_and_added_lines_and_their_surroundings() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let diff = Diff::new("a.txt", old.replace("5\n", "five\n5½\n")).old_text(old.to_owned());
        let expected = "a.txt\n 2\n 3\n 4\n-5\n+five\n+5½\n 6\n 7\n 8";
        assert_eq!(diff_lines(&diff), expected);
        assert_eq!(diff_lines(&Diff::new("new", "x\ny")), "new\n+x\n+y");
        assert_eq!(diff_lines(&Diff::new("same", "x").old_text("x".to_owned())), "same\n x");
        assert_eq!(diff_lines(&Diff::new("more", "a\na\na").old_text("a\na".to_owned())), "more\n a\n a\n+a");
    }
}
