//! Approvals that the agent asks for: first the user's rules are checked, then a person answers.
//!
//! The journal gets a note with the name of the answerer before the agent gets the answer. The caller gets a reply once the
//! journal holds the answer too.

use std::collections::BTreeMap;
use std::io;

use agency_api::keeper::Frame;
use agency_api::{Failure, FailureCode, chat};
use agency_core::approval::{Action, Ruling};
use agency_core::conversation::{Approval, Entry, Item};
use agency_driver::conversation::{AnswerError, ApprovalAnswer};
use agency_journal::Body;
use tokio::sync::oneshot;

use super::ConversationTask;
use crate::chat_view::approval_view;
use crate::command::AnswerRequest;
use crate::conversation::{self, Decision};
use crate::line_queue::LineSource;
use crate::reply::send_reply;
use crate::report::RunReport;

type AnswerReply = oneshot::Sender<Result<chat::Approval, Failure>>;

/// Answers on their way to the agent.
#[derive(Default)]
pub(super) struct PendingAnswers {
    /// The name of the answerer, by approval.
    by: BTreeMap<String, String>,
    /// Answers that wait until the journal holds their `decision` note. Only then are they sent to the agent.
    noted: Vec<NotedAnswer>,
    /// Answers that the agent's input has taken. Their callers wait until the journal holds them.
    pub(super) written: Vec<(String, AnswerReply)>,
}

struct NotedAnswer {
    id: String,
    line: Vec<u8>,
    answer: AnswerReply,
}

impl ConversationTask {
    pub(super) fn open_approvals(&self) -> Vec<chat::Approval> {
        let is_open =
            |id: &String| !self.answers.by.contains_key(id) && self.rule_decisions.is_for_people(id);
        let open = self.fold.run.conversation().open_approvals();
        open.filter(|approval| is_open(&approval.id)).map(approval_view).collect()
    }

    pub(super) async fn answer(&mut self, request: AnswerRequest) -> io::Result<()> {
        let AnswerRequest { id, verdict, by, why, answer } = request;
        match self.line_for(id, &verdict) {
            Err(failure) => send_reply(answer, Err(failure)),
            Ok((id, line)) => {
                let decision = Decision { id: id.clone(), by: by.clone(), why };
                let bytes = serde_json::to_vec(&decision)?;
                let note = Frame::Note { tag: conversation::DECISION.to_owned(), bytes };
                self.follower.link.frames.send(&note).await?;
                self.answers.by.insert(id.clone(), by);
                self.answers.noted.push(NotedAnswer { id, line, answer });
            }
        }
        Ok(())
    }

    /// Sends an answer once the journal holds its note. All records before the note are folded by then, also an answer
    /// that an earlier daemon wrote, so no approval is answered twice.
    pub(super) fn write_noted_answer(&mut self, body: &Body) {
        let Some(Decision { id: decided, .. }) = Decision::in_record(body) else { return };
        for NotedAnswer { id, line, answer } in std::mem::take(&mut self.answers.noted) {
            match (id == decided, self.fold.run.open_requests().contains(&id.as_str())) {
                (false, _) => self.answers.noted.push(NotedAnswer { id, line, answer }),
                (true, true) => self.lines.push(line, LineSource::Answer { id, answer }),
                (true, false) => {
                    send_reply(answer, Err(Failure::new(NOT_OPEN).code(FailureCode::NoOpenRequest)))
                }
            }
        }
    }

    /// Reports new approvals, so that the daemon checks the user's rules before a person is asked.
    pub(super) async fn ask_rules(&mut self) {
        for approval in self.rule_decisions.take_new(self.fold.run.conversation()) {
            self.follower.reporter.report(RunReport::ApprovalRequested(Box::new(approval))).await;
        }
    }

    /// Reports the approvals that wait for a person again, because the rules have changed.
    pub(super) async fn recheck_rules(&mut self) {
        for approval in self.rule_decisions.left_to_people(self.fold.run.conversation()) {
            if !self.answers.by.contains_key(&approval.id) {
                self.follower.reporter.report(RunReport::ApprovalRequested(Box::new(approval))).await;
            }
        }
    }

    pub(super) async fn apply_ruling(&mut self, id: String, ruling: Option<Ruling>) -> io::Result<()> {
        let Some(Ruling { allow, by, why }) = ruling else {
            self.rule_decisions.leave_to_people(&id);
            return Ok(());
        };
        let message = || why.clone().unwrap_or_else(|| "The user's rules do not allow this.".to_owned());
        let verdict = if allow { ApprovalAnswer::Allow } else { ApprovalAnswer::Deny { message: message() } };
        if self.line_for(Some(id.clone()), &verdict).is_err() {
            // A person answered first, or the agent withdrew it.
            self.rule_decisions.leave_to_people(&id);
            return Ok(());
        }
        // No caller waits for this answer: the conversation shows the outcome.
        let (answer, _) = oneshot::channel();
        self.answer(AnswerRequest { id: Some(id), verdict, by, why, answer }).await
    }

