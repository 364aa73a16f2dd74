//! A run over either protocol. Callers need not know which one.

use std::time::Duration;

use agency_core::agent_state::{AgentState, Timing};
use agency_core::conversation::{Conversation, Item, Usage};
use agency_core::evidence::{Change, Detector};
use agency_core::exit::RunExit;

use crate::acp::{AcpRun, AcpTerms, ConnectionNote};
use crate::conversation::{
    AgentOption, AgentSetting, AnswerError, ApprovalAnswer, ConversationCore, ConversationEvent, ImageBlock,
    NotReady, Offers, OurRequest, SEPARATOR,
};
use crate::stream_json::StreamRun;

/// The protocol of a run, and what the driver must know to begin it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversationTerms {
    /// stream-json.
    Stream,
    /// The Agent Client Protocol.
    Acp(AcpTerms),
}

/// A run of an agent that is driven by a protocol.
#[allow(clippy::large_enum_variant, reason = "there is one for each run, and it is rarely moved")]
pub enum ConversationRun {
    /// Over stream-json.
    Stream(StreamRun),
    /// Over the Agent Client Protocol.
    Acp(AcpRun),
}

/// Calls the same method of either driver.
macro_rules! either {
    ($self:expr, $run:ident => $call:expr) => {
        match $self {
            ConversationRun::Stream($run) => $call,
            ConversationRun::Acp($run) => $call,
        }
    };
}

/// A run's beginning.
impl ConversationRun {
    /// A run that begins a conversation.
    pub fn began(terms: ConversationTerms, timing: Timing, now: Duration) -> ConversationRun {
        match terms {
            ConversationTerms::Stream => ConversationRun::Stream(StreamRun::began(timing, now)),
            ConversationTerms::Acp(terms) => ConversationRun::Acp(AcpRun::began(timing, now, terms)),
        }
    }

    /// The next run of this conversation, over the same protocol or another.
    pub fn continued(
        self,
        terms: ConversationTerms,
        timing: Timing,
        now: Duration,
        wall_offset: Duration,
    ) -> ConversationRun {
        let is_same_protocol = matches!(
            (&self, &terms),
            (ConversationRun::Stream(_), ConversationTerms::Stream)
                | (ConversationRun::Acp(_), ConversationTerms::Acp(_))
        );
        let mut inherited = either!(self, run => run.into_inherited());
        if !is_same_protocol {
            // Each protocol has its own names for modes and models.
            inherited.chosen.clear();
            inherited.chosen_options.clear();
        }
        inherited.conversation.set_wall_offset(wall_offset);
        if !inherited.conversation.entries().is_empty() {
            inherited.conversation.add(Item::Notice { text: SEPARATOR.to_owned() }, now);
        }
        match terms {
            ConversationTerms::Stream => {
                ConversationRun::Stream(StreamRun::continuing(inherited, timing, now))
            }
            ConversationTerms::Acp(terms) => {
                ConversationRun::Acp(AcpRun::continuing(inherited, timing, now, terms))
            }
        }
    }
}

/// Delegates to the core of the driver.
impl ConversationRun {
    /// The state that all protocol drivers share.
    pub fn core(&self) -> &ConversationCore {
        either!(self, run => run.core())
    }

    fn core_mut(&mut self) -> &mut ConversationCore {
        either!(self, run => run.core_mut())
    }

    /// The conversation of this run and of the runs before it.
    pub fn conversation(&self) -> &Conversation {
        self.core().conversation()
    }

    /// The agent's own id of the session.
    pub fn session_id(&self) -> Option<&str> {
        self.core().session_id()
    }

    /// Tokens and cost of the whole conversation.
    pub fn usage(&self) -> Usage {
        self.core().usage()
    }

    /// The state of the agent now.
    pub fn state(&self) -> AgentState {
        self.core().state()
    }

    /// The evidence behind the state.
    pub fn detector(&self) -> &Detector {
        self.core().detector()
    }

    /// Whether a line to the agent was begun and not ended.
    pub fn is_half_written(&self) -> bool {
        self.core().is_half_written()
    }

    /// When the state can next change without a new record.
    pub fn deadline(&self) -> Option<Duration> {
        match self {
            ConversationRun::Stream(run) => run.core().deadline(),
            ConversationRun::Acp(run) => run.deadline(),
        }
    }

    /// The changes of state since the last call.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.core_mut().take_changes()
    }

    /// Says what time it is. Returns what a time limit that has passed brings about.
    pub fn tick(&mut self, now: Duration) -> Vec<ConversationEvent> {
        match self {
            ConversationRun::Stream(run) => {
                run.core_mut().tick(now);
                Vec::new()
            }
            ConversationRun::Acp(run) => run.tick(now),
        }
    }

    /// Why the user should look at the agent's mode, if so.
    pub fn mode_warning(&self) -> Option<&str> {
        match self {
            ConversationRun::Stream(run) => run.mode_warning(),
            ConversationRun::Acp(run) => run.mode_warning(),
        }
    }

    /// Sets how far the wall clock is ahead of the clock of the records.
    pub fn set_wall_offset(&mut self, offset: Duration) {
        self.core_mut().set_wall_offset(offset);
    }

    /// The journal lacks some of the agent's output.
    pub fn on_gap(&mut self, at: Duration) {
        self.core_mut().on_gap(at);
    }

    /// Adds an entry that was noted when the run ended.
    pub fn on_exit_note(&mut self, item: Item, at: Duration) {
        self.core_mut().on_exit_note(item, at);
    }
}

/// Delegates to the driver.
impl ConversationRun {
    /// The requests of the agent that wait for an answer, oldest first.
    pub fn open_requests(&self) -> Vec<&str> {
        either!(self, run => run.open_requests().collect())
    }

