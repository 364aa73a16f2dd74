//! Runs Agency under random faults and checks that nothing is lost, doubled or left behind.
//!
//! Not part of the product: it uses the built programs as a user does, and believes only what agents wrote down
//! themselves, the journals, the repositories and `/proc`. `docs/chaos.md` explains how to read its output.

mod agent;
mod call;
mod check;
mod fault;
mod figures;
mod lines;
mod names;
mod options;
mod processes;
mod run;
mod site;
mod subject;
mod tree;
mod work;
mod world;

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use clap::Parser;

use options::{Cli, Command as Word, Options};

/// Set in the process that has a mount namespace of its own.
const INSIDE: &str = "AGENCY_CHAOS_INSIDE";

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command {
        Some(Word::Agent(role)) => agent::play(&role),
        None => exit_code(begin(&cli.options)),
    }
}

fn begin(options: &Options) -> Result<bool, String> {
    if options.list {
        println!("{}", names::ALL.join("\n"));
        return Ok(true);
    }
    let enabled = options.enabled()?;
    let is_inside = std::env::var_os(INSIDE).is_some();
    if !is_inside && enabled.iter().any(|name| name.starts_with("full-")) {
        enter_namespace();
    }
    // A process id and the time differ from run to run.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let seed = options.seed.unwrap_or((now.as_nanos() as u64) % 1_000_000);
    println!(
        "seed {seed}, {} minutes, faults: {}",
        options.minutes,
        enabled.into_iter().collect::<Vec<_>>().join(", ")
    );
    run::run(options, seed, is_inside)
}

/// Becomes the same program in a mount namespace, where small disks can be mounted. Returns if that is not possible.
fn enter_namespace() {
    let Ok(program) = std::env::current_exe() else { return };
    let ways = [
        &["--mount", "--propagation", "private"][..],
        &["--user", "--map-root-user", "--mount", "--propagation", "private"],
    ];
    for way in ways {
        let can = Command::new("unshare").args(way).args(["mount", "-t", "tmpfs", "tmpfs", "/mnt"]).output();
        if can.is_ok_and(|ran| ran.status.success()) {
            let err = Command::new("unshare")
                .args(way)
                .arg(&program)
                .args(std::env::args_os().skip(1))
                .env(INSIDE, "1")
                .exec();
            eprintln!("cannot run unshare: {err}");
        }
    }
}

fn exit_code(result: Result<bool, String>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("agency-chaos: {why}");
            ExitCode::from(2)
        }
    }
}
