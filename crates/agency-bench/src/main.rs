//! Measures Agency beside other holders of terminal sessions, in one run, interleaved.
//!
//! Not part of the product: it runs the built programs as a user would, and knows nothing of their insides.

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
mod stage;
mod terminal;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use agency_bench::{figure, page, table};
use clap::Parser;

use options::Options;
use report::{Form, Run};

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
    let run = match &options.from {
        Some(path) => read(path)?,
        None => Run::make(options).map_err(|err| format!("cannot prepare a run: {err}"))?,
    };
    if let Some(path) = &options.json {
        let text = serde_json::to_string_pretty(&run).map_err(|err| err.to_string())?;
        write(path, &(text + "\n"))?;
    }
    if let Some(path) = &options.page {
        let page = fs::read_to_string(path).map_err(|err| format!("{}: {err}", path.display()))?;
        write(path, &page::with_figures(&page, "bench-doc", &run.report(Form::Markdown))?)?;
    }
    let form = if options.markdown { Form::Markdown } else { Form::Plain };
    print!("{}", run.report(form));
    Ok(if run.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(path: &Path) -> Result<Run, String> {
    let text = fs::read_to_string(path).map_err(|err| format!("{}: {err}", path.display()))?;
    serde_json::from_str(&text).map_err(|err| format!("{} holds no run: {err}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|err| format!("{}: {err}", path.display()))
}
