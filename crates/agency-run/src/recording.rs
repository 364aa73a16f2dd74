//! Reads a recording with the detector: the same fold as for a live run, over an asciicast file.
//!
//! The probes are in a file beside it, with the same name and the suffix `.proc.jsonl`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agency_api::view::StateChange;
use agency_api::{Failure, FailureCode, keeper};
use agency_core::agent_state::Timing;
use agency_core::evidence::{Probe, ProbedProcess, Rules, Waits};
use agency_driver::terminal::{Settings, TerminalRun};
use agency_terminal::Size;
use serde_json::Value;

/// Every change of state in the recording, with times from its beginning.
pub fn states(path: &Path, rules: Arc<Rules>, timing: Timing) -> Result<Vec<StateChange>, Failure> {
    let changes = play(path, rules, timing, |_, _, _| {})?.take_changes();
    Ok(changes.iter().map(|change| crate::view::change(&change.new, Duration::ZERO, None)).collect())
}

/// Folds the recording. Calls `look` before each event, with the last probe.
fn play(
    path: &Path,
    rules: Arc<Rules>,
    timing: Timing,
    mut look: impl FnMut(&mut TerminalRun, Option<&Probe>, &Event<'_>),
) -> Result<TerminalRun, Failure> {
    let mut lines = Lines::open(path)?;
    let header = lines.next().transpose()?.map(|(_, value)| value).unwrap_or_default();
    if header["version"].as_u64() != Some(2) {
        return Err(not_a_recording(path, &header));
    }
    let mut probes = probes_beside(path)?.into_iter().peekable();
    let program = program_of(&header, &rules);
    let settings = Settings { timing, scrollback: 0, rules, program };
    let mut run = TerminalRun::began(size_of(&header), &settings, Duration::ZERO);
    let (mut offset, mut last, mut probed) = (0, Duration::ZERO, None);
    for line in lines {
        let (number, value) = line?;
        let event = Event::read(path, number, &value)?;
        while let Some((at, probe)) = probes.next_if(|(at, _)| *at <= event.at) {
            run.on_probe(&probe, at);
            probed = Some(probe);
        }
        look(&mut run, probed.as_ref(), &event);
        match event.kind {
            "o" => {
                offset += event.data.len() as u64;
                drop(run.on_output(event.data.as_bytes(), offset, event.at));
            }
            // The journal does not keep what a user types while the terminal does not echo.
            "i" if event.data.is_empty() => run.on_hidden_input(event.at),
            "i" => run.on_input(event.data.as_bytes(), event.at),
            "r" => run.on_resize(resized(event.data).unwrap_or(size_of(&header)), event.at),
            _ => {}
        }
        last = event.at;
    }
    // An agent that waits draws nothing, but the recorder probed until the end.
    for (at, probe) in probes {
        run.on_probe(&probe, at);
        last = at.max(last);
    }
    run.tick(last);
    Ok(run)
}

struct Lines<'a> {
    path: &'a Path,
    lines: std::iter::Enumerate<std::io::Lines<BufReader<File>>>,
}

impl<'a> Lines<'a> {
    fn open(path: &'a Path) -> Result<Lines<'a>, Failure> {
        let file = File::open(path).map_err(|err| cannot_read(path, &err))?;
        Ok(Lines { path, lines: BufReader::new(file).lines().enumerate() })
    }
}

impl Iterator for Lines<'_> {
    type Item = Result<(usize, Value), Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (number, line) = self.lines.next()?;
            let line = match line {
                Ok(line) if line.trim().is_empty() => continue,
                Ok(line) => line,
                Err(err) => return Some(Err(cannot_read(self.path, &err))),
            };
            let value = serde_json::from_str(&line).map_err(|err| {
                Failure::new(format!("{}:{} is not JSON", self.path.display(), number + 1))
                    .code(FailureCode::InvalidArgument)
                    .caused_by(&err)
            });
            return Some(value.map(|value| (number + 1, value)));
        }
    }
}

struct Event<'a> {
    at: Duration,
    kind: &'a str,
    data: &'a str,
}

