//! Real agents, driven through the real binary, against a fake model that does what the prompt says.
//!
//! Only `make test-agents` runs these tests: it installs the agents and removes the network. No test is skipped: a
//! missing agent is a failure.

mod acp;
mod claude;
mod claude_stream_json;
mod codex;
mod delivery;
mod killed_daemon;
mod mcp;
mod model;
mod queue;
mod resume;
mod scene;
mod shared;
