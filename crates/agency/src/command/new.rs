//! `agency new`: creates a task with its workspace, starts its agent and attaches.

mod prompt;
mod several;

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use agency_api::Failure;
use agency_api::method::{TaskNew, TaskNewParams};
use agency_api::view::Task;

use super::start;
use crate::caller;
use crate::cli::New;
use crate::context::{self, Context};
use crate::outcome::CommandResult;
use crate::output;
use crate::watch;
use prompt::Prompt;

pub(super) async fn new(context: &Context, args: New) -> CommandResult {
    if args.number.is_some() || args.foreach.is_some() || args.best_of.is_some() {
        return several::new_several(context, &args).await;
    }
    let prompt = Prompt::obtain(&context.state, &args).await?;
    let watch = watch::new_token();
    let params = params(context, &args, &prompt, &watch)?;
    let (created, watched) =
        watch::call_and_watch(context, "creating the workspace", TaskNew, params, watch).await;
    let started = match created {
        Ok(started) => started,
        Err(failure) if watched.has_started => {
            prompt.delete_draft();
            return Err(failure.into());
        }
        Err(failure) => return Err(prompt.save(&context.state, failure).into()),
    };
    prompt.delete_draft();
    if args.json {
        output::json(&started)?;
        return Ok(ExitCode::SUCCESS);
    }
    started.notes.iter().for_each(|note| output::note(&output::printable(note)));
    // A program that reads our output needs only the line below.
    if std::io::stdout().is_terminal() {
        output::note(&output::printable(&created_text(&started.task)));
    }
    if args.draft || args.no_attach {
        output::line(&output::task_line(&started.task))?;
        if std::io::stdout().is_terminal() {
            let next = if args.draft { "start" } else { "attach" };
            output::note(&format!("next: agency {next} {}", started.task.id));
        }
        return Ok(ExitCode::SUCCESS);
    }
    start::show(context, &started.task, started.notes).await
}

fn params(context: &Context, args: &New, prompt: &Prompt, watch: &str) -> Result<TaskNewParams, Failure> {
    let command: Vec<_> = args.command.iter().map(|word| word.as_os_str().into()).collect();
    Ok(TaskNewParams {
        cwd: context::here()?,
        slug: args.slug.clone(),
        body: prompt.text(),
        agent: args.agent.clone(),
        driver: args.driver.clone(),
        base_branch: args.base_branch.clone(),
        labels: args.labels.clone(),
        draft: args.draft,
        agents_to_start: None,
        command: (!command.is_empty()).then_some(command),
        vcs: args.vcs.map(|vcs| vcs.name().to_owned()),
        on_behalf_of: None,
        resume: args.resume.clone(),
        caller: caller::caller_with_watch(&context.options, watch),
    })
}

/// Names everything that Agency has created. Attaching moves this line into the scrollback of the user's terminal.
fn created_text(task: &Task) -> String {
    let agent = &task.agent_name;
    let file = shown_path(task.file.as_path());
    match (&task.branch, task.worktree.as_ref().map(|path| shown_path(path.as_path()))) {
        (Some(branch), Some(worktree)) => {
            format!("[created branch {branch}, worktree {worktree}, agent {agent}]")
        }
        (None, Some(directory)) => format!("[created task {file}, agent {agent} in {directory}]"),
        (_, None) => format!("[created task {file}]"),
    }
}

/// The path as the user would type it in the current directory.
fn shown_path(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let inside = here.as_deref().and_then(|here| path.strip_prefix(here).ok());
    match inside {
        Some(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Some(inside) => inside.display().to_string(),
        None => path.display().to_string(),
    }
}
