//! The measures, one per file: each takes a few samples of one peer in one round.

pub mod agents;
mod attach;
mod cat;
mod conversation;
mod echo;
mod floods;
mod memory;
mod start;
pub mod tasks;
pub mod worktree;

use std::time::Duration;

use crate::figure::Sample;
use crate::peer::Peer;
use crate::sizes::Sizes;

pub struct Measure {
    /// Its name in `--only` and in tables.
    pub name: &'static str,
    /// The heading of its table.
    pub title: &'static str,
    /// Whether it can measure this peer.
    pub applies: fn(&Peer) -> bool,
    /// Only in the first round: its values do not change from round to round.
    pub is_once: bool,
    pub run: fn(&'static Peer, &Sizes) -> Vec<Sample>,
}

pub static MEASURES: [Measure; 10] = [
    cat::MEASURE,
    echo::MEASURE,
    attach::MEASURE,
    floods::MEASURE,
    start::MEASURE,
    worktree::MEASURE,
    memory::MEASURE,
    agents::MEASURE,
    tasks::MEASURE,
    conversation::MEASURE,
];

/// How long a script may take to reach the point that it signals.
pub const PATIENCE: Duration = Duration::from_secs(120);
