//! `agency trust`: shows what a project's own files would run, and remembers the consent.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use agency_api::Failure;
use agency_api::method::{ProjectRef, Trust as View, TrustAgree, TrustAgreeParams, TrustShow};
use agency_client::Client;

use crate::cli::Trust;
use crate::context::{self, Context};
use crate::output::{self, printable};
use crate::stop::{Done, Stop};

pub(super) async fn trust(context: &Context, args: Trust) -> Done {
    let mut daemon = context.daemon().await?;
    let view = daemon.call(TrustShow, ProjectRef { cwd: context::here()? }).await?;
    match args.revoke {
        true => revoke(&mut daemon, &view).await,
        false => agree(&mut daemon, &view, args.yes).await,
    }
}

async fn revoke(daemon: &mut Client, view: &View) -> Done {
    answer(daemon, None, true).await?;
    output::line(&format!("no longer trusted: {}", project(view)))?;
    Ok(ExitCode::SUCCESS)
}

async fn agree(daemon: &mut Client, view: &View, yes: bool) -> Done {
    if view.commands.is_empty() {
        output::line(&format!("nothing to agree to: {} brings no commands", project(view)))?;
        return Ok(ExitCode::SUCCESS);
    }
    show(view)?;
    if view.trusted {
        output::line("You have agreed to this.")?;
        return Ok(ExitCode::SUCCESS);
    }
    if !yes && !ask()? {
        return Err(Failure::new(format!("not trusted: {}", project(view)))
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
    output::line(&format!("the configuration and tasks of {} would run:", project(view)))?;
    for command in &view.commands {
        output::line(&format!("  {}", printable(command)))?;
    }
    Ok(())
}

fn ask() -> Result<bool, Stop> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::new("cannot ask for consent without a terminal")
            .hint("read the commands above; `agency trust --yes` agrees to them")
            .into());
    }
    let mut stderr = std::io::stderr().lock();
    write!(stderr, "Agree to exactly this content? [y/N] ")?;
    stderr.flush()?;
    let mut line = String::new();
    stdin.lock().read_line(&mut line).map_err(|err| crate::stop::failed("cannot read the answer", &err))?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// The repository that brings the commands: they may stand in its configuration and in task files.
fn project(view: &View) -> String {
    let root = view.file.as_path().ancestors().nth(2).unwrap_or(view.file.as_path());
    printable(&root.display().to_string())
}
