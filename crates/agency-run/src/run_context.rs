//! What a follower knows about its run before it begins, and never changes.

use std::path::PathBuf;
use std::sync::Arc;

use agency_api::paths::RunDir;
use agency_core::agent::Driver;
use agency_core::agent_state::Timing;
use agency_core::ids::RunId;
use agency_driver::conversation::ConversationTerms;
use agency_driver::terminal::Settings;
use agency_store::rule_book::RuleBook;

use crate::conversation::ConversationSource;

/// What a run needs to follow its keeper and to replace it.
#[derive(Debug, Clone)]
pub struct RunContext {
    pub id: RunId,
    pub name: String,
    pub driver: Driver,
    /// It has a place at a connection that others share, and no keeper of its own.
    pub is_session: bool,
    /// What the driver of its conversation needs to know, where it holds one.
    pub conversation: ConversationTerms,
    /// The runs whose conversation this one goes on with, oldest first.
    pub before: Vec<ConversationSource>,
    pub dir: RunDir,
    pub epoch: u64,
    pub keeper_binary: PathBuf,
    pub open_files: Option<(u64, u64)>,
    pub spare: Vec<String>,
    pub fold: FoldSettings,
    pub rule_book: Arc<RuleBook>,
}

/// What decides how a run's journal is read.
#[derive(Debug, Clone)]
pub struct FoldSettings {
    pub timing: Timing,
    pub scrollback: usize,
    /// The name of the agent's program.
    pub program: String,
}

impl RunContext {
    /// With the rules as they are now.
    pub fn settings(&self) -> Settings {
        let FoldSettings { timing, scrollback, program } = self.fold.clone();
        Settings { timing, scrollback, program, rules: self.rule_book.rules() }
    }
}
