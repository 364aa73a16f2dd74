//! The program people type: reads the command line, does one thing, says how it went.
//!
//! Everything but the daemon itself goes through the API; nothing here knows keepers or files of tasks.

mod agent_wait;
mod annotated;
mod ask;
mod attach;
mod attention;
mod caller;
mod cli;
mod command;
mod complete;
mod context;
mod desk;
mod editor;
mod family;
mod help;
mod line;
mod log_stream;
mod mcp;
mod moment;
mod output;
mod pager;
mod progress;
#[cfg(test)]
mod reference;
mod stop;
mod talk;
mod usage;
mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::context::Context;
use crate::stop::{Done, Stop};

fn main() -> ExitCode {
    if let Some(code) = command::completions::answer_shell() {
        return code;
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    let (cli, form) = match cli::parse(&words) {
        Ok(parsed) => parsed,
        Err(error) => return usage::report(&error, &words),
    };
    output::be_quiet(cli.global.quiet);
    match run(cli) {
        Ok(code) => code,
        // The reader has enough (`agency logs x | head`): nothing is wrong.
        Err(Stop::PipeClosed) => ExitCode::SUCCESS,
        Err(Stop::Failed(failure)) => {
            output::report_failure(&failure, form);
            ExitCode::FAILURE
        }
    }
}

fn run(cli: cli::Cli) -> Done {
    let context = Context::from_process(cli.global.config)?;
    if let Some(cli::Command::Daemon { command: cli::Daemon::Run }) = cli.command {
        // It makes a runtime of its own.
        return command::daemon::run(&context);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| stop::failed("cannot start the event loop", &err))?;
    runtime.block_on(command::dispatch(&context, cli.command))
}
