//! `agency conflicts`: lists workspaces that conflict, and the files.

use std::process::ExitCode;

use agency_api::method::{ConflictList, ProjectRef};
use agency_api::work::TaskConflict;

use crate::cli::Conflicts;
use crate::context::{self, Context};
use crate::outcome::CommandResult;
use crate::output::{self, Cell, Colour, cell, column, flexible};
use crate::progress;

pub(super) async fn conflicts(context: &Context, args: Conflicts) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let here = ProjectRef { cwd: context::here()? };
    let found = progress::during("comparing", daemon.call(ConflictList, here)).await?;
    if args.json {
        output::json(&found)?;
    } else if found.conflicts.is_empty() {
        output::line("no conflicts")?;
    } else {
        let columns = [column("TASK"), column("WITH"), flexible("FILES", 20)];
        let rows: Vec<Vec<Cell>> = found.conflicts.iter().map(row).collect();
        output::line(&output::table(&columns, &rows))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(found: &TaskConflict) -> Vec<Cell> {
    let files: Vec<String> =
        found.conflict.files.iter().map(|file| file.as_path().display().to_string()).collect();
    vec![
        cell(format!("{}-{}", found.task, found.slug)),
        cell(&found.conflict.with).coloured(Some(Colour::Yellow)),
        cell(files.join(", ")),
    ]
}
