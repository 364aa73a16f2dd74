//! `agency replay`: plays a recording, or prints the agent's states over time.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use agency_api::{Failure, FailureCode};
use agency_terminal::ViewerFilter;
use serde_json::Value;

use crate::attach;
use crate::cli::Replay;
use crate::outcome::{CommandError, CommandResult};
use crate::output;

pub(super) async fn replay(args: Replay) -> CommandResult {
    if args.states {
        return states(&args);
    }
    let file = File::open(&args.file).map_err(|err| cannot_read(&args.file, &err))?;
    let mut lines = BufReader::new(file).lines().enumerate();
    check_header(&args.file, lines.next())?;
    let mut stdout = std::io::stdout().lock();
    let mut last = 0.0;
    // Removes questions to the terminal: ours must not answer what a program asked then.
    let (mut filter, mut shown) = (ViewerFilter::default(), Vec::new());
    for (at, line) in lines {
        let line = line.map_err(|err| cannot_read(&args.file, &err))?;
        let Some(event) = event(&args.file, at + 1, &line)? else { continue };
        let pause = (event.seconds - last).max(0.0).min(args.idle.unwrap_or(f64::INFINITY)) / args.speed;
        last = event.seconds;
        tokio::time::sleep(Duration::try_from_secs_f64(pause).unwrap_or(Duration::MAX)).await;
        shown.clear();
        filter.pass(event.output.as_bytes(), &mut shown);
        stdout.write_all(&shown)?;
        stdout.flush()?;
    }
    // The recording may end inside a full-screen program, so reset the terminal.
    stdout.write_all(if stdout.is_terminal() { attach::LEAVE.as_bytes() } else { b"\x1b[0m\n" })?;
    Ok(ExitCode::SUCCESS)
}

fn states(args: &Replay) -> CommandResult {
    let (changes, problems) = agency_daemon::states_of_recording(&args.file)?;
    problems.iter().for_each(|problem| output::warning(problem));
    for change in &changes {
        match args.json {
            true => output::json_line(change)?,
            false => output::line(&output::state_change(&format!("{:>9.2}", change.t), change))?,
        }
    }
    Ok(ExitCode::SUCCESS)
}

struct Event {
    seconds: f64,
    output: String,
}

fn cannot_read(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot read {}", path.display())).code(FailureCode::IoError).caused_by(error)
}

fn check_header(path: &Path, first: Option<(usize, std::io::Result<String>)>) -> Result<(), CommandError> {
    let header =
        first.and_then(|(_, line)| line.ok()).and_then(|line| serde_json::from_str::<Value>(&line).ok());
    match header.as_ref().and_then(|header| header["version"].as_u64()) {
        Some(2) => Ok(()),
        found => Err(Failure::new(format!("{} is not a recording that can be played", path.display()))
            .code(FailureCode::InvalidArgument)
            .because(match found {
                Some(version) => format!("it is asciicast version {version}, and 2 is needed"),
                None => "its first line is not an asciicast header".to_owned(),
            })
            .hint("`agency export TASK -o FILE` makes one")
            .into()),
    }
}

/// Parses one line. `None` for input, markers and resizes, which are not played.
fn event(path: &Path, number: usize, line: &str) -> Result<Option<Event>, CommandError> {
    if line.trim().is_empty() {
        return Ok(None);
    }
    let broken = || {
        Failure::new(format!("{}:{number} is not an event of a recording", path.display()))
            .code(FailureCode::InvalidArgument)
    };
    let value: Value = serde_json::from_str(line).map_err(|err| broken().caused_by(&err))?;
    match (value[0].as_f64(), value[1].as_str(), value[2].as_str()) {
        (Some(seconds), Some("o"), Some(output)) => Ok(Some(Event { seconds, output: output.to_owned() })),
        (Some(_), Some(_), _) => Ok(None),
        _ => Err(broken().because("it is not of the form [seconds, kind, data]").into()),
    }
}
