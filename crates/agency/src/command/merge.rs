//! `agency merge` and `agency sync`: merge a task's work into its base, and update the task with its base.

use std::process::ExitCode;

use agency_api::method::{TaskGet, TaskMerge, TaskMergePlan, TaskSend, TaskSendParams, TaskSync};
use agency_api::view::TaskStatus;
use agency_api::work::{MergeHow, MergeParams, MergePlan, MergeStep, Merged, SyncHow, SyncParams};
use agency_api::{Bytes, Failure, FailureCode};

use crate::ask::{self, Answer, DefaultAnswer};
use crate::cli::{Merge, Sync};
use crate::context::Context;
use crate::outcome::{CommandError, CommandResult};
use crate::output::{self, count, printable};
use crate::{caller, progress};

/// How many characters of a commit id are shown.
const SHORT: usize = 10;

pub(super) async fn merge(context: &Context, args: Merge) -> CommandResult {
    let how = match (args.squash, args.rebase, args.ff) {
        (true, ..) => MergeHow::Squash,
        (_, true, _) => MergeHow::Rebase,
        (_, _, true) => MergeHow::FastForward,
        _ => MergeHow::Merge,
    };
    let params = MergeParams {
        task: context.task(&args.name.task)?,
        how,
        into: args.into,
        message: args.message,
        commit: args.commit || args.finish,
        stop: args.finish,
        interrupt: args.interrupt,
        caller: caller::caller(&context.options),
    };
    let params = match args.finish || args.json || !ask::can_ask() {
        true => params,
        false => match agree(context, &args.name.task, params).await? {
            Some(params) => params,
            None => return Ok(ExitCode::FAILURE),
        },
    };
    let mut daemon = context.daemon().await?;
    let merged = progress::during("merging", daemon.call(TaskMerge, params)).await?;
    if args.json {
        output::json(&merged)?;
        return Ok(ExitCode::SUCCESS);
    }
    notes(&merged).iter().for_each(|note| output::note(&printable(note)));
    output::line(&output::task_line(&merged.task))?;
    output::note(&format!("undo: agency undo merge-{}-{}", merged.task.id, merged.task.slug));
    output::note(&format!("next: agency rm {}", merged.task.slug));
    Ok(ExitCode::SUCCESS)
}

fn notes(merged: &Merged) -> Vec<String> {
    let short = |id: &String| id.chars().take(SHORT).collect::<String>();
    let stopped = merged.stopped.then(|| "stopped its agent".to_owned());
    let committed =
        merged.committed.as_ref().map(|id| format!("committed uncommitted files as {}", short(id)));
    let moved = format!("{}: {} → {}", merged.into, short(&merged.before), short(&merged.after));
    let checkout =
        merged.checkout.as_ref().map(|path| format!("updated your checkout: {}", path.as_path().display()));
    let done = stopped.into_iter().chain(committed).chain([moved]).chain(checkout);
    done.chain(merged.notes.iter().cloned()).collect()
}

/// Names every obstacle and asks once. Returns the same merge with the steps that the user agreed
/// to, or None if the user does not want it. What only the user can remove, the daemon refuses.
async fn agree(
    context: &Context,
    name: &str,
    params: MergeParams,
) -> Result<Option<MergeParams>, CommandError> {
    let planning = async { context.daemon().await?.call(TaskMergePlan, params.clone()).await };
    let plan = progress::during("looking at the work", planning).await?;
    let is_open = |step: &MergeStep| !params.agrees_to(*step);
    let steps: Option<Vec<MergeStep>> = plan.obstacles.iter().map(|obstacle| obstacle.step).collect();
    let Some(steps) = steps else { return Ok(Some(params)) };
    let steps: Vec<MergeStep> = steps.into_iter().filter(is_open).collect();
    if steps.is_empty() {
        return Ok(Some(params));
    }
    output::note(&format!("{}-{}:", plan.task.id, plan.task.slug));
    plan.obstacles.iter().for_each(|obstacle| output::note(&format!("  {}", printable(&obstacle.text))));
    let is_at_work = steps.contains(&MergeStep::Interrupt);
    let default = if is_at_work { DefaultAnswer::No } else { DefaultAnswer::Yes };
    loop {
        match ask::ask_or_show(&question(&plan, &steps), default)? {
            Answer::Yes => break,
            Answer::No => return Ok(None),
            Answer::Show => super::diff::show(&super::diff::fetch(context, name, None, false).await?)?,
        }
    }
    let agreed = |step| steps.contains(&step);
    Ok(Some(MergeParams {
        commit: params.commit || agreed(MergeStep::Commit),
        stop: agreed(MergeStep::Stop) || is_at_work,
        interrupt: is_at_work,
        ..params
    }))
}

