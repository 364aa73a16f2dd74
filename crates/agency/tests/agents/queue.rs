//! What is sent while an agent works.

use crate::scene::{Agent, Scene};

fn works_on(agent: Agent) -> Scene {
    let scene = Scene::at_prompt(agent);
    scene.deliver("<<say I have begun.>> <<hold on>>");
    scene.wait_running();
    scene
}

/// The agent keeps it, and takes it after what it does.
fn is_kept_by(agent: Agent) {
    let scene = works_on(agent);
    let receipt = scene.send("and this too");
    assert_ne!(receipt.kind, "refused", "{receipt:?}");
    scene.model.open("on");
    scene.wait_told("and this too");
    scene.wait_waiting("finished");
}

/// Agency keeps it, and types it at the prompt.
fn is_queued_for(agent: Agent) {
    let scene = works_on(agent);
    let receipt = scene.send_with("and this too", &["--queue"]);
    assert_eq!(receipt.kind, "queued", "{receipt:?}");
    assert_eq!(scene.send_with("taken back", &["--queue"]).kind, "queued");
    let queue = scene.run(&["queue", "x"]).ok();
    assert!(queue.contains("and this too") && queue.contains("taken back"), "{queue}");
    scene.run(&["queue", "drop", "x", "2"]).ok();
    assert!(!scene.model.was_told("and this too"));
    scene.model.open("on");
    scene.wait_told("and this too");
    scene.wait_waiting("finished");
    assert!(!scene.model.was_told("taken back"));
}

/// Claude Code puts a prompt back that is interrupted before its first word.
#[test]
fn nothing_is_added_to_what_stands_at_claudes_prompt() {
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
    scene.wait_told("hello");
}

#[test]
fn what_is_sent_while_claude_works_is_taken_after_it() {
    is_kept_by(Agent::Claude);
}

#[test]
fn what_is_sent_while_codex_works_is_taken_after_it() {
    is_kept_by(Agent::Codex);
}

#[test]
fn what_is_queued_for_claude_comes_at_its_prompt() {
    is_queued_for(Agent::Claude);
}

#[test]
fn what_is_queued_for_codex_comes_at_its_prompt() {
    is_queued_for(Agent::Codex);
}
