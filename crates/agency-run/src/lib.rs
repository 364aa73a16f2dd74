//! Follows runs: connects to keepers, folds their journals, serves viewers, delivers messages and carries shared connections.
//!
//! Decides nothing about tasks. A run reports what happens to it through a [`report::ReportSink`] and does what it is ordered to do.

pub mod audience;
mod bulletin;
mod cast;
mod considering;
pub mod environment;
pub mod explain;
pub mod fold;
mod frame_clock;
pub mod hold;
mod hooks;
pub mod keeper_copy;
pub mod launch;
pub mod limits;
mod link;
pub mod logs;
mod outbox;
pub mod piped;
pub mod plan;
mod probe;
pub mod process_tree;
pub mod recording;
pub mod report;
pub mod room;
pub mod run;
pub mod run_meta;
mod seal;
pub mod sending;
mod state_log;
pub mod switchboard;
pub mod talk;
pub mod view;
pub mod viewer;
