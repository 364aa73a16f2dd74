//! Whole stories with real git in directories of their own.
//!
//! Nothing here looks behind the public door, and nothing reads the configuration of this machine.

#![allow(clippy::unwrap_used, reason = "test helpers fail by panicking")]

mod conflicts;
mod contract;
mod copy;
mod create;
mod diff;
mod edges;
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
