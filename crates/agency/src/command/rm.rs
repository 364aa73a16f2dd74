//! `agency rm`: removes a task and its workspace.

use std::process::ExitCode;

use agency_api::method::{TaskRemove, TaskRemoveParams};

use crate::caller;
use crate::cli::Rm;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::output;
use crate::watch;

pub(super) async fn rm(context: &Context, args: Rm) -> CommandResult {
    let watch = watch::new_token();
    let caller = caller::caller_with_watch(&context.options, &watch);
    let params = TaskRemoveParams {
        task: context.task(&args.name.task)?,
        discard: args.discard,
        reason: None,
        batch: None,
        caller,
    };
    let (removed, watched) =
        watch::call_and_watch(context, "removing the task", TaskRemove, params, watch).await;
    let removed = removed?;
    if !watched.has_named_losses {
        removed.lost.iter().for_each(|lost| output::warning(lost));
    }
    removed.notes.iter().for_each(|note| output::warning(note));
    output::line(&format!("{} {} removed", removed.id, removed.slug))?;
    output::note(&format!("undo: agency undo {}", output::printable(&removed.trash)));
    Ok(ExitCode::SUCCESS)
}
