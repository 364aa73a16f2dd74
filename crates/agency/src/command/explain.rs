//! `agency explain`: shows why an agent is in its state, with the evidence.

use std::process::ExitCode;

use agency_api::method::{TaskExplain, TaskExplainParams};
use agency_api::view::{Explanation, StateChange, Witness};

use crate::cli::Explain;
use crate::context::Context;
use crate::moment;
use crate::outcome::CommandResult;
use crate::output::{self, printable};

pub(super) async fn explain(context: &Context, args: Explain) -> CommandResult {
    let task = context.task(&args.name.task)?;
    let mut daemon = context.daemon().await?;
    let explained =
        daemon.call(TaskExplain, TaskExplainParams { task, at: args.at.map(|at| at.to_string()) }).await?;
    match args.json {
        true => output::json(&explained)?,
        false => output::line(&explanation_text(&explained))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn explanation_text(explained: &Explanation) -> String {
    let task = &explained.task;
    let mut lines = vec![format!("task {}-{}, agent {}", task.id, task.slug, task.agent_name)];
    lines.extend(task.parent.map(|parent| format!("  started by the agent of task {parent}")));
    match (&explained.state, &explained.at) {
        (Some(state), Some(at)) => {
            lines.push(format!("  at {}: {}", moment::format_local(at), state_since(state)))
        }
        (Some(state), None) => lines.push(format!("  now: {}", state_since(state))),
        (None, _) => lines.push("  its state is unknown".to_owned()),
    }
    if let Some(state) = &explained.state {
        lines.extend(evidence_lines(state));
    }
    if let Some(text) = &explained.unentered {
        let what = if text.is_empty() { "a text that does not show".to_owned() } else { format!("{text:?}") };
        lines.push(format!("  an interrupted send typed {what} and did not press Enter"));
    }
    if !explained.witnesses.is_empty() {
        lines.push(String::new());
        lines.push("  evidence, most trusted first".to_owned());
        lines.extend(explained.witnesses.iter().map(witness_line));
    }
    if !explained.outlook.is_empty() {
        lines.push(String::new());
        lines.push("  what would change the state".to_owned());
        lines.extend(explained.outlook.iter().map(|words| format!("    {words}")));
    }
    if !explained.before.is_empty() {
        lines.push(String::new());
        lines.push("  previous states, newest first".to_owned());
        lines.extend(explained.before.iter().rev().map(past_state_line));
    }
    lines.iter().map(|line| printable(line)).collect::<Vec<_>>().join("\n")
}

fn state_since(state: &StateChange) -> String {
    let since = state
        .time
        .as_deref()
        .map_or_else(String::new, |time| format!(" since {}", moment::format_local(time)));
    format!("{}{since}", output::state_words(state))
}

fn evidence_lines(state: &StateChange) -> Vec<String> {
    let evidence = &state.evidence;
    vec![
        format!("  evidence: {}, {}", evidence.source, evidence.rule),
        format!("  confidence: {}", evidence.confidence),
        format!("  journal position: byte {} of the output", state.offset),
    ]
}

fn witness_line(witness: &Witness) -> String {
    let mark = if witness.decides { "→" } else { " " };
    let says = match witness.why {
        Some(why) => format!("waits ({})", why.as_str()),
        None => "works".to_owned(),
    };
    let age = output::duration(witness.for_seconds);
    let detail = witness.detail.as_ref().map_or_else(String::new, |detail| format!(": {detail:?}"));
    format!("  {mark} {:<10} {says:<20} {:>4}  {}{detail}", witness.source, age, witness.rule)
}

fn past_state_line(change: &StateChange) -> String {
    let time = change.time.as_deref().map(moment::format_local).unwrap_or_default();
    format!("    {}", output::state_change(&time, change))
}
