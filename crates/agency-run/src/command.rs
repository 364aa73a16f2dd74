//! The commands of the daemon to a run: those for every run, for terminals, and for conversations.

use std::sync::Arc;
use std::time::Duration;

use agency_api::method::{Receipt, ScreenDump};
use agency_api::pty::ViewerNotice;
use agency_api::{Failure, chat};
use agency_core::approval::Ruling;
use agency_core::evidence::{Belief, Correction};
use agency_driver::conversation::{AgentSetting, ApprovalAnswer};
use agency_driver::sending::SendOrder;
use agency_terminal::{Colours, Size};
use tokio::sync::oneshot;

use crate::conversation::{Page, PastDecision};
use crate::explain::Explanation;
use crate::viewer_queue::{ViewerId, ViewerQueue};
use crate::viewers::ViewerOptions;

/// A command that every run understands.
#[derive(Debug)]
pub enum RunCommand {
    /// Always the first command: the daemon knows the run now and understands its reports.
    Begin,
    /// Send a message or keys to the agent.
    Send(SendRequest),
    /// Say what each source claims about the agent's state.
    Explain {
        /// Where the explanation goes.
        answer: oneshot::Sender<Explanation>,
    },
    /// End the agent: SIGTERM, then SIGKILL after the grace.
    Stop {
        /// Between SIGTERM and SIGKILL.
        grace: Duration,
    },
    /// The run is over and the daemon knows it: let the keeper exit.
    Dismiss,
    /// The daemon exits; keeper and agent stay.
    Leave {
        /// Resolves once the viewers know.
        done: oneshot::Sender<()>,
    },
}

/// A command for a run with a terminal.
#[derive(Debug)]
pub enum TerminalCommand {
    /// A viewer attaches.
    Attach {
        /// The new viewer.
        viewer: ViewerId,
        /// Where its output goes.
        queue: Arc<ViewerQueue>,
        /// Its options.
        options: ViewerOptions,
    },
    /// A viewer detaches.
    Detach {
        /// The viewer.
        viewer: ViewerId,
    },
    /// A viewer typed. Only the controller's input reaches the agent.
    Type {
        /// The viewer.
        viewer: ViewerId,
        /// The input.
        bytes: Vec<u8>,
    },
    /// A viewer's terminal has a new size.
    Resize {
        /// The viewer.
        viewer: ViewerId,
        /// The size of its terminal.
        size: Size,
    },
    /// A viewer's terminal has named its colours.
    SetColours {
        /// The viewer.
        viewer: ViewerId,
        /// The colours of its terminal.
        colours: Colours,
    },
    /// A viewer lost output and has received everything else: it needs a fresh screen.
    Refresh {
        /// The viewer.
        viewer: ViewerId,
    },
    /// Send a notice to every viewer.
    Notify(ViewerNotice),
    /// Describe the screen.
    DumpScreen {
        /// Where the dump goes.
        answer: oneshot::Sender<ScreenDump>,
    },
    /// The screen rules may have changed: read them again.
    ReloadRules,
    /// The memory of programs may have changed: note it.
    ReloadMemory,
    /// The user says that the state is wrong.
    Contradict(ContradictRequest),
    /// Describe the dialog on the screen as an approval, if there is one.
    ListApprovals {
        /// Where the list goes.
        answer: oneshot::Sender<Vec<chat::Approval>>,
    },
    /// Answer the dialog on the screen.
    Answer(AnswerRequest),
}

/// A command for a run with a conversation.
#[derive(Debug)]
pub enum ConversationCommand {
    /// Read entries of the conversation.
    Read(ChatRequest),
    /// List the approvals that a person has to answer.
    ListApprovals {
        /// Where the list goes.
        answer: oneshot::Sender<Vec<chat::Approval>>,
    },
    /// Answer an approval.
    Answer(AnswerRequest),
    /// The user's rules have been checked for an approval. Without a ruling a person has to answer it.
    ApplyRuling {
        /// The approval.
        id: String,
        /// The rule's answer.
        ruling: Option<Ruling>,
    },
    /// List the approvals that have been answered.
    ListDecisions {
        /// Where the list goes.
        answer: oneshot::Sender<Vec<PastDecision>>,
    },
    /// The user's rules have changed: check the approvals that wait for a person again.
    RecheckRules,
    /// Show or change a setting of the agent.
    Configure(SettingRequest),
    /// Show or change the options of the session.
    ConfigureOption(OptionRequest),
    /// End the turn and keep the session.
    Interrupt {
        /// Resolves once the agent's input has taken the interrupt.
        answer: oneshot::Sender<Result<(), Failure>>,
    },
}

/// A message or keys for an agent, and the caller that waits for the receipt.
#[derive(Debug)]
pub struct SendRequest {
    /// The message or keys.
    pub order: SendOrder,
    /// Images that belong to the message.
    pub images: Vec<chat::Image>,
    /// Where the receipt goes.
    pub receipt: oneshot::Sender<Result<Receipt, Failure>>,
}

/// A caller that reads a conversation.
#[derive(Debug)]
pub struct ChatRequest {
    /// Which entries.
    pub page: Page,
    /// Answer only once there is a new entry.
    pub wait: bool,
    /// Where the entries go.
    pub answer: oneshot::Sender<chat::Chat>,
}

/// A caller's answer to an approval.
#[derive(Debug)]
pub struct AnswerRequest {
    /// The approval; if absent, the one that has waited longest.
    pub id: Option<String>,
    /// The answer.
    pub verdict: ApprovalAnswer,
    /// The name of the answerer.
    pub by: String,
    /// The reason that they give.
    pub why: Option<String>,
    /// Resolves once the journal holds the answer.
    pub answer: oneshot::Sender<Result<chat::Approval, Failure>>,
}

/// A caller that contradicts the state.
#[derive(Debug)]
pub struct ContradictRequest {
    /// The belief that is wrong.
    pub wrong: Belief,
    /// Resolves once the journal holds the correction.
    pub answer: oneshot::Sender<Result<Contradicted, Failure>>,
}

/// A state that the user contradicted, as it was before.
#[derive(Debug)]
pub struct Contradicted {
    /// The program.
    pub program: String,
    /// The corrections that follow.
    pub corrections: Vec<Correction>,
    /// The evidence.
    pub explanation: Explanation,
    /// The screen.
    pub screen: ScreenDump,
}

/// A caller that reads or changes a setting of the agent.
#[derive(Debug)]
pub struct SettingRequest {
    /// Which setting.
    pub setting: AgentSetting,
    /// The new value; if absent, the setting is only shown.
    pub wanted: Option<String>,
    /// Where the setting goes, once the agent has answered.
    pub answer: oneshot::Sender<Result<chat::Setting, Failure>>,
}

/// A caller that reads the options of the session or changes one.
#[derive(Debug)]
pub struct OptionRequest {
    /// The id or the name of the option; if absent, all options are shown.
    pub option: Option<String>,
    /// The new value; if absent, the options are only shown.
    pub value: Option<String>,
    /// Where the options go, once the agent has answered.
    pub answer: oneshot::Sender<Result<chat::AgentOptions, Failure>>,
}
