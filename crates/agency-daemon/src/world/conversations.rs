//! Conversations: callers read them, answer approvals in them, and interrupt turns.

use std::time::Duration;

use agency_api::chat::{AnswerParams, Approvals, Chat, OpenApproval, ReadParams, Setting, SettingParams};
use agency_api::method::{self, Nothing};
use agency_api::{Failure, FailureCode, chat, view};
use agency_core::conversation::Item;
use agency_core::ids::TaskKey;
use agency_driver::conversation::{AgentSetting, ApprovalAnswer};
use agency_run::blocking::blocking;
use agency_run::command::{AnswerRequest, ChatRequest, ConversationCommand, SettingRequest};
use agency_run::conversation::{Page, PastConversation};
use agency_run::handle::CommandSender;
use agency_server::Reply;
use agency_store::exit_notes;
use tokio::sync::oneshot;

use super::loop_event::{LoopEvent, Reporter};
use super::router::{Later, Router};
use super::runs::is_conversation;
use super::{LiveRun, World};

pub(super) fn register(router: &mut Router) {
    router.on_reply(method::ChatRead, World::chat);
    router.on(method::ApprovalList, World::approvals);
    router.on(method::ApprovalAnswer, World::answer_approval);
    router.on(method::TaskModel, World::change_model);
    router.on(method::TaskMode, World::change_mode);
    router.on(method::TaskInterrupt, World::interrupt);
}

impl World {
    /// The live run of a task that holds a conversation.
    pub(super) fn live_conversation(
        &self,
        key: &TaskKey,
    ) -> Result<(&LiveRun, CommandSender<ConversationCommand>), Failure> {
        let live = self.live_run(key)?;
        let commands = live.handle.conversation().ok_or_else(|| no_conversation(key))?;
        Ok((live, commands.clone()))
    }

    fn chat(&mut self, (key, params): (TaskKey, ReadParams), mut reply: Reply<Chat>) {
        let wanted = Page { since: params.since, before: params.before, limit: params.limit };
        let wait = params.wait;
        match self.live_conversation(&key).map(|(live, commands)| (commands, live.meta.run.clone())) {
            Ok((commands, run)) => {
                self.record_view(&run);
                let ask = move |answer| ConversationCommand::Read(ChatRequest { page: wanted, wait, answer });
                let reader = (wait && params.looking).then(|| self.add_reader(&key));
                tokio::spawn(async move {
                    let read = tokio::select! {
                        read = ask_run(commands, ask) => Some(read),
                        // The reader has disconnected and sees no entry any more.
                        () = reply.closed() => None,
                    };
                    if let Some(reporter) = reader {
                        reporter.report(LoopEvent::ReaderLeft { key }).await;
                    }
                    if let Some(read) = read {
                        reply.send(read);
                    }
                });
            }
            Err(_) => match self.past_conversation(&key).ok_or_else(|| no_conversation(&key)) {
                Ok(past) => {
                    tokio::spawn(async move {
                        reply.send(blocking(move || past.read(wanted)).await);
                    });
                }
                Err(failure) => reply.send(Err(failure)),
            },
        }
    }

    /// Counts a reader of the conversation until a [`LoopEvent::ReaderLeft`] comes through the returned reporter.
    fn add_reader(&mut self, key: &TaskKey) -> Reporter {
        *self.notices.readers.entry(key.clone()).or_default() += 1;
        self.notices.notifier.set_viewed(key, true);
        self.context.reporter.clone()
    }

    pub(super) fn remove_reader(&mut self, key: &TaskKey) {
        let left = self.notices.readers.get_mut(key).map_or(0, |readers| {
            *readers = readers.saturating_sub(1);
            *readers
        });
        if left == 0 {
            self.notices.readers.remove(key);
            self.notices.notifier.set_viewed(key, false);
        }
    }

    /// The conversation of a task without a live agent.
    pub(super) fn past_conversation(&self, key: &TaskKey) -> Option<PastConversation> {
        let runs = self.runs.history.get(key).map(Vec::as_slice).unwrap_or_default();
        let talks = runs.iter().filter(|meta| is_conversation(meta));
        let mut before: Vec<_> = talks.map(|meta| self.conversation_source(meta)).collect();
        let last = before.pop()?;
        Some(PastConversation { before, last })
    }

    /// Adds an entry to the end of a conversation whose run is over.
    pub(super) fn append_to_conversation(&self, key: &TaskKey, item: Item) {
        let last =
            self.runs.history.get(key).and_then(|runs| runs.last()).filter(|meta| is_conversation(meta));
        let Some(journal) = last.map(|meta| self.context.state.run(&meta.run.0).journal()) else { return };
        if let Err(cause) = exit_notes::append(&journal, item) {
            tracing::warn!(task = %key, %cause, "the conversation does not say how it ended");
        }
        self.touch_index(key);
    }

    pub(super) fn append_error(&self, key: &TaskKey, message: &str, cause: &str) {
        let (message, cause) = (message.to_owned(), Some(cause.to_owned()));
        self.append_to_conversation(key, Item::Error { message, cause });
    }

