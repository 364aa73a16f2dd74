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

/// `PATH CODE`: only if PATH is not there, and makes it.
pub(crate) fn crash_once(rest: &str) {
    let (path, code) = rest.split_once(' ').unwrap_or((rest, "1"));
    if !std::path::Path::new(path).exists() {
        if let Err(err) = std::fs::write(path, "") {
            eprintln!("fake-agent: {path}: {err}");
        }
        crash(Ending::Code(code.trim().parse().unwrap_or(1)));
    }
}
