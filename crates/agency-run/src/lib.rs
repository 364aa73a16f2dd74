//! Follows runs: connects to keepers, folds their journals, serves viewers, delivers messages and carries shared connections.
//!
//! Decides nothing about tasks. A run reports what happens to it through a [`report::ReportSink`] and does what it is ordered to do.

pub mod capacity;
mod cast;
mod chat_view;
pub mod command;
mod compression;
pub mod connection;
pub mod conversation;
mod conversation_task;
pub mod environment;
pub mod explain;
pub mod fold;
pub mod follow;
mod follower;
mod frame_clock;
pub mod handle;
mod hooks;
pub mod keeper_copy;
pub mod keeper_link;
mod keeper_socket;
pub mod launch;
pub mod limits;
mod line_queue;
pub mod logs;
pub mod plan;
mod probe;
pub mod process_tree;
pub mod recording;
pub mod reply;
pub mod report;
mod rule_decisions;
pub mod run_context;
pub mod run_meta;
pub mod send_queue;
pub mod setup_commands;
mod state_log;
mod state_reporter;
mod terminal_task;
pub mod timer;
pub mod view;
pub mod viewer_queue;
pub mod viewers;
