//! Compares one phase with the detector's reports during it: hit, missed, or false.

use serde::Serialize;

use crate::recording::{Kind, Phase, Recording};
use crate::timeline::{StateReport, Timeline};

/// Markers come later than the screen, and a program needs a moment to take an answer.
const LAG: f64 = 0.3;
/// A program may take this long to begin after its user's last key. Until then the earlier report is not false; how long
/// it lasts counts as latency.
const BEGINS_WITHIN: f64 = 1.0;
/// A report this shortly before the end of a phase belongs to the next phase.
const LEAD: f64 = 0.1;
/// A shorter wait is not judged.
const SHORT: f64 = 1.0;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    pub recording: String,
    pub program: &'static str,
    pub phase: String,
    pub begin: f64,
    pub end: f64,
    pub verdict: Verdict,
    /// From the phase's beginning until the first right report; absent if the program did the same in the phase before.
    pub latency: Option<f64>,
    /// The source of the first report in this phase.
    pub source: Option<String>,
    /// The report; for a mistake, the wrong one.
    pub said: Option<String>,
    pub why: Option<Reason>,
    /// How often the detector reported work while the program waited.
    pub flaps: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Hit,
    Missed,
    /// The program works, and no report says that it waits.
    Right,
    /// The program works, and a report says that it waits.
    False,
    /// The program starts, and no report says that it waits.
    Started,
    /// The program starts, and a report says that it waits: too early, but soon true.
    Early,
    /// Too short to judge.
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
        Kind::Waiting => Some(judge_wait(recording, phase, timeline)),
        Kind::Working => Some(judge_work(recording, phase, timeline, Verdict::Right, Verdict::False)),
        Kind::Startup => Some(judge_work(recording, phase, timeline, Verdict::Started, Verdict::Early)),
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

fn judge_wait(recording: &Recording, phase: &Phase, timeline: &Timeline) -> Judged {
    if phase.end - phase.begin < SHORT {
        return blank(recording, phase, Verdict::Short);
    }
    // A report from the phase before that ends at once does not belong to this phase.
    let belongs = |(_, end, said): &(f64, f64, &StateReport)| said.waits() && *end > phase.begin + LAG;
    let Some((at, _, said)) = timeline.within(phase.begin, phase.end).find(belongs) else {
        return blank(recording, phase, Verdict::Missed);
    };
    let last = last_wait(phase, timeline).unwrap_or(said);
    Judged {
        latency: (!phase.goes_on).then_some(at - phase.begin),
        source: Some(said.source.clone()),
        said: Some(if said == last {
            describe(said)
        } else {
            format!("{}; then {}", describe(said), describe(last))
        }),
        why: Some(reason(phase, last)),
        flaps: flaps(phase, at, timeline),
        ..blank(recording, phase, Verdict::Hit)
    }
}

fn flaps(phase: &Phase, hit_at: f64, timeline: &Timeline) -> usize {
    let from = hit_at.max(phase.begin + LAG);
    let again = |(_, _, said): &(f64, f64, &StateReport)| said.state == "running";
    timeline.within(from, phase.end - LEAD).filter(again).count()
}

/// The screen may show later than the title why the program waits, so the last report counts.
fn last_wait<'a>(phase: &Phase, timeline: &'a Timeline) -> Option<&'a StateReport> {
    let waits = timeline.within(phase.begin, phase.end - LEAD).filter(|(_, _, said)| said.waits());
    waits.last().map(|(_, _, said)| said)
}

fn reason(phase: &Phase, said: &StateReport) -> Reason {
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

fn judge_work(
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
    let left = leftover_wait(phase, timeline);
    let from = if left > BEGINS_WITHIN { phase.begin + LAG } else { phase.begin + left.max(LAG) };
    match timeline.within(from, to).find(|(_, _, said)| said.waits()) {
        None => Judged { latency: (!phase.goes_on).then_some(left), ..blank(recording, phase, right) },
        Some((at, until, said)) => Judged {
            source: Some(said.source.clone()),
            said: Some(format!("{at:.2}–{until:.2} {}", describe(said))),
            ..blank(recording, phase, wrong)
        },
    }
}

/// How long after its beginning the phase still has a report of waiting from the phase before.
fn leftover_wait(phase: &Phase, timeline: &Timeline) -> f64 {
    let waits = timeline.within(phase.begin, phase.end).take_while(|(_, _, said)| said.waits());
    waits.last().map_or(0.0, |(_, until, _)| until - phase.begin)
}

fn describe(said: &StateReport) -> String {
    let why = said.why.as_deref().unwrap_or("unknown");
    format!("{why}, {} ({}), since {:.2}", said.source, said.rule, said.at)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn report(at: f64, state: &str, why: Option<&str>) -> StateReport {
        let (source, rule) = ("screen".to_owned(), "x".to_owned());
        StateReport { at, state: state.to_owned(), why: why.map(str::to_owned), source, rule }
    }

    fn judge_phases(phases: &[(&str, Kind, f64, f64, bool)], reports: Vec<StateReport>) -> Vec<Judged> {
        let phase = |(name, kind, begin, end, goes_on): &(&str, Kind, f64, f64, bool)| Phase {
            name: (*name).to_owned(),
            kind: *kind,
            begin: *begin,
            end: *end,
            goes_on: *goes_on,
        };
        let phases = phases.iter().map(phase).collect();
        let (path, name) = (PathBuf::new(), String::new());
        judge(&Recording { path, name, program: "x", phases, outputs: Vec::new() }, &Timeline(reports))
    }

    #[test]
    fn a_wait_is_hit_hit_late_or_missed() {
        let phases = [
            ("working_model", Kind::Working, 0.0, 5.0, false),
            ("permission", Kind::Waiting, 5.0, 9.0, false),
            ("dialog", Kind::Waiting, 9.0, 12.0, true),
            ("finished", Kind::Waiting, 12.0, 15.0, true),
        ];
        let all = judge_phases(
            &phases,
            vec![
                report(0.0, "running", None),
                report(5.5, "needs_input", Some("permission")),
                report(6.0, "running", None),
                report(6.5, "needs_input", Some("question")),
                report(12.2, "running", None),
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
    fn a_report_of_waiting_during_work_is_false_except_at_the_edges() {
        let phases = [
            ("working_tool", Kind::Working, 10.0, 20.0, false),
            ("working_model", Kind::Working, 20.0, 30.0, false),
            ("startup2", Kind::Startup, 30.0, 40.0, false),
        ];
        let all = judge_phases(
            &phases,
            vec![
                report(5.0, "needs_input", None),
                report(10.5, "running", None),
                report(19.95, "needs_input", None),
                report(20.1, "running", None),
                report(25.0, "stale", None),
                report(26.0, "running", None),
                report(33.0, "needs_input", None),
            ],
        );
        let seen: Vec<_> = all.iter().map(|one| (one.verdict, one.latency)).collect();
        assert_eq!(seen, [(Verdict::Right, Some(0.5)), (Verdict::False, None), (Verdict::Early, None)]);
    }

    #[test]
    fn a_report_of_waiting_that_lasts_long_into_work_is_false() {
        let phases = [("working_tool", Kind::Working, 10.0, 20.0, false)];
        let all =
            judge_phases(&phases, vec![report(5.0, "needs_input", None), report(11.5, "running", None)]);
        assert_eq!(all[0].verdict, Verdict::False);
    }
}
