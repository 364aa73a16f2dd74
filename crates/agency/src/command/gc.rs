//! `agency gc`: removes finished tasks, and empties the trash.

use std::process::ExitCode;

use agency_api::method::{ProjectRef, TaskFinished, TaskRemove, TaskRemoveParams, TrashExpire};
use agency_api::trash::{FinishedTask, TrashExpireParams};
use serde::Serialize;

use super::undo::trash_table;
use crate::caller;
use crate::cli::Gc;
use crate::context::{self, Context};
use crate::outcome::{CommandError, CommandResult};
use crate::output::{self, cell, column, count, flexible};
use crate::progress;
use crate::several;
use crate::watch;

/// The document of `agency gc --json`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Collected {
    dry_run: bool,
    tasks: Vec<CollectedTask>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct CollectedTask {
    #[serde(flatten)]
    task: FinishedTask,
    /// The task was removed.
    removed: bool,
    /// Its id in the trash.
    trash: Option<String>,
    /// Why it could not be removed.
    error: Option<String>,
}

pub(super) async fn gc(context: &Context, args: Gc) -> CommandResult {
    if args.trash {
        return expire(context, &args).await;
    }
    let cwd = context::here()?;
    let looking = async { context.daemon().await?.call(TaskFinished, ProjectRef { cwd }).await };
    let spent = progress::during("looking at the workspaces", looking).await?;
    let batch = several::new_batch("gc");
    let mut tasks = Vec::new();
    for task in spent.tasks {
        tasks.push(match task.goes && !args.dry_run {
            true => remove(context, task, &batch).await?,
            false => CollectedTask { task, removed: false, trash: None, error: None },
        });
    }
    let failed = tasks.iter().any(|task| task.error.is_some());
    let collected = Collected { dry_run: args.dry_run, tasks };
    match args.json {
        true => output::json(&collected)?,
        false => print(&collected, &batch)?,
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The daemon checks the task again, as for `agency rm`: it refuses if there is new work in it.
async fn remove(context: &Context, task: FinishedTask, batch: &str) -> Result<CollectedTask, CommandError> {
    let watch = watch::new_token();
    let params = TaskRemoveParams {
        task: context.task(&task.id.to_string())?,
        discard: false,
        force: false,
        reason: Some(format!("agency gc: {}", task.reason)),
        batch: Some(batch.to_owned()),
        caller: caller::caller_with_watch(&context.options, &watch),
    };
    let (removed, _) =
        watch::call_and_watch(context, "removing finished tasks", TaskRemove, params, watch).await;
    Ok(match removed {
        Ok(removed) => CollectedTask { task, removed: true, trash: Some(removed.trash), error: None },
        Err(failure) => {
            let words: Vec<String> = std::iter::once(failure.message).chain(failure.causes).collect();
            CollectedTask { task, removed: false, trash: None, error: Some(words.join(": ")) }
        }
    })
}

fn print(collected: &Collected, batch: &str) -> Result<(), CommandError> {
    if collected.tasks.is_empty() {
        output::note("there are no tasks");
        return Ok(());
    }
    let columns = [column("ID"), flexible("SLUG", 8), column("GC"), flexible("WHY", 16)];
    let row = |one: &CollectedTask| {
        let what = match (one.removed, one.task.goes, &one.error) {
            (_, _, Some(_)) => "failed",
            (true, ..) => "removed",
            (false, true, None) => "would remove",
            (false, false, None) => "kept",
        };
        let why = one.error.as_ref().unwrap_or(&one.task.reason);
        vec![cell(one.task.id.to_string()), cell(&one.task.slug), cell(what), cell(why)]
    };
    output::line(&output::table(&columns, &collected.tasks.iter().map(row).collect::<Vec<_>>()))?;
    if collected.tasks.iter().any(|task| task.removed) {
        output::note(&format!("undo: agency undo {batch}"));
    }
    Ok(())
}

async fn expire(context: &Context, args: &Gc) -> CommandResult {
    let params = TrashExpireParams {
        cwd: context::here()?,
        older_than_seconds: args.older_than.as_secs(),
        dry_run: args.dry_run,
    };
    let expiring = async { context.daemon().await?.call(TrashExpire, params).await };
    let expired = progress::during("emptying the trash", expiring).await?;
    if args.json {
        output::json(&expired)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (gone, stays) = (expired.expired.len(), expired.stays.len());
    if gone > 0 {
        output::line(&trash_table(&expired.expired))?;
    }
    let verb = if args.dry_run { "would be deleted" } else { "deleted" };
    output::line(&format!("{} {verb}, {} left in the trash", count(gone, "item"), count(stays, "item")))?;
    Ok(ExitCode::SUCCESS)
}
