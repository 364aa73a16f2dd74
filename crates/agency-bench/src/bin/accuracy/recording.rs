//! A recording with its true phases and the times of its output.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::label::Label;

/// A recording whose name begins with one of these is of that program; the others are of small line programs.
const PROGRAMS: [&str; 7] = ["claude", "codex", "opencode", "gemini", "qwen", "aider", "shell"];
const OTHERS: &str = "line programs";

pub struct Recording {
    pub path: PathBuf,
    pub name: String,
    pub program: &'static str,
    pub phases: Vec<Phase>,
    /// The times at which the program wrote.
    pub outputs: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    pub name: String,
    pub kind: Kind,
    pub begin: f64,
    pub end: f64,
    /// The program did the same in the phase before (typing aside), so there is no change to detect.
    pub goes_on: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Waiting,
    Working,
    Startup,
    Unjudged,
}

impl Recording {
    pub fn read(path: &Path, labels: &[Label]) -> Result<Recording, String> {
        let text = fs::read_to_string(path).map_err(|err| format!("{}: {err}", path.display()))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (mut markers, mut outputs, mut end) = (Vec::new(), Vec::new(), 0.0);
        for line in text.lines().skip(1).filter(|line| !line.trim().is_empty()) {
            let event: Value =
                serde_json::from_str(line).map_err(|err| format!("{}: {err}", path.display()))?;
            let (at, data) = (event[0].as_f64().unwrap_or(end), event[2].as_str().unwrap_or_default());
            match event[1].as_str() {
                Some("o") if !data.is_empty() => outputs.push(at),
                Some("m") => markers.extend(marker(data).map(|phase| (at, phase))),
                _ => {}
            }
            end = at;
        }
        let labels = labels.iter().filter(|label| label.recording == name);
        markers.extend(labels.map(|label| (label.at, label.phase.clone())));
        markers.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let program = PROGRAMS.into_iter().find(|program| name.starts_with(program)).unwrap_or(OTHERS);
        Ok(Recording { path: path.to_owned(), name, program, phases: phases(&markers, end), outputs })
    }
}

/// The phase that a marker begins. Markers about the recorder begin none, except the end of the program.
fn marker(text: &str) -> Option<String> {
    match text.strip_prefix("phase:") {
        Some(phase) => Some(phase.to_owned()),
        None if text == "end" || text.starts_with("DIED") => Some("end".to_owned()),
        None => None,
    }
}

fn phases(markers: &[(f64, String)], end: f64) -> Vec<Phase> {
    let ends = markers.iter().skip(1).map(|(at, _)| *at).chain([end]);
    let (mut phases, mut before) = (Vec::new(), None);
    for ((begin, name), end) in markers.iter().zip(ends) {
        let kind = kind(name);
        let goes_on = before == Some(kind);
        phases.push(Phase { name: name.clone(), kind, begin: *begin, end, goes_on });
        before = if name == "typing" { before } else { Some(kind) };
    }
    phases
}

fn kind(name: &str) -> Kind {
    match name {
        "idle" | "permission" | "finished" => Kind::Waiting,
        _ if name.starts_with("dialog") => Kind::Waiting,
        _ if name.starts_with("working") => Kind::Working,
        _ if name.starts_with("startup") => Kind::Startup,
        _ => Kind::Unjudged,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_lasts_until_the_next_marker() {
        let markers =
            [(0.0, "startup"), (1.0, "dialog_trust"), (3.0, "typing"), (4.0, "idle"), (9.0, "working_model")];
        let markers = markers.map(|(at, name)| (at, name.to_owned()));
        let phases = phases(&markers, 12.0);
        let seen: Vec<_> = phases.iter().map(|phase| (phase.kind, phase.end, phase.goes_on)).collect();
        assert_eq!(
            seen,
            [
                (Kind::Startup, 1.0, false),
                (Kind::Waiting, 3.0, false),
                (Kind::Unjudged, 4.0, false),
                (Kind::Waiting, 9.0, true),
                (Kind::Working, 12.0, false),
            ]
        );
    }

    #[test]
    fn markers_of_the_recorder_are_no_phases() {
        assert_eq!(marker("phase:idle").as_deref(), Some("idle"));
        assert_eq!(marker("DIED before it ended").as_deref(), Some("end"));
        assert_eq!(marker("TIMEOUT wait for a prompt"), None);
    }
}
