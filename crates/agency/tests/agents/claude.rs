//! Claude Code on a terminal, from its start to its end: its questions, and the states that Agency shows.

use std::fs;

use crate::scene::{Agent, Scene, is_waiting};
use crate::shared::{check_interrupt, check_service_error, check_trust_dialog};

#[test]
fn claude_gets_no_message_before_it_is_trusted() {
    let scene = Scene::new(Agent::Claude);
    scene.new_task();
    scene.wait("needs-input");
    let task = scene.wait_waiting("question");
    assert!(
        task["evidence"]["detail"].as_str().is_some_and(|detail| detail.contains("worktrees/1-x")),
        "{task}"
    );
    let explained = scene.explain();
    assert_eq!(explained["state"]["source"], "screen", "{explained}");
    check_trust_dialog(&scene, "claude-trust", "Yes, I trust this folder");
}

#[test]
fn claude_asks_for_permission_and_continues_when_it_is_given() {
    let scene = Scene::at_prompt(Agent::Claude);
    scene.deliver("<<bash touch made>> <<hold after>> <<say It is made.>>");
    let task = scene.wait_waiting("permission");
    assert!(
        task["evidence"]["detail"].as_str().is_some_and(|detail| detail.contains("touch made")),
        "{task}"
    );
    assert_eq!(scene.run(&["next"]).ok(), "1 x running\n");
    let receipt = scene.send("go on");
    assert_eq!(receipt.kind, "refused", "{receipt:?}");
    assert!(receipt.screen.contains("touch made"), "{receipt:?}");
    assert!(is_waiting(&scene.task(), "permission"), "nothing was typed into the dialog");

    scene.keys("1");
    scene.wait("running");
    scene.wait_running();
    scene.model.release("after");
    scene.wait_waiting("finished");
    assert!(scene.is_made());
    let history = scene.history();
    let expected =
        ["running status", "needs_input permission status", "running status", "needs_input finished status"];
    assert!(history.ends_with(&expected.map(str::to_owned)), "{history:#?}");
}

#[test]
fn claude_waits_after_a_denial() {
    let scene = Scene::at_prompt(Agent::Claude);
    scene.deliver("<<bash touch made>> <<say never said>>");
    scene.wait_waiting("permission");
    scene.keys("escape");
    scene.wait_waiting("prompt");
    assert!(!scene.is_made());
    scene.deliver("hello");
    scene.wait_waiting("finished");
}

#[test]
fn an_interrupted_claude_waits_and_takes_the_next_prompt() {
    check_interrupt(Agent::Claude, "● I have begun.");
}

#[test]
fn an_error_of_claudes_service_is_a_reason_to_wait() {
    let task = check_service_error(Agent::Claude);
    assert!(task["evidence"]["detail"].as_str().is_some_and(|detail| detail.contains("400")), "{task}");
}

#[test]
fn the_hooks_of_claude_report_and_change_no_settings_of_the_user() {
    let scene = Scene::new(Agent::Claude);
    let mine = "{\n  \"hooks\": {},\n  \"env\": { \"MINE\": \"1\" }\n}\n";
    scene.write_home(".claude/settings.json", mine);
    scene.new_task();
    scene.wait_waiting("question");
    scene.trust();
    scene.wait_waiting("prompt");
    scene.deliver("<<bash touch made>>");
    scene.wait_waiting("permission");
    scene.keys("1");
    scene.wait_waiting("finished");
    scene.deliver("<<error 400>>");
    scene.wait_waiting("error");
    let run = scene.task()["run"].as_str().expect("a live run").to_owned();
    scene.run(&["stop", "x"]).ok();

    let hooks = scene.hooks(&run);
    let turn = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "Stop"];
    assert!(hooks.starts_with(&turn.map(str::to_owned)), "{hooks:?}");
    assert!(hooks.iter().any(|hook| hook == "StopFailure"), "{hooks:?}");
    let settings =
        fs::read_to_string(scene.home().join(".claude/settings.json")).expect("the file still exists");
    assert_eq!(settings, mine);
    let state = fs::read_to_string(scene.home().join(".claude.json")).expect("the file still exists");
    assert!(!state.contains("agency-keeper"), "{state}");
    assert!(!scene.repo().join(".agency/worktrees/1-x/.claude").exists());
}
