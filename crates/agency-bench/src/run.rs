//! One run: every measure, every peer, round after round, so that noise falls on all alike.

use std::panic::{AssertUnwindSafe, catch_unwind};

use agency_testkit::Sealed;

use crate::figure::{Figures, Sample};
use crate::log;
use crate::machine::Machine;
use crate::measure::Measure;
use crate::options::{Options, Sizes};
use crate::peer::Peer;
use crate::report::Run;
use crate::terminal::ROWS;

impl Run {
    pub fn make(options: &Options) -> std::io::Result<Run> {
        let dir = tempfile::Builder::new().prefix("agency-bench-").tempdir()?;
        let sizes = Sizes::of(options, dir.path());
        write_logs(&sizes)?;
        let (peers, versions, missing) = installed(options);
        let mut run = Run {
            machine: Machine::look(),
            versions,
            missing,
            megabytes: sizes.megabytes,
            rounds: options.rounds(),
            is_quick: options.quick,
            figures: Figures::default(),
            failures: Vec::new(),
        };
        for round in 0..run.rounds {
            run.round(round, &options.measures(), &peers, &sizes);
        }
        run.machine.look_again();
        Ok(run)
    }

    fn round(&mut self, round: usize, measures: &[&Measure], peers: &[&'static Peer], sizes: &Sizes) {
        for measure in measures.iter().filter(|measure| round == 0 || !measure.is_once) {
            // Nobody is always first.
            for number in 0..peers.len() {
                let peer = peers[(number + round) % peers.len()];
                if (measure.applies)(peer) {
                    eprintln!("round {} of {}: {} of {}", round + 1, self.rounds, measure.name, peer.name);
                    self.attempt(measure, peer, sizes);
                }
            }
        }
    }

    /// A peer that fails is named in the report, and the others go on.
    fn attempt(&mut self, measure: &Measure, peer: &'static Peer, sizes: &Sizes) {
        match catch_unwind(AssertUnwindSafe(|| (measure.run)(peer, sizes))) {
            Ok(samples) => samples.into_iter().for_each(|sample| self.note(measure, peer, sample)),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
                let line = text.lines().next().unwrap_or(text);
                self.failures.push(format!("{} of {}: {line}", measure.name, peer.name));
            }
        }
    }

    fn note(&mut self, measure: &Measure, peer: &Peer, sample: Sample) {
        eprintln!("    {}: {}", sample.name, sample.unit.show(sample.value));
        self.figures.add(measure.name, peer.name, sample);
    }
}

fn write_logs(sizes: &Sizes) -> std::io::Result<()> {
    let bytes = sizes.megabytes * 1_000_000;
    log::write(&sizes.log, bytes)?;
    log::write(&sizes.small_log, bytes / 4)?;
    std::fs::write(&sizes.lines_log, log::lines(10_000 + usize::from(ROWS)))
}

/// Peers that are here, what they call themselves, and the names of those that are not.
fn installed(options: &Options) -> (Vec<&'static Peer>, Vec<String>, Vec<String>) {
    let sealed = Sealed::new();
    let (mut peers, mut versions, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    for peer in options.peers() {
        match peer.version(|program| sealed.command(program)) {
            Some(version) => versions.push(version),
            None if peer.is_bare() => {}
            None => {
                missing.push(peer.name.to_owned());
                continue;
            }
        }
        peers.push(peer);
    }
    (peers, versions, missing)
}
