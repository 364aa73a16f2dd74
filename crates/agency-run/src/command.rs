//! What the daemon tells a run to do.

use std::sync::Arc;
use std::time::Duration;

use agency_api::method::ScreenDump;
use agency_api::pty::ViewerNotice;
use agency_api::view::Witness;
use agency_api::{Failure, chat};
use agency_core::approval::Ruling;
use agency_core::evidence::Standing;
use agency_driver::conversation::{AgentSetting, ApprovalAnswer};
use agency_terminal::{Colours, Size};
use tokio::sync::oneshot;

use crate::conversation::{Page, PastDecision};
use crate::send_queue::SendRequest;
use crate::viewer_queue::{ViewerId, ViewerQueue};
use crate::viewers::ViewerOptions;

#[derive(Debug)]
pub enum RunCommand {
    /// Always first: the daemon knows the run now, and its news will be understood.
    Begin,
    Attach {
        viewer: ViewerId,
        queue: Arc<ViewerQueue>,
        options: ViewerOptions,
    },
    Detach {
        viewer: ViewerId,
    },
    Typed {
        viewer: ViewerId,
        bytes: Vec<u8>,
    },
    Resized {
        viewer: ViewerId,
        size: Size,
    },
    /// What the viewer's terminal says of its colours.
    Colours {
        viewer: ViewerId,
        colours: Colours,
    },
    /// The viewer lost output and has sent all it had.
    Refresh {
        viewer: ViewerId,
    },
    Send(SendRequest),
    /// For every viewer.
    Pass(ViewerNotice),
    Screen {
        answer: oneshot::Sender<ScreenDump>,
    },
    /// The rules about screens may have changed.
    HeedRules,
    /// The user's rules about approvals have changed.
    Reconsider,
    /// Who says what of its state.
    Witnesses {
        answer: oneshot::Sender<(Standing, Vec<Witness>, Vec<String>)>,
    },
    /// A conversation is read; only where there is one.
    Chat(ChatRequest),
    /// What waits for an answer; only where there are conversations.
    Approvals {
        answer: oneshot::Sender<Vec<chat::Approval>>,
    },
    Answer(AnswerRequest),
    /// What the user's rules say of what the agent asked; none of them: it is left to people.
    Ruled {
        id: String,
        ruling: Option<Ruling>,
    },
    /// What was answered so far.
    Decisions {
        answer: oneshot::Sender<Vec<PastDecision>>,
    },
    /// A setting is shown or changed.
    Tune(SettingRequest),
    /// End the turn, keep the session.
    Interrupt {
        answer: oneshot::Sender<Result<(), Failure>>,
    },
    Stop {
        grace: Duration,
    },
    /// The run is over and everyone knows: let the keeper go.
    Dismiss,
    /// The daemon leaves; keeper and agent stay.
    Leave {
        done: oneshot::Sender<()>,
    },
}

/// A caller that reads a conversation.
#[derive(Debug)]
pub struct ChatRequest {
    pub page: Page,
    /// Answered once there is something new.
    pub wait: bool,
    pub answer: oneshot::Sender<chat::Chat>,
}

/// An answer to what the agent asked.
#[derive(Debug)]
pub struct AnswerRequest {
    /// Absent: the one that has waited longest.
    pub id: Option<String>,
    pub verdict: ApprovalAnswer,
    pub by: String,
    pub why: Option<String>,
    pub answer: oneshot::Sender<Result<chat::Approval, Failure>>,
}

/// A caller who wants to know or to change a setting.
#[derive(Debug)]
pub struct SettingRequest {
    pub setting: AgentSetting,
    /// Absent: only shown.
    pub wanted: Option<String>,
    pub answer: oneshot::Sender<Result<chat::Setting, Failure>>,
}

pub enum Flow {
    Stay,
    Leave,
}
