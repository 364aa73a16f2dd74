//! Judges programs that Agency has no rules for: the half to work with and the half that is held out, live and in replay.
//!
//! A digest of its name decides the half of a program: the author of a recording has no choice. `scripts/record-unseen` computes it.

use std::fs;
use std::path::{Path, PathBuf};

use agency_bench::table::{Form, Table, add_section};
use serde::Serialize;

use crate::goal::Goal;
use crate::half::Half;
use crate::judge::{Judged, Reason, Verdict, judge};
use crate::knowledge::Knowledge;
use crate::options::Options;
use crate::recording::Recording;
use crate::report;
use crate::run;
use crate::tally::Tally;
use crate::timeline::{StateReport, Timeline};

/// The coding agents and chats among the programs.
const AGENTS: [&str; 11] = [
    "cline",
    "code-puppy",
    "continue",
    "copilot",
    "gptme",
    "grok",
    "llm",
    "mini-swe-agent",
    "nanocoder",
    "pi",
    "shell-gpt",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// A daemon watched the program, and `agency events` printed the states.
    Live,
    /// `agency replay` read a recording.
    Replay,
}

/// One half, judged in one way.
#[derive(Debug, Serialize)]
pub struct Outcome {
    pub half: Half,
    pub way: Way,
    pub recordings: Vec<String>,
    pub phases: Vec<Judged>,
    pub silence: Vec<Judged>,
}

impl Outcome {
    /// Every half in the options: live if they name a directory of live runs, and in replay.
    pub fn judge_all(options: &Options) -> Result<Vec<Outcome>, String> {
        let mut outcomes = Vec::new();
        for half in &options.halves {
            let home = options.project.join("tests/recordings").join(half.name());
            if let Some(dir) = &options.live {
                let belongs = |path: &PathBuf| scenario(&home, path).is_file();
                outcomes.push(Outcome::live(*half, run::casts_in(dir)?.into_iter().filter(belongs))?);
            }
            outcomes.push(Outcome::replay(*half, run::casts_in(&home)?, &options.rules())?);
        }
        Ok(outcomes)
    }

    fn live(half: Half, files: impl Iterator<Item = PathBuf>) -> Result<Outcome, String> {
        let recordings = read(files)?;
        let mut phases = Vec::new();
        for recording in &recordings {
            phases.extend(judge(recording, &reported(&recording.path.with_extension("states.jsonl"))?));
        }
        Ok(Outcome::of(half, Way::Live, &recordings, phases))
    }

    fn replay(half: Half, files: Vec<PathBuf>, rules: &Path) -> Result<Outcome, String> {
        let recordings = read(files.into_iter())?;
        let trial = run::trial(Knowledge::Everything, rules, &recordings)?;
        Ok(Outcome::of(half, Way::Replay, &recordings, trial.phases))
    }

    fn of(half: Half, way: Way, recordings: &[Recording], phases: Vec<Judged>) -> Outcome {
        let silent = |one: &Recording| judge(one, &Timeline::of_silence(&one.outputs));
        Outcome {
            half,
            way,
            recordings: recordings.iter().map(|one| one.name.clone()).collect(),
            phases,
            silence: recordings.iter().flat_map(silent).collect(),
        }
    }

    fn title(&self) -> String {
        let way = match self.way {
            Way::Live => "live",
            Way::Replay => "replay",
        };
        format!("{}, {way}", self.half.name())
    }

    /// The goals for programs without rules of their own.
    pub fn goals(&self) -> Vec<Goal> {
        let all = Tally::of(&self.phases, |_| true);
        let goal = |text, found: String, is_reached| Goal { text, found, is_reached };
        let missed = all.count(Verdict::Missed);
        let (wrong, works) = (all.count(Verdict::False), all.works());
        let (named, permissions) = permissions(&self.phases);
        let (unknown, hits) = (all.why(Reason::Unknown), all.count(Verdict::Hit));
        let latencies = all.latencies();
        let [p50, p95] = latencies.shown();
        let under = |share, limit| latencies.quantile(share).is_none_or(|late| late < limit);
        vec![
            goal("no wait is missed", format!("{missed} of {}", all.waits()), missed == 0),
            goal("at most one false phase in a hundred", format!("{wrong} of {works}"), wrong * 100 <= works),
            goal(
                "95 of 100 permissions are named as permissions",
                format!("{named} of {permissions}"),
                named * 100 >= permissions * 95,
            ),
            goal("p50 under 0.5 s", p50, under(0.5, 0.5)),
            goal("p95 under 2 s", p95, under(0.95, 2.0)),
            goal(
                "the reason is unknown in fewer than 10 of 100",
                format!("{unknown} of {hits}"),
                unknown * 10 < hits.max(1),
            ),
        ]
    }
}

