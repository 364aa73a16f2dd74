//! The Agent Client Protocol: one connection with many sessions.
//!
//! `router` folds a connection's journal and says to whom each line belongs; `session` folds the lines of one session
//! into a conversation and a state. Messages are read with the official types where those understand them, and as
//! plain JSON where they do not: an agent may be newer than they are.

mod asking;
mod form;
mod opening;
pub mod router;
mod rpc;
mod session;
mod settings;
mod telling;
mod tools;

pub use router::Router;
pub use session::{AcpRun, AcpTerms, ConnectionNote, McpServer};
