//! `agency review`: shows a task's work in the editor, sends the user's remarks, or accepts the work.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use agency_api::method::{RemarkAdd, RemarkList, TaskGet, TaskReview};
use agency_api::remark::{RemarkAddParams, RemarkState, Remarks};
use agency_api::view::TaskStatus;
use agency_api::{Failure, work};

use super::diff;
use super::remark::send_remarks;
use crate::ask::{DefaultAnswer, ask};
use crate::cli::Review;
use crate::context::Context;
use crate::draft::Draft;
use crate::outcome::{CommandResult, with_hint};
use crate::output::{self, count};
use crate::remarks;

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
        let params = RemarkAddParams { task: context.task(task)?, remarks };
        let added = add(context, params).await.map_err(|failure| with_path(failure, &draft))?;
        draft.delete();
        // The user has just written them, even if the agent changed a line meanwhile.
        let outdated = added.remarks.iter().map(|remark| remark.id).collect();
        return send_remarks(context, task, outdated).await;
    }
    draft.delete();
    note_open_remarks(context, task).await?;
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

async fn add(context: &Context, params: RemarkAddParams) -> Result<Remarks, Failure> {
    context.daemon().await?.call(RemarkAdd, params).await
}

async fn note_open_remarks(context: &Context, task: &str) -> Result<(), Failure> {
    let listed = context.daemon().await?.call(RemarkList, context.task(task)?).await?;
    let open = listed.remarks.iter().filter(|remark| remark.state == RemarkState::Open).count();
    if open > 0 {
        output::note(&format!("{} not sent yet: agency remark {task} --send", count(open, "remark")));
    }
    Ok(())
}
