//! `agency undo`: restores removed tasks, takes a merge back, or undoes turns of an agent.

use std::process::ExitCode;

use agency_api::method::{ProjectRef, TrashList, TrashRestore, TurnRestore};
use agency_api::trash::{Restored, TrashEntryKind, TrashEntryView, TrashRestoreParams, TurnRestoreParams};
use agency_api::{Failure, FailureCode};

use crate::cli::Undo;
use crate::context::{self, Context};
use crate::moment;
use crate::outcome::CommandResult;
use crate::output::{self, cell, column, count, flexible, printable};
use crate::{progress, several};

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
        false => {
            output::line(&trash_table(&trash.entries))?;
            batch_notes(&trash.entries).iter().for_each(|note| output::note(note));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One line for each command that removed several tasks.
fn batch_notes(entries: &[TrashEntryView]) -> Vec<String> {
    let mut batches: Vec<(&str, usize)> = Vec::new();
    for name in entries.iter().filter_map(|entry| entry.batch.as_deref()) {
        match batches.iter_mut().find(|(known, _)| *known == name) {
            Some((_, tasks)) => *tasks += 1,
            None => batches.push((name, 1)),
        }
    }
    let note = |(name, tasks)| format!("agency undo {} restores {}", printable(name), count(tasks, "task"));
    batches.into_iter().map(note).collect()
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

/// Restores one entry, or everything that one command removed. What cannot be restored stays in the trash.
async fn restore(context: &Context, id: Option<String>, json: bool) -> CommandResult {
    let cwd = context::here()?;
    let trash = context.daemon().await?.call(TrashList, ProjectRef { cwd }).await?;
    let ids = batch(&trash.entries, id.as_deref());
    if ids.is_empty() {
        return restore_one(context, id, json).await;
    }
    several::each(&ids, async |id| restore_one(context, Some(id.to_owned()), json).await).await
}

/// The entries of a command that removed several tasks: the named one, or the newest.
fn batch(entries: &[TrashEntryView], word: Option<&str>) -> Vec<String> {
    let newest = || entries.iter().find(|entry| is_of_whole_task(entry.what))?.batch.as_deref();
    let Some(wanted) = word.or_else(newest) else { return Vec::new() };
    let is_in = |entry: &&TrashEntryView| entry.batch.as_deref() == Some(wanted);
    entries.iter().filter(is_in).map(|entry| entry.id.clone()).collect()
}

fn is_of_whole_task(what: TrashEntryKind) -> bool {
    matches!(what, TrashEntryKind::Task | TrashEntryKind::Merge)
}

async fn restore_one(context: &Context, id: Option<String>, json: bool) -> CommandResult {
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
    let status = task.as_ref().map(|task| format!(" ({})", output::status_name(task.status)));
    let status = status.unwrap_or_default();
    match entry.what {
        TrashEntryKind::Task => format!("restored {name}{status}"),
        TrashEntryKind::Merge => format!("undid the merge of {name}{status}"),
        TrashEntryKind::Workspace | TrashEntryKind::Commit => format!("restored {name}"),
        TrashEntryKind::Files | TrashEntryKind::Commits => {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, what: TrashEntryKind, batch: Option<&str>) -> TrashEntryView {
        TrashEntryView {
            id: id.to_owned(),
            task: 1,
            slug: "fix".to_owned(),
            what,
            why: String::new(),
            time: String::new(),
            bytes: 0,
            reference: None,
            batch: batch.map(str::to_owned),
        }
    }

    #[test]
    fn the_newest_command_is_undone_whole() {
        use TrashEntryKind::{Files, Task};
        let entries = [
            entry("files", Files, None),
            entry("b", Task, Some("gc-2")),
            entry("a", Task, Some("gc-2")),
            entry("old", Task, Some("gc-1")),
            entry("single", Task, None),
        ];
        assert_eq!(batch(&entries, None), ["b", "a"]);
        assert_eq!(batch(&entries, Some("gc-1")), ["old"]);
        assert!(batch(&entries, Some("single")).is_empty());
        assert!(batch(&entries[4..], None).is_empty());
        assert_eq!(batch_notes(&entries)[0], "agency undo gc-2 restores 2 tasks");
    }
}
