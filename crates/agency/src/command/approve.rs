//! `agency approve` and `agency deny`: answer a request of an agent.

use std::collections::BTreeMap;
use std::process::ExitCode;

use agency_api::chat::{AnswerParams, Approval, ApprovalListParams, OpenApproval};
use agency_api::method::{ApprovalAnswer, ApprovalList, TaskGet, TaskRef, TaskSend, TaskSendParams};
use agency_api::{Bytes, Failure, FailureCode};
use agency_client::Client;

use crate::cli::{Approve, Deny};
use crate::context::Context;
use crate::conversation;
use crate::outcome::CommandResult;
use crate::output::{self, printable};

pub(super) async fn approve(context: &Context, args: Approve) -> CommandResult {
    let task = context.task(&args.name.task)?;
    let mut daemon = context.daemon().await?;
    let (id, answers) = match args.answer.is_empty() {
        true => (args.id, None),
        false => match_answers(&mut daemon, &task, args.id, &args.answer)
            .await
            .map(|(id, all)| (Some(id), Some(all)))?,
    };
    let params = AnswerParams {
        task,
        id,
        allow: true,
        always: args.always,
        message: args.message,
        option: args.option,
        answers,
        by: Some(decided_by()),
    };
    print_decision(&daemon.call(ApprovalAnswer, params).await?)
}

pub(super) async fn deny(context: &Context, args: Deny) -> CommandResult {
    let task = context.task(&args.name.task)?;
    let mut daemon = context.daemon().await?;
    let params = AnswerParams {
        task: task.clone(),
        id: args.id,
        allow: false,
        always: false,
        message: args.message.clone(),
        option: None,
        answers: None,
        by: Some(decided_by()),
    };
    let decided = daemon.call(ApprovalAnswer, params).await?;
    let printed = print_decision(&decided)?;
    if let Some(message) = args.message
        && send_reason(&mut daemon, task, &decided.approval, &message).await?
    {
        output::note("the agent gets the reason as its next message");
    }
    Ok(printed)
}

/// Sends the reason of a denial as the next message, if the protocol cannot carry it with the denial. Returns whether it
/// did.
pub(super) async fn send_reason(
    daemon: &mut Client,
    task: TaskRef,
    denied: &Approval,
    reason: &str,
) -> Result<bool, Failure> {
    if daemon.call(TaskGet, task.clone()).await?.driver != "acp" {
        return Ok(false);
    }
    let text = format!("I denied `{}`: {reason}", denied.action.summary);
    let text = Bytes(text.into_bytes());
    let params = TaskSendParams { task, text, enter: true, anyway: false, queue: true, keys: Vec::new() };
    daemon.call(TaskSend, params).await.map(|_| true)
}

/// The author of the decision, for `agency approvals --log`.
pub(super) fn decided_by() -> String {
    format!("cli (pid {})", std::process::id())
}

fn print_decision(decided: &OpenApproval) -> CommandResult {
    let OpenApproval { task, slug, approval, .. } = decided;
    output::line(&printable(&format!(
        "{task}-{slug}: {}: {}",
        approval.action.summary,
        conversation::outcome_text(approval)
    )))?;
    Ok(ExitCode::SUCCESS)
}

/// Pairs the answers with the questions of the request, in order. Returns the id of the request too.
async fn match_answers(
    daemon: &mut Client,
    task: &TaskRef,
    id: Option<String>,
    typed: &[String],
) -> Result<(String, BTreeMap<String, String>), Failure> {
    let listed = daemon.call(ApprovalList, ApprovalListParams { task: Some(task.clone()) }).await?;
    let is_meant = |open: &&OpenApproval| id.as_ref().is_none_or(|id| open.approval.id == *id);
    let open = listed.approvals.iter().find(is_meant);
    let none = || Failure::new("no question is waiting for an answer").code(FailureCode::NoOpenRequest);
    let open = open.ok_or_else(|| none().hint("agency approvals"))?;
    let questions = conversation::questions(&open.approval);
    if questions.len() != typed.len() {
        let (asked, given) =
            (output::count(questions.len(), "question"), output::count(typed.len(), "answer"));
        return Err(Failure::new(format!("the agent asks {asked}, but you gave {given}"))
            .code(FailureCode::InvalidArgument)
            .hint("give --answer once for each question"));
    }
    let answers =
        questions.iter().zip(typed).map(|(asked, typed)| (asked.text.clone(), asked.answer_for(typed)));
    Ok((open.approval.id.clone(), answers.collect()))
}
