//! `agency timeline`: what happened to the agents of a task, on one time axis.

use std::process::ExitCode;

use agency_api::chat::Usage;
use agency_api::method::TaskTimeline;
use agency_api::timeline::{Moment, TimelineEntry, TimelineParams};

use crate::cli::Timeline;
use crate::context::Context;
use crate::moment;
use crate::outcome::CommandResult;
use crate::output::{self, cell, column, flexible, printable};

pub(super) async fn timeline(context: &Context, args: Timeline) -> CommandResult {
    let task = context.task(&args.name.task)?;
    let params = TimelineParams { task, since: args.since.map(|since| since.to_string()), limit: args.limit };
    let timeline = context.daemon().await?.call(TaskTimeline, params).await?;
    if args.json {
        output::json(&timeline)?;
        return Ok(ExitCode::SUCCESS);
    }
    if timeline.entries.is_empty() {
        output::note("nothing happened: the task has had no agent in this time");
        return Ok(ExitCode::SUCCESS);
    }
    if timeline.more {
        output::note("there are earlier entries: raise --limit");
    }
    output::line(&table(&timeline.entries))?;
    Ok(ExitCode::SUCCESS)
}

fn table(entries: &[TimelineEntry]) -> String {
    let columns = [column("TIME"), column("WHAT"), flexible("DETAIL", 10)];
    let row = |entry: &TimelineEntry| {
        let (what, detail) = words(&entry.moment);
        vec![cell(moment::format_local(&entry.time)), cell(what), cell(printable(&detail.replace('\n', " ")))]
    };
    output::table(&columns, &entries.iter().map(row).collect::<Vec<_>>())
}

fn words(moment: &Moment) -> (&'static str, String) {
    match moment {
        Moment::Started { agent, driver } => ("started", format!("{agent} ({driver})")),
        Moment::State { state, why, detail } => {
            let why = why.map(|why| why.as_str().to_owned());
            (state.as_str(), [why, detail.clone()].into_iter().flatten().collect::<Vec<_>>().join(": "))
        }
        Moment::Sent { text } => ("sent", text.clone()),
        Moment::Asked { title } => ("asked", title.clone()),
        Moment::Decided { title, cancelled: true, .. } => ("withdrawn", title.clone()),
        Moment::Decided { title, allowed, by, .. } => {
            let by = by.as_ref().map(|by| format!(" (by {by})")).unwrap_or_default();
            (if *allowed { "allowed" } else { "denied" }, format!("{title}{by}"))
        }
        Moment::TurnEnd { failed, usage } => {
            (if *failed { "turn failed" } else { "turn ended" }, usage_words(usage))
        }
        Moment::Exited { code } => ("exited", code.clone().unwrap_or_default()),
    }
}

fn usage_words(usage: &Usage) -> String {
    let tokens = usage.input_tokens + usage.cached_tokens + usage.output_tokens;
    let tokens = (tokens > 0).then(|| format!("{tokens} tokens"));
    let cost = usage.cost_usd.map(|cost| format!("${cost:.4} so far"));
    [tokens, cost].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
