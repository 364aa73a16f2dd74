//! Approvals: the user's rules answer them where they can, and every answer is kept.

use std::path::PathBuf;

use agency_api::chat::{ApprovalListParams, DecidedApproval, Decisions, Suggestions};
use agency_api::{Failure, chat, method, view};
use agency_core::approval::{Asker, PastAnswer, Ruling, Suggestion, ruling, suggest};
use agency_core::conversation::Approval;
use agency_core::ids::{ProjectId, RunId, TaskKey};
use agency_run::blocking::blocking;
use agency_run::command::ConversationCommand;
use agency_run::conversation::{self, PastConversation, PastDecision};
use agency_run::dialog_log;
use agency_run::handle::CommandSender;
use agency_run::run_meta::RunMeta;
use agency_server::Argument;
use agency_store::settings;

use super::World;
use super::argument::open_task;
use super::conversations::ask_run;
use super::loop_event::NamedTask;
use super::router::{Later, Router};
use super::runs::is_conversation;

pub(super) fn register(router: &mut Router) {
    router.on(method::ApprovalLog, World::decisions);
    router.on(method::ApprovalSuggest, World::suggest_rules);
}

/// The task whose approvals are meant; all tasks if it is `None`.
impl Argument<World, ApprovalListParams> for Option<TaskKey> {
    type Prepared = Option<NamedTask>;

    async fn prepare(params: ApprovalListParams) -> Result<Option<NamedTask>, Failure> {
        match params.task {
            Some(task) => open_task(task).await.map(Some),
            None => Ok(None),
        }
    }

    fn resolve(world: &mut World, task: Option<NamedTask>) -> Result<Option<TaskKey>, Failure> {
        task.map(|task| world.find(task)).transpose()
    }
}

/// Where the decisions of a task are.
pub(super) struct Source {
    task: view::Task,
    agent: String,
    live: Option<CommandSender<ConversationCommand>>,
    past: Option<PastConversation>,
    /// The answers to dialogs, one file per run with a terminal.
    dialogs: Vec<PathBuf>,
}

impl World {
    /// Has the current rules answer an approval. One that no rule answers waits for a user.
    pub(super) fn put_before_rules(&mut self, key: &TaskKey, run: &RunId, approval: &Approval) {
        self.watch_rules(key);
        let Some(live) = self.runs.live.get(run) else { return };
        let ruling = self.ruling(key, &live.meta.agent, approval).unwrap_or_else(|failure| {
            tracing::warn!(task = %key, %run, %failure, "the rules cannot be read");
            None
        });
        if let Some(Ruling { allow, by, .. }) = &ruling {
            tracing::info!(task = %key, %run, allow, by, "a rule decides");
        }
        if let Some(conversation) = live.handle.conversation() {
            conversation.post(ConversationCommand::ApplyRuling { id: approval.id.clone(), ruling });
        }
    }

    /// Has rules that have changed answer the approvals that are still open.
    pub(super) fn apply_approval_rules(&mut self) {
        let rules = |project: &ProjectId| Some(self.settings(Some(project)).ok()?.config.approve);
        let asked = self.configuration.approval_rules.iter().filter_map(|(project, before)| {
            let now = rules(project).filter(|now| now != before)?;
            Some((project.clone(), now))
        });
        for (project, now) in asked.collect::<Vec<_>>() {
            for live in self.runs.live.values().filter(|live| live.key.project == project) {
                if let Some(conversation) = live.handle.conversation() {
                    conversation.post(ConversationCommand::RecheckRules);
                }
            }
            self.configuration.approval_rules.insert(project, now);
        }
    }

    /// Watches the files of the rules from now on.
    fn watch_rules(&mut self, key: &TaskKey) {
        if let Ok(settings) = self.settings(Some(&key.project)) {
            // Keep older rules: the approvals that they did not answer have yet to be put before the new ones.
            self.configuration.approval_rules.entry(key.project.clone()).or_insert(settings.config.approve);
        }
        let user = agency_api::paths::global_config();
        let project = self.store.project(&key.project).map(|known| settings::project_path(known.root()));
        for directory in [user, project].iter().flatten().filter_map(|file| file.parent()) {
            if directory.is_dir() {
                self.workspaces.watch.add_with_writes(directory);
            }
        }
    }

    fn ruling(&self, key: &TaskKey, agent: &str, approval: &Approval) -> Result<Option<Ruling>, Failure> {
        let rules = self.settings(Some(&key.project))?.config.approve;
        let (project, workspace) = self.workspace_of(key)?;
        let workspace = agency_workspace::workspace_path(&project, &workspace);
        Ok(ruling(&rules, Asker { agent, workspace: &workspace }, approval))
    }

