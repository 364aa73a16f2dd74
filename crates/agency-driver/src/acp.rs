//! The Agent Client Protocol: one connection with many sessions.
//!
//! `router` folds a connection's journal and finds the run that each line belongs to. `session` folds the lines of one
//! session into a conversation and a state. Both read messages with the official types, and as plain JSON where those
//! fail, because an agent may be newer than the types.

mod agent_request;
mod content;
mod form;
mod opening;
pub mod router;
mod rpc;
mod session;
mod settings;
mod tools;
mod transcript;

pub use opening::McpServer;
pub use router::Router;
pub use session::{AcpRun, AcpTerms, ConnectionNote};
