//! A conversation with an agent over a protocol: the types that all protocol drivers use.

mod core;
mod permission_mode;
mod requests;

use std::collections::BTreeMap;

use agency_core::conversation::{Approval, ApprovalOutcome, Choice, Conversation, TurnEnd, Usage};
use agency_core::plain::one_line;
use serde_json::Value;

pub use self::core::ConversationCore;
pub(crate) use self::core::Judgement;
pub(crate) use self::permission_mode::{ModeMeaning, asking_mode, shown_mode};
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
    /// The agent began to use a tool. Comes again with the same id if the agent names the command later.
    ToolUse {
        /// The id of the call.
        id: String,
        /// The tool's name.
        name: String,
        /// The call in one line, as the agent names it.
        title: String,
        /// The command line, if the tool runs one.
        command: Option<String>,
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
    ApprovalRequested(Box<Approval>),
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
    /// The agent is in another mode, or begins in one that the user should know about.
    ModeChanged(ModeChange),
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

/// A change of the agent's mode, or the mode in which the agent begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModeChange {
    /// The mode before. Absent at the beginning of a session.
    pub old: Option<String>,
    /// The mode from now on. Absent if the agent has no modes.
    pub new: Option<String>,
    /// The author of the change.
    pub by: ModeChanger,
    /// Why the user should look, if so.
    pub warning: Option<String>,
}

/// The author of a change of mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeChanger {
    /// The agent, by itself.
    Agent,
    /// Agency, so that the agent asks.
    Agency,
    /// The user.
    User,
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
    /// The agent's own words about it. May be empty.
    pub description: String,
}

/// The values that an agent offers for a setting, and the current one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offers {
    /// The current value. Absent if the agent has not reported it.
    pub current: Option<String>,
    /// The values that the user can choose.
    pub offers: Vec<Offer>,
}

/// An option of a session: its mode, its model, or another one that the agent lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentOption {
    /// The agent's id of the option.
    pub id: String,
    /// The name for people.
    pub name: String,
    /// The effect of the option, in the agent's words.
    pub description: Option<String>,
    /// The current value, and the values that the user can choose.
    pub offers: Offers,
}

impl AgentOption {
    /// The mode or the model as an option.
    pub(crate) fn of_setting(setting: AgentSetting, offers: Offers) -> Option<AgentOption> {
        let word = setting.word().to_owned();
        let is_offered = !offers.offers.is_empty() || offers.current.is_some();
        is_offered.then(|| AgentOption { id: word.clone(), name: word, description: None, offers })
    }

    /// Whether a user means this option.
    pub fn is_called(&self, name: &str) -> bool {
        self.id == name || self.name.eq_ignore_ascii_case(name)
    }
}

/// An image in a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageBlock {
    /// The media type.
    pub media_type: String,
    /// The file in Base64.
    pub data: String,
}

/// Reports of an agent about its session that no entry of the conversation has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionReport {
    /// The title of the session.
    pub title: Option<String>,
    /// Tokens in the model's context, and tokens that fit into it.
    pub context: Option<(u64, u64)>,
    /// The commands that the agent accepts at the beginning of a message.
    pub commands: Vec<SlashCommand>,
}

/// A command that the agent accepts at the beginning of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlashCommand {
    /// The name without the slash.
    pub name: String,
    /// The effect of the command, in the agent's words.
    pub description: String,
    /// The text that belongs after the name, in the agent's words.
    pub hint: Option<String>,
}

/// Everything that one run leaves to the next.
pub(crate) struct Inherited {
    pub(crate) conversation: Conversation,
    pub(crate) usage: Usage,
    pub(crate) session_id: Option<String>,
    /// The settings that a user chose while the agent lived, if the agent accepted them.
    pub(crate) chosen: BTreeMap<AgentSetting, String>,
    /// The same for the other options of the session, by their ids.
    pub(crate) chosen_options: BTreeMap<String, Value>,
    /// Why the last message has no answer, if the agent died with it.
    pub(crate) lost_message: Option<String>,
}
