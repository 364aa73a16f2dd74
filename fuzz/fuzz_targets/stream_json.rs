//! Whatever an agent says over stream-json.
#![no_main]

mod message;
mod talk;

use std::time::Duration;

use agency_core::agent_state::Timing;
use agency_driver::talk::{TalkRun, TalkTerms};
use libfuzzer_sys::fuzz_target;
use talk::Act;

fuzz_target!(|acts: Vec<Act<'_>>| {
    talk::play(TalkRun::began(TalkTerms::Stream, Timing::default(), Duration::ZERO), &acts);
});
