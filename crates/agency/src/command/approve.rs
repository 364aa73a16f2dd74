//! `agency approve` and `agency deny`: an answer to what an agent asks.

use std::collections::BTreeMap;
use std::process::ExitCode;

use agency_api::chat::{AnswerParams, ApprovalListParams, OpenApproval};
use agency_api::method::{ApprovalAnswer, ApprovalList, TaskRef};
use agency_api::{Failure, FailureCode};
use agency_client::Client;

use crate::cli::{Approve, Deny};
use crate::context::Context;
use crate::output::{self, printable};
use crate::stop::Done;
use crate::talk;

pub(super) async fn approve(context: &Context, args: Approve) -> Done {
    let task = context.task(&args.name.task)?;
    let mut daemon = context.daemon().await?;
    let (id, answers) = match args.answer.is_empty() {
        true => (args.id, None),
        false => answered(&mut daemon, &task, args.id, &args.answer)
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
        by: Some(me()),
    };
    say(&daemon.call(ApprovalAnswer, params).await?)
}

pub(super) async fn deny(context: &Context, args: Deny) -> Done {
    let task = context.task(&args.name.task)?;
    let (id, message) = (args.id, args.message);
    let by = Some(me());
    let params = AnswerParams { task, id, allow: false, always: false, message, answers: None, by };
    say(&context.daemon().await?.call(ApprovalAnswer, params).await?)
}

/// Who answers, for those who ask later.
pub(super) fn me() -> String {
    format!("cli (pid {})", std::process::id())
}

fn say(decided: &OpenApproval) -> Done {
    let OpenApproval { task, slug, approval, .. } = decided;
    output::line(&printable(&format!("{task}-{slug}: {}: {}", approval.title, talk::verdict(approval))))?;
    Ok(ExitCode::SUCCESS)
}

/// The answers by the text of their questions, in the order of those.
async fn answered(
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
    let questions = talk::questions(&open.approval);
    if questions.len() != typed.len() {
        let (asked, given) =
            (output::count(questions.len(), "question"), output::count(typed.len(), "answer"));
        return Err(Failure::new(format!("the agent asks {asked}, but you gave {given}"))
            .code(FailureCode::InvalidArgument)
            .hint("give --answer once for each question"));
    }
    let answers =
        questions.iter().zip(typed).map(|(asked, typed)| (asked.text.clone(), asked.answered(typed)));
    Ok((open.approval.id.clone(), answers.collect()))
}
