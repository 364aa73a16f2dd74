//! Reads and writes Agency's files on disk: task files, settings, trust, the message queue and other small files.
//!
//! Decides nothing. Reports a file that it cannot read, and never overwrites it silently.

pub mod announced_mark;
pub mod atomic;
pub mod bounded_read;
pub mod clock;
pub mod config_files;
pub mod consent;
pub mod epoch;
pub mod event_log;
pub mod exit_notes;
pub mod json_lines;
pub mod ports;
pub mod program_memory;
pub mod project_record;
pub mod prompt_queue;
pub mod remarks;
pub mod rule_book;
pub mod saved_conflicts;
pub mod settings;
pub mod state_format;
pub mod store;
mod task_directory;
mod task_mirrors;
pub mod trust;
pub mod workspace_record;
