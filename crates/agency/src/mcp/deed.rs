//! What each tool does: calls of the API, and their answers in words or JSON.

use std::time::Duration;

use agency_api::chat::{AnswerParams, ApprovalListParams, ReadParams};
use agency_api::mcp::TermsParams;
use agency_api::method::{
    ApprovalAnswer, ApprovalList, ChatRead, ChatSearch, LogForm, LogRead, LogReadParams, PtyScreen,
    ReceiptKind, TaskGet, TaskInterrupt, TaskList, TaskListParams, TaskNew, TaskNewParams, TaskRef, TaskSend,
    TaskSendParams, TaskStop,
};
use agency_api::search::{Hit, SearchParams};
use agency_api::view::{AgentState, Task};
use agency_api::{Bytes, Failure, FailureCode};
use agency_client::Client;
use serde::Serialize;
use serde_json::json;

use super::brief::{Brief, Request};
use super::tool::{
    AnswerApproval, Asked, ListApprovals, ReadTask, Search, SendMessage, StartTask, Until, WaitForTask,
};
use crate::agent_wait::{self, wait_for_state};
use crate::caller;
use crate::context::Context;
use crate::log_stream::read_log;
use crate::output::{Paint, printable};
use crate::talk::{self, Transcript};

/// What one reads at once.
const USUAL_ENTRIES: u64 = 20;
const USUAL_LINES: u64 = 100;
/// More than this is nothing for a model's memory, and clients cut it off.
const MOST_BYTES: usize = 60_000;

const USUAL_WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// Who asks, and where the daemon is.
pub(super) struct Desk {
    pub(super) context: Context,
    pub(super) who: TermsParams,
}

impl Desk {
    pub(super) async fn deed(&self, asked: Asked) -> Result<String, Failure> {
        match asked {
            Asked::ListTasks(_) => self.list_tasks().await,
            Asked::TaskState(given) => self.task_state(&given.task).await,
            Asked::ReadTask(given) => self.read_task(given).await,
            Asked::Search(given) => self.search(given).await,
            Asked::WaitForTask(given) => self.wait_for_task(given).await,
            Asked::ListApprovals(given) => self.list_approvals(given).await,
            Asked::StartTask(given) => self.start_task(given).await,
            Asked::SendMessage(given) => self.send_message(given).await,
            Asked::InterruptTask(given) => {
                self.daemon().await?.call(TaskInterrupt, self.task(&given.task)).await?;
                self.task_state(&given.task).await
            }
            Asked::StopTask(given) => {
                self.daemon().await?.call(TaskStop, self.task(&given.task)).await?;
                self.task_state(&given.task).await
            }
            Asked::AnswerApproval(given) => self.answer_approval(given).await,
        }
    }

    async fn daemon(&self) -> Result<Client, Failure> {
        self.context.daemon().await
    }

    fn task(&self, name: &str) -> TaskRef {
        TaskRef { cwd: self.who.cwd.clone(), name: name.to_owned() }
    }

