//! `agency merge` and `agency sync`: merge a task's work into its base, and update the task with its base.

use std::process::ExitCode;

use agency_api::method::{TaskMerge, TaskSync};
use agency_api::work::{MergeHow, MergeParams, Merged, SyncHow, SyncParams};

use crate::cli::{Merge, Sync};
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::output::{self, count, printable};
use crate::{caller, progress};

/// How many characters of a commit id are shown.
const SHORT: usize = 10;

pub(super) async fn merge(context: &Context, args: Merge) -> CommandResult {
    let how = match (args.squash, args.rebase, args.ff) {
        (true, ..) => MergeHow::Squash,
        (_, true, _) => MergeHow::Rebase,
        (_, _, true) => MergeHow::FastForward,
        _ => MergeHow::Merge,
    };
    let params = MergeParams {
        task: context.task(&args.name.task)?,
        how,
        into: args.into,
        message: args.message,
        commit: args.commit,
        caller: caller::caller(&context.options),
    };
    let mut daemon = context.daemon().await?;
    let merged = progress::during("merging", daemon.call(TaskMerge, params)).await?;
    if args.json {
        output::json(&merged)?;
        return Ok(ExitCode::SUCCESS);
    }
    notes(&merged).iter().for_each(|note| output::note(&printable(note)));
    output::line(&output::task_line(&merged.task))?;
    Ok(ExitCode::SUCCESS)
}

fn notes(merged: &Merged) -> Vec<String> {
    let short = |id: &String| id.chars().take(SHORT).collect::<String>();
    let committed =
        merged.committed.as_ref().map(|id| format!("committed uncommitted files as {}", short(id)));
    let moved = format!("{}: {} → {}", merged.into, short(&merged.before), short(&merged.after));
    let checkout =
        merged.checkout.as_ref().map(|path| format!("updated your checkout: {}", path.as_path().display()));
    committed.into_iter().chain([moved]).chain(checkout).chain(merged.notes.iter().cloned()).collect()
}

pub(super) async fn sync(context: &Context, args: Sync) -> CommandResult {
    let how = if args.merge { SyncHow::Merge } else { SyncHow::Rebase };
    let task = context.task(&args.name.task)?;
    let params = SyncParams { task, how, caller: caller::caller(&context.options) };
    let mut daemon = context.daemon().await?;
    let synced = progress::during("syncing", daemon.call(TaskSync, params)).await?;
    if args.json {
        output::json(&synced)?;
        return Ok(ExitCode::SUCCESS);
    }
    let base = printable(&synced.base);
    match synced.commits {
        0 => output::line(&format!("no new commits in {base}"))?,
        commits => output::line(&format!("added {} from {base}", count(commits as usize, "commit")))?,
    }
    if let Some(kept) = &synced.kept {
        output::note(&format!("previous state saved as {}", printable(kept)));
    }
    Ok(ExitCode::SUCCESS)
}