/// The steps in the order in which the daemon takes them.
fn question(plan: &MergePlan, steps: &[MergeStep]) -> String {
    let mut words = Vec::new();
    if steps.contains(&MergeStep::Interrupt) {
        words.push("stop the agent in the middle of its turn");
    }
    if steps.contains(&MergeStep::Stop) {
        words.push("stop the agent");
    }
    if steps.contains(&MergeStep::Commit) {
        words.push("commit the files");
    }
    if !matches!(plan.task.status, TaskStatus::Completed | TaskStatus::Reviewed) {
        words.push("mark the task as done");
    }
    let into = plan.into.as_ref().map(|into| format!(" into {}", printable(into))).unwrap_or_default();
    let merge = format!("merge{into}?");
    let mut text = format!("{} and {merge}", words.join(", "));
    text[..1].make_ascii_uppercase();
    text
}

pub(super) async fn sync(context: &Context, args: Sync) -> CommandResult {
    let how = if args.merge { SyncHow::Merge } else { SyncHow::Rebase };
    let task = context.task(&args.name.task)?;
    let params = SyncParams { task, how, caller: caller::caller(&context.options) };
    let mut daemon = context.daemon().await?;
    let synced = match progress::during("syncing", daemon.call(TaskSync, params)).await {
        Err(failure) if args.agent && failure.code == FailureCode::Conflict => {
            return hand_over(context, &args.name.task, how, &failure).await;
        }
        synced => synced?,
    };
    if args.json {
        output::json(&synced)?;
        return Ok(ExitCode::SUCCESS);
    }
    let base = printable(&synced.base);
    match synced.commits {
        0 => output::line(&format!("no new commits in {base}"))?,
        commits => output::line(&format!("added {} from {base}", count(commits as usize, "commit")))?,
    }
    if let Some(kept) = &synced.kept {
        output::note(&format!("previous state saved as {}", printable(kept)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks the agent to resolve the conflict. The agent gets the message at its prompt.
async fn hand_over(context: &Context, name: &str, how: SyncHow, conflict: &Failure) -> CommandResult {
    let mut daemon = context.daemon().await?;
    let task = daemon.call(TaskGet, context.task(name)?).await?;
    let text = Bytes::from(conflict_message(task.base_branch.as_deref(), how, &conflict.causes));
    let (enter, anyway, queue, keys) = (true, false, true, Vec::new());
    let params =
        TaskSendParams { task: context.task(name)?, text, enter, anyway, queue, keys, images: Vec::new() };
    daemon.call(TaskSend, params).await?;
    if task.run.is_none() {
        super::start::start_task(context, context.task(name)?).await?;
    }
    let why = conflict.causes.join(", ");
    output::line(&format!("{} {}: asked the agent to resolve: {}", task.id, task.slug, printable(&why)))?;
    let slug = &task.slug;
    output::note(&format!("next: agency wait {slug} --until finished && agency merge {slug}"));
    Ok(ExitCode::SUCCESS)
}

fn conflict_message(base: Option<&str>, how: SyncHow, causes: &[String]) -> String {
    let base = base.unwrap_or("the base branch");
    let way = match how {
        SyncHow::Rebase => format!("Rebase your branch onto {base}"),
        SyncHow::Merge => format!("Merge {base} into your branch"),
    };
    format!(
        "{base} has new commits that conflict with your work: {}. {way}, resolve the conflicts so that both changes \
         keep their meaning, and commit. Do not change {base} itself.",
        causes.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_learns_which_files_conflict_and_what_to_do() {
        let causes = ["README.md conflicts with main".to_owned()];
        let text = conflict_message(Some("main"), SyncHow::Rebase, &causes);
        assert!(
            text.contains("README.md conflicts with main") && text.contains("Rebase your branch onto main")
        );
        assert!(
            conflict_message(None, SyncHow::Merge, &causes)
                .contains("Merge the base branch into your branch")
        );
    }
}
