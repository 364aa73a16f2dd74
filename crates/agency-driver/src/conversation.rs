//! A conversation with an agent over a protocol, whichever it is: what the drivers share, and one door to them.

use std::collections::BTreeMap;
use std::time::Duration;

use agency_core::agent_state::{AgentState, Timing};
use agency_core::conversation::{Conversation, Item, Outcome, TurnEnd, Usage};
use agency_core::evidence::{Change, Detector};
use agency_core::exit::ExitCode;
use agency_core::plain::one_line;
use serde_json::Value;

use crate::acp::{AcpRun, AcpTerms, ConnectionNote};
use crate::stream_json::StreamRun;

/// What happened, for subscribers.
#[derive(Clone, Debug, PartialEq)]
pub enum ConversationEvent {
    Output {
        text: String,
    },
    Thinking {
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Value,
    },
    ToolResult {
        id: String,
        name: String,
        output: String,
        success: bool,
    },
    ApprovalRequested {
        id: String,
        tool: String,
        title: String,
    },
    ApprovalWithdrawn {
        id: String,
    },
    /// Somebody answered.
    ApprovalDecided {
        id: String,
        outcome: Outcome,
    },
    TurnEnd(TurnEnd),
    /// The agent answered a request that was to change one of its settings, or to tell of them.
    SettingAnswered {
        request: String,
        outcome: Result<(), String>,
    },
    Error {
        message: String,
        cause: Option<String>,
    },
    /// Kept and shown as it came.
    Other {
        kind: String,
    },
}

/// How an approval is answered.
#[derive(Clone, Debug, PartialEq)]
pub enum ApprovalAnswer {
    Allow,
    /// Allowed, and not asked again in this session.
    AllowAlways,
    Deny {
        message: String,
    },
    /// The answers to a question, by the question's text.
    Answer {
        answers: BTreeMap<String, String>,
    },
    /// One of the choices that the approval names.
    Choose {
        id: String,
    },
}

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    #[error("nobody asks that any more")]
    NotOpen,
    #[error("the agent names nothing that it could remember")]
    NothingToRemember,
    #[error("the agent does not offer that")]
    NotOffered,
    #[error("it asks a question, and a yes is no answer to it")]
    NeedsAnswers,
    #[error("an answer is not of the kind that was asked for")]
    Unfit,
}

/// Why a message is not written now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    #[error("the agent's session has not begun")]
    NoSession,
    #[error("a turn is in progress, and the agent takes one message at a time")]
    Busy,
    /// It will not be any better until somebody does something.
    #[error("{why}")]
    Refused { why: String },
}

/// What a question was answered, in a line: the answer alone, or each after its question.
pub(crate) fn answer_of(answers: &Value) -> Option<String> {
    let shown = |said: &Value| match said {
        Value::String(text) => text.clone(),
        Value::Array(several) => {
            let texts = several.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned));
            texts.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    let answers = answers.as_object().filter(|answers| !answers.is_empty())?;
    let line = match answers.values().next().filter(|_| answers.len() == 1) {
        Some(only) => shown(only),
        None => {
            let each = answers.iter().map(|(asked, said)| format!("{asked}: {}", shown(said)));
            each.collect::<Vec<_>>().join("; ")
        }
    };
    Some(one_line(&line, 300))
}

/// What stands between two runs of one conversation.
pub const SEPARATOR: &str = "─── Session restarted ───";

/// Something about an agent that can be chosen while it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentSetting {
    /// How much it may do without asking.
    Mode,
    Model,
}

impl AgentSetting {
    pub fn word(self) -> &'static str {
        match self {
            AgentSetting::Mode => "mode",
            AgentSetting::Model => "model",
        }
    }
}

/// A line that asks the agent something, and what it is called when it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OurRequest {
    pub id: String,
    pub line: Vec<u8>,
}

impl OurRequest {
    /// The request that a line of JSON-RPC makes.
    fn on(line: Vec<u8>) -> OurRequest {
        let message: Value = serde_json::from_slice(&line).unwrap_or_default();
        OurRequest { id: message["id"].as_str().unwrap_or_default().to_owned(), line }
    }
}

/// One of the things that an agent can be set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub id: String,
    pub name: String,
}

/// What an agent can be set to, and to what it is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    pub current: Option<String>,
    pub offers: Vec<Offer>,
}

/// How a run is driven, and what must be known to begin it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversationTerms {
    Stream,
    Acp(AcpTerms),
}

