//! `agency diff`: shows the changes in a task's workspace.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use agency_api::Failure;
use agency_api::method::TaskDiff;
use agency_api::work::{self, DiffParams, FileDiff, FileStatus};

use crate::cli::Diff;
use crate::context::Context;
use crate::outcome::{CommandError, CommandResult};
use crate::output::{self, Cell, Colour, Paint, cell, column, count, flexible, printable};
use crate::{pager, progress};

pub(super) async fn diff(context: &Context, args: Diff) -> CommandResult {
    let diff = fetch(context, &args.name.task, args.turn, args.stat).await?;
    if args.json {
        output::json(&diff)?;
        return Ok(ExitCode::SUCCESS);
    }
    match args.stat {
        true => output::line(&stat(&diff))?,
        false => show(&diff)?,
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn fetch(
    context: &Context,
    task: &str,
    turn: Option<u64>,
    stat: bool,
) -> Result<work::Diff, Failure> {
    let params = DiffParams { task: context.task(task)?, turn, stat };
    let mut daemon = context.daemon().await?;
    let diff = progress::during("comparing", daemon.call(TaskDiff, params)).await?;
    diff.warnings.iter().for_each(|warning| output::warning(warning));
    Ok(diff)
}

/// Shows the diff in colours on a terminal; otherwise prints it byte for byte.
pub(super) fn show(diff: &work::Diff) -> Result<(), CommandError> {
    let patch = diff.patch.as_ref().map_or(&[][..], |patch| &patch.0);
    if diff.files.is_empty() {
        output::note(&no_changes_text(diff));
    }
    match io::stdout().is_terminal() {
        true => {
            let text = colour_patch(&String::from_utf8_lossy(patch), Paint::for_stdout());
            pager::show(text.as_bytes(), diff.pager.as_deref())
        }
        false => pager::print(patch),
    }
}

fn no_changes_text(diff: &work::Diff) -> String {
    let name = format!("{}-{}", diff.task, diff.slug);
    match (diff.turn, diff.base.as_deref()) {
        (Some(turn), _) => format!("{name}: no changes in turn {turn}"),
        (None, Some(base)) => format!("{name}: no changes against {base}"),
        (None, None) => format!("{name}: no changes"),
    }
}

fn colour_patch(patch: &str, paint: Paint) -> String {
    let mut out = String::with_capacity(patch.len());
    for line in patch.lines() {
        let text = printable(line);
        match colour(line) {
            Some(colour) => out.push_str(&paint.paint(colour, &text)),
            None => out.push_str(&text),
        }
        out.push('\n');
    }
    out
}

fn colour(line: &str) -> Option<Colour> {
    match line.as_bytes() {
        [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => Some(Colour::Faint),
        [b'+', ..] => Some(Colour::Green),
        [b'-', ..] => Some(Colour::Red),
        [b'@', b'@', ..] => Some(Colour::Cyan),
        [b' ', ..] | [] => None,
        _ => Some(Colour::Faint),
    }
}

fn stat(diff: &work::Diff) -> String {
    if diff.files.is_empty() {
        return no_changes_text(diff);
    }
    let columns = [column(""), flexible("FILE", 12), column("ADDED"), column("REMOVED")];
    let rows: Vec<Vec<Cell>> = diff.files.iter().map(row).collect();
    let sum =
        format!("{}, {} added, {} removed", count(diff.files.len(), "file"), diff.additions, diff.deletions);
    format!("{}\n{sum}", output::table(&columns, &rows))
}

fn row(file: &FileDiff) -> Vec<Cell> {
    let path = file.path.as_path().display();
    let name = match &file.old_path {
        Some(old) => format!("{} → {path}", old.as_path().display()),
        None => path.to_string(),
    };
    let lines = |number: u64| if file.binary { "binary".to_owned() } else { number.to_string() };
    vec![
        cell(letter(file.status)),
        cell(name),
        cell(lines(file.additions)).coloured(Some(Colour::Green)),
        cell(lines(file.deletions)).coloured(Some(Colour::Red)),
    ]
}

/// The letters that git uses.
fn letter(status: FileStatus) -> &'static str {
    match status {
        FileStatus::Added => "A",
        FileStatus::Modified => "M",
        FileStatus::Deleted => "D",
        FileStatus::Renamed => "R",
        FileStatus::Copied => "C",
        FileStatus::TypeChanged => "T",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_coloured_and_cannot_move_the_cursor() {
        let patch = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-old\n+new \x1b[2J\n same\n";
        assert_eq!(colour_patch(patch, Paint::Plain), patch.replace('\x1b', "\\u{1b}"));
        let shown = colour_patch(patch, Paint::Coloured);
        assert!(shown.contains("\x1b[32m+new \\u{1b}[2J\x1b[0m\n same\n"), "{shown:?}");
    }
}
