//! One session of an agent that speaks ACP, folded into a conversation and a state.
//!
//! Reads the session's own journal only: the lines of this session in both directions, and notes about the connection.
//! The journal also has the lines that Agency wrote, so a fold knows every request in flight, every open request and
//! every line that is still owed.

mod agent_messages;
mod commands;
mod gap;
mod mode;
mod our_messages;
mod start;
#[cfg(test)]
mod tests;
mod turn;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use agency_core::agent_state::Timing;
use agency_core::approval::Action;
use agency_core::conversation::{Conversation, Usage};
use agency_core::evidence::Why;
use agency_core::exit::ExitCode;
use agency_core::plain::one_line;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::agent_request::AgentRequest;
use super::opening::{Capabilities, McpServer, OpenMethod, SessionOpening, Stage};
use super::rpc;
use super::settings::SessionSettings;
use super::transcript::Transcript;
use crate::conversation::{
    AgentOption, AgentSetting, ConversationCore, ConversationEvent, Inherited, Judgement, Offers,
    OpenRequests,
};
use crate::lines::SplitLine;

/// Everything that a run must know to begin a session, or to continue one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcpTerms {
    /// The run that the session belongs to. The ids of its requests begin with it.
    pub run: String,
    /// The directory that the agent works in.
    pub cwd: PathBuf,
    /// The session to continue. Absent: a new one.
    pub session_id: Option<String>,
    /// Fail if the agent cannot continue that session, and do not begin another.
    pub must_resume: bool,
    /// The mode that the user wants.
    pub mode: Option<String>,
    /// The mode is the usual one of a built-in agent: a session without modes may go on without it.
    pub is_mode_usual: bool,
    /// The model that the user wants.
    pub model: Option<String>,
    /// The MCP servers that the agent may use in this session.
    pub servers: Vec<McpServer>,
}

/// A note in a session's journal about the connection that the session lives on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ConnectionNote {
    /// The connection is there. The next line is the agent's answer to `initialize`.
    Connected,
    /// The connection ended. The daemon tries to bring it back.
    Lost {
        /// Why it ended, if known.
        #[serde(default)]
        cause: Option<String>,
    },
    /// The connection is there, and lines of this session may be lost, in both directions.
    Gap {
        /// How they were lost, if known.
        #[serde(default)]
        cause: Option<String>,
    },
    /// The connection ended, and the daemon does not bring it back by itself.
    GivenUp {
        /// The failure in one sentence.
        message: String,
        /// Why it failed, if known.
        #[serde(default)]
        cause: Option<String>,
    },
}

/// A run of an agent that speaks ACP: one session on a connection.
pub struct AcpRun {
    core: ConversationCore,
    transcript: Transcript,
    requests: OpenRequests<AgentRequest>,
    terms: AcpTerms,
    /// Connections so far. The agent numbers its requests from the beginning on each of them.
    epoch: u64,
    stage: Stage,
    opening: SessionOpening,
    capabilities: Capabilities,
    settings: SessionSettings,
    /// Our requests that the agent has not answered, by their ids.
    pending: BTreeMap<String, PendingRequest>,
    /// Lines that set the mode and the model that the user wants, until the journal has them.
    owed_settings: Vec<(String, Vec<u8>)>,
    /// Answers that the agent must get, until the journal has them.
    owed_replies: Vec<(String, Vec<u8>)>,
    gaps: Gaps,
    turn: Option<Turn>,
    /// The id of a prompt that was made and is not in the journal yet.
    unwritten_prompt: Option<String>,
    /// The last line that the agent printed on its error output.
    last_log_line: Option<String>,
}

/// The times at which lines of the session may have been lost.
#[derive(Debug, Default)]
struct Gaps {
    /// How many there were.
    count: u64,
    /// The agent may be in a turn that the journal has lost. It must get `session/cancel` before the next message.
    owes_cancel: bool,
}

/// A request of ours.
#[derive(Clone, Debug, PartialEq)]
enum PendingRequest {
    Open(OpenMethod),
    Prompt,
    Set(AgentSetting, String),
    /// Another option of the session, and its new value.
    SetOption(String, Value),
    Login,
    Other,
}

/// A prompt that the agent is answering.
#[derive(Debug)]
struct Turn {
    /// The key of its request.
    key: String,
    text: String,
    is_cancelled: bool,
}

