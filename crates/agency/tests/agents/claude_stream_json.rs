//! Claude Code over stream-json, without a terminal: messages, approvals, denials, interrupts, killed agents and daemons.

use std::fs;

use serde_json::Value;

use crate::scene::{Agent, SOON, Scene};

#[track_caller]
fn conversation(message: &str) -> Scene {
    Scene::conversation(Agent::Claude, "stream-json", message)
}

/// Whether Claude Code has stored the conversation; before that it cannot resume it.
fn is_stored(scene: &Scene) -> bool {
    let projects = fs::read_dir(scene.home().join(".claude/projects")).into_iter().flatten().flatten();
    let files = projects.flat_map(|project| fs::read_dir(project.path())).flatten().flatten();
    files.into_iter().any(|file| fs::read_to_string(file.path()).is_ok_and(|text| text.contains("Begun.")))
}

#[track_caller]
fn wait_approval(scene: &Scene) -> Value {
    scene.wait_waiting("permission");
    scene.run(&["approvals", "--json"]).json()["approvals"][0].clone()
}

#[test]
fn claude_over_a_pipe_asks_is_allowed_and_ends_its_turn() {
    let scene = conversation("<<say I will make it.>> <<bash touch made>> <<say It is made.>>");
    let approval = wait_approval(&scene);
    assert_eq!(approval["tool"], "Bash");
    assert!(!scene.is_made());
    scene.run(&["approve", "x"]).ok();
    scene.wait_waiting("finished");
    assert!(scene.is_made());
    let read = scene.chat();
    for text in ["I will make it.", "✓ Bash: touch made", "allowed by cli", "It is made.", "── turn ended"]
    {
        assert!(read.contains(text), "{text:?} in {read}");
    }
    let history = scene.history();
    let expected =
        ["needs_input prompt", "running", "needs_input permission", "running", "needs_input finished"];
    assert_eq!(history, expected.map(|words| format!("{words} protocol")));
    scene.deliver("<<say And again.>>");
    scene.wait_said("And again.");
    let costs = scene.run(&["cost", "--json"]).json();
    assert!(costs["tasks"][0]["output_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{costs}");
}

#[test]
fn claude_over_a_pipe_gets_the_reason_of_a_denial_and_an_answer() {
    let question = r#"{"questions":[{"question":"Which colour?","header":"Colour","multiSelect":false,"options":[{"label":"Red","description":"r"},{"label":"Blue","description":"b"}]}]}"#;
    let scene =
        conversation(&format!("<<bash touch made>> <<tool AskUserQuestion {question}>> <<say Thanks.>>"));
    wait_approval(&scene);
    scene.run(&["deny", "x", "-m", "not in this directory"]).ok();
    scene.wait_said("  not in this directory");
    scene.wait_waiting("question");
    scene.run(&["approve", "x", "--answer", "Blue"]).ok();
    scene.wait_waiting("finished");
    let read = scene.chat();
    assert!(read.contains("Blue") && read.contains("Thanks."), "{read}");
    assert!(!read.contains("did not answer"), "{read}");
    assert!(!scene.is_made());
}

#[test]
fn claude_over_a_pipe_is_interrupted_and_takes_the_next_message() {
    let scene = conversation("<<hold for ever>> <<say never said>>");
    scene.wait_running();
    scene.eventually("a request to the model", SOON, || (!scene.model.requests().is_empty()).then_some(()));
    scene.run(&["interrupt", "x"]).ok();
    scene.wait_waiting("finished");
    assert!(scene.chat().contains("── turn interrupted"));
    scene.deliver("<<say I am here.>>");
    scene.wait_said("I am here.");
}

#[test]
fn claude_over_a_pipe_resumes_its_session_after_it_is_killed() {
    let scene = conversation("<<say Begun.>> <<hold for ever>>");
    scene.wait_said("Begun.");
    let before = scene.eventually("a session is known", SOON, || scene.session());
    scene.eventually("the stored conversation", SOON, || is_stored(&scene).then_some(()));
    let keeper = scene.keepers().pop().expect("a keeper");
    keeper.child.expect("an agent").kill();
    scene.wait_said("─── Session restarted ───");
    scene.wait_waiting("prompt");
    scene.deliver("<<say And we go on.>>");
    scene.wait_said("And we go on.");
    assert_eq!(scene.session(), Some(before));
    let requests = scene.model.requests();
    let texts = requests.last().and_then(|request| request["texts"].as_array().map(Vec::len));
    assert_eq!(texts, Some(2), "the model gets both: {requests:?}");
}

#[test]
fn a_permission_request_of_claude_survives_the_daemon() {
    let scene = conversation("<<bash touch made>> <<say It is made.>>");
    let before = wait_approval(&scene);
    scene.daemon().expect("a daemon").kill();
    let after = wait_approval(&scene);
    assert_eq!(before["id"], after["id"]);
    scene.run(&["approve", "x", "--always"]).ok();
    scene.wait_said("It is made.");
    assert!(scene.is_made());
}

#[test]
fn claude_changes_from_terminal_to_pipe_and_back_with_one_session() {
    let scene = Scene::at_prompt(Agent::Claude);
    scene.deliver("<<say In the terminal.>>");
    scene.wait_waiting("finished");
    let id = scene.eventually("a session is known", SOON, || scene.session());
    scene.run(&["restart", "x", "--driver", "stream-json"]).ok();
    scene.wait_waiting("prompt");
    // Claude Code may start slowly, and takes the message then.
    scene.send("<<say Over the pipe.>>");
    scene.wait_said("Over the pipe.");
    let texts = scene.model.requests().last().map(|request| request["texts"].to_string()).unwrap_or_default();
    assert!(texts.contains("In the terminal.") && texts.contains("Over the pipe."), "it remembers: {texts}");
    assert_eq!(scene.session(), Some(id.clone()));

    assert_eq!(scene.run(&["mode", "x", "plan"]).ok(), "mode: plan\n");
    assert!(scene.run(&["mode", "x", "no-such-mode"]).code == 1);
    let models = scene.run(&["model", "x", "--json"]).json();
    assert!(models["offered"].as_array().is_some_and(|offered| !offered.is_empty()), "{models}");

    scene.run(&["restart", "x", "--driver", "terminal"]).ok();
    scene.wait_shown("Over the pipe.");
    scene.wait_waiting("prompt");
    scene.deliver("<<say In the terminal again.>>");
    scene.wait_model_got("<<say In the terminal again.>>");
    assert_eq!(scene.session(), Some(id));
    assert!(scene.chat().contains("Over the pipe."), "the conversation over the pipe can still be read");
}
