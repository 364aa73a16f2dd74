//! Helpers for states: the current one, and the log of a run.

use serde_json::Value;

use crate::stage::Stage;

/// Timeouts of an hour, so that silence never decides.
pub const NO_SILENCE: &str = "needs_input_timeout = \"1h\"\nstale_timeout = \"1h\"\n";

/// All lines of the state log of a run.
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

/// `needs_input question (kernel)`: a state, its reason and its source.
pub fn describe(change: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let source = word(change.pointer("/evidence/source").unwrap_or(&change["source"]));
    match change["why"].as_str() {
        Some(why) => format!("{} {why} ({source})", word(&change["state"])),
        None => format!("{} ({source})", word(&change["state"])),
    }
}

/// The current state of a task, in the same form.
pub fn now(task: &Value) -> String {
    let state = &task["state"];
    describe(
        &serde_json::json!({ "state": state["state"], "why": state["why"], "evidence": task["evidence"] }),
    )
}

impl Stage {
    /// Waits until the task has this state, in the form of `describe`, and returns the task.
    #[track_caller]
    pub fn wait_state(&self, slug: &str, state: &str) -> Value {
        self.wait_task(slug, state, |task| now(task) == state)
    }
}
