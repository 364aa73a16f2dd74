//! `agency approve` and `agency deny`: answer a request of an agent.

use std::collections::BTreeMap;
use std::process::ExitCode;

use agency_api::chat::{AnswerParams, ApprovalListParams, OpenApproval};
use agency_api::method::{ApprovalAnswer, ApprovalList, TaskRef};
use agency_api::{Failure, FailureCode};
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
        answers,
        by: Some(decided_by()),
    };
    print_decision(&daemon.call(ApprovalAnswer, params).await?)
}

pub(super) async fn deny(context: &Context, args: Deny) -> CommandResult {
    let task = context.task(&args.name.task)?;
    let (id, message) = (args.id, args.message);
    let by = Some(decided_by());
    let params = AnswerParams { task, id, allow: false, always: false, message, answers: None, by };
    print_decision(&context.daemon().await?.call(ApprovalAnswer, params).await?)
}

/// The author of the decision, for `agency approvals --log`.
pub(super) fn decided_by() -> String {
    format!("cli (pid {})", std::process::id())
}

fn print_decision(decided: &OpenApproval) -> CommandResult {
    let OpenApproval { task, slug, approval, .. } = decided;
    output::line(&printable(&format!(
        "{task}-{slug}: {}: {}",
        approval.title,
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
