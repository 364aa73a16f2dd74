//! Replays a recording with the built program, so that the measurement is of what users run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use agency_testkit::Binaries;
use serde_json::Value;
use tempfile::TempDir;

use crate::knowledge::Knowledge;
use crate::timeline::{StateReport, Timeline};

/// The beginning of a status report.
const REPORT: &str = "\x1b]7501;";

/// Runs `agency replay` with a private configuration for one kind of knowledge.
pub struct Replayer {
    knowledge: Knowledge,
    agency: PathBuf,
    home: TempDir,
}

impl Replayer {
    pub fn new(knowledge: Knowledge, rules: &Path) -> Result<Replayer, String> {
        let home = tempfile::tempdir().map_err(|err| format!("no scratch directory: {err}"))?;
        let replayer = Replayer { knowledge, agency: Binaries::agency(), home };
        let dir = replayer.home.path().join("agency/rules");
        let overrides = knowledge.overrides(rules)?;
        let written = fs::create_dir_all(&dir).and_then(|()| fs::write(dir.join("off.toml"), overrides));
        written.map_err(|err| format!("{}: {err}", dir.display()))?;
        Ok(replayer)
    }

    pub fn states(&self, recording: &Path) -> Result<Timeline, String> {
        let recording = match self.knowledge {
            Knowledge::Nothing => self.without_reports(recording),
            _ => Ok(recording.to_owned()),
        };
        let recording = recording.map_err(|err| format!("cannot prepare a recording: {err}"))?;
        let mut agency = Command::new(&self.agency);
        agency.args(["replay", "--states", "--json"]).arg(&recording);
        agency.env("XDG_CONFIG_HOME", self.home.path()).env("HOME", self.home.path());
        let output = agency.output().map_err(|err| format!("{}: {err}", self.agency.display()))?;
        if !output.status.success() || !output.stderr.is_empty() {
            return Err(format!(
                "{}: {}",
                recording.display(),
                String::from_utf8_lossy(&output.stderr).trim()
            ));
        }
        let report =
            |line: &str| serde_json::from_str::<StateReport>(line).map_err(|err| format!("{line}: {err}"));
        Ok(Timeline(String::from_utf8_lossy(&output.stdout).lines().map(report).collect::<Result<_, _>>()?))
    }

    /// Writes a copy without the program's own status reports.
    fn without_reports(&self, recording: &Path) -> io::Result<PathBuf> {
        let copy = self.home.path().join(recording.file_name().unwrap_or_default());
        let text = fs::read_to_string(recording)?;
        let lines: Vec<String> = text.lines().map(without_reports).collect();
        fs::write(&copy, lines.join("\n") + "\n")?;
        let beside = recording.with_extension("proc.jsonl");
        if beside.is_file() {
            fs::copy(beside, copy.with_extension("proc.jsonl"))?;
        }
        Ok(copy)
    }
}

/// Lines without a complete report stay as they are.
fn without_reports(line: &str) -> String {
    let Ok(mut event) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
    let Some(mut data) = event[2].as_str().filter(|_| event[1] == "o").map(str::to_owned) else {
        return line.to_owned();
    };
    while let Some(begin) = data.find(REPORT) {
        let rest = &data[begin + REPORT.len()..];
        let Some(len) = rest.find(['\x07', '\x1b']) else { break };
        let end = len + if rest[len..].starts_with("\x1b\\") { 2 } else { 1 };
        data.replace_range(begin..begin + REPORT.len() + end, "");
    }
    event[2] = data.into();
    event.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reports_are_removed() {
        let line = r#"[1.5,"o","a\u001b]7501;state=idle\u0007b\u001b]7501;done\u001b\\c\u001b]0;t\u0007"]"#;
        assert_eq!(without_reports(line), r#"[1.5,"o","abc\u001b]0;t\u0007"]"#);
        assert_eq!(without_reports(r#"{"version": 2}"#), r#"{"version": 2}"#);
    }
}
