//! `agency rm`: removes tasks and their workspaces.

use std::process::ExitCode;

use agency_api::method::{TaskRemove, TaskRemoveParams};
use agency_api::view::TaskStatus;

use crate::caller;
use crate::cli::Rm;
use crate::context::Context;
use crate::outcome::{CommandError, CommandResult};
use crate::output;
use crate::running_programs;
use crate::several;
use crate::watch;

pub(super) async fn rm(context: &Context, args: Rm) -> CommandResult {
    let names = match args.merged {
        true => several::find(context, |task| task.status == TaskStatus::Merged).await?,
        false => args.tasks.clone(),
    };
    if names.is_empty() {
        output::note("no task is merged");
        return Ok(ExitCode::SUCCESS);
    }
    let batch = (names.len() > 1).then(|| several::new_batch("rm"));
    let removing = several::each(&names, async |name| {
        let undo = remove(context, name, &args, batch.clone()).await?;
        if batch.is_none() {
            output::note(&format!("undo: agency undo {}", output::printable(&undo)));
        }
        Ok(ExitCode::SUCCESS)
    });
    let code = removing.await?;
    if let Some(batch) = &batch {
        output::note(&format!("undo: agency undo {batch}"));
    }
    Ok(code)
}

/// Returns the id of the trash entry.
async fn remove(
    context: &Context,
    name: &str,
    args: &Rm,
    batch: Option<String>,
) -> Result<String, CommandError> {
    let task = context.task(name)?;
    let remove = async |force| {
        let watch = watch::new_token();
        let caller = caller::caller_with_watch(&context.options, &watch);
        let (task, discard, batch) = (task.clone(), args.discard, batch.clone());
        let params = TaskRemoveParams { task, discard, force, reason: None, batch, caller };
        let (removed, watched) =
            watch::call_and_watch(context, "removing the task", TaskRemove, params, watch).await;
        removed.map(|removed| (removed, watched))
    };
    let (removed, watched) = running_programs::ask_to_end(args.force, remove).await?;
    if !watched.has_named_losses {
        removed.lost.iter().for_each(|lost| output::warning(lost));
    }
    removed.notes.iter().for_each(|note| output::warning(note));
    output::line(&format!("{} {} removed", removed.id, removed.slug))?;
    Ok(removed.trash)
}
