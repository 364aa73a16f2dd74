//! `agency turns`: lists the turns of an agent and what each changed.

use std::process::ExitCode;

use agency_api::method::TurnList;
use agency_api::trash::Turn;

use crate::cli::Turns;
use crate::context::Context;
use crate::moment;
use crate::outcome::CommandResult;
use crate::output::{self, cell, column, flexible};

pub(super) async fn turns(context: &Context, args: Turns) -> CommandResult {
    let task = context.task(&args.name.task)?;
    let listed = context.daemon().await?.call(TurnList, task).await?;
    match args.json {
        true => output::json(&listed)?,
        false if listed.turns.is_empty() => output::note("no recorded turns (agents in terminals have none)"),
        false => output::line(&table(&listed.turns))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn table(turns: &[Turn]) -> String {
    let columns =
        [column("TURN"), column("ENDED"), column("FILES"), column("+"), column("-"), flexible("WHAT", 6)];
    let row = |turn: &Turn| {
        vec![
            cell(turn.number.to_string()),
            cell(turn.time.as_deref().map_or_else(|| "-".to_owned(), moment::format_local)),
            cell(turn.files.to_string()),
            cell(turn.additions.to_string()),
            cell(turn.deletions.to_string()),
            cell(&turn.label),
        ]
    };
    output::table(&columns, &turns.iter().map(row).collect::<Vec<_>>())
}
