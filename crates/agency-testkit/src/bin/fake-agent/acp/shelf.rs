//! Sessions that outlive their process: lines in a file that every process adds to.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::held;

pub(super) struct Shelf {
    path: Option<PathBuf>,
    /// What stands in the file, or would.
    lines: Mutex<Vec<Value>>,
}

impl Shelf {
    pub(super) fn open() -> Shelf {
        let path = std::env::var_os("FAKE_AGENT_SESSIONS").map(PathBuf::from);
        let text = path.as_ref().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Shelf { path, lines: Mutex::new(lines) }
    }

    pub(super) fn add(&self, session: &str, cwd: &str) {
        self.put(json!({ "session": session, "cwd": cwd }));
    }

    pub(super) fn said(&self, session: &str, kind: &str, text: &str) {
        self.put(json!({ "session": session, "kind": kind, "text": text }));
    }

    /// What was said in a session, if there is such a one.
    pub(super) fn get(&self, session: &str) -> Option<Vec<(String, String)>> {
        let lines = held(&self.lines);
        let of_it: Vec<&Value> = lines.iter().filter(|line| line["session"] == session).collect();
        let said =
            |line: &&Value| Some((line["kind"].as_str()?.to_owned(), line["text"].as_str()?.to_owned()));
        (!of_it.is_empty()).then(|| of_it.iter().filter_map(said).collect())
    }

    pub(super) fn list(&self) -> Vec<Value> {
        let lines = held(&self.lines);
        let named = lines.iter().filter(|line| line["cwd"].is_string());
        named.map(|line| json!({ "sessionId": line["session"], "cwd": line["cwd"] })).collect()
    }

    fn put(&self, line: Value) {
        if let Some(path) = &self.path {
            let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
            if let Err(err) = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())) {
                eprintln!("fake-agent: {}: {err}", path.display());
            }
        }
        held(&self.lines).push(line);
    }
}
