//! `agency trust`: shows the commands in a project's files, and stores the user's consent.

use std::process::ExitCode;

use agency_api::method::{
    Changes, Nothing, ProjectRef, Trust as View, TrustAgree, TrustAgreeParams, TrustList, TrustShow,
    TrustedProject,
};
use agency_api::{Failure, FailureCode};
use agency_client::Client;

use crate::ask::{DefaultAnswer, ask};
use crate::cli::Trust;
use crate::context::{self, Context};
use crate::outcome::{CommandError, CommandResult};
use crate::output::{self, Colour, Paint, printable};

pub(super) async fn trust(context: &Context, args: Trust) -> CommandResult {
    let mut daemon = context.daemon().await?;
    if args.list {
        return list(&mut daemon, args.json).await;
    }
    let view = daemon.call(TrustShow, ProjectRef { cwd: context::here()? }).await?;
    match (args.json, args.revoke) {
        (true, _) => {
            output::json(&view)?;
            Ok(ExitCode::SUCCESS)
        }
        (false, true) => revoke(&mut daemon, &view).await,
        (false, false) => agree(&mut daemon, &view, args.yes).await,
    }
}

async fn list(daemon: &mut Client, json: bool) -> CommandResult {
    let listed = daemon.call(TrustList, Nothing {}).await?;
    if json {
        output::json(&listed)?;
        return Ok(ExitCode::SUCCESS);
    }
    if listed.projects.is_empty() {
        output::note("you trust no project yet");
    }
    for project in &listed.projects {
        show_project(project)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show_project(project: &TrustedProject) -> Result<(), CommandError> {
    let root = printable(&project.root.as_path().display().to_string());
    let since = project.agreed_at.as_deref().map(|time| format!(", last on {time}")).unwrap_or_default();
    output::line(&format!("{root}: {}{since}", output::count(project.agreements as usize, "agreement")))?;
    project.lines.iter().try_for_each(|line| output::line(&format!("  {}", printable(line))))?;
    Ok(())
}

async fn revoke(daemon: &mut Client, view: &View) -> CommandResult {
    answer(daemon, None, true).await?;
    output::line(&format!("no longer trusted: {}", project(view)))?;
    Ok(ExitCode::SUCCESS)
}

async fn agree(daemon: &mut Client, view: &View, yes: bool) -> CommandResult {
    if view.commands.is_empty() && view.settings.is_empty() {
        output::line(&format!("nothing to trust: {} has no commands of its own", project(view)))?;
        return Ok(ExitCode::SUCCESS);
    }
    show(view)?;
    if view.trusted {
        output::line("You already trust this content.")?;
        return Ok(ExitCode::SUCCESS);
    }
    if !yes && !ask_to_trust()? {
        return Err(Failure::new(format!("not trusted: {}", project(view)))
            .code(FailureCode::Cancelled)
            .because("you did not agree")
            .into());
    }
    answer(daemon, view.digest.clone(), false).await?;
    output::line(&format!("trusted: {}", project(view)))?;
    Ok(ExitCode::SUCCESS)
}

async fn answer(daemon: &mut Client, digest: Option<String>, revoke: bool) -> Result<View, Failure> {
    daemon.call(TrustAgree, TrustAgreeParams { cwd: context::here()?, digest, revoke }).await
}

fn show(view: &View) -> Result<(), CommandError> {
    let project = project(view);
    lines(&format!("the configuration and tasks of {project} would run:"), &view.commands)?;
    lines(&format!("the configuration of {project} would set:"), &view.settings)?;
    match &view.changes {
        Some(changes) => show_changes(changes),
        None => Ok(()),
    }
}

fn lines(title: &str, lines: &[String]) -> Result<(), CommandError> {
    if lines.is_empty() {
        return Ok(());
    }
    output::line(title)?;
    lines.iter().try_for_each(|line| output::line(&format!("  {}", printable(line))))?;
    Ok(())
}

/// `+` and `-` mark the lines, because colour is never the only sign.
fn show_changes(changes: &Changes) -> Result<(), CommandError> {
    if changes.added.is_empty() && changes.removed.is_empty() {
        output::line(
            "Its commands and settings are the ones that you trusted; the rest of the file has changed.",
        )?;
        return Ok(());
    }
    output::line("Changes since you last agreed:")?;
    let paint = Paint::for_stdout();
    for line in &changes.removed {
        output::line(&paint.paint(Colour::Red, &format!("- {}", printable(line))))?;
    }
    for line in &changes.added {
        output::line(&paint.paint(Colour::Green, &format!("+ {}", printable(line))))?;
    }
    Ok(())
}

fn ask_to_trust() -> Result<bool, CommandError> {
    let hint = "read the commands above; `agency trust --yes` trusts them";
    ask("Trust exactly this content?", DefaultAnswer::No, hint)
}

/// The repository of the commands. They are in its configuration and in its task files.
fn project(view: &View) -> String {
    let root = view.file.as_path().ancestors().nth(2).unwrap_or(view.file.as_path());
    printable(&root.display().to_string())
}
