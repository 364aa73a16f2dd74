//! Remembers: task files, run metadata, settings, trust and notes on disk, read and written in one place.
//!
//! Decides nothing. A file that cannot be read is reported and never overwritten silently.

pub mod announced_mark;
pub mod atomic;
pub mod bounded_read;
pub mod clock;
pub mod event_log;
pub mod exit_notes;
pub mod json_lines;
pub mod ports;
pub mod prompt_queue;
pub mod rule_book;
pub mod saved_conflicts;
pub mod settings;
pub mod store;
pub mod trust;
pub mod workspace_record;
