//! Codex on a terminal, from its start to its end: its questions, and the states that Agency shows.

use crate::scene::{Agent, SOON, Scene};
use crate::shared::{check_interrupt, check_service_error, check_trust_dialog};

/// A command outside of Codex's own sandbox, for which it must ask.
const ASK: &str = r#"<<tool exec_command {"cmd":"touch made","sandbox_permissions":"require_escalated","justification":"May I make it?"}>>"#;

#[test]
fn codex_gets_no_message_before_it_is_trusted() {
    let scene = Scene::new(Agent::Codex);
    scene.new_task();
    scene.wait("needs-input");
    scene.wait_waiting("question");
    check_trust_dialog(&scene, "codex-trust", "Trust and continue");
}

#[test]
fn codex_asks_for_permission_and_continues_when_it_is_given() {
    let scene = Scene::at_prompt(Agent::Codex);
    scene.deliver(&format!("{ASK} <<hold after>> <<say It is made.>>"));
    scene.wait_waiting("permission");
    let receipt = scene.send("go on");
    assert_eq!(receipt.kind, "refused", "{receipt:?}");
    assert!(receipt.screen.contains("touch made"), "{receipt:?}");

    scene.keys("y");
    scene.wait("running");
    scene.model.release("after");
    scene.wait_waiting("finished");
    assert!(scene.is_made());
}

#[test]
fn an_interrupted_codex_waits_and_takes_the_next_prompt() {
    check_interrupt(Agent::Codex, "• I have begun.");
}

#[test]
fn an_error_of_codexs_service_is_a_reason_to_wait() {
    check_service_error(Agent::Codex);
}

#[test]
fn no_process_of_codex_outlives_its_task() {
    let scene = Scene::at_prompt(Agent::Codex);
    scene.deliver("hello");
    scene.wait_waiting("finished");
    scene.run(&["stop", "x"]).ok();
    let is_codex = |process: &agency_testkit::Process| process.name().starts_with("codex");
    scene.eventually("the end of all of codex", SOON, || {
        (!scene.processes().iter().any(is_codex)).then_some(())
    });
}
