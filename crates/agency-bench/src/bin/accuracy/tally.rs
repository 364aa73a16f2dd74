//! Counts judged phases and the latencies of their reports.

use agency_bench::figure::quantile;

use crate::judge::{Judged, Reason, Verdict};

/// Sources that know: the agent's report, a rule, or the kernel. All others infer the state from the output.
const KNOWING_SOURCES: [&str; 9] =
    ["status", "hook", "title", "shell", "kernel", "screen", "progress", "notice", "editor"];

pub struct Tally<'a>(Vec<&'a Judged>);

impl<'a> Tally<'a> {
    pub fn of(phases: &'a [Judged], wanted: impl Fn(&Judged) -> bool) -> Tally<'a> {
        Tally(phases.iter().filter(|phase| wanted(phase)).collect())
    }

    pub fn count(&self, verdict: Verdict) -> usize {
        self.0.iter().filter(|phase| phase.verdict == verdict).count()
    }

    /// Phases in which the program waited long enough to be judged.
    pub fn waits(&self) -> usize {
        self.count(Verdict::Hit) + self.count(Verdict::Missed)
    }

    pub fn works(&self) -> usize {
        self.count(Verdict::Right) + self.count(Verdict::False)
    }

    pub fn starts(&self) -> usize {
        self.count(Verdict::Started) + self.count(Verdict::Early)
    }

    pub fn why(&self, reason: Reason) -> usize {
        self.0.iter().filter(|phase| phase.why == Some(reason)).count()
    }

    pub fn flaps(&self) -> usize {
        self.0.iter().map(|phase| phase.flaps).sum()
    }

    /// Until the detector reported that the program waits.
    pub fn latencies(&self) -> Latencies {
        self.latencies_of(Verdict::Hit)
    }

    /// Until the detector reported that the program works.
    pub fn resumptions(&self) -> Latencies {
        self.latencies_of(Verdict::Right)
    }

    fn latencies_of(&self, verdict: Verdict) -> Latencies {
        let phases = self.0.iter().filter(|phase| phase.verdict == verdict);
        Latencies(phases.filter_map(|phase| phase.latency).collect())
    }

    /// The sources of the reports that the program waits, most frequent first.
    pub fn sources(&self) -> Vec<(String, usize)> {
        let hits = self.0.iter().filter(|phase| phase.verdict == Verdict::Hit);
        let mut counted: Vec<(String, usize)> = Vec::new();
        for source in hits.filter_map(|phase| phase.source.as_ref()) {
            match counted.iter_mut().find(|(name, _)| name == source) {
                Some((_, count)) => *count += 1,
                None => counted.push((source.clone(), 1)),
            }
        }
        counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counted
    }
}

/// Whether the source knows the state instead of inferring it.
pub fn is_known(phase: &Judged) -> bool {
    phase.source.as_deref().is_some_and(|source| KNOWING_SOURCES.contains(&source))
}

/// In seconds.
pub struct Latencies(Vec<f64>);

impl Latencies {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn p95(&self) -> Option<f64> {
        self.quantile(0.95)
    }

    pub fn quantile(&self, share: f64) -> Option<f64> {
        (!self.0.is_empty()).then(|| quantile(&self.0, share))
    }

    /// p50 and p95 for a table.
    pub fn shown(&self) -> [String; 2] {
        [0.5, 0.95]
            .map(|share| self.quantile(share).map_or("–".to_owned(), |value| format!("{value:.2} s")))
    }
}
