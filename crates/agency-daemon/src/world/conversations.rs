//! Conversations: callers read them, answer approvals in them, and interrupt turns.

use std::time::Duration;

use agency_api::chat::{
    AgentOptions, AnswerParams, Approvals, Chat, OpenApproval, OptionParams, ReadParams, Setting,
    SettingParams,
};
use agency_api::method::{self, Nothing};
use agency_api::{Bytes, Failure, FailureCode, chat, view};
use agency_core::agent::Driver;
use agency_core::conversation::Item;
use agency_core::evidence::Why;
use agency_core::ids::TaskKey;
use agency_core::supervisor::Operation;
use agency_driver::conversation::{AgentSetting, ApprovalAnswer};
use agency_run::blocking::blocking;
use agency_run::command::{
    AnswerRequest, ChatRequest, ConversationCommand, OptionRequest, SettingRequest, TerminalCommand,
};
use agency_run::conversation::{Page, PastConversation};
use agency_run::handle::{CommandSender, RunCommands};
use agency_server::{Reply, RequestLoop};
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
    router.on(method::TaskOption, World::change_option);
    router.on(method::TaskInterrupt, World::interrupt);
}

impl World {
    /// The live run of a task that holds a conversation.
    pub(super) fn live_conversation(
        &self,
        key: &TaskKey,
    ) -> Result<(&LiveRun, CommandSender<ConversationCommand>), Failure> {
        let live = self.live_run(key)?;
        let commands = live.handle.conversation().ok_or_else(|| self.no_conversation(key))?;
        Ok((live, commands.clone()))
    }

    fn chat(&mut self, (key, params): (TaskKey, ReadParams), mut reply: Reply<Chat>) {
        let ReadParams { since, before, limit, seen, status, .. } = params;
        let wanted = Page { since, before, limit, seen, status };
        let wait = params.wait;
        self.record_look(&key);
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
            Err(_) => match self.past_conversation(&key).ok_or_else(|| self.no_conversation(&key)) {
                Ok(past) => {
                    tokio::spawn(async move {
                        reply.send(blocking(move || past.read(wanted)).await);
                    });
                }
                Err(failure) => reply.send(Err(failure)),
            },
        }
    }

    fn no_conversation(&self, key: &TaskKey) -> Failure {
        let driver = self.store.last_content(key).and_then(|file| file.fields().driver).unwrap_or_default();
        let failure =
            Failure::new(format!("task {} has no conversation", key.task)).code(FailureCode::Unsupported);
        match driver {
            Driver::Terminal => failure
                .because("its agent runs in a terminal")
                .hint(format!("agency attach {}; a new task takes --driver stream-json or acp", key.task)),
            Driver::StreamJson | Driver::Acp => {
                failure.because("it has not been started").hint(format!("agency start {}", key.task))
            }
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

    /// The requests of conversations, and the dialogs on terminals of agents that wait.
    pub(super) fn approvals(&mut self, task: Option<TaskKey>) -> Result<Later<Approvals>, Failure> {
        let is_meant = |live: &&LiveRun| task.as_ref().is_none_or(|key| live.key == *key);
        let runs = self.runs.live.values().filter(is_meant).filter(|live| may_ask(live));
        let mut runs: Vec<_> = runs
            .filter_map(|live| Some((self.view(&live.key).ok()?, live.handle.commands.clone())))
            .collect();
        runs.sort_by(|(one, _), (other, _)| (&one.project.0, one.id).cmp(&(&other.project.0, other.id)));
        Ok(Later::new(async move {
            let mut approvals = Vec::new();
            for (task, commands) in runs {
                let open = match commands {
                    RunCommands::Conversation(commands) => {
                        ask_run(commands, |answer| ConversationCommand::ListApprovals { answer }).await
                    }
                    RunCommands::Terminal(commands) => {
                        ask_run(commands, |answer| TerminalCommand::ListApprovals { answer }).await
                    }
                };
                // A run that ends meanwhile has no open approval.
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
        let task = self.view(&key)?;
        let live = self.live_run(&key)?;
        let commands = live.handle.commands.clone();
        // Over ACP a denial has no reason: the reason follows as the next message.
        let reason = params.message.clone().filter(|_| live.meta.acp.is_some());
        if matches!(commands, RunCommands::Terminal(_)) {
            // An answer to a dialog presses keys.
            self.may(&key, Operation::Send)?;
        }
        let reporter = self.context.reporter.clone();
        let by = params.by.unwrap_or_else(|| "a user".to_owned());
        let (id, why) = (params.id, params.message);
        let request = move |answer| AnswerRequest { id, verdict, by, why, answer };
        Ok(Later::new(async move {
            let approval = match commands {
                RunCommands::Conversation(commands) => {
                    ask_run(commands, |answer| ConversationCommand::Answer(request(answer))).await??
                }
                RunCommands::Terminal(commands) => {
                    ask_run(commands, |answer| TerminalCommand::Answer(request(answer))).await??
                }
            };
            let is_denied =
                approval.outcome.as_ref().is_some_and(|outcome| !outcome.allowed && !outcome.cancelled);
            let reason_queued = match reason.filter(|_| is_denied) {
                Some(reason) => queue_reason(&reporter, key, &approval, &reason).await,
                None => false,
            };
            Ok(OpenApproval { reason_queued, ..of_task(&task, approval) })
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

    fn change_option(
        &mut self,
        (key, params): (TaskKey, OptionParams),
    ) -> Result<Later<AgentOptions>, Failure> {
        let (_, commands) = self.live_conversation(&key)?;
        let OptionParams { task: _, option, value } = params;
        let ask = move |answer| ConversationCommand::ConfigureOption(OptionRequest { option, value, answer });
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

/// Whether the run may have an open approval: it has a conversation, or it waits in a terminal and not at its prompt.
fn may_ask(live: &LiveRun) -> bool {
    let waits = live.standing.state.waiting();
    let is_dialog = |why| matches!(why, Why::Permission | Why::Question | Why::Unknown);
    live.handle.conversation().is_some() || waits.is_some_and(|(_, why)| is_dialog(why))
}

fn of_task(task: &view::Task, approval: chat::Approval) -> OpenApproval {
    let (slug, project) = (task.slug.clone(), task.project.clone());
    OpenApproval { task: task.id, slug, project, approval, reason_queued: false }
}

/// Queues the reason of a denial as the next message. Returns whether it did.
async fn queue_reason(reporter: &Reporter, key: TaskKey, denied: &chat::Approval, reason: &str) -> bool {
    let text = Bytes(format!("I denied `{}`: {reason}", denied.action.summary).into_bytes());
    let task = key.clone();
    let queued = reporter
        .request("approval.answer", move |world: &mut World, reply: Reply<()>| {
            reply.send(world.queue_text(&key, text).map(drop));
        })
        .await;
    // The denial has arrived, so the caller gets no failure.
    queued.inspect_err(|failure| tracing::warn!(%task, %failure, "the reason of a denial is lost")).is_ok()
}

/// Sends a command to a run, and waits for its answer. A run that ends meanwhile drops the command.
pub(super) async fn ask_run<T, C: Send + 'static>(
    commands: CommandSender<C>,
    ask: impl FnOnce(oneshot::Sender<T>) -> C,
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
