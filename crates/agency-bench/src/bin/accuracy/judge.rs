//! One phase, and what was said during it: hit, missed, or false.

use serde::Serialize;

use crate::recording::{Kind, Phase, Recording};
use crate::timeline::{Said, Timeline};

/// Markers lag what the screen shows, and an answer takes a moment to be taken.
const LAG: f64 = 0.3;
/// So long a program may take to begin after its user's last key. Until then what was said before still stands: nothing
/// new is said to anybody, and how long it stood is counted.
const BEGINS_WITHIN: f64 = 1.0;
/// What is said so shortly before a phase ends belongs to the next one.
const LEAD: f64 = 0.1;
/// Shorter than this, a wait tells nothing.
const SHORT: f64 = 1.0;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    pub recording: String,
    pub program: &'static str,
    pub phase: String,
    pub begin: f64,
    pub end: f64,
    pub verdict: Verdict,
    /// From the phase's beginning until it was said, that it waits or that it works; absent where it did so in the phase
    /// before as well.
    pub latency: Option<f64>,
    /// Who said it first in this phase.
    pub source: Option<String>,
    /// What was said: where it is wrong, what was wrong.
    pub said: Option<String>,
    pub why: Option<Reason>,
    /// How often it was called work again while it waited.
    pub flaps: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Hit,
    Missed,
    /// It works, and was not said to wait.
    Right,
    /// It works, and was said to wait.
    False,
    /// It starts, and was not said to wait.
    Started,
    /// It starts, and was said to wait: not ready, but nobody is misled for long.
    Early,
    /// Too short to tell.
    Short,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Right,
    Other,
    Unknown,
}

/// Every phase that can be judged.
pub fn judge(recording: &Recording, timeline: &Timeline) -> Vec<Judged> {
    let judged = |phase: &Phase| match phase.kind {
        Kind::Waiting => Some(waiting(recording, phase, timeline)),
        Kind::Working => Some(working(recording, phase, timeline, Verdict::Right, Verdict::False)),
        Kind::Startup => Some(working(recording, phase, timeline, Verdict::Started, Verdict::Early)),
        Kind::Unjudged => None,
    };
    recording.phases.iter().filter_map(judged).collect()
}

fn blank(recording: &Recording, phase: &Phase, verdict: Verdict) -> Judged {
    Judged {
        recording: recording.name.clone(),
        program: recording.program,
        phase: phase.name.clone(),
        begin: phase.begin,
        end: phase.end,
        verdict,
        latency: None,
        source: None,
        said: None,
        why: None,
        flaps: 0,
    }
}

fn waiting(recording: &Recording, phase: &Phase, timeline: &Timeline) -> Judged {
    if phase.end - phase.begin < SHORT {
        return blank(recording, phase, Verdict::Short);
    }
    // What was said of the phase before and is taken back at once is not meant for this one.
    let meant = |(_, end, said): &(f64, f64, &Said)| said.waits() && *end > phase.begin + LAG;
    let Some((at, _, said)) = timeline.within(phase.begin, phase.end).find(meant) else {
        return blank(recording, phase, Verdict::Missed);
    };
    let last = last_wait(phase, timeline).unwrap_or(said);
    Judged {
        latency: (!phase.goes_on).then_some(at - phase.begin),
        source: Some(said.source.clone()),
        said: Some(if said == last { words(said) } else { format!("{}; then {}", words(said), words(last)) }),
        why: Some(reason(phase, last)),
        flaps: flaps(phase, at, timeline),
        ..blank(recording, phase, Verdict::Hit)
    }
}

fn flaps(phase: &Phase, hit_at: f64, timeline: &Timeline) -> usize {
    let from = hit_at.max(phase.begin + LAG);
    let again = |(_, _, said): &(f64, f64, &Said)| said.state == "running";
    timeline.within(from, phase.end - LEAD).filter(again).count()
}

/// A screen may tell later than a title for what the program waits: the last word counts.
fn last_wait<'a>(phase: &Phase, timeline: &'a Timeline) -> Option<&'a Said> {
    let waits = timeline.within(phase.begin, phase.end - LEAD).filter(|(_, _, said)| said.waits());
    waits.last().map(|(_, _, said)| said)
}

fn reason(phase: &Phase, said: &Said) -> Reason {
    let right: &[&str] = match phase.name.as_str() {
        "permission" => &["permission"],
        "finished" => &["finished", "prompt", "error"],
        "idle" => &["prompt", "finished"],
        _ => &["question", "permission"],
    };
    match said.why.as_deref() {
        Some("unknown") | None => Reason::Unknown,
        Some(why) if right.contains(&why) => Reason::Right,
        Some(_) => Reason::Other,
    }
}

