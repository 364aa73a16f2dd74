//! The stream-json driver: Claude Code's lines of JSON, in both directions, folded into a conversation and a state.
//!
//! Reads journal records only. The journal also has the lines that Agency wrote, so a fold knows every prompt, every
//! answer and every open request. Messages that the driver does not know are kept and shown.

mod agent_messages;
mod commands;
mod our_messages;
mod settings;
#[cfg(test)]
mod tests;

use std::time::Duration;

use agency_core::agent_state::Timing;
use agency_core::conversation::{Item, ToolStatus};
use agency_core::exit::RunExit;
use agency_core::plain::one_line;
use serde_json::Value;

use crate::conversation::{
    ConversationCore, ConversationEvent, Identified, Inherited, Judgement, OpenRequests,
};
use crate::lines::SplitLine;
use settings::StreamSettings;

/// A run of an agent that speaks stream-json.
pub struct StreamRun {
    core: ConversationCore,
    requests: OpenRequests<PermissionRequest>,
    settings: StreamSettings,
    /// Ids of requests that this driver does not know and must still refuse.
    refusals: Vec<String>,
    /// Ids of the tool calls in progress.
    tools: Vec<String>,
    /// The agent reports its own state, so the driver does not derive it from results.
    reports_state: bool,
    is_working: bool,
    /// The user allowed something in this turn that may change the mode.
    may_switch_mode: bool,
    /// Messages of ours whose turns have not ended.
    unanswered: u32,
    /// The agent has reported in this run that its session exists.
    is_in_session: bool,
    has_lost_session: bool,
    /// The id of the message whose parts are arriving.
    partial_message: String,
}

/// The agent wants to use a tool.
#[derive(Clone, Debug, PartialEq)]
struct PermissionRequest {
    id: String,
    /// The agent's own id, which its next request may use again.
    agent_id: String,
    tool: String,
    title: String,
    input: Value,
    /// The permissions that the agent could remember if the user allows this for good.
    suggestions: Vec<Value>,
}

impl Identified for PermissionRequest {
    fn id(&self) -> &str {
        &self.id
    }
}

impl StreamRun {
    /// A run whose process has just been started.
    pub fn began(timing: Timing, now: Duration) -> StreamRun {
        StreamRun::with(ConversationCore::new(timing, now), StreamSettings::default())
    }

    /// A run that continues a conversation.
    pub(crate) fn continuing(inherited: Inherited, timing: Timing, now: Duration) -> StreamRun {
        let settings = StreamSettings::restoring(inherited.chosen.clone());
        StreamRun::with(ConversationCore::continuing(inherited, timing, now), settings)
    }

    fn with(core: ConversationCore, settings: StreamSettings) -> StreamRun {
        let mut run = StreamRun {
            core,
            requests: OpenRequests::default(),
            settings,
            refusals: Vec::new(),
            tools: Vec::new(),
            reports_state: false,
            is_working: false,
            may_switch_mode: false,
            unanswered: 0,
            is_in_session: false,
            has_lost_session: false,
            partial_message: String::new(),
        };
        // The agent's input is a pipe: it accepts messages from the start.
        run.finish_record();
        run
    }

    pub(crate) fn into_inherited(self) -> Inherited {
        self.core.into_inherited(self.settings.into_chosen())
    }

    /// The state that all protocol drivers share.
    pub fn core(&self) -> &ConversationCore {
        &self.core
    }

    pub(crate) fn core_mut(&mut self) -> &mut ConversationCore {
        &mut self.core
    }

    /// The requests that wait for an answer, oldest first.
    pub fn open_requests(&self) -> impl Iterator<Item = &str> {
        self.requests.ids()
    }

    /// Whether the agent does not have the session that it was started to continue.
    pub fn has_lost_session(&self) -> bool {
        self.has_lost_session
    }

    /// Why the user should look at the agent's mode, if so.
    pub fn mode_warning(&self) -> Option<&str> {
        self.core.mode_warning()
    }

