//! One run: every measure, every peer, round after round, so that noise affects all peers alike.

use std::panic::{AssertUnwindSafe, catch_unwind};

use agency_testkit::Sealed;

use crate::figure::{Figures, Sample};
use crate::log;
use crate::machine::Machine;
use crate::measure::Measure;
use crate::options::Options;
use crate::peer::Peer;
use crate::report::Run;
use crate::sizes::Sizes;
use crate::terminal::ROWS;

impl Run {
    pub fn measure(options: &Options) -> std::io::Result<Run> {
        let dir = tempfile::Builder::new().prefix("agency-bench-").tempdir()?;
        let sizes = Sizes::new(options.quick, options.size, dir.path());
        write_logs(&sizes)?;
        let (peers, versions, missing) = find_peers(options);
        let mut run = Run {
            machine: Machine::read(),
            versions,
            missing,
            megabytes: sizes.logs.megabytes,
            rounds: options.rounds(),
            is_quick: options.quick,
            figures: Figures::default(),
            failures: Vec::new(),
        };
        for round in 0..run.rounds {
            run.round(round, &options.measures(), &peers, &sizes);
        }
        run.machine.add_load_average();
        Ok(run)
    }

    fn round(&mut self, round: usize, measures: &[&Measure], peers: &[&'static Peer], sizes: &Sizes) {
        for measure in measures.iter().filter(|measure| round == 0 || !measure.is_once) {
            // Another peer is first in each round.
            for number in 0..peers.len() {
                let peer = peers[(number + round) % peers.len()];
                if (measure.applies)(peer) {
                    eprintln!("round {} of {}: {} of {}", round + 1, self.rounds, measure.name, peer.name);
                    self.attempt(measure, peer, sizes);
                }
            }
        }
    }

    /// The report names a peer that fails, and the run continues with the others.
    fn attempt(&mut self, measure: &Measure, peer: &'static Peer, sizes: &Sizes) {
        match catch_unwind(AssertUnwindSafe(|| (measure.run)(peer, sizes))) {
            Ok(samples) => samples.into_iter().for_each(|sample| self.add(measure, peer, sample)),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
                let line = text.lines().next().unwrap_or(text);
                self.failures.push(format!("{} of {}: {line}", measure.name, peer.name));
            }
        }
    }

    fn add(&mut self, measure: &Measure, peer: &Peer, sample: Sample) {
        eprintln!("    {}: {}", sample.name, sample.unit.show(sample.value));
        self.figures.add(measure.name, peer.name, sample);
    }
}

fn write_logs(sizes: &Sizes) -> std::io::Result<()> {
    let bytes = sizes.logs.megabytes * 1_000_000;
    log::write(&sizes.logs.large, bytes)?;
    log::write(&sizes.logs.quarter, bytes / 4)?;
    std::fs::write(&sizes.logs.lines, log::lines(10_000 + usize::from(ROWS)))
}

/// The installed peers, their versions, and the names of the peers that are not installed.
fn find_peers(options: &Options) -> (Vec<&'static Peer>, Vec<String>, Vec<String>) {
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
