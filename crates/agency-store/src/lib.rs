//! Remembers: task files, run metadata, settings, trust and notes on disk, read and written in one place.
//!
//! Decides nothing. A file that cannot be read is reported and never overwritten silently.

pub mod atomic;
pub mod clock;
pub mod event_log;
pub mod json_lines;
pub mod last_words;
pub mod ports;
pub mod prompt_queue;
pub mod read_small;
pub mod rule_book;
pub mod settings;
pub mod sighting;
pub mod store;
pub mod told_mark;
pub mod trust;
pub mod workspace_record;
