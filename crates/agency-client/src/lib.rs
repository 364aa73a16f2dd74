//! The client of the API: connects to the daemon, starts it if none runs, calls methods, reads events and streams.
//!
//! Knows the API only, not the code behind it.

#![warn(missing_docs)]

mod connection;
mod spawn;

pub use connection::{Client, StreamSocket};
pub use spawn::start_daemon;
