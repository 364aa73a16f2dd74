//! Decides about tasks, agents and their states. Events and the time go in, effects come out.
//!
//! Not here: clocks, files, processes, threads (`clippy.toml` bans them). State holds ids and no handles, so a list of events is a
//! test.

#![warn(missing_docs)]

pub mod activity;
pub mod agent;
pub mod agent_state;
pub mod approval;
pub mod config;
pub mod connection;
pub mod conversation;
pub mod evidence;
pub mod exit;
pub mod headline;
pub mod ids;
pub mod notify;
pub mod patch;
pub mod plain;
pub mod rail;
pub mod remark;
pub mod restart;
pub mod secrets;
pub mod shell;
pub mod slug;
pub mod snooze;
pub mod spelling;
pub mod supervisor;
pub mod task_file;
pub mod task_reference;
pub mod task_status;
pub mod tokens;

/// A moment on the caller's monotonic clock: the time since an arbitrary start.
pub type Time = std::time::Duration;
