//! `agency since`: what happened since the user last looked.

use std::process::ExitCode;

use agency_api::method::DeskRecent;
use agency_api::recent::{Recent, RecentParams, TaskMoment};

use crate::cli::Since;
use crate::context::Context;
use crate::moment;
use crate::outcome::CommandResult;
use crate::output::{self, Colour, Paint, count, printable};
use crate::task_words::{Ages, task_words};

pub(super) async fn since(context: &Context, args: Since) -> CommandResult {
    let since = args.time.map(|time| time.to_string());
    let recent = context.daemon().await?.call(DeskRecent, RecentParams { since }).await?;
    if args.json {
        output::json(&recent)?;
        return Ok(ExitCode::SUCCESS);
    }
    for line in lines(&recent, Paint::for_stdout()) {
        output::line(&line)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(recent: &Recent, paint: Paint) -> Vec<String> {
    let mut lines = vec![format!("since {}", moment::format_local(&recent.since))];
    let mut add = |title: &str, colour: Colour, words: String| {
        lines.push(format!("{}  {}", paint.paint(colour, &format!("{title:<9}")), printable(&words)));
    };
    for task in &recent.waiting {
        let words = task_words(task, paint, Ages::Exact);
        add("waiting", Colour::Yellow, format!("{}-{} {}{}", task.id, task.slug, words.lead, words.rest));
    }
    recent.failed.iter().for_each(|moment| add("failed", Colour::Red, moment_words(moment, "")));
    recent.finished.iter().for_each(|moment| add("finished", Colour::Green, moment_words(moment, "")));
    recent.merged.iter().for_each(|moment| add("merged", Colour::Green, moment_words(moment, "into ")));
    for found in &recent.collisions {
        let conflict = &found.conflict.conflict;
        let files = count(conflict.files.len(), "file");
        let words =
            format!("{}-{} with {}: {files}", found.conflict.task, found.conflict.slug, conflict.with);
        add("collides", Colour::Yellow, words);
    }
    let usage = &recent.usage;
    if usage.input_tokens + usage.output_tokens + usage.cached_tokens > 0 || usage.cost_usd.is_some() {
        let cost = usage.cost_usd.map(|cost| format!(", {cost:.2} USD")).unwrap_or_default();
        let tokens = format!("{} tokens in, {} out", usage.input_tokens, usage.output_tokens);
        add("cost", Colour::Faint, format!("{tokens}{cost}"));
    }
    if lines.len() == 1 {
        lines.push("nothing happened".to_owned());
    }
    lines
}

fn moment_words(moment: &TaskMoment, before_detail: &str) -> String {
    let name = moment
        .slug
        .as_ref()
        .map_or_else(|| format!("{} (removed)", moment.task), |slug| format!("{}-{slug}", moment.task));
    let detail =
        moment.detail.as_ref().map(|detail| format!(", {before_detail}{detail}")).unwrap_or_default();
    format!("{name} at {}{detail}", moment::format_local(&moment.time))
}
