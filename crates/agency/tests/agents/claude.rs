//! Claude Code from its start to its end: what it asks, what it is told, and what Agency says of it meanwhile.

use std::fs;

use crate::scene::{Agent, Scene, is_waiting};

#[test]
fn claude_asks_for_trust_before_anything_can_be_sent() {
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
    assert_eq!(explained["state"]["rule"], "claude-trust", "{explained}");

    let receipt = scene.send("hello");
    assert_eq!(receipt.kind, "refused", "{receipt:?}");
    assert!(receipt.screen.contains("Yes, I trust this folder"), "{receipt:?}");
    assert!(is_waiting(&scene.task(), "question"), "nothing was typed into the dialog");

    scene.trust();
    scene.wait_waiting("prompt");
    scene.deliver("hello");
    scene.wait_waiting("finished");
    scene.wait_told("hello");
}

#[test]
fn claude_asks_for_permission_and_goes_on_when_it_is_given() {
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
    scene.model.open("after");
    scene.wait_waiting("finished");
    assert!(scene.repo().join(".agency/worktrees/1-x/made").exists());
    let history = scene.history();
    let told =
        ["running status", "needs_input permission status", "running status", "needs_input finished status"];
    assert!(history.ends_with(&told.map(str::to_owned)), "{history:#?}");
}

#[test]
fn claude_that_is_denied_waits_for_another_word() {
    let scene = Scene::at_prompt(Agent::Claude);
    scene.deliver("<<bash touch made>> <<say never said>>");
    scene.wait_waiting("permission");
    scene.keys("escape");
    scene.wait_waiting("prompt");
    assert!(!scene.repo().join(".agency/worktrees/1-x/made").exists());
    scene.deliver("hello");
    scene.wait_waiting("finished");
}

#[test]
fn claude_that_is_interrupted_waits_and_takes_the_next_prompt() {
    let scene = Scene::at_prompt(Agent::Claude);
    scene.deliver("<<say I have begun.>> <<hold for ever>>");
    scene.wait_running();
    scene.wait_shown("● I have begun.");
    scene.keys("escape");
    scene.wait_waiting("prompt");
    scene.deliver("hello");
    scene.wait_waiting("finished");
    scene.wait_told("hello");
}

#[test]
fn an_error_of_the_service_is_something_to_look_at() {
    let scene = Scene::at_prompt(Agent::Claude);
    scene.deliver("<<error 400>>");
    let task = scene.wait_waiting("error");
    assert!(task["evidence"]["detail"].as_str().is_some_and(|detail| detail.contains("400")), "{task}");
    scene.deliver("hello");
    scene.wait_waiting("finished");
}

#[test]
fn the_hooks_of_claude_report_and_leave_nothing_of_the_users_changed() {
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
    let settings = fs::read_to_string(scene.home().join(".claude/settings.json")).expect("it is still there");
    assert_eq!(settings, mine);
    let state = fs::read_to_string(scene.home().join(".claude.json")).expect("it is still there");
    assert!(!state.contains("agency-keeper"), "{state}");
    assert!(!scene.repo().join(".agency/worktrees/1-x/.claude").exists());
}