/// What one run leaves to the next.
pub(crate) struct Inherited {
    pub(crate) conversation: Conversation,
    pub(crate) usage: Usage,
    pub(crate) session_id: Option<String>,
    /// What somebody set it to while it lived, as far as it agreed.
    pub(crate) chosen: BTreeMap<AgentSetting, String>,
}

#[allow(clippy::large_enum_variant, reason = "there is one for each run, and it is not moved about")]
pub enum ConversationRun {
    Stream(StreamRun),
    Acp(AcpRun),
}

/// The same question to whichever driver there is.
macro_rules! either {
    ($self:expr, $run:ident => $answer:expr) => {
        match $self {
            ConversationRun::Stream($run) => $answer,
            ConversationRun::Acp($run) => $answer,
        }
    };
}

impl ConversationRun {
    pub fn began(terms: ConversationTerms, timing: Timing, now: Duration) -> ConversationRun {
        match terms {
            ConversationTerms::Stream => ConversationRun::Stream(StreamRun::began(timing, now)),
            ConversationTerms::Acp(terms) => ConversationRun::Acp(AcpRun::began(timing, now, terms)),
        }
    }

    /// Another run that goes on with the conversation of this one, driven in the same way or in another.
    pub fn continued(
        self,
        terms: ConversationTerms,
        timing: Timing,
        now: Duration,
        wall_offset: Duration,
    ) -> ConversationRun {
        let is_alike = matches!(
            (&self, &terms),
            (ConversationRun::Stream(_), ConversationTerms::Stream)
                | (ConversationRun::Acp(_), ConversationTerms::Acp(_))
        );
        let mut inherited = either!(self, run => run.inherited());
        if !is_alike {
            // Each driver has names of its own for modes and models.
            inherited.chosen.clear();
        }
        inherited.conversation.set_wall_offset(wall_offset);
        if !inherited.conversation.entries().is_empty() {
            inherited.conversation.add(Item::Notice { text: SEPARATOR.to_owned() }, now);
        }
        match terms {
            ConversationTerms::Stream => ConversationRun::Stream(StreamRun::going_on(inherited, timing, now)),
            ConversationTerms::Acp(terms) => {
                ConversationRun::Acp(AcpRun::going_on(inherited, timing, now, terms))
            }
        }
    }

    /// What the wall's clock is ahead of the one that events are told by.
    pub fn set_wall_offset(&mut self, offset: Duration) {
        either!(self, run => run.set_wall_offset(offset));
    }

    pub fn conversation(&self) -> &Conversation {
        either!(self, run => run.conversation())
    }

    pub fn session_id(&self) -> Option<&str> {
        either!(self, run => run.session_id())
    }

    pub fn usage(&self) -> Usage {
        either!(self, run => run.usage())
    }

    pub fn state(&self) -> AgentState {
        either!(self, run => run.state())
    }

    pub fn detector(&self) -> &Detector {
        either!(self, run => run.detector())
    }

    pub fn take_changes(&mut self) -> Vec<Change> {
        either!(self, run => run.take_changes())
    }

    pub fn deadline(&self) -> Option<Duration> {
        either!(self, run => run.deadline())
    }

    pub fn tick(&mut self, now: Duration) {
        either!(self, run => run.tick(now));
    }

    /// The requests that wait for an answer, oldest first.
    pub fn open_requests(&self) -> Vec<&str> {
        either!(self, run => run.open_requests().collect())
    }

    /// It was to go on with a session that it does not have.
    pub fn has_lost_session(&self) -> bool {
        either!(self, run => run.has_lost_session())
    }

    /// A line to the agent was begun and not ended.
    pub fn is_half_written(&self) -> bool {
        either!(self, run => run.is_half_written())
    }

    /// A turn is in progress.
    pub fn is_working(&self) -> bool {
        either!(self, run => run.is_working())
    }

    /// A message can be written now: [`ConversationRun::prompt`] says why not.
    pub fn is_ready(&self) -> bool {
        match self {
            ConversationRun::Stream(_) => true,
            ConversationRun::Acp(run) => run.is_ready(),
        }
    }

    pub fn on_output(&mut self, bytes: &[u8], at: Duration) -> Vec<ConversationEvent> {
        either!(self, run => run.on_output(bytes, at))
    }

    /// What it prints besides: never taken for a message.
    pub fn on_errors(&mut self, bytes: &[u8], at: Duration) {
        either!(self, run => run.on_errors(bytes, at));
    }

