//! The figures of a run, as a table.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

#[derive(Default)]
pub struct Figures {
    counts: BTreeMap<&'static str, u64>,
    rescues: Vec<Duration>,
}

/// The rows, in order. A count that is not here is a mistake in the harness, which a test finds.
const ROWS: &[&str] = &[
    "steps",
    "commands",
    "commands that failed",
    "quiet checks",
    "daemons killed",
    "keepers killed",
    "keepers rescued",
    "keepers killed whose agent uses pipes",
    "agents killed",
    "viewers started",
    "viewers killed",
    "clients killed",
    "daemons paused",
    "keepers paused",
    "agents paused",
    "viewers paused",
    "disks filled",
    "files spoiled",
    "lines checked",
    "lines lost where a gap says so",
    "texts sent",
    "texts delivered",
    "texts queued",
    "texts heard",
    "texts that joined another",
    "commits checked",
    "merges",
    "removals taken back",
    "tasks that stayed drafts",
    "violations",
];

impl Figures {
    pub fn add(&mut self, name: &'static str, count: u64) {
        debug_assert!(ROWS.contains(&name), "{name} has no row");
        *self.counts.entry(name).or_default() += count;
    }

    pub fn set(&mut self, name: &'static str, count: u64) {
        self.counts.insert(name, count);
    }

    pub fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }

    pub fn add_rescue(&mut self, took: Duration) {
        self.add("keepers rescued", 1);
        self.rescues.push(took);
    }

    fn rescue_times(&self) -> Option<(u128, u128)> {
        let mut times = self.rescues.clone();
        times.sort();
        Some((times.get(times.len() / 2)?.as_millis(), times.last()?.as_millis()))
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in ROWS {
            writeln!(out, "{name:<40} {:>9}", self.count(name))?;
            if let ("keepers rescued", Some((median, most))) = (*name, self.rescue_times()) {
                writeln!(out, "{:<40} {:>9}", "rescue p50 / max ms", format!("{median} / {most}"))?;
            }
        }
        Ok(())
    }
}
