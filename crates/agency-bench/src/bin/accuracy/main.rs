//! Measures how well Agency detects that a program waits for its user, with recordings of real programs whose true phases
//! are known.
//!
//! Not part of the product: it runs the built program as a user would, and knows nothing of its code.

mod goal;
mod half;
mod halves;
mod judge;
mod knowledge;
mod label;
mod options;
mod recording;
mod replay;
mod report;
mod run;
mod tally;
mod timeline;

use std::process::ExitCode;

use agency_bench::program;
use agency_bench::table::Form;
use clap::Parser;

use halves::Outcome;
use options::Options;
use run::Run;

fn main() -> ExitCode {
    program::exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode, String> {
    if !options.halves.is_empty() {
        return run_halves(options);
    }
    let run = Run::judge(options)?;
    if let Some(path) = &options.json {
        program::write_json(path, &run)?;
    }
    if let Some(path) = &options.page {
        program::update_page(path, "accuracy-doc", &report::report(&run, Form::Markdown))?;
    }
    print!("{}", report::report(&run, Form::Plain));
    if options.verbose {
        print!("{}", report::mistakes(&run));
    }
    Ok(if goal::all_reached(&run) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_halves(options: &Options) -> Result<ExitCode, String> {
    let outcomes = Outcome::judge_all(options)?;
    if let Some(path) = &options.json {
        program::write_json(path, &outcomes)?;
    }
    if let Some(path) = &options.page {
        program::update_page(path, "accuracy-live-doc", &halves::report(&outcomes, Form::Markdown))?;
    }
    print!("{}", halves::report(&outcomes, Form::Plain));
    if options.verbose {
        print!("{}", halves::mistakes(&outcomes));
    }
    Ok(if halves::all_reached(&outcomes) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