    fn brief<'a>(&self, task: &'a Task) -> Brief<'a> {
        Brief::of(task, self.who.run.as_deref())
    }

    async fn list_tasks(&self) -> Result<String, Failure> {
        let params = TaskListParams { cwd: Some(self.who.cwd.clone()) };
        let listing = self.daemon().await?.call(TaskList, params).await?;
        written(&json!({ "tasks": listing.tasks.iter().map(|task| self.brief(task)).collect::<Vec<_>>() }))
    }

    async fn task_state(&self, name: &str) -> Result<String, Failure> {
        let task = self.daemon().await?.call(TaskGet, self.task(name)).await?;
        written(&self.brief(&task))
    }

    async fn read_task(&self, given: ReadTask) -> Result<String, Failure> {
        let task = self.daemon().await?.call(TaskGet, self.task(&given.task)).await?;
        match talk::holds(&task) {
            true => self.read_chat(given).await,
            false => self.read_terminal(&task, given.last.unwrap_or(USUAL_LINES)).await,
        }
    }

    async fn read_chat(&self, given: ReadTask) -> Result<String, Failure> {
        let limit = Some(given.last.unwrap_or(USUAL_ENTRIES));
        let task = self.task(&given.task);
        let params =
            ReadParams { task, since: None, before: given.before, limit, wait: false, looking: false };
        let chat = self.daemon().await?.call(ChatRead, params).await?;
        let mut transcript = Transcript::new(Paint::Plain);
        let mut text: String = chat.entries.iter().map(|entry| transcript.next(entry)).collect();
        text.push_str(transcript.end_line());
        let first = chat.entries.first().map_or(0, |entry| entry.number);
        let last = chat.entries.last().map_or(0, |entry| entry.number);
        Ok(format!("[entries {first} to {last} of {}]\n{}", chat.total, ending(&text)))
    }

    /// What it shows, or what it showed last.
    async fn read_terminal(&self, task: &Task, last: u64) -> Result<String, Failure> {
        let mut daemon = self.daemon().await?;
        let named = self.task(&task.id.to_string());
        let text = match task.run.is_some() {
            true => daemon.call(PtyScreen, named).await?.text,
            false => {
                let params = LogReadParams { task: named, form: LogForm::Text, follow: false };
                let answer = daemon.call(LogRead, params).await?;
                read_log(daemon.stream(&answer.stream).await?).await?
            }
        };
        let lines: Vec<&str> = text.trim_end().lines().collect();
        let shown = lines[lines.len().saturating_sub(last as usize)..].join("\n");
        Ok(printable(ending(&shown)))
    }

    async fn search(&self, given: Search) -> Result<String, Failure> {
        let params = SearchParams {
            words: given.words,
            task: given.task.as_deref().map(|name| self.task(name)),
            cwd: Some(self.who.cwd.clone()),
            limit: given.limit,
        };
        let found = self.daemon().await?.call(ChatSearch, params).await?;
        let hit = |hit: &Hit| {
            let text: String = hit.snippet.iter().map(|piece| piece.text.as_str()).collect();
            json!({ "task": hit.task, "slug": hit.slug, "entry": hit.number, "kind": hit.kind, "time": hit.time, "text": text })
        };
        let hits: Vec<_> = found.hits.iter().map(hit).collect();
        written(&json!({ "hits": hits, "more": found.more, "unread_tasks": found.unread }))
    }

    async fn wait_for_task(&self, given: WaitForTask) -> Result<String, Failure> {
        let until: Vec<agent_wait::Until> = match given.until.as_slice() {
            [] => vec![agent_wait::Until::NeedsInput, agent_wait::Until::Exited],
            some => some.iter().map(typed).collect(),
        };
        let timeout = given.timeout_seconds.map_or(USUAL_WAIT, Duration::from_secs).min(LONGEST_WAIT);
        let named = self.task(&given.task);
        let timed_out = match tokio::time::timeout(timeout, self.come(&named, &until)).await {
            Ok(met) => met.map(|()| false)?,
            Err(_) => true,
        };
        let task = self.daemon().await?.call(TaskGet, named).await?;
        written(&json!({ "time_is_up": timed_out, "task": self.brief(&task) }))
    }

    /// An agent that stands at its prompt and is about to be told something waits for nobody.
    async fn come(&self, named: &TaskRef, until: &[agent_wait::Until]) -> Result<(), Failure> {
        loop {
            wait_for_state(&self.context, named, until).await?;
            let task = self.daemon().await?.call(TaskGet, named.clone()).await?;
            let is_told = task.queued > 0 && matches!(task.state, Some(AgentState::NeedsInput { .. }));
            if !is_told || until.contains(&agent_wait::Until::Running) {
                return Ok(());
            }
            wait_for_state(&self.context, named, &[agent_wait::Until::Running, agent_wait::Until::Exited])
                .await?;
        }
    }

    /// Of this project only.
    async fn list_approvals(&self, given: ListApprovals) -> Result<String, Failure> {
        let params = ApprovalListParams { task: given.task.as_deref().map(|name| self.task(name)) };
        let mut daemon = self.daemon().await?;
        let listed = daemon.call(ApprovalList, params).await?;
        let tasks = daemon.call(TaskList, TaskListParams { cwd: Some(self.who.cwd.clone()) }).await?;
        let root = tasks.tasks.first().map(|task| task.project.clone());
        let own = listed.approvals.iter().filter(|open| Some(&open.project) == root.as_ref());
        written(&json!({ "approvals": own.map(Request::of).collect::<Vec<_>>() }))
    }

    async fn start_task(&self, given: StartTask) -> Result<String, Failure> {
        let params = TaskNewParams {
            cwd: self.who.cwd.clone(),
            slug: given.slug,
            body: Bytes::from(given.message.as_str()),
            agent: given.agent,
            driver: given.driver,
            base_branch: given.base_branch,
            labels: given.labels,
            draft: false,
            command: None,
            vcs: None,
            on_behalf_of: self.who.run.clone(),
            caller: caller::caller(&self.context.options),
        };
        let started = self.daemon().await?.call(TaskNew, params).await?;
        written(&json!({ "task": self.brief(&started.task), "notes": started.notes }))
    }

    async fn send_message(&self, given: SendMessage) -> Result<String, Failure> {
        let params = TaskSendParams {
            task: self.task(&given.task),
            text: Bytes::from(given.text.as_str()),
            enter: true,
            anyway: false,
            queue: given.queue,
            keys: Vec::new(),
        };
        let receipt = self.daemon().await?.call(TaskSend, params).await?;
        if receipt.receipt != ReceiptKind::Refused {
            return written(&json!({ "receipt": receipt.receipt, "why": receipt.why }));
        }
        let failure = Failure::new("the message was not sent").code(FailureCode::NotDelivered);
        let causes = receipt.why.into_iter().chain(receipt.screen);
        Err(causes.fold(failure, Failure::because).hint("queue it, or check what the task is waiting for"))
    }

    async fn answer_approval(&self, given: AnswerApproval) -> Result<String, Failure> {
        let AnswerApproval { task, id, allow, message, answers } = given;
        let by =
            self.who.run.as_ref().map_or("an MCP client".to_owned(), |run| format!("the agent of run {run}"));
        let params =
            AnswerParams { task: self.task(&task), id, allow, always: false, message, answers, by: Some(by) };
        let decided = self.daemon().await?.call(ApprovalAnswer, params).await?;
        let (title, verdict) = (&decided.approval.title, talk::verdict(&decided.approval));
        Ok(printable(&format!("{title}: {verdict}")))
    }
}

fn typed(until: &Until) -> agent_wait::Until {
    match until {
        Until::NeedsInput => agent_wait::Until::NeedsInput,
        Until::Running => agent_wait::Until::Running,
        Until::Exited => agent_wait::Until::Exited,
    }
}

fn written(answer: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(answer)
        .map_err(|err| Failure::new("cannot write the answer").code(FailureCode::Internal).caused_by(&err))
}

/// The end of a text, whole letters only.
fn ending(text: &str) -> &str {
    let from = text.len().saturating_sub(MOST_BYTES);
    &text[text.ceil_char_boundary(from)..]
}
