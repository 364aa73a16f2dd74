//! `agency orphans`: lists agents that no task owns, stops them, or returns them to their task.

use std::process::ExitCode;

use agency_api::method::{Nothing, OrphanAdopt, OrphanKill, OrphanList, OrphanRef, Orphans as Listing};
use agency_api::view::{Orphan, OrphanKind};

use super::{start, stop};
use crate::cli::{OrphanCommand, Orphans};
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::output::{self, cell, column, flexible, printable};
use crate::progress;

pub(super) async fn orphans(context: &Context, args: Orphans) -> CommandResult {
    match args.command {
        None => list(context, args.json).await,
        Some(OrphanCommand::Kill(name)) => kill(context, name.run).await,
        Some(OrphanCommand::Attach(name)) => attach(context, name.run).await,
    }
}

async fn list(context: &Context, json: bool) -> CommandResult {
    let listing = context.daemon().await?.call(OrphanList, Nothing {}).await?;
    match json {
        true => output::json(&listing)?,
        false => output::line(&orphan_text(&listing))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn orphan_text(listing: &Listing) -> String {
    let Some(first) = listing.orphans.first() else {
        return "No orphans: every agent belongs to a task.".to_owned();
    };
    let columns = [
        column("RUN"),
        column("KIND"),
        flexible("TASK", 10),
        flexible("AGENT", 6),
        column("PID"),
        flexible("PROJECT", 12),
    ];
    let rows: Vec<_> = listing.orphans.iter().map(row).collect();
    format!(
        "{}\n\nReturn it to its task: agency orphans attach {run}\nStop it:               agency orphans kill {run}",
        output::table(&columns, &rows),
        run = printable(&first.run)
    )
}

fn row(orphan: &Orphan) -> Vec<output::Cell> {
    let kind = match orphan.kind {
        OrphanKind::Keeper => "keeper",
        OrphanKind::Process => "process only",
    };
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    vec![
        cell(&orphan.run),
        cell(kind),
        cell(task_name(orphan)),
        cell(or_dash(agent_name(orphan))),
        cell(or_dash(orphan.pid.map(|pid| pid.to_string()))),
        cell(or_dash(orphan.project.as_ref().map(|root| root.as_path().display().to_string()))),
    ]
}

fn agent_name(orphan: &Orphan) -> Option<String> {
    orphan.shell.as_ref().map(|name| format!("terminal {name}")).or_else(|| orphan.agent.clone())
}

fn task_name(orphan: &Orphan) -> String {
    match (orphan.task, &orphan.slug) {
        (Some(id), Some(slug)) => format!("{id}-{slug}"),
        (Some(id), None) => id.to_string(),
        (None, Some(slug)) => slug.clone(),
        (None, None) => "-".to_owned(),
    }
}

async fn kill(context: &Context, run: String) -> CommandResult {
    let stopped = context.daemon().await?.call(OrphanKill, OrphanRef { run: run.clone() }).await?;
    output::line(&format!("{} stopped", printable(&run)))?;
    stop::print_ended(&stopped.ended);
    Ok(ExitCode::SUCCESS)
}

async fn attach(context: &Context, run: String) -> CommandResult {
    let adopt = async { context.daemon().await?.call(OrphanAdopt, OrphanRef { run: run.clone() }).await };
    let adopted = progress::during("returning it to its task", adopt).await?;
    adopted.notes.iter().for_each(|note| output::note(&printable(note)));
    if let (Some(task), Some(shell)) = (&adopted.task, adopted.shell) {
        return super::shell::show(context, task, shell).await;
    }
    match adopted.task {
        Some(task) if task.run.is_none() => start::start_again(context, &task).await,
        Some(task) => start::show(context, &task, Vec::new()).await,
        None => {
            output::line(&format!("{} stopped: only its process was left", printable(&run)))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
