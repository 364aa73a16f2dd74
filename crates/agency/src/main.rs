//! The command line: parses it, runs one command and reports how it ended.
//!
//! Commands work through the API. Only `daemon run`, `doctor` and `replay --states` call code of the daemon directly.

mod agent_wait;
mod ask;
mod attach;
mod caller;
mod candidates;
mod chat_history;
mod chat_screen;
mod chat_status;
mod chat_terminal;
mod cli;
mod command;
mod complete;
mod context;
mod conversation;
mod draft;
mod editor;
mod help;
mod image;
mod installed_files;
mod line_editor;
mod list_terminal;
mod log_stream;
mod markdown;
mod marks;
mod mcp;
mod moment;
mod outcome;
mod output;
mod pager;
mod program_version;
mod progress;
#[cfg(test)]
mod reference;
mod remarks;
mod running_programs;
#[cfg(test)]
mod sample_task;
mod several;
mod task_filter;
mod task_order;
mod task_table;
mod task_tree;
mod task_words;
mod terminal_notification;
mod text_input;
mod usage;
mod watch;
mod workspace_command;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::context::Context;
use crate::outcome::{CommandError, CommandResult};

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
        // The reader has read enough (`agency logs x | head`), which is no failure.
        Err(CommandError::PipeClosed) => ExitCode::SUCCESS,
        Err(CommandError::Failed(failure)) => {
            output::report_failure(&failure, form);
            ExitCode::FAILURE
        }
    }
}

fn run(cli: cli::Cli) -> CommandResult {
    if let Some(directory) = &cli.global.run_in {
        context::change_directory(directory)?;
    }
    let context = Context::from_process(cli.global.config)?;
    if let Some(cli::Command::Daemon { command: cli::Daemon::Run }) = cli.command {
        // The daemon creates its own runtime.
        return command::daemon::run(&context);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| outcome::failed("cannot start the event loop", &err))?;
    runtime.block_on(command::dispatch(&context, cli.command))
}
