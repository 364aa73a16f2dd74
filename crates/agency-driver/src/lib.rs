//! How Agency talks to an agent: bytes in, events out.
//!
//! Starts nothing and reads no clock, so that a recording is a test.

#![warn(missing_docs)]

pub mod acp;
pub mod conversation;
pub mod full_screen;
mod lines;
mod meter;
pub mod protocol_run;
pub mod sending;
pub mod stream_json;
pub mod terminal;
mod typed;