    /// Whether the agent does not have the session that it was started to continue. Over ACP such a run begins another
    /// session instead.
    pub fn has_lost_session(&self) -> bool {
        match self {
            ConversationRun::Stream(run) => run.has_lost_session(),
            ConversationRun::Acp(_) => false,
        }
    }

    /// Whether a turn is in progress.
    pub fn is_working(&self) -> bool {
        either!(self, run => run.is_working())
    }

    /// Whether [`ConversationRun::prompt`] would return a line now.
    pub fn is_ready(&self) -> bool {
        match self {
            ConversationRun::Stream(_) => true,
            ConversationRun::Acp(run) => run.is_ready(),
        }
    }

    /// The values that the agent offers for a setting, and the current one.
    pub fn offers(&self, setting: AgentSetting) -> Offers {
        either!(self, run => run.offers(setting))
    }

    /// All options of the session, with the current value of each and the values that the user can choose.
    pub fn options(&self) -> Vec<AgentOption> {
        either!(self, run => run.options())
    }

    /// Whether a message may have images.
    pub fn takes_images(&self) -> bool {
        match self {
            ConversationRun::Stream(_) => true,
            ConversationRun::Acp(run) => run.takes_images(),
        }
    }

    /// The agent printed this.
    pub fn on_output(&mut self, bytes: &[u8], at: Duration) -> Vec<ConversationEvent> {
        either!(self, run => run.on_output(bytes, at))
    }

    /// The agent printed this on its error output. It is never read as a message.
    pub fn on_errors(&mut self, bytes: &[u8], at: Duration) {
        either!(self, run => run.on_errors(bytes, at));
    }

    /// Agency wrote this to the agent, as the journal has it.
    pub fn on_input(&mut self, bytes: &[u8], at: Duration) -> Vec<ConversationEvent> {
        either!(self, run => run.on_input(bytes, at))
    }

    /// The connection that the session lives on came or went.
    pub fn on_connection(&mut self, note: &ConnectionNote, at: Duration) -> Vec<ConversationEvent> {
        match self {
            ConversationRun::Stream(_) => Vec::new(),
            ConversationRun::Acp(run) => run.on_connection(note, at),
        }
    }

    /// Notes who answers a request, and why, before the answer is written.
    pub fn on_decision(&mut self, id: &str, by: &str, why: Option<&str>) {
        either!(self, run => run.on_decision(id, by, why));
    }

    /// The run ended.
    pub fn on_exit(&mut self, exit: RunExit, at: Duration) -> Vec<ConversationEvent> {
        match self {
            ConversationRun::Stream(run) => run.on_exit(exit, at),
            ConversationRun::Acp(run) => run.on_exit(exit.code, at),
        }
    }
}

/// Lines to write to the agent.
impl ConversationRun {
    /// A message of the user, if the agent can take it now.
    pub fn prompt(&mut self, text: &str) -> Result<Vec<u8>, NotReady> {
        self.prompt_with(text, &[])
    }

    /// A message of the user with images, if the agent can take it now.
    pub fn prompt_with(&mut self, text: &str, images: &[ImageBlock]) -> Result<Vec<u8>, NotReady> {
        match self {
            ConversationRun::Stream(_) => Ok(StreamRun::prompt_with(text, images)),
            ConversationRun::Acp(run) => run.prompt_with(text, images),
        }
    }

    /// Changes an option of the session.
    pub fn set_option(&mut self, name: &str, wanted: &str) -> Result<OurRequest, NotReady> {
        either!(self, run => run.set_option(name, wanted))
    }

    /// Forgets the last prompt: its line did not reach the agent and will not.
    pub fn drop_unwritten_prompt(&mut self) {
        if let ConversationRun::Acp(run) = self {
            run.drop_unwritten_prompt();
        }
    }

    /// The answer to an open request.
    pub fn answer(&self, id: &str, verdict: &ApprovalAnswer) -> Result<Vec<u8>, AnswerError> {
        either!(self, run => run.answer(id, verdict))
    }

    /// Lines that must be written and are not in the journal yet, each with its own key.
    pub fn owed_lines(&self) -> Vec<(String, Vec<u8>)> {
        either!(self, run => run.owed_lines())
    }

    /// Ends the turn. `None` if there is no turn to end.
    pub fn interrupt(&mut self) -> Option<Vec<u8>> {
        match self {
            ConversationRun::Stream(run) => Some(run.interrupt()),
            ConversationRun::Acp(run) => run.interrupt(),
        }
    }

    /// Changes a setting.
    pub fn set(&mut self, setting: AgentSetting, wanted: &str) -> Result<OurRequest, NotReady> {
        match self {
            ConversationRun::Stream(run) => Ok(run.set(setting, wanted)),
            ConversationRun::Acp(run) => run.set(setting, wanted),
        }
    }

    /// Requests the list of what the agent offers. `None` if the agent lists it without a request, or if we have
    /// requested it before.
    pub fn request_offers(&mut self) -> Option<OurRequest> {
        match self {
            ConversationRun::Stream(run) => run.request_offers(),
            ConversationRun::Acp(_) => None,
        }
    }

    /// Whether [`ConversationRun::stop`] has nothing left to end.
    pub fn has_stopped(&self) -> bool {
        match self {
            ConversationRun::Stream(_) => true,
            ConversationRun::Acp(run) => run.has_stopped(),
        }
    }

    /// Ends the session of a process that other sessions share. No lines if the session ends with its process.
    pub fn stop(&mut self) -> Vec<Vec<u8>> {
        match self {
            ConversationRun::Stream(_) => Vec::new(),
            ConversationRun::Acp(run) => run.stop(),
        }
    }
}
