//! `agency help`: shows the help of Agency or of one command.
//!
//! `agency help COMMAND` prints the same text as `agency COMMAND --help`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Help};
use crate::usage;

pub(crate) fn help(args: &Help) -> ExitCode {
    let option = if args.all || !args.command.is_empty() { "--help" } else { "-h" };
    let words = std::iter::once("agency").chain(args.command.iter().map(String::as_str)).chain([option]);
    let words: Vec<OsString> = words.map(OsString::from).collect();
    match Cli::try_parse_from(&words) {
        // Cannot happen: with a help option, clap always returns the help as an error.
        Ok(_) => ExitCode::SUCCESS,
        Err(help) => usage::report(&help, &words),
    }
}