    /// The id of the approval, and the line that answers it.
    fn line_for(&self, id: Option<String>, verdict: &ApprovalAnswer) -> Result<(String, Vec<u8>), Failure> {
        let run = &self.fold.run;
        let is_free = |id: &&str| !self.answers.by.contains_key(*id);
        let first = || run.open_requests().into_iter().find(is_free).map(str::to_owned);
        let waiting: Vec<&Approval> =
            run.conversation().open_approvals().filter(|open| is_free(&open.id.as_str())).collect();
        if id.is_none() && waiting.len() > 1 {
            let list = |failure: Failure, open: &&Approval| {
                failure.because(format!("{}: {}", open.id, describe(open)))
            };
            let failure = Failure::new(format!("{} requests are waiting for an answer", waiting.len()))
                .code(FailureCode::AmbiguousName);
            return Err(waiting.iter().fold(failure, list).hint("name one: --id ID"));
        }
        let Some(id) = id.or_else(first) else {
            let failure =
                Failure::new("no request is waiting for an answer").code(FailureCode::NoOpenRequest);
            // Only an answer that is on its way explains this; an old decision does not.
            let on_its_way = run.conversation().open_approvals().next();
            return Err(on_its_way
                .into_iter()
                .fold(failure, |failure, open| failure.because(self.describe_outcome(open))));
        };
        if let Some(by) = self.answers.by.get(&id) {
            return Err(Failure::new(format!("{by} already answered"))
                .code(FailureCode::NoOpenRequest)
                .because("Agency is sending that answer to the agent"));
        }
        match run.answer(&id, verdict) {
            Ok(line) => Ok((id, line)),
            Err(AnswerError::NothingToRemember) => {
                Err(Failure::new("the agent offers no \"always\" for this action")
                    .code(FailureCode::Unsupported)
                    .hint("leave out --always"))
            }
            Err(AnswerError::NotOffered) => {
                let choices = self.find_approval(&id).map(|open| open.choices.as_slice()).unwrap_or_default();
                let labels = choices.iter().map(|choice| format!("`{}`", choice.label)).collect::<Vec<_>>();
                Err(Failure::new("the agent does not offer this choice")
                    .code(FailureCode::InvalidArgument)
                    .because(format!("it offers {}", labels.join(", "))))
            }
            Err(unfit @ (AnswerError::NeedsAnswers | AnswerError::Unfit)) => {
                Err(Failure::new("the answer does not fit the question")
                    .code(FailureCode::InvalidArgument)
                    .because(unfit.to_string()))
            }
            Err(AnswerError::NotOpen) => {
                let cause = self.find_approval(&id).map(|known| self.describe_outcome(known));
                Err(cause
                    .into_iter()
                    .fold(Failure::new(NOT_OPEN).code(FailureCode::NoOpenRequest), Failure::because))
            }
        }
    }

    /// The outcome of an approval, for a caller that came too late.
    fn describe_outcome(&self, approval: &Approval) -> String {
        let title = describe(approval);
        let Some(outcome) = &approval.outcome else {
            let by = self.answers.by.get(&approval.id).map_or("another user", String::as_str);
            return format!("{by} already answered `{title}`; Agency is sending that answer to the agent");
        };
        let by = outcome.by.as_deref().unwrap_or("another user");
        match (outcome.cancelled, outcome.allowed) {
            (true, _) => format!("the agent withdrew `{title}`"),
            (false, true) => format!("{by} already allowed `{title}`"),
            (false, false) => format!("{by} already denied `{title}`"),
        }
    }

    /// Answers the callers whose answers are in the journal. Until then no other caller may answer.
    pub(super) fn confirm_answers(&mut self) {
        let run = &self.fold.run;
        self.answers.by.retain(|id, _| run.open_requests().contains(&id.as_str()));
        for (id, answer) in std::mem::take(&mut self.answers.written) {
            if self.answers.by.contains_key(&id) {
                self.answers.written.push((id, answer));
                continue;
            }
            let known = self.find_approval(&id).map(approval_view);
            send_reply(
                answer,
                known.ok_or_else(|| Failure::new("the request is gone").code(FailureCode::NoOpenRequest)),
            );
        }
    }

    pub(super) fn on_answer_refused(&mut self, id: String, answer: AnswerReply, failure: Failure) {
        self.answers.by.remove(&id);
        self.rule_decisions.leave_to_people(&id);
        send_reply(answer, Err(failure));
    }

    pub(super) fn give_up_answers(&mut self, why: &str) {
        for NotedAnswer { id, answer, .. } in std::mem::take(&mut self.answers.noted) {
            self.on_answer_refused(id, answer, Failure::new(why).code(FailureCode::NotDelivered));
        }
        for (_, answer) in std::mem::take(&mut self.answers.written) {
            send_reply(answer, Err(Failure::new(why).code(FailureCode::NotDelivered)));
        }
    }

    fn find_approval(&self, id: &str) -> Option<&Approval> {
        let approvals = self.fold.run.conversation().entries().iter().rev().filter_map(approval_in);
        approvals.into_iter().find(|approval| approval.id == id)
    }
}

const NOT_OPEN: &str = "this request is no longer open";

/// The request in one line.
fn describe(approval: &Approval) -> String {
    Action::headline(approval)
}

fn approval_in(entry: &Entry) -> Option<&Approval> {
    match &entry.item {
        Item::Approval(approval) => Some(approval),
        _ => None,
    }
}
