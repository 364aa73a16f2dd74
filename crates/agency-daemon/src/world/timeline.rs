//! `task.timeline`: what happened to the agents of a task, from the files of its runs.

use agency_api::timeline::{Timeline, TimelineParams};
use agency_api::{Failure, method};
use agency_core::ids::TaskKey;
use agency_run::blocking::blocking;
use agency_run::command::{ChatRequest, ConversationCommand};
use agency_run::conversation::{Page, PastConversation};
use agency_run::handle::CommandSender;
use agency_run::run_meta::RunMeta;
use agency_run::timeline::{self, RunFiles};

use super::World;
use super::conversations::ask_run;
use super::explain::parse_time;
use super::router::{Later, Router};
use super::runs::is_conversation;

pub(super) fn register(router: &mut Router) {
    router.on(method::TaskTimeline, World::timeline);
}

impl World {
    fn timeline(&mut self, (key, params): (TaskKey, TimelineParams)) -> Result<Later<Timeline>, Failure> {
        let since = params.since.as_deref().map(parse_time).transpose()?;
        let runs = self.runs.history.get(&key).map(Vec::as_slice).unwrap_or_default();
        let files: Vec<RunFiles> = runs.iter().map(|meta| self.run_files(meta)).collect();
        let decisions = self.decisions_of(&key, runs);
        let live = self.live_conversation(&key).ok().map(|(_, commands)| commands);
        let past = self.past_conversation(&key);
        Ok(Later::new(async move {
            let mut entries =
                blocking(move || Ok(files.iter().flat_map(timeline::run_entries).collect())).await?;
            if let Some(decisions) = decisions {
                entries = [entries, timeline::decision_entries(decisions.read().await)].concat();
            }
            let chat = read_chat(live, past).await?;
            entries.extend(chat.into_iter().flat_map(timeline::chat_entries));
            Ok(timeline::assemble(entries, since, params.limit))
        }))
    }

    fn run_files(&self, meta: &RunMeta) -> RunFiles {
        let dir = self.context.state.run(&meta.run.0);
        RunFiles {
            run: meta.run.0.clone(),
            agent: meta.agent.clone(),
            driver: meta.driver.clone(),
            started_at: meta.started_at.clone(),
            states: dir.states(),
            journal: dir.journal(),
            is_terminal: !is_conversation(meta),
        }
    }
}

/// Asks the live run. If it ends meanwhile, reads its journal.
async fn read_chat(
    live: Option<CommandSender<ConversationCommand>>,
    past: Option<PastConversation>,
) -> Result<Option<agency_api::chat::Chat>, Failure> {
    let page = || Page { since: Some(0), ..Page::default() };
    if let Some(commands) = live {
        let ask = |answer| ConversationCommand::Read(ChatRequest { page: page(), wait: false, answer });
        if let Ok(chat) = ask_run(commands, ask).await {
            return Ok(Some(chat));
        }
    }
    match past {
        Some(past) => blocking(move || past.read(page())).await.map(Some),
        None => Ok(None),
    }
}