impl<'a> Event<'a> {
    fn read(path: &Path, number: usize, value: &'a Value) -> Result<Event<'a>, Failure> {
        let at = value[0].as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        match (at, value[1].as_str(), value[2].as_str()) {
            (Some(at), Some(kind), data) => Ok(Event { at, kind, data: data.unwrap_or_default() }),
            _ => Err(Failure::new(format!("{}:{number} is not an event of a recording", path.display()))
                .code(FailureCode::InvalidArgument)
                .because("it is not of the form [seconds, kind, data]")),
        }
    }
}

fn size_of(header: &Value) -> Size {
    let number =
        |name: &str, usual| header[name].as_u64().and_then(|n| u16::try_from(n).ok()).unwrap_or(usual);
    Size::cells(number("width", 80), number("height", 24))
}

fn resized(data: &str) -> Option<Size> {
    let (cols, rows) = data.split_once('x')?;
    Some(Size::cells(cols.parse().ok()?, rows.parse().ok()?))
}

/// The program in the header's command. A program that rules know may be anywhere in a path, also after an interpreter:
/// `node …/claude-code/cli.js`.
fn program_of(header: &Value, rules: &Rules) -> String {
    let command = header["command"].as_str().unwrap_or_default();
    let parts = || command.split(|c: char| c.is_whitespace() || c == '/');
    let is_in = |name: &&str| {
        parts()
            .any(|part| part.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')))
    };
    if let Some(known) = rules.programs().find(is_in) {
        return known.to_owned();
    }
    let program = command.split_whitespace().next().unwrap_or_default();
    Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn probes_beside(path: &Path) -> Result<Vec<(Duration, Probe)>, Failure> {
    let beside = path.with_extension("proc.jsonl");
    if !beside.is_file() {
        return Ok(Vec::new());
    }
    let probe = |line: Result<(usize, Value), Failure>| line.map(|(_, value)| probed(&value));
    let probes: Result<Vec<_>, Failure> = Lines::open(&beside)?.map(probe).collect();
    Ok(probes?.into_iter().flatten().collect())
}

/// A line holds the keeper's own probe, or in older files what the recorder read from procfs.
fn probed(value: &Value) -> Option<(Duration, Probe)> {
    let at = Duration::try_from_secs_f64(value["t"].as_f64()?).ok()?;
    if let Some(noted) = value.get("probe") {
        let noted: keeper::Probe = serde_json::from_value(noted.clone()).ok()?;
        return Some((at, crate::probe::to_evidence(noted)?));
    }
    let canonical = value["lflag"]["icanon"].as_bool()?;
    let echo = value["lflag"]["echo"].as_bool()?;
    let process = |process: &Value| process_of(process, canonical, echo);
    let processes: Vec<ProbedProcess> = value["p"].as_array()?.iter().filter_map(process).collect();
    // The first process is the program itself. Such files do not name the parents of the others.
    let root = processes.first().map_or(0, |process| process.pid);
    let child = |mut process: ProbedProcess| {
        process.parent = if process.pid == root { 0 } else { root };
        process
    };
    let processes = processes.into_iter().map(child).collect();
    Some((at, Probe { canonical, echo, foreground: number(&value["fg"]), processes }))
}

fn process_of(process: &Value, canonical: bool, echo: bool) -> Option<ProbedProcess> {
    let (pid, group) = (number(&process["pid"])?, number(&process["pgrp"])?);
    let recorded = recorded_wait(process);
    Some(ProbedProcess {
        pid,
        parent: 0,
        group,
        name: process["comm"].as_str()?.to_owned(),
        ended: process["st"].as_str() == Some("Z"),
        waits: recorded.unwrap_or_else(|| guessed_wait(process, canonical, echo, pid == group)),
    })
}

/// Where a process that reads from a terminal sleeps in the kernel.
const TERMINAL_READ: &str = "wait_woken";

/// From the descriptors that the recorder saw the process wait for.
fn recorded_wait(process: &Value) -> Option<Waits> {
    match (process["at_terminal"].as_bool(), process["watches_terminal"].as_bool()) {
        (Some(true), _) => Some(Waits::ForTerminal),
        // A call with only the terminal's descriptor cannot wait for anything else.
        (_, Some(true)) if waits(&process["sys"], false) == Waits::ForTerminal => Some(Waits::ForTerminal),
        (_, Some(true)) => Some(Waits::ForTerminalToo),
        (_, Some(false)) if process["wchan"] == TERMINAL_READ => Some(Waits::ForInnerTerminal),
        (_, Some(false)) => Some(Waits::Otherwise),
        _ => None,
    }
}

fn guessed_wait(process: &Value, canonical: bool, echo: bool, leads: bool) -> Waits {
    // Descriptor 0 of a helper in the middle of a pipe is not the terminal.
    if canonical || leads { waits(&process["sys"], canonical && !echo) } else { Waits::Otherwise }
}

fn number(value: &Value) -> Option<i32> {
    value.as_i64().and_then(|number| i32::try_from(number).ok())
}

/// From the number of a system call on x86-64 and its first argument: such files hold nothing else.
fn waits(call: &Value, hides: bool) -> Waits {
    const READ: &str = "0";
    const SELECT: [&str; 2] = ["23", "270"];
    match (call[0].as_str(), call[1].as_str()) {
        (Some(READ), Some("0x0")) => Waits::ForTerminal,
        // A program that asks for a secret opens the terminal again.
        (Some(READ), Some(_)) if hides => Waits::ForTerminal,
        (Some(number), Some("0x1")) if SELECT.contains(&number) => Waits::ForTerminal,
        _ => Waits::Otherwise,
    }
}

fn cannot_read(path: &Path, err: &std::io::Error) -> Failure {
    Failure::new(format!("cannot read {}", path.display())).code(FailureCode::IoError).caused_by(err)
}

fn not_a_recording(path: &Path, header: &Value) -> Failure {
    Failure::new(format!("{} is not a recording that can be played", path.display()))
        .code(FailureCode::InvalidArgument)
        .because(match header["version"].as_u64() {
            Some(version) => format!("it is asciicast version {version}, and 2 is needed"),
            None => "its first line is not an asciicast header".to_owned(),
        })
        .hint("`agency export TASK -o FILE` makes one")
}

#[cfg(test)]
mod tests {
    use agency_api::keeper::TerminalProbe;

    use super::*;
    use crate::terminal_task::observation::observe_run;

    fn probe(line: &str) -> Probe {
        let value = serde_json::from_str(line).expect("it is JSON");
        probed(&value).expect("it is a probe").1
    }

    #[test]
    fn a_line_holds_the_keepers_probe_or_that_of_an_older_recorder() {
        let keeper = r#"{"t":0.5,"probe":{"terminal":{"canonical":false,"echo":false,"foreground_group":7},"processes":[
            {"pid":7,"parent":3,"group":7,"session":7,"name":"node","state":"S","watches_terminal":true}]}}"#;
        let older = r#"{"t":0.5,"p":[{"pid":7,"comm":"cat","st":"S","pgrp":7,"cpu":0,"wchan":"x","sys":["0","0x0"]}],
            "fg":7,"lflag":{"icanon":true,"echo":true}}"#;
        assert_eq!(probe(keeper).processes[0].waits, Waits::ForTerminalToo);
        assert_eq!(probe(keeper).processes[0].parent, 3);
        assert_eq!(probe(older).processes[0].waits, Waits::ForTerminal);
    }

    /// Says for the end of each waiting phase why no text may be typed there. A phase that is shorter than half a second may
    /// end before the screen shows it.
    fn ends_of_waits(path: &Path) -> Vec<(String, Duration, Option<String>)> {
        let (mut phase, mut since, mut ends) = (String::new(), Duration::ZERO, Vec::new());
        let rules = Arc::new(Rules::shipped());
        let played = play(path, rules, Timing::default(), |run, probe, event| {
            let Some(next) = event.data.strip_prefix("phase:").filter(|_| event.kind == "m") else { return };
            let terminal = probe.map_or_else(TerminalProbe::default, |probe| TerminalProbe {
                canonical: probe.canonical,
                echo: probe.echo,
                ..TerminalProbe::default()
            });
            if event.at.saturating_sub(since) >= Duration::from_millis(500) {
                ends.push((phase.clone(), event.at, observe_run(run, &terminal, event.at).why_no_text()));
            }
            (phase, since) = (next.to_owned(), event.at);
        });
        played.unwrap_or_else(|failure| panic!("{failure}"));
        ends
    }

    /// The agents that have screen rules. In recordings of line programs, a text answers most dialogs.
    const AGENTS: [&str; 6] = ["aider", "claude", "codex", "gemini", "opencode", "qwen"];
    /// At the end of one dialog of each, the detector already sees the prompt that follows.
    const ALREADY_OVER: [&str; 3] = ["claude-model-menu", "claude-views", "gemini-reader"];

    #[test]
    fn in_recordings_every_idle_prompt_of_an_agent_takes_text_and_no_dialog_does() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings/states");
        let files = std::fs::read_dir(dir).expect("recordings").map(|entry| entry.expect("a file").path());
        let (mut idle, mut dialogs, mut wrong) = (0, 0, Vec::new());
        for path in files.filter(|path| path.extension().is_some_and(|ext| ext == "cast")) {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            if !AGENTS.iter().any(|agent| name.starts_with(agent)) {
                continue;
            }
            for (phase, at, why_not) in ends_of_waits(&path) {
                let is_idle = matches!(phase.as_str(), "idle" | "finished");
                let is_dialog = phase == "permission" || phase.starts_with("dialog");
                idle += usize::from(is_idle);
                dialogs += usize::from(is_dialog);
                let is_missed = is_dialog && why_not.is_none() && !ALREADY_OVER.contains(&name.as_str());
                if is_idle && why_not.is_some() || is_missed {
                    wrong.push(format!("{name} {phase} until {at:?}: {why_not:?}"));
                }
            }
        }
        assert!(idle > 50 && dialogs > 50, "{idle} idle prompts, {dialogs} dialogs");
        assert!(wrong.is_empty(), "of {idle} and {dialogs}:\n{}", wrong.join("\n"));
    }
}
