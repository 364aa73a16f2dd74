//! `desk.read` and `desk.subscribe`: everything that surfaces show, of all projects.
//!
//! Not here: what has changed since then, and who hears of it (`desk_feed`).

use agency_api::chat::{Approvals, Usage};
use agency_api::desk::{Desk, DeskStart, DeskSubscribeParams, ProjectConflict};
use agency_api::method::{self, Nothing};
use agency_api::{Bytes, Failure};
use agency_core::ids::{ProjectId, TaskKey};
use agency_run::blocking::blocking;
use agency_run::command::{ChatRequest, ConversationCommand};
use agency_run::conversation::{Page, PastConversation};
use agency_run::handle::CommandSender;

use super::World;
use super::conversations::ask_run;
use super::router::{Later, Router};

pub(super) fn register(router: &mut Router) {
    router.on(method::DeskRead, World::read_desk);
    router.on(method::DeskSubscribe, World::begin_desk_subscription);
}

/// The desk as far as the loop knows it, and where to ask for the rest.
pub struct CollectedDesk {
    pub desk: Desk,
    pub approvals: Result<Later<Approvals>, Failure>,
    pub usages: Vec<UsageSource>,
}

/// Where to read what a task has used.
pub struct UsageSource {
    pub project: Bytes,
    pub task: u64,
    /// Changes with every turn.
    pub version: String,
    live: Option<CommandSender<ConversationCommand>>,
    past: Option<PastConversation>,
}

impl World {
    fn read_desk(&mut self, _: Nothing) -> Result<Later<Desk>, Failure> {
        let (feed, reporter) = (self.context.desk.clone(), self.context.reporter.clone());
        Ok(Later::new(async move { feed.read(&reporter).await }))
    }

    fn begin_desk_subscription(&mut self, params: DeskSubscribeParams) -> Result<Later<DeskStart>, Failure> {
        let (feed, reporter) = (self.context.desk.clone(), self.context.reporter.clone());
        Ok(Later::new(async move { feed.updates_since(params.since, &reporter).await }))
    }

    pub(crate) fn collect_desk(&mut self) -> CollectedDesk {
        let projects: Vec<ProjectId> = self.store.projects().map(|(id, _)| id.clone()).collect();
        let listing = self.listing_of(&projects, false).unwrap_or_else(|failure| {
            tracing::warn!(%failure, "the tasks cannot be listed");
            method::TaskListing::default()
        });
        let conflicts = projects.iter().flat_map(|id| self.project_conflicts(id)).collect();
        let desk = Desk {
            seq: 0,
            tasks: listing.tasks,
            approvals: Vec::new(),
            queue: self.queue_list(None).queued,
            conflicts,
            costs: Vec::new(),
            connections: self.connections(Nothing {}).connections,
            orphans: listing.orphans,
            warnings: listing.warnings,
            marks: listing.marks,
        };
        CollectedDesk { desk, approvals: self.approvals(None), usages: self.usage_sources() }
    }

    pub(super) fn project_conflicts(&self, project: &ProjectId) -> Vec<ProjectConflict> {
        let Some(root) = self.store.project(project).map(|known| Bytes::from(known.root())) else {
            return Vec::new();
        };
        let conflicts = self.conflicts_in(project).into_iter();
        conflicts.map(|conflict| ProjectConflict { project: root.clone(), conflict }).collect()
    }

    fn usage_sources(&self) -> Vec<UsageSource> {
        let mut keys: Vec<&TaskKey> = self.runs.history.keys().collect();
        keys.sort();
        keys.into_iter().filter_map(|key| self.usage_source(key)).collect()
    }

    /// `None` for a task whose agent never had a conversation.
    fn usage_source(&self, key: &TaskKey) -> Option<UsageSource> {
        self.store.task(key)?;
        let past = self.past_conversation(key)?;
        let live = self.live_conversation(key).ok().map(|(_, commands)| commands);
        let last = self.runs.history.get(key)?.last()?;
        let turns = self.runs.turns.get(key).copied().unwrap_or_default();
        Some(UsageSource {
            project: self.store.project(&key.project)?.root().into(),
            task: key.task.0,
            version: format!("{} {turns} {}", last.run, live.is_some()),
            live,
            past: Some(past),
        })
    }
}

impl UsageSource {
    /// `None` if the conversation cannot be read.
    pub async fn read(self) -> Option<Usage> {
        let page = || Page { limit: Some(0), ..Page::default() };
        let ask = |answer| ConversationCommand::Read(ChatRequest { page: page(), wait: false, answer });
        if let Some(commands) = self.live
            && let Ok(chat) = ask_run(commands, ask).await
        {
            return Some(chat.usage);
        }
        let past = self.past?;
        blocking(move || past.read(page())).await.ok().map(|chat| chat.usage)
    }
}
