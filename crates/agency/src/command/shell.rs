//! `agency shell` and `agency shells`: terminals in a task's workspace, beside its agent.

use std::io::IsTerminal;
use std::process::ExitCode;

use agency_api::method::{ShellClose, ShellList, ShellOpen, TaskRef};
use agency_api::shell::{
    Shell as View, ShellCloseParams, ShellListParams, ShellOpenParams, Shells as Listing,
};
use agency_api::view::Task;
use agency_api::{Bytes, Failure, FailureCode};
use agency_core::shell::USUAL_NAME;

use super::next;
use super::visit::{Visit, visit};
use crate::cli::{OpenShell, Shells};
use crate::context::{self, Context};
use crate::outcome::{CommandError, CommandResult};
use crate::output::{self, cell, column, count, flexible, printable};
use crate::{caller, running_programs};

pub(super) async fn shell(context: &Context, args: OpenShell) -> CommandResult {
    let (task, named) = context.terminal(&args.name.task)?;
    let name = chosen_name(named, args.shell.clone())?;
    if args.close {
        return close(context, task, name, args.force).await;
    }
    let name = name.or_else(|| (!args.new).then(|| USUAL_NAME.to_owned()));
    let command: Vec<Bytes> = args.command.into_iter().map(Bytes::from).collect();
    let params = ShellOpenParams {
        task,
        shell: name,
        command: (!command.is_empty()).then_some(command),
        caller: caller::caller(&context.options),
    };
    let opened = context.daemon().await?.call(ShellOpen, params).await?;
    match args.no_attach || !has_terminal() {
        true => print_opened(&opened.shell, opened.new),
        false => attach_to(context, &opened.task, opened.shell.name).await,
    }
}

fn has_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

async fn attach_to(context: &Context, task: &Task, shell: String) -> CommandResult {
    let departure =
        visit(context, Visit { shell: Some(shell), ..Visit::of(context::reference(task)) }).await?;
    next::go_on(context, departure).await
}

/// Attaches to a terminal that was an orphan. Without a terminal of the user's own, prints its name.
pub(super) async fn show(context: &Context, task: &Task, shell: String) -> CommandResult {
    if has_terminal() {
        return attach_to(context, task, shell).await;
    }
    output::line(&printable(&format!("{}-{}:{shell} is open", task.id, task.slug)))?;
    Ok(ExitCode::SUCCESS)
}

/// A name may come after the task or as an option, but not twice.
fn chosen_name(named: Option<String>, option: Option<String>) -> Result<Option<String>, Failure> {
    match (named, option) {
        (Some(named), Some(option)) if named != option => Err(Failure::new("two terminals are named")
            .code(FailureCode::InvalidArgument)
            .because(format!("{named} after the task, and {option} after --name"))),
        (named, option) => Ok(named.or(option)),
    }
}

fn print_opened(shell: &View, is_new: bool) -> CommandResult {
    let name = full_name(shell);
    output::line(&format!("{name} {}", if is_new { "opened" } else { "is open already" }))?;
    output::note(&format!("look at it: agency attach {name}"));
    Ok(ExitCode::SUCCESS)
}

async fn close(context: &Context, task: TaskRef, shell: Option<String>, force: bool) -> CommandResult {
    let close = async |force| {
        let params = ShellCloseParams { task: task.clone(), shell: shell.clone(), force };
        context.daemon().await?.call(ShellClose, params).await
    };
    let closed = running_programs::ask_to_end(force, close).await?.closed;
    for name in &closed {
        output::line(&format!("{} closed", printable(name)))?;
    }
    if closed.is_empty() {
        output::note("no terminal was open");
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn shells(context: &Context, args: Shells) -> CommandResult {
    let task = args.task.as_deref().map(|task| context.task(task)).transpose()?;
    let listing = context.daemon().await?.call(ShellList, ShellListParams { task }).await?;
    match args.json {
        true => output::json(&listing)?,
        false => print_list(&listing)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print_list(listing: &Listing) -> Result<(), CommandError> {
    if listing.shells.is_empty() {
        output::note("no terminal is open: `agency shell TASK` opens one");
        return Ok(());
    }
    let columns = [flexible("TERMINAL", 10), flexible("RUNS", 8), column("VIEWERS"), column("OPENED")];
    let rows: Vec<_> = listing.shells.iter().map(row).collect();
    Ok(output::line(&output::table(&columns, &rows))?)
}

fn row(shell: &View) -> Vec<output::Cell> {
    let running = shell.running.clone().unwrap_or_else(|| "at its prompt".to_owned());
    vec![
        cell(full_name(shell)),
        cell(running),
        cell(count(shell.viewers as usize, "viewer")),
        cell(&shell.opened_at),
    ]
}

fn full_name(shell: &View) -> String {
    printable(&format!("{}-{}:{}", shell.task, shell.slug, shell.name))
}
