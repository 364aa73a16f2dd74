//! Codex from its start to its end: what it asks, what it is told, and what Agency says of it meanwhile.

use crate::scene::{Agent, SOON, Scene, is_waiting};

/// Outside of its own sandbox, which it must ask for.
const ASK: &str = r#"<<tool exec_command {"cmd":"touch made","sandbox_permissions":"require_escalated","justification":"May I make it?"}>>"#;

#[test]
fn codex_asks_for_trust_before_anything_can_be_sent() {
    let scene = Scene::new(Agent::Codex);
    scene.new_task();
    scene.wait("needs-input");
    scene.wait_waiting("question");
    let explained = scene.explain();
    assert_eq!(explained["state"]["rule"], "codex-trust", "{explained}");
    let receipt = scene.send("hello");
    assert_eq!(receipt.kind, "refused", "{receipt:?}");
    assert!(receipt.screen.contains("Trust and continue"), "{receipt:?}");
    assert!(is_waiting(&scene.task(), "question"), "nothing was typed into the dialog");

    scene.trust();
    scene.wait_waiting("prompt");
    scene.deliver("hello");
    scene.wait_waiting("finished");
    scene.wait_told("hello");
}

#[test]
fn codex_asks_for_permission_and_goes_on_when_it_is_given() {
    let scene = Scene::at_prompt(Agent::Codex);
    scene.deliver(&format!("{ASK} <<hold after>> <<say It is made.>>"));
    scene.wait_waiting("permission");
    let receipt = scene.send("go on");
    assert_eq!(receipt.kind, "refused", "{receipt:?}");
    assert!(receipt.screen.contains("touch made"), "{receipt:?}");

    scene.keys("y");
    scene.wait("running");
    scene.model.open("after");
    scene.wait_waiting("finished");
    assert!(scene.repo().join(".agency/worktrees/1-x/made").exists());
}

#[test]
fn codex_that_is_interrupted_waits_and_takes_the_next_prompt() {
    let scene = Scene::at_prompt(Agent::Codex);
    scene.deliver("<<say I have begun.>> <<hold for ever>>");
    scene.wait_running();
    scene.wait_shown("• I have begun.");
    scene.keys("escape");
    scene.wait_waiting("prompt");
    scene.deliver("hello");
    scene.wait_waiting("finished");
    scene.wait_told("hello");
}

#[test]
fn an_error_of_codexs_service_is_something_to_look_at() {
    let scene = Scene::at_prompt(Agent::Codex);
    scene.deliver("<<error 400>>");
    scene.wait_waiting("error");
    scene.deliver("hello");
    scene.wait_waiting("finished");
}

#[test]
fn nothing_of_codex_outlives_its_task() {
    let scene = Scene::at_prompt(Agent::Codex);
    scene.deliver("hello");
    scene.wait_waiting("finished");
    scene.run(&["stop", "x"]).ok();
    let is_codex = |process: &agency_testkit::Process| process.name().starts_with("codex");
    scene.eventually("the end of all of codex", SOON, || {
        (!scene.processes().iter().any(is_codex)).then_some(())
    });
}