fn working(
    recording: &Recording,
    phase: &Phase,
    timeline: &Timeline,
    right: Verdict,
    wrong: Verdict,
) -> Judged {
    let to = phase.end - LEAD;
    if phase.begin + LAG >= to {
        return blank(recording, phase, Verdict::Short);
    }
    let left = left_over(phase, timeline);
    let from = if left > BEGINS_WITHIN { phase.begin + LAG } else { phase.begin + left.max(LAG) };
    match timeline.within(from, to).find(|(_, _, said)| said.waits()) {
        None => Judged { latency: (!phase.goes_on).then_some(left), ..blank(recording, phase, right) },
        Some((at, until, said)) => Judged {
            source: Some(said.source.clone()),
            said: Some(format!("{at:.2}–{until:.2} {}", words(said))),
            ..blank(recording, phase, wrong)
        },
    }
}

/// How long into the phase it is still said to wait, as it was in the phase before.
fn left_over(phase: &Phase, timeline: &Timeline) -> f64 {
    let waits = timeline.within(phase.begin, phase.end).take_while(|(_, _, said)| said.waits());
    waits.last().map_or(0.0, |(_, until, _)| until - phase.begin)
}

fn words(said: &Said) -> String {
    let why = said.why.as_deref().unwrap_or("unknown");
    format!("{why}, {} ({}), since {:.2}", said.source, said.rule, said.at)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn said(at: f64, state: &str, why: Option<&str>) -> Said {
        let (source, rule) = ("screen".to_owned(), "x".to_owned());
        Said { at, state: state.to_owned(), why: why.map(str::to_owned), source, rule }
    }

    fn judged(phases: &[(&str, Kind, f64, f64, bool)], said: Vec<Said>) -> Vec<Judged> {
        let phase = |(name, kind, begin, end, goes_on): &(&str, Kind, f64, f64, bool)| Phase {
            name: (*name).to_owned(),
            kind: *kind,
            begin: *begin,
            end: *end,
            goes_on: *goes_on,
        };
        let phases = phases.iter().map(phase).collect();
        let (path, name) = (PathBuf::new(), String::new());
        judge(&Recording { path, name, program: "x", phases, outputs: Vec::new() }, &Timeline(said))
    }

    #[test]
    fn a_wait_is_hit_late_or_never() {
        let phases = [
            ("working_model", Kind::Working, 0.0, 5.0, false),
            ("permission", Kind::Waiting, 5.0, 9.0, false),
            ("dialog", Kind::Waiting, 9.0, 12.0, true),
            ("finished", Kind::Waiting, 12.0, 15.0, true),
        ];
        let all = judged(
            &phases,
            vec![
                said(0.0, "running", None),
                said(5.5, "needs_input", Some("permission")),
                said(6.0, "running", None),
                said(6.5, "needs_input", Some("question")),
                said(12.2, "running", None),
            ],
        );
        let seen: Vec<_> = all.iter().map(|one| (one.verdict, one.latency, one.why, one.flaps)).collect();
        assert_eq!(
            seen,
            [
                (Verdict::Right, Some(0.0), None, 0),
                (Verdict::Hit, Some(0.5), Some(Reason::Other), 1),
                (Verdict::Hit, None, Some(Reason::Right), 0),
                (Verdict::Missed, None, None, 0),
            ]
        );
    }

    #[test]
    fn waiting_is_false_while_it_works_but_for_the_edges() {
        let phases = [
            ("working_tool", Kind::Working, 10.0, 20.0, false),
            ("working_model", Kind::Working, 20.0, 30.0, false),
            ("startup2", Kind::Startup, 30.0, 40.0, false),
        ];
        let all = judged(
            &phases,
            vec![
                said(5.0, "needs_input", None),
                said(10.5, "running", None),
                said(19.95, "needs_input", None),
                said(20.1, "running", None),
                said(25.0, "stale", None),
                said(26.0, "running", None),
                said(33.0, "needs_input", None),
            ],
        );
        let seen: Vec<_> = all.iter().map(|one| (one.verdict, one.latency)).collect();
        assert_eq!(seen, [(Verdict::Right, Some(0.5)), (Verdict::False, None), (Verdict::Early, None)]);
    }

    #[test]
    fn who_is_said_to_wait_long_after_it_began_to_work_is_said_so_falsely() {
        let phases = [("working_tool", Kind::Working, 10.0, 20.0, false)];
        let all = judged(&phases, vec![said(5.0, "needs_input", None), said(11.5, "running", None)]);
        assert_eq!(all[0].verdict, Verdict::False);
    }
}
