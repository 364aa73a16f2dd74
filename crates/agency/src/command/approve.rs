//! `agency approve` and `agency deny`: answer a request of an agent.

use std::collections::BTreeMap;
use std::process::ExitCode;

use agency_api::chat::{AnswerParams, ApprovalListParams, OpenApproval};
use agency_api::method::{ApprovalAnswer, ApprovalList, PtyScreen, PtyScreenParams, TaskRef};
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
        option: args.option,
        answers,
        by: Some(decided_by()),
    };
    print_decision(&answer(&mut daemon, params).await?)
}

pub(super) async fn deny(context: &Context, args: Deny) -> CommandResult {
    let task = context.task(&args.name.task)?;
    let mut daemon = context.daemon().await?;
    let has_reason = args.message.is_some();
    let params = AnswerParams {
        task,
        id: args.id,
        allow: false,
        always: false,
        message: args.message,
        option: None,
        answers: None,
        by: Some(decided_by()),
    };
    let decided = answer(&mut daemon, params).await?;
    let printed = print_decision(&decided)?;
    if decided.reason_queued {
        output::note("the agent gets the reason as its next message");
    } else if has_reason && decided.approval.tool == conversation::TERMINAL {
        output::note("the agent does not see the reason: a dialog takes only a choice");
    }
    Ok(printed)
}

/// Answers the request. If a dialog of a terminal cannot be answered, prints the screen that shows it.
async fn answer(daemon: &mut Client, params: AnswerParams) -> Result<OpenApproval, Failure> {
    let task = params.task.clone();
    let answered = daemon.call(ApprovalAnswer, params).await;
    let is_about_screen = |failure: &Failure| {
        matches!(
            failure.code,
            FailureCode::Unsupported | FailureCode::ChangedMeanwhile | FailureCode::NotDelivered
        )
    };
    if answered.as_ref().is_err_and(is_about_screen)
        && let Ok(screen) = daemon.call(PtyScreen, PtyScreenParams { task, at: None }).await
    {
        output::note("Its screen shows:");
        let rows = screen.text.lines().filter(|row| !row.trim().is_empty());
        rows.for_each(|row| output::note(&format!("  │ {}", printable(row))));
    }
    answered
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
