//! Whatever goes over a connection: no line of the agent's is lost, none is told twice, and how the bytes are cut does
//! not matter.
#![no_main]

mod message;

use std::time::Duration;

use agency_driver::acp::Peer;
use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use message::Message;

#[derive(Arbitrary, Debug)]
enum Act<'a> {
    Says(Message<'a>),
    Writes(Message<'a>),
    Pay,
    Forget(bool),
}

fuzz_target!(|acts: Vec<Act<'_>>| {
    let (mut peer, mut cut) = (Peer::new(), Peer::new());
    for act in &acts {
        match act {
            Act::Says(message) => {
                let bytes = message.bytes();
                let whole = peer.on_output(&bytes, Duration::ZERO);
                let parts = bytes.chunks(3).flat_map(|part| cut.on_output(part, Duration::ZERO));
                assert_eq!(whole, parts.collect::<Vec<_>>(), "after {act:?}");
            }
            Act::Writes(message) => {
                let bytes = message.bytes();
                let whole = peer.on_input(&bytes, Duration::ZERO);
                let parts = bytes.chunks(3).flat_map(|part| cut.on_input(part, Duration::ZERO));
                assert_eq!(whole, parts.collect::<Vec<_>>(), "after {act:?}");
            }
            Act::Pay => {
                for (_, line) in peer.owed() {
                    let is_whole = !peer.is_half_written();
                    peer.on_input(&line, Duration::ZERO);
                    cut.on_input(&line, Duration::ZERO);
                    assert!(!is_whole || !peer.owed().iter().any(|(_, owed)| *owed == line));
                }
            }
            Act::Forget(which) => {
                let run = if *which { "r1" } else { "r2" };
                peer.forget(run);
                cut.forget(run);
            }
        }
        assert_eq!(peer.owed(), cut.owed());
    }
});