    /// Whether a turn is in progress.
    pub fn is_working(&self) -> bool {
        self.is_working
    }

    /// The agent printed this.
    pub fn on_output(&mut self, bytes: &[u8], at: Duration) -> Vec<ConversationEvent> {
        self.core.begin_record(at);
        for line in self.core.split_output(bytes) {
            match line {
                SplitLine::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => {}
                SplitLine::Whole(line) => self.read_line(&line),
                SplitLine::TooLong(beginning) => self.core.add_long_line(&beginning),
            }
        }
        self.finish_record()
    }

    /// The agent printed this on its error output. It is shown and never read as a message.
    pub fn on_errors(&mut self, bytes: &[u8], at: Duration) {
        self.core.begin_record(at);
        for text in self.core.split_log(bytes) {
            self.core.add_notice(text);
        }
    }

    /// Agency wrote this to the agent, as the journal has it.
    pub fn on_input(&mut self, bytes: &[u8], at: Duration) -> Vec<ConversationEvent> {
        self.core.begin_record(at);
        for line in self.core.split_input(bytes) {
            if let Ok(message) = serde_json::from_slice::<Value>(&line) {
                self.record_our_message(&message);
            }
        }
        self.finish_record()
    }

    /// Notes who answers a request, and why, before the answer is written.
    pub fn on_decision(&mut self, id: &str, by: &str, why: Option<&str>) {
        self.requests.note_decider(id, by, why);
    }

    /// The process ended.
    pub fn on_exit(&mut self, exit: RunExit, at: Duration) -> Vec<ConversationEvent> {
        self.core.begin_record(at);
        if let Some(line) = self.core.take_last_line() {
            self.read_line(&line);
        }
        for request in self.requests.take_all(|_| true) {
            self.core.withdraw_approval(&request.id);
        }
        for id in std::mem::take(&mut self.tools) {
            self.core.conversation.update(&tool_key(&id), |item| end_tool(item, ToolStatus::Failed, None));
        }
        match (self.is_working && self.unanswered > 0, exit.requested) {
            (true, true) => {
                self.core
                    .add_notice("the agent ended during its turn; Agency does not send the message again");
            }
            (true, false) => {
                self.core.lose_message(LOST, Some(format!("its process ended with {}", exit.code)))
            }
            (false, _) => {}
        }
        self.core.exit(exit.code)
    }

    fn finish_record(&mut self) -> Vec<ConversationEvent> {
        let judgement = self.judge();
        self.core.finish_record(judgement)
    }

    fn judge(&self) -> Judgement {
        match self.requests.first() {
            Some(request) => Judgement::open_request(request.tool != QUESTION_TOOL, &request.title),
            None if self.is_working && self.reports_state => Judgement::working("it says that it works"),
            None if self.is_working => Judgement::working("a turn is in progress"),
            None => self.core.judge_idle(),
        }
    }
}

/// Does not quote the message: states and events may leave this machine.
const LOST: &str =
    "the agent ended during its turn; the last message was lost, and Agency does not send it again";

/// The tool with which Claude Code asks the user a question.
const QUESTION_TOOL: &str = "AskUserQuestion";

/// The choices of every permission.
const ALLOW: &str = "allow";
const ALLOW_ALWAYS: &str = "allow-always";
const DENY: &str = "deny";

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

fn tool_key(id: &str) -> String {
    format!("tool {id}")
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Records the end of a tool call.
fn end_tool(item: &mut Item, status: ToolStatus, output: Option<String>) -> bool {
    let Item::ToolCall(call) = item else { return false };
    call.status = status;
    call.output = output.or(call.output.take());
    true
}

/// The text of a content, which is a string or blocks.
fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().map(|block| match block["text"].as_str() {
                Some(text) => text.to_owned(),
                None => format!("[{}]", block["type"].as_str().unwrap_or("something")),
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A text cut to one line.
fn cut(text: &str) -> String {
    one_line(text, 300)
}
