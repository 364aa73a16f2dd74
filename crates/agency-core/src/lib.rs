//! The deciding core: tasks, agents, restarts and the supervisor. Events and the time go in, effects come out.
//!
//! Not here: clocks, files, processes, threads. State holds ids, never handles, so a story of events is a test.

pub mod agent;
pub mod agent_state;
pub mod approval;
pub mod config;
pub mod connection;
pub mod conversation;
pub mod evidence;
pub mod exit;
pub mod ids;
pub mod notify;
pub mod plain;
pub mod rail;
pub mod restart;
pub mod slug;
pub mod spelling;
pub mod supervisor;
pub mod task_file;
pub mod task_status;
pub mod tokens;

/// A moment: how long ago an arbitrary start was. The caller's monotonic clock, never ours.
pub type Time = std::time::Duration;
