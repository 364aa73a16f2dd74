//! Goals for the detector with the shipped rules.

use crate::judge::{Judged, Verdict};
use crate::knowledge::Knowledge;
use crate::run::Run;
use crate::tally::{Tally, is_known};

const KNOWN_WITHIN: f64 = 1.0;
const ELSEWHERE_WITHIN: f64 = 5.0;

pub struct Goal {
    pub text: &'static str,
    pub found: String,
    pub is_reached: bool,
}

/// Empty if the run did not measure the shipped rules.
pub fn goals(run: &Run) -> Vec<Goal> {
    let shipped = run.agency.iter().find(|trial| trial.knowledge == Knowledge::Everything);
    shipped.map(|trial| goals_of(&trial.phases)).unwrap_or_default()
}

pub fn all_reached(run: &Run) -> bool {
    goals(run).iter().all(|goal| goal.is_reached)
}

fn goals_of(phases: &[Judged]) -> Vec<Goal> {
    let all = Tally::of(phases, |_| true);
    let none = |text, verdict| {
        let count = all.count(verdict);
        Goal { text, found: count.to_string(), is_reached: count == 0 }
    };
    let within = |text, known: bool, limit: f64| {
        let latencies = Tally::of(phases, |phase| is_known(phase) == known).latencies();
        let [_, p95] = latencies.shown();
        let is_reached = latencies.p95().is_none_or(|p95| p95 < limit);
        Goal { text, found: format!("{p95} of {}", latencies.len()), is_reached }
    };
    vec![
        none("no wait is missed", Verdict::Missed),
        none("no work is reported as waiting", Verdict::False),
        within("p95 under 1 s where the agent reports or a rule knows", true, KNOWN_WITHIN),
        within("p95 under 5 s elsewhere", false, ELSEWHERE_WITHIN),
    ]
}