    /// The answered approvals, of one task or of all.
    fn decisions(&mut self, wanted: Option<TaskKey>) -> Result<Later<Decisions>, Failure> {
        let talks =
            self.runs.history.iter().filter(|(key, _)| wanted.as_ref().is_none_or(|wanted| wanted == *key));
        let sources: Vec<Source> = talks.filter_map(|(key, runs)| self.decisions_of(key, runs)).collect();
        Ok(Later::new(async move {
            let mut decisions = Vec::new();
            for source in sources {
                let (task, agent) = (source.task.clone(), source.agent.clone());
                let decided = source.read().await.into_iter();
                decisions.extend(decided.map(|decided| (decided.at, of_task(&task, &agent, decided))));
            }
            decisions.sort_by_key(|(at, _)| *at);
            let decisions = decisions.into_iter().map(|(_, decided)| decided).collect();
            Ok(Decisions { decisions })
        }))
    }

    /// Suggests rules from the answered approvals, of one task or of all. Denials of every task count.
    fn suggest_rules(&mut self, wanted: Option<TaskKey>) -> Result<Later<Suggestions>, Failure> {
        let all = self.runs.history.iter();
        let sources: Vec<(bool, Source)> = all
            .filter_map(|(key, runs)| {
                let is_wanted = wanted.as_ref().is_none_or(|wanted| wanted == key);
                Some((is_wanted, self.decisions_of(key, runs)?))
            })
            .collect();
        Ok(Later::new(async move {
            let mut answers = Vec::new();
            for (is_wanted, source) in sources {
                let past = source.read().await.into_iter().filter_map(past_answer);
                answers.extend(past.filter(|answer| is_wanted || !answer.allowed));
            }
            let suggestions = suggest(&answers).into_iter().map(suggestion_view).collect();
            Ok(Suggestions { suggestions })
        }))
    }

    pub(super) fn decisions_of(&self, key: &TaskKey, runs: &[RunMeta]) -> Option<Source> {
        let agent = runs.last()?.agent.clone();
        let live = self.live_conversation(key).ok().map(|(_, commands)| commands);
        let terminals = runs.iter().filter(|meta| !is_conversation(meta));
        let dialogs = terminals.map(|meta| self.context.state.run(&meta.run.0).decisions()).collect();
        Some(Source { task: self.view(key).ok()?, agent, live, past: self.past_conversation(key), dialogs })
    }
}

impl Source {
    pub(super) async fn read(self) -> Vec<PastDecision> {
        let Source { live, past, dialogs, .. } = self;
        let mut decisions = read_conversation(live, past).await;
        let read = blocking(move || {
            Ok(dialogs.into_iter().flat_map(|file| dialog_log::read(file).unwrap_or_default()).collect())
        });
        decisions.extend(read.await.unwrap_or_else(left_out));
        decisions
    }
}

/// A request that the agent withdrew has no answer.
fn past_answer(decided: PastDecision) -> Option<PastAnswer> {
    let outcome = decided.approval.outcome.filter(|outcome| !outcome.cancelled)?;
    let by_rule = outcome.by.is_some_and(|by| by.starts_with("rule "));
    let (tool, input) = (decided.approval.tool, decided.approval.input);
    Some(PastAnswer { tool, input, allowed: outcome.allowed, by_rule })
}

fn suggestion_view(suggestion: Suggestion) -> chat::Suggestion {
    chat::Suggestion {
        toml: suggestion.toml(),
        pattern: suggestion.rule.pattern.clone().unwrap_or_default(),
        allowed: suggestion.allowed as u64,
        examples: suggestion.examples,
    }
}

/// Asks the live run. If it ends meanwhile, reads its journal.
async fn read_conversation(
    live: Option<CommandSender<ConversationCommand>>,
    past: Option<PastConversation>,
) -> Vec<PastDecision> {
    if let Some(commands) = live
        && let Ok(decisions) = ask_run(commands, |answer| ConversationCommand::ListDecisions { answer }).await
    {
        return decisions;
    }
    match past {
        Some(past) => blocking(move || past.decisions()).await.unwrap_or_else(left_out),
        None => Vec::new(),
    }
}

fn left_out(failure: Failure) -> Vec<PastDecision> {
    tracing::warn!(%failure, "decisions cannot be read and are left out");
    Vec::new()
}

fn of_task(task: &view::Task, agent: &str, decided: PastDecision) -> DecidedApproval {
    DecidedApproval {
        time: conversation::wall_time(decided.at),
        task: task.id,
        slug: task.slug.clone(),
        project: task.project.clone(),
        agent: agent.to_owned(),
        approval: decided.approval,
    }
}
