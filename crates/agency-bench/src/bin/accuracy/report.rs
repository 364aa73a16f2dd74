//! The report of a run: goals, a table for each kind of knowledge, and every mistake.

use agency_bench::table::{Form, Table, add_section};

use crate::goal::{Goal, goals};
use crate::judge::{Judged, Reason, Verdict};
use crate::run::{Run, Trial};
use crate::tally::{Tally, is_known};

pub fn report(run: &Run, form: Form) -> String {
    let mut text = format!("{} recordings, {} phases\n", run.recordings.len(), run.silence.len());
    let goals = goal_table(goals(run));
    if !goals.is_empty() {
        add_section(&mut text, form, "Goals", &goals.show(form));
    }
    for trial in &run.agency {
        add_section(&mut text, form, trial.knowledge.title(), &phases_table(trial, &run.silence).show(form));
        add_section(&mut text, form, "Latency, reasons and sources", &detail_table(trial).show(form));
    }
    text
}

/// The goals, and whether they are reached.
pub fn goal_table(goals: Vec<Goal>) -> Table {
    let mut table = Table::with(&["goal", "found", ""]);
    for goal in goals {
        let result = if goal.is_reached { "reached" } else { "missed" };
        table.row(vec![goal.text.to_owned(), goal.found, result.to_owned()]);
    }
    table
}

const PHASES: [&str; 13] = [
    "program",
    "waits",
    "hit",
    "missed",
    "works",
    "false",
    "p50",
    "p95",
    "5 s silence: hit",
    "missed",
    "false",
    "p50",
    "p95",
];

fn phases_table(trial: &Trial, silence: &[Judged]) -> Table {
    let mut table = Table::with(&PHASES);
    for program in programs(&trial.phases) {
        let wanted = |phase: &Judged| program.is_none_or(|name| phase.program == name);
        let (ours, plain) = (Tally::of(&trial.phases, wanted), Tally::of(silence, wanted));
        let mut cells = vec![program.unwrap_or("all").to_owned(), ours.waits().to_string()];
        cells.extend([Verdict::Hit, Verdict::Missed].map(|verdict| ours.count(verdict).to_string()));
        cells.extend([ours.works().to_string(), ours.count(Verdict::False).to_string()]);
        cells.extend(ours.latencies().shown());
        let counted = [Verdict::Hit, Verdict::Missed, Verdict::False];
        cells.extend(counted.map(|verdict| plain.count(verdict).to_string()));
        cells.extend(plain.latencies().shown());
        table.row(cells);
    }
    table
}

const DETAILS: [&str; 13] = [
    "program",
    "known: number",
    "p50",
    "p95",
    "elsewhere: number",
    "p50",
    "p95",
    "work noticed after: p95",
    "reason: right / unknown / other",
    "flaps",
    "early in startup",
    "too short",
    "sources",
];

fn detail_table(trial: &Trial) -> Table {
    let mut table = Table::with(&DETAILS);
    for program in programs(&trial.phases) {
        let wanted = |phase: &Judged| program.is_none_or(|name| phase.program == name);
        let mut cells = vec![program.unwrap_or("all").to_owned()];
        for known in [true, false] {
            let part = Tally::of(&trial.phases, |phase| wanted(phase) && is_known(phase) == known);
            cells.push(part.latencies().len().to_string());
            cells.extend(part.latencies().shown());
        }
        let all = Tally::of(&trial.phases, wanted);
        let [_, resumed] = all.resumptions().shown();
        cells.push(resumed);
        let reasons = [Reason::Right, Reason::Unknown, Reason::Other].map(|why| all.why(why).to_string());
        let early = format!("{} of {}", all.count(Verdict::Early), all.starts());
        cells.extend([reasons.join(" / "), all.flaps().to_string(), early]);
        cells.push(all.count(Verdict::Short).to_string());
        let sources = all.sources().into_iter().map(|(source, count)| format!("{source} {count}"));
        cells.push(sources.collect::<Vec<_>>().join(", "));
        table.row(cells);
    }
    table
}

/// All judged programs, and `None` for all together.
fn programs(phases: &[Judged]) -> Vec<Option<&'static str>> {
    let mut programs: Vec<_> = phases.iter().map(|phase| Some(phase.program)).collect();
    programs.sort();
    programs.dedup();
    programs.push(None);
    programs
}

/// One line for each missed, false, early or late report, and for each one with flaps or a wrong reason.
pub fn mistakes(run: &Run) -> String {
    let mut text = String::new();
    for trial in &run.agency {
        text += &mistakes_in(trial.knowledge.title(), &trial.phases);
    }
    text
}

pub fn mistakes_in(title: &str, phases: &[Judged]) -> String {
    let lines: Vec<String> = phases.iter().filter_map(mistake).collect();
    format!("\n{title}: {}\n{}", lines.len(), lines.concat())
}

fn mistake(phase: &Judged) -> Option<String> {
    let what = match phase.verdict {
        Verdict::Missed => "missed",
        Verdict::False => "false",
        Verdict::Early => "early",
        Verdict::Hit if phase.flaps > 0 => "flaps",
        Verdict::Hit if phase.why == Some(Reason::Other) => "other",
        Verdict::Hit if phase.latency.is_some_and(|late| late > if is_known(phase) { 1.0 } else { 5.0 }) => {
            "late"
        }
        _ => return None,
    };
    let Judged { recording, phase: name, begin, end, .. } = phase;
    let said = phase.said.as_deref().unwrap_or("nothing");
    Some(format!("  {what:<6} {recording:<22} {name:<14} {begin:7.2}–{end:7.2}  {said}\n"))
}
