//! A conversation with an agent over a protocol: the types that all protocol drivers use.

mod core;
mod requests;

use std::collections::BTreeMap;

use agency_core::conversation::{ApprovalOutcome, Choice, Conversation, TurnEnd, Usage};
use agency_core::plain::one_line;
use serde_json::Value;

pub use self::core::ConversationCore;
pub(crate) use self::core::{Judgement, replace};
pub(crate) use self::requests::{Identified, OpenRequests};

/// Something that happened in a conversation, for subscribers.
#[derive(Clone, Debug, PartialEq)]
pub enum ConversationEvent {
    /// The agent wrote a message.
    Output {
        /// The whole message.
        text: String,
    },
    /// The agent wrote down its thoughts.
    Thinking {
        /// The whole thought.
        text: String,
    },
    /// The agent began to use a tool.
    ToolUse {
        /// The id of the call.
        id: String,
        /// The tool's name.
        name: String,
        /// The tool's arguments.
        input: Value,
    },
    /// A tool ended.
    ToolResult {
        /// The id of the call.
        id: String,
        /// The tool's name.
        name: String,
        /// The tool's output.
        output: String,
        /// Whether the tool succeeded.
        success: bool,
    },
    /// The agent requests a permission or an answer.
    ApprovalRequested {
        /// The id of the request.
        id: String,
        /// The tool that the agent wants to use.
        tool: String,
        /// The request in one line.
        title: String,
    },
    /// A request needs no answer any more.
    ApprovalWithdrawn {
        /// The id of the request.
        id: String,
    },
    /// A user or a rule answered a request.
    ApprovalDecided {
        /// The id of the request.
        id: String,
        /// The answer.
        outcome: ApprovalOutcome,
    },
    /// A turn ended.
    TurnEnd(TurnEnd),
    /// The agent answered our request to change a setting, or to list what it offers.
    SettingAnswered {
        /// The id of our request.
        request: String,
        /// The agent's reason, if it refused.
        outcome: Result<(), String>,
    },
    /// Something failed.
    Error {
        /// The failure in one sentence.
        message: String,
        /// Why it failed, if known.
        cause: Option<String>,
    },
    /// A message that the driver does not know. The conversation shows it as it came.
    Other {
        /// The message's type, as the agent names it.
        kind: String,
    },
}

/// An answer to a request of the agent.
#[derive(Clone, Debug, PartialEq)]
pub enum ApprovalAnswer {
    /// Allow it once.
    Allow,
    /// Allow it for the rest of the session, without further requests.
    AllowAlways,
    /// Refuse it.
    Deny {
        /// The reason that the agent reads.
        message: String,
    },
    /// Answer questions.
    Answer {
        /// The answers, by the text of their question.
        answers: BTreeMap<String, String>,
    },
    /// Choose one of the choices that the request offers.
    Choose {
        /// The id of the choice, or its label.
        id: String,
    },
}

/// Why Agency cannot answer a request of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The request does not wait for an answer.
    #[error("this request is no longer open")]
    NotOpen,
    /// The agent cannot allow this for good.
    #[error("the agent offers nothing to allow for the whole session")]
    NothingToRemember,
    /// The agent does not have this choice.
    #[error("the agent does not offer this choice")]
    NotOffered,
    /// A question needs more than an approval.
    #[error("the agent asks a question that needs an answer; an approval is not enough")]
    NeedsAnswers,
    /// An answer has the wrong type, for example a word for a number.
    #[error("an answer does not fit its question")]
    Unfit,
}

/// Why the agent cannot get a message or a setting now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// The session is not open yet.
    #[error("the agent's session has not begun")]
    NoSession,
    /// The agent takes one message at a time.
    #[error("a turn is in progress, and the agent takes one message at a time")]
    Busy,
    /// The agent stays like this until the user does something.
    #[error("{why}")]
    Refused {
        /// The reason, for the user.
        why: String,
    },
}

/// The choice with this id or, if there is none, with this label.
pub(crate) fn find_choice<'a>(choices: &'a [Choice], wanted: &str) -> Option<&'a Choice> {
    let by_label = || choices.iter().find(|choice| choice.label.eq_ignore_ascii_case(wanted.trim()));
    choices.iter().find(|choice| choice.id == wanted).or_else(by_label)
}

/// The answers to questions in one line: a single answer alone, several each after its question.
pub(crate) fn format_answers(answers: &Value) -> Option<String> {
    let shown = |answer: &Value| match answer {
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
            let each = answers.iter().map(|(question, answer)| format!("{question}: {}", shown(answer)));
            each.collect::<Vec<_>>().join("; ")
        }
    };
    Some(one_line(&line, 300))
}

/// The line between two runs of one conversation.
pub const SEPARATOR: &str = "─── Session restarted ───";

/// A setting of an agent that the user can change while the agent lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentSetting {
    /// How much the agent may do without a permission.
    Mode,
    /// The language model.
    Model,
}

impl AgentSetting {
    /// The setting's name in messages and in the protocols.
    pub fn word(self) -> &'static str {
        match self {
            AgentSetting::Mode => "mode",
            AgentSetting::Model => "model",
        }
    }
}

/// A request of ours to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OurRequest {
    /// The id that the agent's answer will carry.
    pub id: String,
    /// The line to write.
    pub line: Vec<u8>,
}

/// One value that the agent offers for a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The agent's id for it.
    pub id: String,
    /// Its name for people.
    pub name: String,
}

/// The values that an agent offers for a setting, and the current one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// The current value. Absent if the agent has not reported it.
    pub current: Option<String>,
    /// The values that the user can choose.
    pub offers: Vec<Offer>,
}

/// Everything that one run leaves to the next.
pub(crate) struct Inherited {
    pub(crate) conversation: Conversation,
    pub(crate) usage: Usage,
    pub(crate) session_id: Option<String>,
    /// The settings that a user chose while the agent lived, if the agent accepted them.
    pub(crate) chosen: BTreeMap<AgentSetting, String>,
}
