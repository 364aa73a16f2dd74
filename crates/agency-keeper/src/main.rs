//! The keeper's binary: one process per agent run, or one per hook that an agent calls.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(mode) if mode == "hook" => agency_keeper::hook::main(),
        _ => agency_keeper::launch::main(),
    }
}
