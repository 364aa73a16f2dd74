//! How the agent ends, and how it refuses to end.

use std::process::exit;
use std::sync::Arc;

use rustix::process::{Resource, Rlimit, setrlimit};
use signal_hook::consts::{SIGHUP, SIGTERM};

use crate::script::Ending;

pub(crate) fn crash(ending: Ending) -> ! {
    match ending {
        Ending::Code(code) => exit(code),
        Ending::Signal(signal) => die_of(signal),
    }
}

fn die_of(signal: i32) -> ! {
    // A scripted crash must not leave a core file in a workspace.
    if let Err(err) = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }) {
        eprintln!("fake-agent: cannot turn core files off: {err}");
    }
    match signal_hook::low_level::emulate_default_handler(signal) {
        Ok(()) => eprintln!("fake-agent: signal {signal} does not end a process"),
        Err(err) => eprintln!("fake-agent: cannot die of signal {signal}: {err}"),
    }
    exit(2)
}

/// `PATH CODE`: ends with CODE if PATH does not exist, and creates PATH, so that it crashes only once.
pub(crate) fn crash_once(rest: &str) {
    let (path, code) = rest.split_once(' ').unwrap_or((rest, "1"));
    if !std::path::Path::new(path).exists() {
        if let Err(err) = std::fs::write(path, "") {
            eprintln!("fake-agent: {path}: {err}");
        }
        crash(Ending::Code(code.trim().parse().unwrap_or(1)));
    }
}

/// Catches SIGTERM and SIGHUP and does nothing. Programs that it starts do not inherit that, unlike ignored signals.
pub(crate) fn ignore_term() {
    for signal in [SIGTERM, SIGHUP] {
        if let Err(err) = signal_hook::flag::register(signal, Arc::default()) {
            eprintln!("fake-agent: cannot catch signal {signal}: {err}");
        }
    }
}

pub(crate) fn wait_forever() -> ! {
    loop {
        std::thread::park();
    }
}