    /// Something that it said is not in the journal.
    pub fn on_gap(&mut self, at: Duration) {
        either!(self, run => run.on_gap(at));
    }

    /// What we wrote to it, as the journal has it.
    pub fn on_input(&mut self, bytes: &[u8], at: Duration) -> Vec<ConversationEvent> {
        either!(self, run => run.on_input(bytes, at))
    }

    /// The connection that its session lives on came or went.
    pub fn on_connection(&mut self, note: &ConnectionNote, at: Duration) -> Vec<ConversationEvent> {
        match self {
            ConversationRun::Stream(_) => Vec::new(),
            ConversationRun::Acp(run) => run.on_connection(note, at),
        }
    }

    /// Noted before an answer is written: who gives it, and why.
    pub fn on_decision(&mut self, id: &str, by: &str, why: Option<&str>) {
        either!(self, run => run.on_decision(id, by, why));
    }

    pub fn on_exit(&mut self, code: ExitCode, at: Duration) -> Vec<ConversationEvent> {
        either!(self, run => run.on_exit(code, at))
    }

    /// What became of it when it was over.
    pub fn on_exit_note(&mut self, item: Item, at: Duration) {
        match self {
            ConversationRun::Stream(run) => run.on_exit_note(item, at),
            ConversationRun::Acp(run) => run.on_exit_note(item, at),
        }
    }

    /// What the agent can be set to, as far as it tells.
    pub fn offers(&self, setting: AgentSetting) -> Offers {
        match (self, setting) {
            (ConversationRun::Stream(run), setting) => run.offers(setting),
            (ConversationRun::Acp(run), AgentSetting::Mode) => run.modes(),
            (ConversationRun::Acp(run), AgentSetting::Model) => run.models(),
        }
    }
}

/// What is written to the agent; each is one line.
impl ConversationRun {
    /// A message, if it can be written now.
    pub fn prompt(&mut self, text: &str) -> Result<Vec<u8>, NotReady> {
        match self {
            ConversationRun::Stream(_) => Ok(StreamRun::prompt(text)),
            ConversationRun::Acp(run) => run.prompt(text),
        }
    }

    /// The line of the last prompt did not reach the agent, and will not.
    pub fn prompt_not_written(&mut self) {
        if let ConversationRun::Acp(run) = self {
            run.prompt_not_written();
        }
    }

    pub fn answer(&self, id: &str, verdict: &ApprovalAnswer) -> Result<Vec<u8>, AnswerError> {
        either!(self, run => run.answer(id, verdict))
    }

    /// Lines that must be written next and are not in the journal yet, each with a key of its own.
    pub fn owed_lines(&self) -> Vec<(String, Vec<u8>)> {
        either!(self, run => run.owed_lines())
    }

    /// Nothing where there is no turn to end.
    pub fn interrupt(&mut self) -> Option<Vec<u8>> {
        match self {
            ConversationRun::Stream(run) => Some(run.interrupt()),
            ConversationRun::Acp(run) => run.interrupt(),
        }
    }

    pub fn set(&mut self, setting: AgentSetting, wanted: &str) -> Result<OurRequest, NotReady> {
        match (self, setting) {
            (ConversationRun::Stream(run), setting) => Ok(run.set(setting, wanted)),
            (ConversationRun::Acp(run), AgentSetting::Mode) => run.set_mode(wanted).map(OurRequest::on),
            (ConversationRun::Acp(run), AgentSetting::Model) => run.set_model(wanted).map(OurRequest::on),
        }
    }

    /// Asks what there is to choose, where the agent tells it only if asked and nobody has.
    pub fn ask_offers(&mut self) -> Option<OurRequest> {
        match self {
            ConversationRun::Stream(run) => run.ask_offers(),
            ConversationRun::Acp(_) => None,
        }
    }

    /// Nothing more is to come of [`ConversationRun::stop`].
    pub fn has_stopped(&self) -> bool {
        match self {
            ConversationRun::Stream(_) => true,
            ConversationRun::Acp(run) => run.has_stopped(),
        }
    }

    /// What ends its session where the process is not its own: nothing for one that ends with its process.
    pub fn stop(&mut self) -> Vec<Vec<u8>> {
        match self {
            ConversationRun::Stream(_) => Vec::new(),
            ConversationRun::Acp(run) => run.stop(),
        }
    }
}