impl AcpRun {
    /// A run that begins a conversation.
    pub fn began(timing: Timing, now: Duration, terms: AcpTerms) -> AcpRun {
        let inherited = Inherited {
            conversation: Conversation::default(),
            usage: Usage::default(),
            session_id: None,
            chosen: BTreeMap::new(),
            chosen_options: BTreeMap::new(),
            lost_message: None,
        };
        AcpRun::continuing(inherited, timing, now, terms)
    }

    /// A run that continues a conversation.
    pub(crate) fn continuing(
        mut inherited: Inherited,
        timing: Timing,
        now: Duration,
        terms: AcpTerms,
    ) -> AcpRun {
        inherited.session_id = terms.session_id.clone().or(inherited.session_id);
        let mut run = AcpRun {
            transcript: Transcript::default(),
            requests: OpenRequests::default(),
            epoch: 0,
            stage: Stage::Down,
            opening: SessionOpening { target: terms.session_id.clone(), ..SessionOpening::default() },
            capabilities: Capabilities::default(),
            settings: SessionSettings::with_choices(
                inherited.chosen.clone(),
                inherited.chosen_options.clone(),
            ),
            pending: BTreeMap::new(),
            owed_settings: Vec::new(),
            owed_replies: Vec::new(),
            gaps: Gaps::default(),
            turn: None,
            unwritten_prompt: None,
            last_log_line: None,
            core: ConversationCore::continuing(inherited, timing, now),
            terms,
        };
        run.finish_record();
        run
    }

