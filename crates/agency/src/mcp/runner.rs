//! Runs the tools: calls the API and returns text or JSON.

use std::time::Duration;

use agency_api::chat::{AnswerParams, ApprovalListParams, ReadParams};
use agency_api::mcp::TermsParams;
use agency_api::method::{
    ApprovalAnswer, ApprovalList, ChatRead, ChatSearch, LogForm, LogRead, LogReadParams, PtyScreen,
    PtyScreenParams, ReceiptKind, TaskGet, TaskInterrupt, TaskList, TaskListParams, TaskNew, TaskNewParams,
    TaskRef, TaskSend, TaskSendParams, TaskStop,
};
use agency_api::search::{Hit, SearchParams};
use agency_api::view::Task;
use agency_api::{Bytes, Failure, FailureCode};
use agency_client::Client;
use serde::Serialize;
use serde_json::json;

use super::summary::{ApprovalSummary, TaskSummary};
use super::tool::{
    AnswerApproval, ListApprovals, ReadTask, Search, SendMessage, StartTask, ToolCall, Until, WaitForTask,
};
use crate::agent_wait;
use crate::caller;
use crate::context::Context;
use crate::conversation::{self, Transcript};
use crate::log_stream::read_log;
use crate::output::{Paint, printable};

/// How much one call reads by default.
const DEFAULT_ENTRIES: u64 = 20;
const DEFAULT_LINES: u64 = 100;
/// A longer result would fill the model's context, and MCP clients cut it off.
const MOST_BYTES: usize = 60_000;

const DEFAULT_WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// The caller, and how to reach the daemon.
pub(super) struct ToolRunner {
    pub(super) context: Context,
    pub(super) who: TermsParams,
}

impl ToolRunner {
    pub(super) async fn run(&self, call: ToolCall) -> Result<String, Failure> {
        match call {
            ToolCall::ListTasks(_) => self.list_tasks().await,
            ToolCall::TaskState(arguments) => self.task_state(&arguments.task).await,
            ToolCall::ReadTask(arguments) => self.read_task(arguments).await,
            ToolCall::Search(arguments) => self.search(arguments).await,
            ToolCall::WaitForTask(arguments) => self.wait_for_task(arguments).await,
            ToolCall::ListApprovals(arguments) => self.list_approvals(arguments).await,
            ToolCall::StartTask(arguments) => self.start_task(arguments).await,
            ToolCall::SendMessage(arguments) => self.send_message(arguments).await,
            ToolCall::InterruptTask(arguments) => {
                self.daemon().await?.call(TaskInterrupt, self.task(&arguments.task)).await?;
                self.task_state(&arguments.task).await
            }
            ToolCall::StopTask(arguments) => {
                self.daemon().await?.call(TaskStop, self.task(&arguments.task).into()).await?;
                self.task_state(&arguments.task).await
            }
            ToolCall::AnswerApproval(arguments) => self.answer_approval(arguments).await,
        }
    }

    async fn daemon(&self) -> Result<Client, Failure> {
        self.context.daemon().await
    }

    fn task(&self, name: &str) -> TaskRef {
        TaskRef { cwd: self.who.cwd.clone(), name: name.to_owned() }
    }