    fn approvals(&mut self, task: Option<TaskKey>) -> Result<Later<Approvals>, Failure> {
        let is_meant = |live: &&LiveRun| task.as_ref().is_none_or(|key| live.key == *key);
        let runs = self.runs.live.values().filter(is_meant);
        let mut runs: Vec<_> = runs
            .filter_map(|live| Some((self.view(&live.key).ok()?, live.handle.conversation()?.clone())))
            .collect();
        runs.sort_by(|(one, _), (other, _)| (&one.project.0, one.id).cmp(&(&other.project.0, other.id)));
        Ok(Later::new(async move {
            let mut approvals = Vec::new();
            for (task, commands) in runs {
                // A run that ends meanwhile has no open approval.
                let open = ask_run(commands, |answer| ConversationCommand::ListApprovals { answer }).await;
                let open = open.unwrap_or_default().into_iter();
                approvals.extend(open.map(|approval| of_task(&task, approval)));
            }
            Ok(Approvals { approvals })
        }))
    }

    fn answer_approval(
        &mut self,
        (key, params): (TaskKey, AnswerParams),
    ) -> Result<Later<OpenApproval>, Failure> {
        let verdict = verdict(&params)?;
        let (task, commands) = (self.view(&key)?, self.live_conversation(&key)?.1);
        let by = params.by.unwrap_or_else(|| "a user".to_owned());
        let (id, why) = (params.id, params.message);
        let ask = move |answer| ConversationCommand::Answer(AnswerRequest { id, verdict, by, why, answer });
        Ok(Later::new(async move {
            let approval = ask_run(commands, ask).await??;
            Ok(of_task(&task, approval))
        }))
    }

    fn change_model(&mut self, call: (TaskKey, SettingParams)) -> Result<Later<Setting>, Failure> {
        self.change_setting(call, AgentSetting::Model)
    }

    fn change_mode(&mut self, call: (TaskKey, SettingParams)) -> Result<Later<Setting>, Failure> {
        self.change_setting(call, AgentSetting::Mode)
    }

    fn change_setting(
        &mut self,
        (key, params): (TaskKey, SettingParams),
        setting: AgentSetting,
    ) -> Result<Later<Setting>, Failure> {
        let (_, commands) = self.live_conversation(&key)?;
        let ask = move |answer| {
            ConversationCommand::Configure(SettingRequest { setting, wanted: params.name, answer })
        };
        Ok(Later::new(async move { ask_run(commands, ask).await? }))
    }

    fn interrupt(&mut self, key: TaskKey) -> Result<Later<Nothing>, Failure> {
        let (_, commands) = self.live_conversation(&key)?;
        Ok(Later::new(async move {
            ask_run(commands, |answer| ConversationCommand::Interrupt { answer }).await??;
            Ok(Nothing {})
        }))
    }
}

fn verdict(params: &AnswerParams) -> Result<ApprovalAnswer, Failure> {
    let message = params.message.clone();
    if let Some(option) = &params.option {
        return Ok(ApprovalAnswer::Choose { id: option.clone() });
    }
    Ok(match (params.allow, &params.answers) {
        (true, Some(answers)) => ApprovalAnswer::Answer { answers: answers.clone() },
        (true, None) if params.always => ApprovalAnswer::AllowAlways,
        (true, None) => ApprovalAnswer::Allow,
        (false, _) if params.always => {
            return Err(Failure::new("`--always` applies to approvals only")
                .code(FailureCode::InvalidArgument)
                .hint("leave out --always"));
        }
        (false, _) => {
            ApprovalAnswer::Deny { message: message.unwrap_or_else(|| "The user said no.".to_owned()) }
        }
    })
}

fn of_task(task: &view::Task, approval: chat::Approval) -> OpenApproval {
    OpenApproval { task: task.id, slug: task.slug.clone(), project: task.project.clone(), approval }
}

/// Sends a command to a run, and waits for its answer. A run that ends meanwhile drops the command.
pub(super) async fn ask_run<T>(
    commands: CommandSender<ConversationCommand>,
    ask: impl FnOnce(oneshot::Sender<T>) -> ConversationCommand,
) -> Result<T, Failure> {
    let ended = |_| {
        Failure::new("the run ended before it could answer").code(FailureCode::NotRunning).hint("try again")
    };
    let answered = async { commands.ask(ask).await.map_err(ended) };
    let silent = |_| {
        Err(Failure::new("the run does not answer")
            .code(FailureCode::TimedOut)
            .because("its keeper may be stopped"))
    };
    tokio::time::timeout(ANSWERED_WITHIN, answered).await.unwrap_or_else(silent)
}

/// Longer than a reader waits for new entries.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

fn no_conversation(key: &TaskKey) -> Failure {
    Failure::new(format!("task {} has no conversation", key.task))
        .code(FailureCode::Unsupported)
        .because("its agent runs in a terminal")
        .hint(format!("agency attach {}; a new task takes --driver stream-json or acp", key.task))
}
