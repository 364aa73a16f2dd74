//! `agency trust`: shows what a project's own files would run, and remembers the consent.

use std::process::ExitCode;

use agency_api::method::{
    Changes, Nothing, ProjectRef, Trust as View, TrustAgree, TrustAgreeParams, TrustList, TrustShow,
    TrustedProject,
};
use agency_api::{Failure, FailureCode};
use agency_client::Client;

use crate::ask::{Otherwise, ask};
use crate::cli::Trust;
use crate::context::{self, Context};
use crate::output::{self, Colour, Paint, printable};
use crate::stop::{Done, Stop};

pub(super) async fn trust(context: &Context, args: Trust) -> Done {
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

async fn list(daemon: &mut Client, json: bool) -> Done {
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

fn show_project(project: &TrustedProject) -> Result<(), Stop> {
    let root = printable(&project.root.as_path().display().to_string());
    let since = project.agreed_at.as_deref().map(|time| format!(", last on {time}")).unwrap_or_default();
    output::line(&format!("{root}: {}{since}", output::count(project.agreements as usize, "agreement")))?;
    project.lines.iter().try_for_each(|line| output::line(&format!("  {}", printable(line))))?;
    Ok(())
}

async fn revoke(daemon: &mut Client, view: &View) -> Done {
    answer(daemon, None, true).await?;
    output::line(&format!("no longer trusted: {}", project(view)))?;
    Ok(ExitCode::SUCCESS)
}

async fn agree(daemon: &mut Client, view: &View, yes: bool) -> Done {
    if view.commands.is_empty() && view.settings.is_empty() {
        output::line(&format!("nothing to trust: {} has no commands of its own", project(view)))?;
        return Ok(ExitCode::SUCCESS);
    }
    show(view)?;
    if view.trusted {
        output::line("You already trust this content.")?;
        return Ok(ExitCode::SUCCESS);
    }
    if !yes && !agreed()? {
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

fn show(view: &View) -> Result<(), Stop> {
    let project = project(view);
    lines(&format!("the configuration and tasks of {project} would run:"), &view.commands)?;
    lines(&format!("the configuration of {project} would set:"), &view.settings)?;
    match &view.changes {
        Some(changes) => show_changes(changes),
        None => Ok(()),
    }
}

fn lines(title: &str, lines: &[String]) -> Result<(), Stop> {
    if lines.is_empty() {
        return Ok(());
    }
    output::line(title)?;
    lines.iter().try_for_each(|line| output::line(&format!("  {}", printable(line))))?;
    Ok(())
}

/// Colour is never the only sign.
fn show_changes(changes: &Changes) -> Result<(), Stop> {
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

fn agreed() -> Result<bool, Stop> {
    let hint = "read the commands above; `agency trust --yes` trusts them";
    ask("Trust exactly this content?", Otherwise::No, hint)
}

/// The repository that brings the commands: they may stand in its configuration and in task files.
fn project(view: &View) -> String {
    let root = view.file.as_path().ancestors().nth(2).unwrap_or(view.file.as_path());
    printable(&root.display().to_string())
}
