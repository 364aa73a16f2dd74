//! `agency new`: a task, its workspace, its agent, and the way in.

use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

use agency_api::Failure;
use agency_api::method::{TaskNew, TaskNewParams};
use agency_api::view::Task;

use super::prompt::Prompt;
use super::start;
use crate::caller;
use crate::cli::New;
use crate::context::{self, Context};
use crate::output;
use crate::stop::Done;
use crate::watch;

pub(super) async fn new(context: &Context, args: New) -> Done {
    let prompt = Prompt::obtain(&context.state, &args).await?;
    let watch = watch::word();
    let params = params(context, &args, &prompt, &watch)?;
    let (made, heard) = watch::call(context, "creating the workspace", TaskNew, params, watch).await;
    let started = match made {
        Ok(started) => started,
        Err(failure) if heard.has_begun => {
            prompt.forget();
            return Err(failure.into());
        }
        Err(failure) => return Err(prompt.keep(failure).into()),
    };
    prompt.forget();
    started.notes.iter().for_each(|note| output::note(&output::printable(note)));
    // Programs that read us get their line and can ask for the rest.
    if std::io::stdout().is_terminal() {
        output::note(&output::printable(&made_text(&started.task)));
    }
    if args.draft || args.no_attach {
        output::line(&output::task_line(&started.task))?;
        return Ok(ExitCode::SUCCESS);
    }
    start::show(context, &started.task).await
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
        command: (!command.is_empty()).then_some(command),
        vcs: args.vcs.map(|vcs| vcs.name().to_owned()),
        on_behalf_of: None,
        caller: caller::listening(&context.options, watch),
    })
}

/// What there is now that was not there before. Attaching pushes it up into the terminal's scrollback.
fn made_text(task: &Task) -> String {
    let agent = &task.agent_name;
    let file = from_here(task.file.as_path());
    match (&task.branch, task.worktree.as_ref().map(|path| from_here(path.as_path()))) {
        (Some(branch), Some(worktree)) => {
            format!("[created branch {branch}, worktree {worktree}, agent {agent}]")
        }
        (None, Some(directory)) => format!("[created task {file}, agent {agent} in {directory}]"),
        (_, None) => format!("[created task {file}]"),
    }
}

/// The path as one would type it here.
fn from_here(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let inside = here.as_deref().and_then(|here| path.strip_prefix(here).ok());
    match inside {
        Some(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Some(inside) => inside.display().to_string(),
        None => path.display().to_string(),
    }
}
