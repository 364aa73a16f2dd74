//! The ways to end.

use std::process::exit;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::script::Ending;

pub(crate) fn crash(ending: Ending) -> ! {
    match ending {
        Ending::Code(code) => exit(code),
        Ending::Signal(signal) => die_of(signal),
    }
}

fn die_of(signal: i32) -> ! {
    // A crash that was played must not leave a core file in somebody's workspace.
    if let Err(err) = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }) {
        eprintln!("fake-agent: core files stay possible: {err}");
    }
    match signal_hook::low_level::emulate_default_handler(signal) {
        Ok(()) => eprintln!("fake-agent: signal {signal} does not end a process"),
        Err(err) => eprintln!("fake-agent: cannot die of signal {signal}: {err}"),
    }
    exit(2)
}
