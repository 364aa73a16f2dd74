//! How to ask the daemon: connect, start it when there is none, call, subscribe, stream.
//!
//! Knows the API and nothing of what is behind it.

mod connection;
mod spawn;

pub use connection::{Client, StreamSocket};
pub use spawn::start_daemon;
