//! Runs the test suites of other terminals against our screen. See `docs/conformance.md`.
//!
//! Does not contain the suites: it reads their files where they are installed.

mod alacritty;
mod libvterm;

use std::io::{Read, Write};
use std::path::Path;

use agency_terminal::{Screen, Size};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["alacritty", recordings] => alacritty::run(Path::new(recordings)),
        ["libvterm", tests] => libvterm::run(Path::new(tests)),
        ["answer"] => answer(),
        _ => Err("usage: conformance alacritty DIR | libvterm DIR | answer".into()),
    }
}

/// A terminal on a pipe: reads a program's output from stdin, writes the answers to stdout.
fn answer() -> Result<(), Box<dyn std::error::Error>> {
    let mut screen = Screen::new(Size { cols: 80, rows: 25, x_pixels: 800, y_pixels: 500 }, 1000);
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut bytes = [0; 4096];
    loop {
        match input.read(&mut bytes)? {
            0 => return Ok(()),
            read => output.write_all(&screen.feed(&bytes[..read]).replies)?,
        }
        output.flush()?;
    }
}
