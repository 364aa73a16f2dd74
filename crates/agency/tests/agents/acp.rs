//! Claude Code and Codex over ACP: asked, answered, denied, interrupted, killed, and left by the daemon.

use crate::scene::{Agent, SOON, Scene};

/// A task that is talked to over ACP, with its first message.
#[track_caller]
fn talk(agent: Agent, message: &str) -> Scene {
    let scene = Scene::new(agent);
    let name = match agent {
        Agent::Claude => "claude-code",
        Agent::Codex => "codex",
    };
    scene.run(&["new", "x", "--agent", name, "--driver", "acp", "--no-attach", "-m", message]).ok();
    scene
}

#[track_caller]
fn chat(scene: &Scene) -> String {
    scene.run(&["chat", "x"]).ok()
}

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

/// What needs a permission in the mode that Agency puts the agent into.
fn guarded(agent: Agent) -> &'static str {
    match agent {
        Agent::Claude => "<<bash touch made>>",
        Agent::Codex => {
            r#"<<tool exec_command {"cmd":"touch made","sandbox_permissions":"require_escalated","justification":"May I make it?"}>>"#
        }
    }
}

fn is_made(scene: &Scene) -> bool {
    scene.repo().join(".agency/worktrees/1-x/made").exists()
}

/// The model has been asked, and does not answer.
#[track_caller]
fn wait_held(scene: &Scene) {
    scene.eventually("the model is asked", SOON, || {
        let is_held = |request: &serde_json::Value| request["steps"][0][0] == "hold";
        scene.model.requests().iter().any(is_held).then_some(())
    });
}

#[track_caller]
fn is_asked_and_allowed(agent: Agent) {
    let scene = talk(agent, &format!("<<say I will make it.>> {} <<say It is made.>>", guarded(agent)));
    scene.wait_waiting("permission");
    assert!(!is_made(&scene));
    scene.run(&["approve", "x"]).ok();
    wait_said(&scene, "It is made.");
    scene.wait_waiting("finished");
    assert!(is_made(&scene));
    let read = chat(&scene);
    for text in ["I will make it.", "touch made", "allowed by cli", "── turn ended"] {
        assert!(read.contains(text), "{text:?} in {read}");
    }
    scene.deliver("<<say And again.>>");
    wait_said(&scene, "And again.");
}

#[track_caller]
fn is_denied_and_interrupted(agent: Agent) {
    let scene = talk(agent, &format!("{} <<say Well then.>>", guarded(agent)));
    scene.wait_waiting("permission");
    scene.run(&["deny", "x"]).ok();
    scene.wait_waiting("finished");
    assert!(!is_made(&scene) && chat(&scene).contains("denied by cli"));
    scene.deliver("<<hold for ever>> <<say never said>>");
    wait_held(&scene);
    scene.run(&["interrupt", "x"]).ok();
    scene.wait_waiting("finished");
    scene.deliver("<<say I am here.>>");
    wait_said(&scene, "I am here.");
}

#[track_caller]
fn is_killed_and_goes_on(agent: Agent) {
    let scene = talk(agent, "<<say Begun.>>");
    wait_said(&scene, "Begun.");
    scene.wait_waiting("finished");
    let before = scene.eventually("a session is known", SOON, || session(&scene));
    scene.deliver("<<hold for ever>>");
    wait_held(&scene);
    let keeper = scene.keepers().pop().expect("a keeper");
    keeper.child.expect("an agent").kill();
    scene.eventually("the loss is told", SOON, || {
        chat(&scene).contains("was lost with the connection; Agency does not send it again").then_some(())
    });
    scene.eventually("it is back", SOON, || {
        let shown = scene.run(&["connections", "--json"]).json();
        (shown["connections"][0]["status"] == "connected").then_some(())
    });
    scene.run(&["send", "x", "--queue", "<<say And we go on.>>"]).ok();
    let read = wait_said(&scene, "And we go on.");
    assert_eq!(read.lines().filter(|line| *line == "Begun.").count(), 1, "told once: {read}");
    assert_eq!(session(&scene), Some(before));
}

#[track_caller]
fn outlives_the_daemon(agent: Agent) {
    let scene = talk(agent, &format!("{} <<say It is made.>>", guarded(agent)));
    scene.wait_waiting("permission");
    let before = scene.run(&["approvals", "--json"]).json();
    scene.daemon().expect("a daemon").kill();
    scene.wait_waiting("permission");
    let after = scene.run(&["approvals", "--json"]).json();
    assert_eq!(before["approvals"][0]["id"], after["approvals"][0]["id"]);
    scene.run(&["approve", "x"]).ok();
    wait_said(&scene, "It is made.");
    assert!(is_made(&scene));
}

#[test]
fn claude_over_acp_asks_is_allowed_and_ends_its_turn() {
    is_asked_and_allowed(Agent::Claude);
}

#[test]
fn codex_over_acp_asks_is_allowed_and_ends_its_turn() {
    is_asked_and_allowed(Agent::Codex);
}

#[test]
fn claude_over_acp_is_denied_and_interrupted() {
    is_denied_and_interrupted(Agent::Claude);
}

#[test]
fn codex_over_acp_is_denied_and_interrupted() {
    is_denied_and_interrupted(Agent::Codex);
}

#[test]
fn claude_over_acp_that_is_killed_in_its_turn_goes_on_with_its_session() {
    is_killed_and_goes_on(Agent::Claude);
}

#[test]
fn codex_over_acp_that_is_killed_in_its_turn_goes_on_with_its_session() {
    is_killed_and_goes_on(Agent::Codex);
}

#[test]
fn a_permission_that_claude_waits_for_over_acp_outlives_the_daemon() {
    outlives_the_daemon(Agent::Claude);
}

#[test]
fn a_permission_that_codex_waits_for_over_acp_outlives_the_daemon() {
    outlives_the_daemon(Agent::Codex);
}
