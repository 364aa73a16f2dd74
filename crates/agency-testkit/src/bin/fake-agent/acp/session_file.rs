//! Sessions that outlive their process: lines of a file to which every process appends.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::{Value, json};

use super::lock;

pub(super) struct SessionFile {
    path: Option<PathBuf>,
    /// The content of the file; without a file, only in memory.
    lines: Mutex<Vec<Value>>,
}

impl SessionFile {
    pub(super) fn open() -> SessionFile {
        let path = std::env::var_os("FAKE_AGENT_SESSIONS").map(PathBuf::from);
        let text = path.as_ref().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        SessionFile { path, lines: Mutex::new(lines) }
    }

    pub(super) fn add(&self, session: &str, cwd: &str) {
        self.append(json!({ "session": session, "cwd": cwd }));
    }

    pub(super) fn add_message(&self, session: &str, kind: &str, text: &str) {
        self.append(json!({ "session": session, "kind": kind, "text": text }));
    }

    /// Kind and text of the messages of a session, or `None` if the session does not exist.
    pub(super) fn messages_of(&self, session: &str) -> Option<Vec<(String, String)>> {
        let lines = lock(&self.lines);
        let of_it: Vec<&Value> = lines.iter().filter(|line| line["session"] == session).collect();
        let message =
            |line: &&Value| Some((line["kind"].as_str()?.to_owned(), line["text"].as_str()?.to_owned()));
        (!of_it.is_empty()).then(|| of_it.iter().filter_map(message).collect())
    }

    pub(super) fn list(&self) -> Vec<Value> {
        let lines = lock(&self.lines);
        let named = lines.iter().filter(|line| line["cwd"].is_string());
        named.map(|line| json!({ "sessionId": line["session"], "cwd": line["cwd"] })).collect()
    }

    fn append(&self, line: Value) {
        if let Some(path) = &self.path {
            let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
            if let Err(err) = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes())) {
                eprintln!("fake-agent: {}: {err}", path.display());
            }
        }
        lock(&self.lines).push(line);
    }
}
