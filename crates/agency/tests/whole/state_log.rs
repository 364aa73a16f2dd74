//! What was told of a task's state: now, and in the order of its log.

use serde_json::Value;

use crate::stage::Stage;

/// Only evidence decides: silence would take an hour.
pub const NO_SILENCE: &str = "needs_input_timeout = \"1h\"\nstale_timeout = \"1h\"\n";

/// The log of a run's states as it lies on disk, every line of it.
pub fn log_of(stage: &Stage, run: &str) -> Vec<Value> {
    let path = stage.state().join("r").join(run).join("states.jsonl");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|err| panic!("{err}: {line}")))
        .collect()
}

#[track_caller]
pub fn log(stage: &Stage, slug: &str) -> Vec<Value> {
    log_of(stage, &stage.keeper(slug).run)
}

/// `needs_input question (kernel)`: a state, for what, and who says so.
pub fn words(change: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let source = word(change.pointer("/evidence/source").unwrap_or(&change["source"]));
    match change["why"].as_str() {
        Some(why) => format!("{} {why} ({source})", word(&change["state"])),
        None => format!("{} ({source})", word(&change["state"])),
    }
}

/// The task as it is shown, in the same words.
pub fn now(task: &Value) -> String {
    let state = &task["state"];
    words(&serde_json::json!({ "state": state["state"], "why": state["why"], "evidence": task["evidence"] }))
}

impl Stage {
    /// Waits until the task's state is told in these words, and returns the task.
    #[track_caller]
    pub fn wait_told(&self, slug: &str, words: &str) -> Value {
        self.wait_task(slug, words, |task| now(task) == words)
    }
}
