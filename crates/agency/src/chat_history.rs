//! The messages that a user has typed in the chats of a project, for the Up key.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use agency_api::paths::{StateDir, create_private, project_id};

/// Older messages are forgotten.
const MOST_MESSAGES: usize = 500;

/// The file of earlier messages: one JSON string per line, the oldest first.
#[derive(Debug)]
pub(crate) struct ChatHistory {
    path: PathBuf,
    messages: Vec<String>,
}

impl ChatHistory {
    /// The history of a project. Empty if the file cannot be read.
    pub(crate) fn open(state: &StateDir, project: &Path) -> ChatHistory {
        let path = state.project(&project_id(project)).join("chat-history.jsonl");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let messages: Vec<String> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let mut history = ChatHistory { path, messages };
        let surplus = history.messages.len().saturating_sub(MOST_MESSAGES);
        // Not at every message: a file of twice the length is still short.
        if surplus > MOST_MESSAGES {
            history.messages.drain(..surplus);
            history.rewrite().ok();
        }
        history
    }

    pub(crate) fn messages(&self) -> &[String] {
        &self.messages[self.messages.len().saturating_sub(MOST_MESSAGES)..]
    }

    /// Adds a message, unless it repeats the last one.
    pub(crate) fn add(&mut self, message: &str) -> io::Result<()> {
        if message.trim().is_empty() || self.messages.last().is_some_and(|last| last == message) {
            return Ok(());
        }
        self.messages.push(message.to_owned());
        self.path.parent().map_or(Ok(()), create_private)?;
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path);
        file?.write_all(line(message).as_bytes())
    }

    fn rewrite(&self) -> io::Result<()> {
        let text: String = self.messages.iter().map(|message| line(message)).collect();
        let new = self.path.with_extension("new");
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new);
        file?.write_all(text.as_bytes())?;
        std::fs::rename(&new, &self.path)
    }
}

fn line(message: &str) -> String {
    format!("{}\n", serde_json::Value::from(message))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn messages_are_kept_for_each_project_privately_and_without_repetitions() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::at(home.path().join("state"));
        let (one, other) = (home.path().join("one"), home.path().join("other"));
        let mut history = ChatHistory::open(&state, &one);
        for message in ["first", "two\nlines", "two\nlines", " "] {
            history.add(message).unwrap();
        }
        assert_eq!(ChatHistory::open(&state, &one).messages(), ["first", "two\nlines"]);
        assert!(ChatHistory::open(&state, &other).messages().is_empty());
        assert_eq!(std::fs::metadata(&history.path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&history.path, "not JSON\n\"kept\"\n").unwrap();
        assert_eq!(ChatHistory::open(&state, &one).messages(), ["kept"]);
    }

    #[test]
    fn a_long_history_loses_its_oldest_messages() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDir::at(home.path().join("state"));
        let mut history = ChatHistory::open(&state, home.path());
        (0..2 * MOST_MESSAGES + 10).for_each(|number| history.add(&number.to_string()).unwrap());
        let again = ChatHistory::open(&state, home.path());
        assert_eq!((again.messages().len(), again.messages()[0].as_str()), (MOST_MESSAGES, "510"));
        let lines = std::fs::read_to_string(&history.path).unwrap().lines().count();
        assert_eq!(lines, MOST_MESSAGES);
    }
}
