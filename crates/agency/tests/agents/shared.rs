//! Steps that Claude Code and Codex share on a terminal.

use serde_json::Value;

use crate::scene::{Agent, Scene, is_waiting};

/// While the agent asks for trust (a dialog that this rule recognizes and that shows this text), Agency sends nothing; after
/// the answer, the agent takes a message.
#[track_caller]
pub fn check_trust_dialog(scene: &Scene, rule: &str, text: &str) {
    let explained = scene.explain();
    assert_eq!(explained["state"]["rule"], rule, "{explained}");
    let receipt = scene.send("hello");
    assert_eq!(receipt.kind, "refused", "{receipt:?}");
    assert!(receipt.screen.contains(text), "{receipt:?}");
    assert!(is_waiting(&scene.task(), "question"), "nothing was typed into the dialog");

    scene.trust();
    scene.wait_waiting("prompt");
    scene.deliver("hello");
    scene.wait_waiting("finished");
    scene.wait_model_got("hello");
}

/// An agent that the user interrupts after it has drawn this line waits, and takes the next prompt.
#[track_caller]
pub fn check_interrupt(agent: Agent, line: &str) {
    let scene = Scene::at_prompt(agent);
    scene.deliver("<<say I have begun.>> <<hold for ever>>");
    scene.wait_running();
    scene.wait_shown(line);
    scene.keys("escape");
    scene.wait_waiting("prompt");
    scene.deliver("hello");
    scene.wait_waiting("finished");
    scene.wait_model_got("hello");
}

/// An error of the model's service is a reason to wait, and the agent takes the next prompt. Returns the task during the
/// error.
#[track_caller]
pub fn check_service_error(agent: Agent) -> Value {
    let scene = Scene::at_prompt(agent);
    scene.deliver("<<error 400>>");
    let task = scene.wait_waiting("error");
    scene.deliver("hello");
    scene.wait_waiting("finished");
    task
}
