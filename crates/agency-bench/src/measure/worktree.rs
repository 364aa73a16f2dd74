//! A task in a big repository: what Agency takes until the agent runs, beside git's own worktree.

use super::{Measure, start};
use crate::figure::{Sample, Unit, quantile};
use crate::options::Sizes;
use crate::peer::{AGENCY, Peer};
use crate::stage::Stage;

pub const ALONE: &str = "`git worktree add` alone";
pub const STARTED: &str = "until the first output";

pub const MEASURE: Measure = Measure {
    name: "worktree",
    title: "A new task in a repository of 50 000 files",
    applies: |peer| peer.name == AGENCY,
    is_once: true,
    run,
};

fn run(peer: &'static Peer, sizes: &Sizes) -> Vec<Sample> {
    let stage = Stage::set(peer, sizes);
    start::fill_repository(&stage, sizes.many_files);
    start::start(&stage, "first");
    let (mut starts, mut gits) = (Vec::new(), Vec::new());
    for number in 0..sizes.big_starts {
        gits.push(start::git(&stage, number).as_secs_f64());
        starts.push(start::start(&stage, &format!("start{number}")).as_secs_f64());
    }
    let median = |name: &str, times: &[f64]| Sample::new(name, Unit::Seconds, quantile(times, 0.5));
    vec![median(STARTED, &starts), median(ALONE, &gits)]
}
