//! Stories with real git, each in its own directory.
//!
//! They use only the public API, and read no configuration of this machine.

#![allow(clippy::unwrap_used, reason = "test helpers fail by panicking")]

mod conflicts;
mod contract;
mod copy;
mod create;
mod diff;
mod edges;
mod exact;
mod exclude;
mod jj;
mod merge;
mod open;
mod remove;
mod restore;
mod sandbox;
mod scene;
mod snapshot;
mod state;
mod sync;
mod undo;
