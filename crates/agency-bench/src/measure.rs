//! What can be measured, each in a file of its own: one peer, one round, a few samples.

mod agents;
mod attach;
mod cat;
mod echo;
mod floods;
mod memory;
mod start;
mod talk;
pub mod worktree;

use std::time::Duration;

use crate::figure::Sample;
use crate::options::Sizes;
use crate::peer::Peer;

pub struct Measure {
    /// As it is named in `--only` and in tables.
    pub name: &'static str,
    /// For the heading of its table.
    pub title: &'static str,
    /// Whether there is anything to measure of this peer.
    pub applies: fn(&Peer) -> bool,
    /// What memory is does not change from round to round.
    pub is_once: bool,
    pub run: fn(&'static Peer, &Sizes) -> Vec<Sample>,
}

pub static MEASURES: [Measure; 9] = [
    cat::MEASURE,
    echo::MEASURE,
    attach::MEASURE,
    floods::MEASURE,
    start::MEASURE,
    worktree::MEASURE,
    memory::MEASURE,
    agents::MEASURE,
    talk::MEASURE,
];

/// How long a script may take to say that it is so far.
pub const PATIENCE: Duration = Duration::from_secs(120);
