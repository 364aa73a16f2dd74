//! Any messages of an agent in a session over ACP.
#![no_main]

mod message;
mod conversation;

use std::time::Duration;

use agency_core::agent_state::Timing;
use agency_driver::acp::{AcpTerms, ConnectionNote};
use agency_driver::protocol_run::{ConversationRun, ConversationTerms};
use libfuzzer_sys::fuzz_target;
use conversation::Act;

fuzz_target!(|story: (bool, bool, Vec<Act<'_>>)| {
    let (knows_session, is_open, acts) = story;
    let terms = AcpTerms {
        run: "r1".to_owned(),
        cwd: "/w".into(),
        session_id: knows_session.then(|| "s1".to_owned()),
        ..AcpTerms::default()
    };
    let mut run = ConversationRun::began(ConversationTerms::Acp(terms), Timing::default(), Duration::ZERO);
    if is_open {
        run.on_connection(&ConnectionNote::Connected, Duration::ZERO);
        run.on_output(b"{\"id\":\"agency:1\",\"result\":{\"protocolVersion\":1}}\n", Duration::ZERO);
        run.owed_lines().into_iter().for_each(|(_, line)| drop(run.on_input(&line, Duration::ZERO)));
        run.on_output(b"{\"id\":\"r1:open1\",\"result\":{\"sessionId\":\"s1\"}}\n", Duration::ZERO);
    }
    conversation::play(run, &acts);
});
