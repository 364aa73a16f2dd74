//! Any messages of an agent over stream-json.
#![no_main]

mod message;
mod conversation;

use std::time::Duration;

use agency_core::agent_state::Timing;
use agency_driver::protocol_run::{ConversationRun, ConversationTerms};
use libfuzzer_sys::fuzz_target;
use conversation::Act;

fuzz_target!(|acts: Vec<Act<'_>>| {
    conversation::play(ConversationRun::began(ConversationTerms::Stream, Timing::default(), Duration::ZERO), &acts);
});
