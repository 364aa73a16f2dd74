//! `agency explain`: shows why an agent is in its state, with the evidence, and takes the word of a user who knows better.

use std::process::ExitCode;

use agency_api::method::{
    CorrectionForget, TaskContradict, TaskContradictParams, TaskExplain, TaskExplainParams, TaskRef,
};
use agency_api::view::{Belief, Contradiction, Correction, Corrections, Explanation, StateChange, Witness};
use agency_client::Client;

use crate::cli::{Explain, WrongState};
use crate::context::Context;
use crate::moment;
use crate::outcome::CommandResult;
use crate::output::{self, printable};

pub(super) async fn explain(context: &Context, args: Explain) -> CommandResult {
    let task = context.task(&args.name.task)?;
    let mut daemon = context.daemon().await?;
    if let Some(wrong) = args.wrong {
        return contradict(&mut daemon, task, wrong, args.json).await;
    }
    if args.forget {
        return forget(&mut daemon, task, args.json).await;
    }
    let explained =
        daemon.call(TaskExplain, TaskExplainParams { task, at: args.at.map(|at| at.to_string()) }).await?;
    match args.json {
        true => output::json(&explained)?,
        false => output::line(&explanation_text(&explained))?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn contradict(daemon: &mut Client, task: TaskRef, wrong: WrongState, json: bool) -> CommandResult {
    let wrong = match wrong {
        WrongState::Waiting => Belief::Waiting,
        WrongState::Working => Belief::Working,
    };
    let contradiction = daemon.call(TaskContradict, TaskContradictParams { task, wrong }).await?;
    match json {
        true => output::json(&contradiction)?,
        false => output::line(&contradiction_text(&contradiction))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn contradiction_text(contradiction: &Contradiction) -> String {
    let Contradiction { program, corrections, report } = contradiction;
    let mut lines = match corrections.as_slice() {
        [] => vec!["the state is corrected; the evidence agrees with you".to_owned()],
        _ => vec![format!("the state is corrected; in {program} this no longer decides:")],
    };
    lines.extend(corrections.iter().map(correction_line));
    lines.push(format!("report: {}", report.as_path().display()));
    lines
        .push("  Agency sends it nowhere. Read it before you share it: the screen may be private".to_owned());
    lines.iter().map(|line| printable(line)).collect::<Vec<_>>().join("\n")
}

async fn forget(daemon: &mut Client, task: TaskRef, json: bool) -> CommandResult {
    let forgotten = daemon.call(CorrectionForget, task).await?;
    match json {
        true => output::json(&forgotten)?,
        false => output::line(&printable(&forgotten_text(&forgotten)))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn forgotten_text(forgotten: &Corrections) -> String {
    match forgotten.corrections.len() {
        0 => format!("there are no corrections for {}", forgotten.program),
        1 => format!("1 correction for {} is forgotten", forgotten.program),
        many => format!("{many} corrections for {} are forgotten", forgotten.program),
    }
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
    if let Some(warning) = task.mode_warning.as_ref().filter(|_| explained.at.is_none()) {
        lines.push(format!("  its mode: {warning}: agency mode {}", task.id));
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
    lines.extend(memory_lines(explained));
    if !explained.before.is_empty() {
        lines.push(String::new());
        lines.push("  previous states, newest first".to_owned());
        lines.extend(explained.before.iter().rev().map(past_state_line));
    }
    lines.iter().map(|line| printable(line)).collect::<Vec<_>>().join("\n")
}

/// The signs of work and the corrections of the program.
fn memory_lines(explained: &Explanation) -> Vec<String> {
    let program = explained.program.as_deref().unwrap_or("this program");
    let mut lines = Vec::new();
    if !explained.signs.is_empty() {
        lines.extend([String::new(), format!("  signs of work of {program}")]);
        lines.extend(explained.signs.iter().map(|sign| {
            let origin = if sign.remembered { "known from earlier runs" } else { "learned in this run" };
            format!("    {:?}, {origin}", sign.text)
        }));
    }
    if !explained.corrections.is_empty() {
        lines.extend([String::new(), format!("  your corrections for {program} (--forget removes them)")]);
        lines.extend(explained.corrections.iter().map(correction_line));
    }
    lines
}

fn correction_line(correction: &Correction) -> String {
    let Correction { source, rule, wrong, one_question, time } = correction;
    let scope = if *one_question { ", for this question" } else { "" };
    let time = moment::format_local(time);
    format!("    {source}, {rule}: not {}{scope} ({time})", wrong.as_str())
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
