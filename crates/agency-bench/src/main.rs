//! Measures Agency and other programs that hold terminal sessions, interleaved in one run.
//!
//! Not part of the product: it runs the built programs as a user would, and knows nothing of their code.

mod goal;
mod holders;
mod log;
mod machine;
mod measure;
mod options;
mod peer;
mod report;
mod run;
mod signal;
mod sizes;
mod stage;
mod terminal;

use std::path::Path;
use std::process::ExitCode;

use agency_bench::table::Form;
use agency_bench::{figure, program, table};
use clap::Parser;

use options::Options;
use report::Run;

fn main() -> ExitCode {
    program::exit_code(run(&Options::parse()))
}

fn run(options: &Options) -> Result<ExitCode, String> {
    let run = match &options.from {
        Some(path) => read(path)?,
        None => Run::measure(options).map_err(|err| format!("cannot prepare a run: {err}"))?,
    };
    if let Some(path) = &options.json {
        program::write_json(path, &run)?;
    }
    if let Some(path) = &options.page {
        program::update_page(path, "bench-doc", &run.report(Form::Markdown))?;
    }
    let form = if options.markdown { Form::Markdown } else { Form::Plain };
    print!("{}", run.report(form));
    Ok(if run.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(path: &Path) -> Result<Run, String> {
    let text = program::read(path)?;
    serde_json::from_str(&text).map_err(|err| format!("{} does not contain a run: {err}", path.display()))
}
