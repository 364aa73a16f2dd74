//! The facts about a run that its follower knows from the beginning and never changes.

use std::path::PathBuf;
use std::sync::Arc;

use agency_api::paths::RunDir;
use agency_core::agent::Driver;
use agency_core::agent_state::Timing;
use agency_core::evidence::UserWords;
use agency_core::ids::RunId;
use agency_driver::protocol_run::ConversationTerms;
use agency_driver::terminal::Settings;
use agency_store::epoch::DaemonEpoch;
use agency_store::program_memory::ProgramMemories;
use agency_store::rule_book::RuleBook;

use crate::conversation::ConversationSource;

/// The facts that a follower needs to follow a keeper and to replace it.
#[derive(Debug, Clone)]
pub struct RunContext {
    /// The run.
    pub id: RunId,
    /// The name of the task, or of the connection.
    pub name: String,
    /// How Agency talks to the agent.
    pub driver: Driver,
    /// The run is a session on a connection and has no keeper of its own.
    pub is_session: bool,
    /// The terms for the driver of the conversation, if the run has one.
    pub conversation: ConversationTerms,
    /// The runs whose conversation this run continues, oldest first.
    pub before: Vec<ConversationSource>,
    /// The directory of the run.
    pub dir: RunDir,
    /// The epoch of the daemon.
    pub epoch: Arc<DaemonEpoch>,
    /// Whose run it is, for a keeper that replaces a killed one.
    pub owner: Option<serde_json::Value>,
    /// The keeper's program.
    pub keeper_binary: PathBuf,
    /// Soft and hard limit of open files.
    pub open_files: Option<(u64, u64)>,
    /// Programs that `stop` leaves alone although the agent started them.
    pub spare: Vec<String>,
    /// How the journal is folded.
    pub fold: FoldSettings,
    /// The screen rules.
    pub rule_book: Arc<RuleBook>,
    /// The memory of programs.
    pub memories: Arc<ProgramMemories>,
    /// The words of the task, which no memory may keep.
    pub task_words: Arc<UserWords>,
}

/// How a run's journal is folded.
#[derive(Debug, Clone)]
pub struct FoldSettings {
    /// When silence counts as waiting.
    pub timing: Timing,
    /// Lines above the screen.
    pub scrollback: usize,
    /// The name of the agent's program.
    pub program: String,
}

impl RunContext {
    /// The driver's settings, with the rules as they are now.
    pub fn settings(&self) -> Settings {
        let FoldSettings { timing, scrollback, program } = self.fold.clone();
        Settings { timing, scrollback, program, rules: self.rule_book.rules() }
    }
}
