//! `agency undo`: restores a removed task, or undoes turns of an agent.

use std::process::ExitCode;

use agency_api::method::{ProjectRef, TrashList, TrashRestore, TurnRestore};
use agency_api::trash::{Restored, TrashEntryKind, TrashEntryView, TrashRestoreParams, TurnRestoreParams};
use agency_api::{Failure, FailureCode};

use crate::cli::Undo;
use crate::context::{self, Context};
use crate::moment;
use crate::outcome::CommandResult;
use crate::output::{self, cell, column, flexible, printable};
use crate::progress;

pub(super) async fn undo(context: &Context, args: Undo) -> CommandResult {
    match args.turn.as_slice() {
        [] if args.list => list(context, args.json).await,
        [] => restore(context, args.id, args.json).await,
        [task, number @ ..] => undo_turns(context, task, number.first(), args.json).await,
    }
}

async fn list(context: &Context, json: bool) -> CommandResult {
    let cwd = context::here()?;
    let trash = context.daemon().await?.call(TrashList, ProjectRef { cwd }).await?;
    match json {
        true => output::json(&trash)?,
        false if trash.entries.is_empty() => output::note("the trash is empty"),
        false => output::line(&trash_table(&trash.entries))?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn trash_table(entries: &[TrashEntryView]) -> String {
    let columns = [flexible("ID", 12), column("WHAT"), column("SINCE"), column("SIZE"), flexible("WHY", 12)];
    let row = |entry: &TrashEntryView| {
        vec![
            cell(&entry.id),
            cell(entry.what.as_str()),
            cell(moment::format_local(&entry.time)),
            cell(output::bytes(entry.bytes)),
            cell(&entry.why),
        ]
    };
    output::table(&columns, &entries.iter().map(row).collect::<Vec<_>>())
}

async fn restore(context: &Context, id: Option<String>, json: bool) -> CommandResult {
    let params = TrashRestoreParams { cwd: context::here()?, id };
    let restoring = async { context.daemon().await?.call(TrashRestore, params).await };
    let restored = progress::during("restoring", restoring).await?;
    if json {
        output::json(&restored)?;
        return Ok(ExitCode::SUCCESS);
    }
    restored.notes.iter().for_each(|note| output::note(&printable(note)));
    output::line(&restored_text(&restored))?;
    Ok(ExitCode::SUCCESS)
}

fn restored_text(restored: &Restored) -> String {
    let Restored { entry, task, .. } = restored;
    let name = format!("{}-{}", entry.task, printable(&entry.slug));
    match (entry.what, task) {
        (TrashEntryKind::Task, Some(task)) => {
            format!("restored {name} ({})", output::status_name(task.status))
        }
        (TrashEntryKind::Task | TrashEntryKind::Workspace | TrashEntryKind::Commit, _) => {
            format!("restored {name}")
        }
        (TrashEntryKind::Files | TrashEntryKind::Commits, _) => {
            format!("restored {name}; the work that it replaced is in the trash: agency undo --list")
        }
    }
}

async fn undo_turns(context: &Context, task: &str, number: Option<&String>, json: bool) -> CommandResult {
    let wrong = |word: &String| {
        Failure::new(format!("`{word}` is not the number of a turn"))
            .code(FailureCode::InvalidArgument)
            .hint(format!("agency turns {task}"))
    };
    let turn = number.map(|word| word.parse::<u64>().map_err(|_| wrong(word))).transpose()?;
    let params = TurnRestoreParams { task: context.task(task)?, turn };
    let restoring = async { context.daemon().await?.call(TurnRestore, params).await };
    let restored = progress::during("restoring files", restoring).await?;
    if json {
        output::json(&restored)?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = format!("{}-{}", restored.task.id, printable(&restored.task.slug));
    let when = match restored.turn {
        0 => "before its first turn".to_owned(),
        turn => format!("after turn {turn}"),
    };
    output::line(&format!("restored the files of {name} to the state {when}"))?;
    output::line(&format!("undo: agency undo {}", printable(&restored.kept_as)))?;
    restored.notes.iter().for_each(|note| output::note(&printable(note)));
    Ok(ExitCode::SUCCESS)
}