    fn summary<'a>(&self, task: &'a Task) -> TaskSummary<'a> {
        TaskSummary::new(task, self.who.run.as_deref())
    }

    async fn list_tasks(&self) -> Result<String, Failure> {
        let params = TaskListParams { cwd: Some(self.who.cwd.clone()) };
        let listing = self.daemon().await?.call(TaskList, params).await?;
        to_json(&json!({ "tasks": listing.tasks.iter().map(|task| self.summary(task)).collect::<Vec<_>>() }))
    }

    async fn task_state(&self, name: &str) -> Result<String, Failure> {
        let task = self.daemon().await?.call(TaskGet, self.task(name)).await?;
        to_json(&self.summary(&task))
    }

    async fn read_task(&self, arguments: ReadTask) -> Result<String, Failure> {
        let task = self.daemon().await?.call(TaskGet, self.task(&arguments.task)).await?;
        match conversation::has_conversation(&task) {
            true => self.read_chat(arguments).await,
            false => self.read_terminal(&task, arguments.last.unwrap_or(DEFAULT_LINES)).await,
        }
    }

    async fn read_chat(&self, arguments: ReadTask) -> Result<String, Failure> {
        let limit = Some(arguments.last.unwrap_or(DEFAULT_ENTRIES));
        let task = self.task(&arguments.task);
        let params = ReadParams { before: arguments.before, limit, ..ReadParams::of(task) };
        let chat = self.daemon().await?.call(ChatRead, params).await?;
        let mut transcript = Transcript::new(Paint::Plain);
        let mut text: String = chat.entries.iter().map(|entry| transcript.text_for(entry)).collect();
        text.push_str(transcript.end_line());
        let first = chat.entries.first().map_or(0, |entry| entry.number);
        let last = chat.entries.last().map_or(0, |entry| entry.number);
        Ok(format!("[entries {first} to {last} of {}]\n{}", chat.total, last_part(&text)))
    }

    /// The screen of a running agent, or the end of the log of one that has ended.
    async fn read_terminal(&self, task: &Task, last: u64) -> Result<String, Failure> {
        let mut daemon = self.daemon().await?;
        let named = self.task(&task.id.to_string());
        let text = match task.run.is_some() {
            true => daemon.call(PtyScreen, PtyScreenParams { task: named, at: None }).await?.text,
            false => {
                let params = LogReadParams { task: named, shell: None, form: LogForm::Text, follow: false };
                let answer = daemon.call(LogRead, params).await?;
                read_log(daemon.stream(&answer.stream).await?).await?
            }
        };
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let shown = lines[lines.len().saturating_sub(last as usize)..].join("\n");
        Ok(printable(last_part(&shown)))
    }

    async fn search(&self, arguments: Search) -> Result<String, Failure> {
        let params = SearchParams {
            words: arguments.words,
            task: arguments.task.as_deref().map(|name| self.task(name)),
            cwd: Some(self.who.cwd.clone()),
            limit: arguments.limit,
        };
        let found = self.daemon().await?.call(ChatSearch, params).await?;
        let hit = |hit: &Hit| {
            let text: String = hit.snippet.iter().map(|piece| piece.text.as_str()).collect();
            json!({ "task": hit.task, "slug": hit.slug, "entry": hit.number, "kind": hit.kind, "time": hit.time, "text": text })
        };
        let hits: Vec<_> = found.hits.iter().map(hit).collect();
        to_json(&json!({ "hits": hits, "more": found.more, "unread_tasks": found.unread }))
    }

    async fn wait_for_task(&self, arguments: WaitForTask) -> Result<String, Failure> {
        let until: Vec<agent_wait::Until> = match arguments.until.as_slice() {
            [] => vec![agent_wait::Until::NeedsInput, agent_wait::Until::Exited],
            some => some.iter().map(wait_state).collect(),
        };
        let timeout = arguments.timeout_seconds.map_or(DEFAULT_WAIT, Duration::from_secs).min(LONGEST_WAIT);
        let named = self.task(&arguments.task);
        let waiting = agent_wait::wait_until(&self.context, &named, &until);
        let timed_out = match tokio::time::timeout(timeout, waiting).await {
            Ok(reached) => reached.map(|_| false)?,
            Err(_) => true,
        };
        let task = self.daemon().await?.call(TaskGet, named).await?;
        to_json(&json!({ "time_is_up": timed_out, "task": self.summary(&task) }))
    }

    /// Only the approvals of this project.
    async fn list_approvals(&self, arguments: ListApprovals) -> Result<String, Failure> {
        let params = ApprovalListParams { task: arguments.task.as_deref().map(|name| self.task(name)) };
        let mut daemon = self.daemon().await?;
        let listed = daemon.call(ApprovalList, params).await?;
        let tasks = daemon.call(TaskList, TaskListParams { cwd: Some(self.who.cwd.clone()) }).await?;
        let root = tasks.tasks.first().map(|task| task.project.clone());
        let own = listed.approvals.iter().filter(|open| Some(&open.project) == root.as_ref());
        to_json(&json!({ "approvals": own.map(ApprovalSummary::new).collect::<Vec<_>>() }))
    }

    async fn start_task(&self, arguments: StartTask) -> Result<String, Failure> {
        let params = TaskNewParams {
            cwd: self.who.cwd.clone(),
            slug: Some(arguments.slug),
            body: Bytes::from(arguments.message.as_str()),
            agent: arguments.agent,
            driver: arguments.driver,
            base_branch: arguments.base_branch,
            labels: arguments.labels,
            agents_to_start: None,
            draft: false,
            command: None,
            vcs: None,
            on_behalf_of: self.who.run.clone(),
            resume: None,
            caller: caller::caller(&self.context.options),
        };
        let started = self.daemon().await?.call(TaskNew, params).await?;
        to_json(&json!({ "task": self.summary(&started.task), "notes": started.notes }))
    }

    async fn send_message(&self, arguments: SendMessage) -> Result<String, Failure> {
        let params = TaskSendParams {
            task: self.task(&arguments.task),
            text: Bytes::from(arguments.text.as_str()),
            enter: true,
            anyway: false,
            queue: arguments.queue,
            keys: Vec::new(),
            images: Vec::new(),
        };
        let receipt = self.daemon().await?.call(TaskSend, params).await?;
        if receipt.receipt != ReceiptKind::Refused {
            return to_json(&json!({ "receipt": receipt.receipt, "why": receipt.why }));
        }
        let failure = Failure::new("the message was not sent").code(FailureCode::NotDelivered);
        let causes = receipt.why.into_iter().chain(receipt.screen);
        Err(causes.fold(failure, Failure::because).hint("queue it, or check what the task is waiting for"))
    }

    async fn answer_approval(&self, arguments: AnswerApproval) -> Result<String, Failure> {
        let AnswerApproval { task, id, allow, message, answers } = arguments;
        let by =
            self.who.run.as_ref().map_or("an MCP client".to_owned(), |run| format!("the agent of run {run}"));
        let params = AnswerParams {
            task: self.task(&task),
            id,
            allow,
            always: false,
            message,
            option: None,
            answers,
            by: Some(by),
        };
        let decided = self.daemon().await?.call(ApprovalAnswer, params).await?;
        let (title, verdict) =
            (&decided.approval.action.summary, conversation::outcome_text(&decided.approval));
        Ok(printable(&format!("{title}: {verdict}")))
    }
}

fn wait_state(until: &Until) -> agent_wait::Until {
    match until {
        Until::NeedsInput => agent_wait::Until::NeedsInput,
        Until::Running => agent_wait::Until::Running,
        Until::Exited => agent_wait::Until::Exited,
    }
}

fn to_json(answer: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(answer)
        .map_err(|err| Failure::new("cannot write the answer").code(FailureCode::Internal).caused_by(&err))
}

/// The last part of a text, cut between characters.
fn last_part(text: &str) -> &str {
    let from = text.len().saturating_sub(MOST_BYTES);
    &text[text.ceil_char_boundary(from)..]
}
