//! Messages to an agent that works.

use crate::scene::{Agent, Scene};

fn at_work(agent: Agent) -> Scene {
    let scene = Scene::at_prompt(agent);
    scene.deliver("<<say I have begun.>> <<hold on>>");
    scene.wait_running();
    scene
}

/// The agent keeps the message, and takes it after its work.
fn check_agent_keeps(agent: Agent) {
    let scene = at_work(agent);
    let receipt = scene.send("and this too");
    assert_ne!(receipt.kind, "refused", "{receipt:?}");
    scene.model.release("on");
    scene.wait_model_got("and this too");
    scene.wait_waiting("finished");
}

/// Agency queues the message, and types it at the prompt.
fn check_queued(agent: Agent) {
    let scene = at_work(agent);
    let receipt = scene.send_with("and this too", &["--queue"]);
    assert_eq!(receipt.kind, "queued", "{receipt:?}");
    assert_eq!(scene.send_with("taken back", &["--queue"]).kind, "queued");
    let queue = scene.run(&["queue", "x"]).ok();
    assert!(queue.contains("and this too") && queue.contains("taken back"), "{queue}");
    scene.run(&["queue", "drop", "x", "2"]).ok();
    assert!(!scene.model.got("and this too"));
    scene.model.release("on");
    scene.wait_model_got("and this too");
    scene.wait_waiting("finished");
    assert!(!scene.model.got("taken back"));
}

/// Claude Code restores a prompt that the user interrupts before the first word of the answer.
#[test]
fn nothing_is_added_to_a_text_at_claudes_prompt() {
    let scene = Scene::at_prompt(Agent::Claude);
    scene.deliver("<<hold for ever>>");
    scene.keys("escape");
    scene.wait_waiting("prompt");
    scene.wait_shown("❯\u{a0}<<hold for ever>>");
    let receipt = scene.send("hello");
    assert_eq!(receipt.kind, "refused", "{receipt:?}");
    scene.keys("ctrl-u");
    scene.wait_shown("❯\u{a0}\n");
    scene.deliver("hello");
    scene.wait_model_got("hello");
}

#[test]
fn claude_takes_a_message_after_its_work() {
    check_agent_keeps(Agent::Claude);
}

#[test]
fn codex_takes_a_message_after_its_work() {
    check_agent_keeps(Agent::Codex);
}

#[test]
fn a_queued_message_reaches_claude_at_its_prompt() {
    check_queued(Agent::Claude);
}

#[test]
fn a_queued_message_reaches_codex_at_its_prompt() {
    check_queued(Agent::Codex);
}
