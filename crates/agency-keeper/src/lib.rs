//! Holds one run of one agent: its terminal or pipes, its process tree, its journal and its exit status.
//!
//! Decides nothing and reads no configuration: the daemon says what to start and when to stop. The keeper must
//! not die, so it has no threads and no async runtime, and does not panic on anything that others send.

#![warn(missing_docs)]

pub mod anchor;
mod child;
mod failure;
mod holder;
pub mod hook;
mod input;
mod keeper;
pub mod keeper_search;
pub mod launch;
mod life;
mod peer;
mod peers;
pub mod pidfile;
pub mod platform;
mod poll_set;
mod port;
mod probe;
mod probe_schedule;
mod requests;
mod run_journal;
pub mod run_lock;
mod signals;
mod socket;
mod terminal;
mod tree;
mod version;