    pub(crate) fn into_inherited(self) -> Inherited {
        let (chosen, chosen_options) = self.settings.into_chosen();
        Inherited { chosen_options, ..self.core.into_inherited(chosen) }
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

    /// Whether a turn is in progress.
    pub fn is_working(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether the session is open and accepts a message.
    pub fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
            && self.turn.is_none()
            && self.unwritten_prompt.is_none()
            && !self.gaps.owes_cancel
    }

    /// The values that the agent offers for a setting, and the current one.
    pub fn offers(&self, setting: AgentSetting) -> Offers {
        self.settings.offers(setting)
    }

    /// All options of the session: its mode and its model, and the others that the agent lists.
    pub fn options(&self) -> Vec<AgentOption> {
        self.settings.all_options()
    }

    /// Whether a message may have images.
    pub fn takes_images(&self) -> bool {
        self.capabilities.image
    }

    /// The agent printed this.
    pub fn on_output(&mut self, bytes: &[u8], at: Duration) -> Vec<ConversationEvent> {
        self.begin_record(at);
        if self.opening.replay.is_some() {
            // The history may be long: the time limit begins again with each part of it.
            self.opening.due = None;
        }
        for line in self.core.split_output(bytes) {
            match line {
                SplitLine::Whole(line) => self.read_line(&line),
                SplitLine::TooLong(beginning) => self.core.add_long_line(&beginning),
            }
        }
        self.finish_record()
    }

    fn read_line(&mut self, line: &[u8]) {
        match rpc::read(line) {
            Ok(messages) => messages.into_iter().for_each(|message| self.read_message(message)),
            Err(cause) => self.core.add_unreadable_line(line, cause),
        }
    }

    /// The agent printed this on its error output. By the protocol that is its log: only the last line is kept,
    /// because it may say why the agent ended.
    pub fn on_errors(&mut self, bytes: &[u8], _at: Duration) {
        if let Some(last) = self.core.split_log(bytes).last() {
            self.last_log_line = Some(one_line(last, 300));
        }
    }

    /// Agency wrote this to the agent, as the journal has it.
    pub fn on_input(&mut self, bytes: &[u8], at: Duration) -> Vec<ConversationEvent> {
        self.begin_record(at);
        for line in self.core.split_input(bytes) {
            for message in rpc::read(&line).unwrap_or_default() {
                self.record_our_message(message);
            }
        }
        self.finish_record()
    }

    /// The connection came or went.
    pub fn on_connection(&mut self, note: &ConnectionNote, at: Duration) -> Vec<ConversationEvent> {
        self.begin_record(at);
        match note {
            ConnectionNote::Connected => {
                // The connection before this one has ended, even if the journal does not say so.
                self.disconnect(None);
                self.epoch += 1;
                // Another process numbers its calls from the beginning.
                self.core.conversation.settle_all();
                self.stage = Stage::Greeting;
            }
            ConnectionNote::Lost { cause } => self.disconnect(cause.clone()),
            ConnectionNote::Gap { cause } => self.cross_gap(cause.as_deref()),
            ConnectionNote::GivenUp { message, cause } => {
                self.disconnect(cause.clone());
                self.core.add_error(message, cause.clone());
            }
        }
        self.finish_record()
    }

    /// Notes who answers a request, and why, before the answer is written.
    pub fn on_decision(&mut self, id: &str, by: &str, why: Option<&str>) {
        self.requests.note_decider(id, by, why);
    }

    /// The run ended.
    pub fn on_exit(&mut self, code: ExitCode, at: Duration) -> Vec<ConversationEvent> {
        self.core.begin_record(at);
        if let Some(line) = self.core.take_last_line() {
            self.read_line(&line);
        }
        let was_working = self.turn.take().is_some();
        self.disconnect(None);
        if was_working {
            self.core.add_notice("the session ended during a turn; Agency does not send the message again");
        }
        self.core.exit(code)
    }

    /// Ends everything that lived on the connection.
    fn disconnect(&mut self, cause: Option<String>) {
        self.transcript.finish_message(&mut self.core);
        self.end_replay();
        for request in self.requests.take_all(|_| true) {
            self.core.withdraw_approval(&request.id);
        }
        self.transcript.tools.fail(&mut self.core.conversation);
        if self.turn.take().is_some() {
            // Does not quote the message: states and events may leave this machine.
            let message = "the last message was lost with the connection; Agency does not send it again";
            let cause = cause.or(self.last_log_line.take());
            self.core.lose_message(message, cause);
        }
        self.core.drop_partial_lines();
        self.owed_settings.clear();
        self.owed_replies.clear();
        self.gaps.owes_cancel = false;
        self.unwritten_prompt = None;
        self.pending.clear();
        self.stage = Stage::Down;
    }

    fn end_replay(&mut self) {
        if self.opening.replay.take().is_some() {
            self.transcript.end_history(&mut self.core);
        }
    }

    /// Begins a record. A time limit that passed before it has passed first, so that every fold says the same.
    fn begin_record(&mut self, at: Duration) {
        self.expire(at);
        self.core.begin_record(at);
    }

    /// When the state can next change without a new record.
    pub fn deadline(&self) -> Option<Duration> {
        self.core.deadline().into_iter().chain(self.opening.due).min()
    }

    /// Says what time it is.
    pub fn tick(&mut self, now: Duration) -> Vec<ConversationEvent> {
        let is_late = self.expire(now);
        self.core.tick(now);
        if is_late { self.finish_record() } else { Vec::new() }
    }

    fn finish_record(&mut self) -> Vec<ConversationEvent> {
        self.set_time_limit();
        let judgement = self.judge();
        self.core.finish_record(judgement)
    }

    fn judge(&self) -> Judgement {
        if let Some(request) = self.requests.first() {
            return Judgement::open_request(request.is_permission(), &Action::headline(&request.approval()));
        }
        match &self.stage {
            Stage::Down if self.epoch == 0 => Judgement::working("the agent starts"),
            Stage::Down => Judgement::working("the connection is made again"),
            Stage::Greeting | Stage::Opening { .. } | Stage::Settling => {
                Judgement::working("the session is opened")
            }
            Stage::Failed { why } => Judgement::waiting(Why::Error, "there is no session", Some(why.clone())),
            Stage::Locked { .. } | Stage::Ready | Stage::Closed if self.turn.is_some() => {
                Judgement::working("a turn is in progress")
            }
            Stage::Locked { .. } | Stage::Ready | Stage::Closed => self.core.judge_idle(),
        }
    }
}

/// The text of a prompt that was written.
fn prompt_text(params: &Value) -> String {
    let blocks = params["prompt"].as_array().into_iter().flatten();
    let texts = blocks.filter_map(|block| match block["type"].as_str() {
        Some("image") => Some("[an image]"),
        _ => block["text"].as_str(),
    });
    texts.collect::<Vec<_>>().join("\n")
}
