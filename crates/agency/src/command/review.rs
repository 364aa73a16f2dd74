//! `agency review`: shows a task's work in the editor, sends the user's remarks, or accepts the work.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use agency_api::method::{TaskGet, TaskReview, TaskSend, TaskSendParams};
use agency_api::view::TaskStatus;
use agency_api::{Bytes, Failure, work};

use super::diff;
use crate::ask::{DefaultAnswer, ask};
use crate::cli::Review;
use crate::context::Context;
use crate::draft::Draft;
use crate::outcome::{CommandResult, with_hint};
use crate::output::{self, count};
use crate::remarks::{self, Remark};
use crate::text_input::check_length;

pub(super) async fn review(context: &Context, args: Review) -> CommandResult {
    let task = &args.name.task;
    if args.accept {
        return accept(context, task).await;
    }
    let diff = diff::fetch(context, task, None, false).await?;
    if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
        diff::show(&diff)?;
        output::note(&format!("`agency review {task} --accept` accepts it"));
        return Ok(ExitCode::SUCCESS);
    }
    review_in_editor(context, task, &diff).await
}

/// Opens the diff in the editor and sends the remarks that the user writes into it.
async fn review_in_editor(context: &Context, task: &str, diff: &work::Diff) -> CommandResult {
    let patch = diff.patch.as_ref().map_or(&[][..], |patch| &patch.0);
    let patch = String::from_utf8_lossy(patch);
    let draft = Draft::create(&context.state, &diff.slug, "diff", remarks::review_file(&patch).as_bytes())?;
    draft.edit().await.map_err(|failure| {
        let failure = Failure { message: "the editor failed, so nothing was sent".to_owned(), ..failure };
        with_path(failure, &draft)
    })?;
    let edited = String::from_utf8_lossy(&draft.read()?).into_owned();
    let remarks = remarks::parse_remarks(&patch, &edited);
    if !remarks.is_empty() {
        send_remarks(context, task, &remarks).await.map_err(|failure| with_path(failure, &draft))?;
        draft.delete();
        return Ok(ExitCode::SUCCESS);
    }
    draft.delete();
    let question = format!("No remarks. Accept the work of {}-{}?", diff.task, diff.slug);
    let hint = format!("`agency review {task} --accept` accepts it");
    match ask(&question, DefaultAnswer::No, &hint)? {
        true => accept(context, task).await,
        false => Ok(ExitCode::SUCCESS),
    }
}

/// The user's text must not be lost: the hint says where it is.
fn with_path(failure: Failure, draft: &Draft) -> Failure {
    with_hint(failure, &format!("your text is saved in {}", draft.path().display()))
}

async fn accept(context: &Context, task: &str) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let now = daemon.call(TaskGet, context.task(task)?).await?;
    let reviewed = match now.status {
        TaskStatus::Reviewed => {
            output::note("it was already accepted");
            now
        }
        _ => daemon.call(TaskReview, context.task(task)?).await?,
    };
    output::line(&output::task_line(&reviewed))?;
    Ok(ExitCode::SUCCESS)
}

/// Queues the remarks as one message, which the agent gets at its prompt.
async fn send_remarks(context: &Context, task: &str, remarks: &[Remark]) -> Result<(), Failure> {
    let text = Bytes::from(remarks::format_message(remarks));
    check_length(&text)?;
    let (enter, anyway, queue, keys) = (true, false, true, Vec::new());
    let params =
        TaskSendParams { task: context.task(task)?, text, enter, anyway, queue, keys, images: Vec::new() };
    let mut daemon = context.daemon().await?;
    let receipt = daemon.call(TaskSend, params).await?;
    let (remarks, now) = (count(remarks.len(), "remark"), daemon.call(TaskGet, context.task(task)?).await?);
    output::note(&match (now.run, receipt.why) {
        (None, _) => {
            format!("{remarks} queued as one message; the agent gets it after `agency start {task}`")
        }
        (Some(_), Some(why)) => format!("{remarks} sent to the agent as one message ({why})"),
        (Some(_), None) => format!("{remarks} sent to the agent as one message"),
    });
    Ok(())
}
