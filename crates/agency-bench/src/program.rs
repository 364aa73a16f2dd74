//! The frame of a measuring program: run, print an error, write files.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

use crate::page;

/// The exit code of `main`; prints the error if there is one.
pub fn exit_code(result: Result<ExitCode, String>) -> ExitCode {
    result.unwrap_or_else(|message| {
        eprintln!("Error: {message}");
        ExitCode::FAILURE
    })
}

pub fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|err| format!("{}: {err}", path.display()))
}

pub fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|err| format!("{}: {err}", path.display()))
}

pub fn write_json(path: &Path, run: &impl Serialize) -> Result<(), String> {
    let text = serde_json::to_string_pretty(run).map_err(|err| err.to_string())?;
    write(path, &(text + "\n"))
}

/// Puts these figures between the marks of a page; `target` of `make` writes that page.
pub fn update_page(path: &Path, target: &str, figures: &str) -> Result<(), String> {
    write(path, &page::with_figures(&read(path)?, target, figures)?)
}
