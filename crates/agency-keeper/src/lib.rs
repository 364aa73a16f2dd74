//! Holds one run of one agent: its terminal or pipes, its process tree, its journal, its exit status.
//!
//! Decides nothing and configures nothing: the daemon says what to start and when to stop. It must not
//! die, so there are no threads, no async runtime, and no panics on what others send.

pub mod anchor;
mod child;
mod clients;
mod hold;
pub mod hook;
mod input;
pub mod launch;
mod ledger;
mod life;
mod looks;
mod orders;
mod peer;
pub mod pidfile;
pub mod platform;
mod port;
mod probe;
mod signals;
mod socket;
mod terminal;
mod tree;
mod version;
mod wake;
