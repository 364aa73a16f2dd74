//! A filter for tasks that a user types: `label:api` or `agent:codex,state:needs_input`.
//!
//! Terms with commas between them must all fit. There is no term for everything.

use std::fmt;
use std::str::FromStr;

use agency_api::view::Task;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskFilter {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    key: Key,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Label,
    Agent,
    Status,
    State,
}

impl Key {
    const ALL: [Key; 4] = [Key::Label, Key::Agent, Key::Status, Key::State];

    fn as_str(self) -> &'static str {
        match self {
            Key::Label => "label",
            Key::Agent => "agent",
            Key::Status => "status",
            Key::State => "state",
        }
    }
}

impl TaskFilter {
    pub(crate) fn fits(&self, task: &Task) -> bool {
        self.terms.iter().all(|term| term.fits(task))
    }
}

impl Term {
    fn fits(&self, task: &Task) -> bool {
        // Users type the words that `--json` prints.
        let is_word =
            |word: Result<Value, serde_json::Error>| word.is_ok_and(|word| word == self.value.as_str());
        match self.key {
            Key::Label => task.labels.contains(&self.value),
            Key::Agent => task.agent == self.value || task.agent_name == self.value,
            Key::Status => is_word(serde_json::to_value(task.status)),
            Key::State => is_word(serde_json::to_value(task.workspace_status)),
        }
    }
}

impl FromStr for TaskFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<TaskFilter, String> {
        let terms: Result<Vec<Term>, String> = text.split(',').map(parse_term).collect();
        Ok(TaskFilter { terms: terms? })
    }
}

fn parse_term(text: &str) -> Result<Term, String> {
    let wrong = || format!("`{text}` is not a filter: try label:NAME, agent:NAME, status:NAME or state:NAME");
    let (key, value) = text.trim().split_once(':').ok_or_else(wrong)?;
    let key = Key::ALL.into_iter().find(|known| known.as_str() == key).ok_or_else(wrong)?;
    match value.is_empty() {
        true => Err(wrong()),
        false => Ok(Term { key, value: value.to_owned() }),
    }
}

impl fmt::Display for TaskFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let terms: Vec<String> =
            self.terms.iter().map(|term| format!("{}:{}", term.key.as_str(), term.value)).collect();
        f.write_str(&terms.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_read_and_shown_and_nothing_means_everything() {
        let filter: TaskFilter = "label:api, state:needs_input".parse().expect("a filter");
        assert_eq!(filter.to_string(), "label:api,state:needs_input");
        for wrong in ["", "*", "all", "api", "label:", "colour:red", "label:api,"] {
            assert!(wrong.parse::<TaskFilter>().is_err(), "{wrong}");
        }
    }
}
