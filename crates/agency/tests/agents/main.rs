//! Real agents, driven through the real binary, against a model that does what the prompt says.
//!
//! Run by `make test-agents` alone, which installs the agents and takes the network away. Nothing is skipped: what is
//! missing fails.

mod acp;
mod claude;
mod codex;
mod delivery;
mod mcp;
mod model;
mod queue;
mod scene;
mod session;
mod talk;
mod upheaval;
