//! The binary: one process per agent run.

use std::process::ExitCode;

fn main() -> ExitCode {
    agency_keeper::launch::main()
}
