//! Any traffic on a connection: the router loses no line of the agent, routes none twice, and gives the same result however
//! the bytes are cut.
#![no_main]

mod message;

use std::time::Duration;

use agency_driver::acp::Router;
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
    let (mut router, mut cut) = (Router::new(), Router::new());
    for act in &acts {
        match act {
            Act::Says(message) => {
                let bytes = message.bytes();
                let whole = router.on_output(&bytes, Duration::ZERO);
                let parts = bytes.chunks(3).flat_map(|part| cut.on_output(part, Duration::ZERO));
                assert_eq!(whole, parts.collect::<Vec<_>>(), "after {act:?}");
            }
            Act::Writes(message) => {
                let bytes = message.bytes();
                let whole = router.on_input(&bytes, Duration::ZERO);
                let parts = bytes.chunks(3).flat_map(|part| cut.on_input(part, Duration::ZERO));
                assert_eq!(whole, parts.collect::<Vec<_>>(), "after {act:?}");
            }
            Act::Pay => {
                for (_, line) in router.owed_lines() {
                    let is_whole = !router.is_half_written();
                    router.on_input(&line, Duration::ZERO);
                    cut.on_input(&line, Duration::ZERO);
                    assert!(!is_whole || !router.owed_lines().iter().any(|(_, owed)| *owed == line));
                }
            }
            Act::Forget(which) => {
                let run = if *which { "r1" } else { "r2" };
                router.forget_run(run);
                cut.forget_run(run);
            }
        }
        assert_eq!(router.owed_lines(), cut.owed_lines());
    }
});
