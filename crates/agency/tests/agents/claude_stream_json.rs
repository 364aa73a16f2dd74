//! Claude Code without a terminal, over stream-json: asked, answered, denied, interrupted, killed.

use std::fs;

use serde_json::Value;

use crate::scene::{Agent, SOON, Scene};

/// A task that is talked to, with its first message.
#[track_caller]
fn talk(message: &str) -> Scene {
    let scene = Scene::new(Agent::Claude);
    let new = ["new", "x", "--agent", "claude-code", "--driver", "stream-json", "--no-attach", "-m", message];
    scene.run(&new).ok();
    scene
}

#[track_caller]
fn chat(scene: &Scene) -> String {
    scene.run(&["chat", "x"]).ok()
}

/// A line of the conversation, which the prompt that asks for it is not.
#[track_caller]
fn wait_said(scene: &Scene, line: &str) -> String {
    scene.eventually(&format!("{line:?} is said"), SOON, || {
        Some(chat(scene)).filter(|chat| chat.lines().any(|said| said == line))
    })
}

fn session(scene: &Scene) -> Option<String> {
    let file = scene.task_file();
    file.lines().find(|line| line.starts_with("session_id:")).map(str::to_owned)
}

/// What is not there yet cannot be gone on with.
fn is_written(scene: &Scene) -> bool {
    let projects = fs::read_dir(scene.home().join(".claude/projects")).into_iter().flatten().flatten();
    let files = projects.flat_map(|project| fs::read_dir(project.path())).flatten().flatten();
    files.into_iter().any(|file| fs::read_to_string(file.path()).is_ok_and(|text| text.contains("Begun.")))
}

#[track_caller]
fn asked(scene: &Scene) -> Value {
    scene.wait_waiting("permission");
    scene.run(&["approvals", "--json"]).json()["approvals"][0].clone()
}

#[test]
fn claude_over_a_pipe_is_prompted_asks_is_allowed_and_ends_its_turn() {
    let scene = talk("<<say I will make it.>> <<bash touch made>> <<say It is made.>>");
    let approval = asked(&scene);
    assert_eq!(approval["tool"], "Bash");
    assert!(!scene.repo().join(".agency/worktrees/1-x/made").exists());
    scene.run(&["approve", "x"]).ok();
    scene.wait_waiting("finished");
    assert!(scene.repo().join(".agency/worktrees/1-x/made").exists());
    let read = chat(&scene);
    for text in ["I will make it.", "✓ Bash: touch made", "allowed by cli", "It is made.", "── turn ended"]
    {
        assert!(read.contains(text), "{text:?} in {read}");
    }
    let history = scene.history();
    let told = ["needs_input prompt", "running", "needs_input permission", "running", "needs_input finished"];
    assert_eq!(history, told.map(|words| format!("{words} protocol")));
    scene.deliver("<<say And again.>>");
    wait_said(&scene, "And again.");
    let costs = scene.run(&["cost", "--json"]).json();
    assert!(costs["tasks"][0]["output_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{costs}");
}

#[test]
fn claude_over_a_pipe_hears_why_it_is_denied_and_what_was_answered() {
    let question = r#"{"questions":[{"question":"Which colour?","header":"Colour","multiSelect":false,"options":[{"label":"Red","description":"r"},{"label":"Blue","description":"b"}]}]}"#;
    let scene = talk(&format!("<<bash touch made>> <<tool AskUserQuestion {question}>> <<say Thanks.>>"));
    asked(&scene);
    scene.run(&["deny", "x", "-m", "not in this directory"]).ok();
    wait_said(&scene, "  not in this directory");
    scene.wait_waiting("question");
    scene.run(&["approve", "x", "--answer", "Blue"]).ok();
    scene.wait_waiting("finished");
    let read = chat(&scene);
    assert!(read.contains("Blue") && read.contains("Thanks."), "{read}");
    assert!(!read.contains("did not answer"), "{read}");
    assert!(!scene.repo().join(".agency/worktrees/1-x/made").exists());
}

#[test]
fn claude_over_a_pipe_is_interrupted_and_takes_the_next_message() {
    let scene = talk("<<hold for ever>> <<say never said>>");
    scene.wait_running();
    scene.eventually("the model is asked", SOON, || (!scene.model.requests().is_empty()).then_some(()));
    scene.run(&["interrupt", "x"]).ok();
    scene.wait_waiting("finished");
    assert!(chat(&scene).contains("── turn interrupted"));
    scene.deliver("<<say I am here.>>");
    wait_said(&scene, "I am here.");
}

#[test]
fn claude_over_a_pipe_that_is_killed_goes_on_with_its_session() {
    let scene = talk("<<say Begun.>> <<hold for ever>>");
    wait_said(&scene, "Begun.");
    let before = scene.eventually("a session is known", SOON, || session(&scene));
    scene.eventually("claude has written down what it was told", SOON, || is_written(&scene).then_some(()));
    let keeper = scene.keepers().pop().expect("a keeper");
    keeper.child.expect("an agent").kill();
    wait_said(&scene, "─── Session restarted ───");
    scene.wait_waiting("prompt");
    scene.deliver("<<say And we go on.>>");
    wait_said(&scene, "And we go on.");
    assert_eq!(session(&scene), Some(before));
    let requests = scene.model.requests();
    let told = requests.last().and_then(|request| request["texts"].as_array().map(Vec::len));
    assert_eq!(told, Some(2), "the model is told of both: {requests:?}");
}

#[test]
fn a_permission_that_claude_waits_for_outlives_the_daemon() {
    let scene = talk("<<bash touch made>> <<say It is made.>>");
    let before = asked(&scene);
    scene.daemon().expect("a daemon").kill();
    let after = asked(&scene);
    assert_eq!(before["id"], after["id"]);
    scene.run(&["approve", "x", "--always"]).ok();
    wait_said(&scene, "It is made.");
    assert!(scene.repo().join(".agency/worktrees/1-x/made").exists());
}

#[test]
fn claude_goes_from_terminal_to_pipe_and_back_with_one_session() {
    let scene = Scene::at_prompt(Agent::Claude);
    scene.deliver("<<say In the terminal.>>");
    scene.wait_waiting("finished");
    let id = scene.eventually("a session is known", SOON, || session(&scene));
    scene.run(&["restart", "x", "--driver", "stream-json"]).ok();
    scene.wait_waiting("prompt");
    // It may take its time to come up, and takes the message then.
    scene.send("<<say Over the pipe.>>");
    wait_said(&scene, "Over the pipe.");
    let told = scene.model.requests().last().map(|request| request["texts"].to_string()).unwrap_or_default();
    assert!(told.contains("In the terminal.") && told.contains("Over the pipe."), "it remembers: {told}");
    assert_eq!(session(&scene), Some(id.clone()));

    assert_eq!(scene.run(&["mode", "x", "plan"]).ok(), "mode: plan\n");
    assert!(scene.run(&["mode", "x", "no-such-mode"]).code == 1);
    let models = scene.run(&["model", "x", "--json"]).json();
    assert!(models["offered"].as_array().is_some_and(|offered| !offered.is_empty()), "{models}");

    scene.run(&["restart", "x", "--driver", "terminal"]).ok();
    scene.wait_shown("Over the pipe.");
    scene.wait_waiting("prompt");
    scene.deliver("<<say In the terminal again.>>");
    scene.wait_told("<<say In the terminal again.>>");
    assert_eq!(session(&scene), Some(id));
    assert!(chat(&scene).contains("Over the pipe."), "what was said over the pipe is still there to read");
}