pub fn all_reached(outcomes: &[Outcome]) -> bool {
    outcomes.iter().flat_map(Outcome::goals).all(|goal| goal.is_reached)
}

/// How many permissions were found and named as such, and how many there were.
fn permissions(phases: &[Judged]) -> (usize, usize) {
    let asked = Tally::of(phases, |phase| phase.phase == "permission");
    (asked.why(Reason::Right), asked.waits())
}

fn read(files: impl Iterator<Item = PathBuf>) -> Result<Vec<Recording>, String> {
    files.map(|file| Recording::read(&file, &[])).collect()
}

/// The states that a daemon reported, in the order in which they came.
fn reported(path: &Path) -> Result<Timeline, String> {
    let text = fs::read_to_string(path).map_err(|err| format!("{}: {err}", path.display()))?;
    let report = |line: &str| {
        serde_json::from_str::<StateReport>(line).map_err(|err| format!("{}: {err}", path.display()))
    };
    Ok(Timeline(text.lines().map(report).collect::<Result<_, _>>()?))
}

/// The scenario of a recording, if this half has it.
fn scenario(home: &Path, recording: &Path) -> PathBuf {
    let name = recording.file_stem().unwrap_or_default().to_string_lossy();
    home.join("scenarios").join(format!("{}.txt", program(&name)))
}

/// `pi-80x24` is a recording of `pi`.
fn program(recording: &str) -> &str {
    recording.rsplit_once('-').map_or(recording, |(program, _)| program)
}

fn is_agent(phase: &Judged) -> bool {
    AGENTS.contains(&program(&phase.recording))
}

const HEADS: [&str; 13] = [
    "programs",
    "runs",
    "waits",
    "hit",
    "missed",
    "works",
    "false",
    "p50",
    "p95",
    "permissions named",
    "reason: right / unknown / other",
    "5 s silence: hit",
    "false",
];

pub fn report(outcomes: &[Outcome], form: Form) -> String {
    let mut text = String::new();
    for outcome in outcomes {
        let goals = report::goal_table(outcome.goals());
        let tables = format!("{}\n{}", phases_table(outcome).show(form), goals.show(form));
        add_section(&mut text, form, &outcome.title(), &tables);
    }
    text
}

fn phases_table(outcome: &Outcome) -> Table {
    let mut table = Table::with(&HEADS);
    for (name, agents) in [("agents", Some(true)), ("other programs", Some(false)), ("all", None)] {
        let wanted = |phase: &Judged| agents.is_none_or(|agents| is_agent(phase) == agents);
        let (ours, plain) = (Tally::of(&outcome.phases, wanted), Tally::of(&outcome.silence, wanted));
        let chosen: Vec<Judged> = outcome.phases.iter().filter(|phase| wanted(phase)).cloned().collect();
        let mut runs: Vec<&str> = chosen.iter().map(|phase| phase.recording.as_str()).collect();
        runs.dedup();
        let mut cells = vec![name.to_owned(), runs.len().to_string(), ours.waits().to_string()];
        cells.extend([Verdict::Hit, Verdict::Missed].map(|verdict| ours.count(verdict).to_string()));
        cells.extend([ours.works().to_string(), ours.count(Verdict::False).to_string()]);
        cells.extend(ours.latencies().shown());
        let (named, asked) = permissions(&chosen);
        let reasons = [Reason::Right, Reason::Unknown, Reason::Other].map(|why| ours.why(why).to_string());
        cells.extend([format!("{named} of {asked}"), reasons.join(" / ")]);
        cells.extend([Verdict::Hit, Verdict::False].map(|verdict| plain.count(verdict).to_string()));
        table.row(cells);
    }
    table
}

pub fn mistakes(outcomes: &[Outcome]) -> String {
    outcomes.iter().map(|outcome| report::mistakes_in(&outcome.title(), &outcome.phases)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_not_part_of_a_programs_name() {
        assert_eq!(program("code-puppy-120x40"), "code-puppy");
        assert_eq!(
            scenario(Path::new("held-out"), Path::new("live/pi-80x24.cast")),
            Path::new("held-out/scenarios/pi.txt")
        );
    }

    #[test]
    fn a_permission_called_a_question_is_not_named() {
        let judged = |phase: &str, verdict, why| Judged {
            recording: "pi-80x24".to_owned(),
            program: "x",
            phase: phase.to_owned(),
            begin: 0.0,
            end: 5.0,
            verdict,
            latency: None,
            source: None,
            said: None,
            why,
            flaps: 0,
        };
        let phases = [
            judged("permission", Verdict::Hit, Some(Reason::Right)),
            judged("permission", Verdict::Hit, Some(Reason::Other)),
            judged("permission", Verdict::Missed, None),
            judged("dialog", Verdict::Hit, Some(Reason::Right)),
        ];
        assert_eq!(permissions(&phases), (1, 3));
        assert!(is_agent(&phases[0]));
    }
}
