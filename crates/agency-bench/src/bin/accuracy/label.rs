//! Markers that are missing in a recording, each with a reason.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// From `at` on, the recording is in this phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    pub recording: String,
    pub at: f64,
    /// `unjudged` if the true phase is not known.
    pub phase: String,
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    label: Vec<Label>,
}

/// Empty if the file does not exist.
pub fn read(path: &Path) -> Result<Vec<Label>, String> {
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).map_err(|err| format!("{}: {err}", path.display()))?;
    let file: File = toml_edit::de::from_str(&text).map_err(|err| format!("{}: {err}", path.display()))?;
    Ok(file.label)
}
