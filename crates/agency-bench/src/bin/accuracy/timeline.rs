//! The reports of a detector over time: from each moment on, whether the program waits, and the source.

use serde::Deserialize;

/// The silence after which the simplest detector reports that a program waits.
pub const SILENCE: f64 = 5.0;

/// One line of `agency replay --states --json`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct StateReport {
    #[serde(rename = "t")]
    pub at: f64,
    pub state: String,
    pub why: Option<String>,
    pub source: String,
    pub rule: String,
}

impl StateReport {
    pub fn waits(&self) -> bool {
        matches!(self.state.as_str(), "needs_input" | "stale")
    }
}

/// In order of time.
pub struct Timeline(pub Vec<StateReport>);

impl Timeline {
    /// The simplest detector: a program that writes works, and one that has not written for a while waits.
    pub fn of_silence(outputs: &[f64]) -> Timeline {
        let said = |at: f64, state: &str| StateReport {
            at,
            state: state.to_owned(),
            why: None,
            source: "silence".to_owned(),
            rule: "nothing was written".to_owned(),
        };
        let mut all = vec![said(0.0, "running")];
        let mut last = 0.0;
        for at in outputs {
            if at - last > SILENCE {
                all.extend([said(last + SILENCE, "needs_input"), said(*at, "running")]);
            }
            last = *at;
        }
        all.push(said(last + SILENCE, "needs_input"));
        Timeline(all)
    }

    /// The reports between `from` and `to`, each with the part of that time in which it is the latest.
    pub fn within(&self, from: f64, to: f64) -> impl Iterator<Item = (f64, f64, &StateReport)> {
        let ends = self.0.iter().skip(1).map(|said| said.at).chain([f64::INFINITY]);
        self.0
            .iter()
            .zip(ends)
            .map(move |(said, end)| (said.at.max(from), end.min(to), said))
            .filter(|(begin, end, _)| begin < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_waits_from_five_seconds_on_until_the_next_output() {
        let timeline = Timeline::of_silence(&[1.0, 2.0, 10.0]);
        let seen: Vec<_> =
            timeline.within(0.0, 16.0).map(|(at, end, said)| (at, end, said.waits())).collect();
        assert_eq!(seen, [(0.0, 7.0, false), (7.0, 10.0, true), (10.0, 15.0, false), (15.0, 16.0, true)]);
    }
}
