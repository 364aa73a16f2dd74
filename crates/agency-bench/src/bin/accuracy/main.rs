//! Measures how well Agency tells who waits for the user: over recordings of real programs that say what was true.
//!
//! Not part of the product: it runs the built program as a user would, and knows nothing of its insides.

mod goal;
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

use std::fs;
use std::process::ExitCode;

use agency_bench::page;
use clap::Parser;

use options::Options;
use report::Form;
use run::Run;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("Error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<ExitCode, String> {
    let run = Run::make(options)?;
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&run).map_err(|err| err.to_string())?;
        fs::write(path, text + "\n").map_err(|err| format!("{}: {err}", path.display()))?;
    }
    if let Some(path) = &options.page {
        let page = fs::read_to_string(path).map_err(|err| format!("{}: {err}", path.display()))?;
        let page = page::with_figures(&page, "accuracy-doc", &report::report(&run, Form::Markdown))?;
        fs::write(path, page).map_err(|err| format!("{}: {err}", path.display()))?;
    }
    print!("{}", report::report(&run, Form::Plain));
    if options.verbose {
        print!("{}", report::mistakes(&run));
    }
    Ok(if goal::all_reached(&run) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
