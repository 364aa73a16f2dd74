//! Real agents over ACP: messages, approvals, denials, rules, interrupts, killed agents and daemons.

use crate::scene::{Agent, SOON, Scene};

/// A command that needs permission in the mode that Agency sets.
fn guarded_command(agent: Agent) -> String {
    guarded(agent, "touch made")
}

fn guarded(agent: Agent, command: &str) -> String {
    match agent {
        Agent::Codex => format!(
            r#"<<tool exec_command {{"cmd":"{command}","sandbox_permissions":"require_escalated","justification":"May I make it?"}}>>"#
        ),
        Agent::Claude | Agent::Opencode | Agent::Gemini | Agent::Qwen | Agent::Copilot => {
            format!("<<bash {command}>>")
        }
    }
}

/// Waits until the model has a request that it does not answer.
#[track_caller]
fn wait_unanswered(scene: &Scene) {
    scene.eventually("a request to the model", SOON, || {
        let is_held = |request: &serde_json::Value| request["steps"][0][0] == "hold";
        scene.model.requests().iter().any(is_held).then_some(())
    });
}

#[track_caller]
fn check_allowed(agent: Agent) {
    let scene = Scene::conversation(
        agent,
        "acp",
        &format!("<<say I will make it.>> {} <<say It is made.>>", guarded_command(agent)),
    );
    let task = scene.wait_waiting("permission");
    let detail = task["evidence"]["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("touch made"), "the list shows what is asked: {task}");
    let asked = scene.run(&["approvals", "--json"]).json()["approvals"][0]["action"].clone();
    assert!(asked["summary"].as_str().is_some_and(|summary| summary.contains("touch made")), "{asked}");
    assert!(!scene.is_made());
    scene.run(&["approve", "x"]).ok();
    scene.wait_said("It is made.");
    scene.wait_waiting("finished");
    assert!(scene.is_made());
    let read = scene.chat();
    for text in ["I will make it.", "touch made", "allowed by cli", "── turn ended"] {
        assert!(read.contains(text), "{text:?} in {read}");
    }
    scene.deliver("<<say And again.>>");
    scene.wait_said("And again.");
}

/// A rule that denies a command also denies it if the agent's request does not name the command.
#[track_caller]
fn check_rules(agent: Agent) {
    let scene = Scene::new(agent);
    scene.write_config(
        "[[approve]]\ntool = \"*\"\nmatch = \"rm *\"\ndecision = \"deny\"\n\
         [[approve]]\ntool = \"*\"\ndecision = \"allow\"\n",
    );
    scene.begin("acp", &format!("{} <<say Made.>>", guarded_command(agent)));
    scene.eventually("the command is allowed or asked", SOON, || {
        // Gemini names no command, so the rule that denies applies to every command of it.
        (scene.is_made() || scene.chat().contains("denied by rule 1")).then_some(())
    });
    scene.wait_waiting("finished");
    std::fs::write(scene.repo().join(".agency/worktrees/1-x/made"), "").expect("room for a file");
    scene.deliver(&format!("{} <<say Well then.>>", guarded(agent, "rm -rf made")));
    scene.eventually("the rule denies", SOON, || {
        let log = scene.run(&["approvals", "--log", "x", "--json"]).json();
        let decisions = log["decisions"].as_array().cloned().unwrap_or_default();
        decisions
            .last()
            .filter(|last| last["outcome"]["allowed"] == false && last.to_string().contains("rm -rf"))?;
        Some(())
    });
    scene.wait_waiting("finished");
    assert!(scene.is_made(), "{}", scene.chat());
}

#[track_caller]
fn check_denied_and_interrupted(agent: Agent) {
    let scene = Scene::conversation(agent, "acp", &format!("{} <<say Well then.>>", guarded_command(agent)));
    scene.wait_waiting("permission");
    scene.run(&["deny", "x"]).ok();
    scene.wait_waiting("finished");
    assert!(!scene.is_made() && scene.chat().contains("denied by cli"));
    scene.deliver("<<hold for ever>> <<say never said>>");
    wait_unanswered(&scene);
    scene.run(&["interrupt", "x"]).ok();
    scene.wait_waiting("finished");
    scene.deliver("<<say I am here.>>");
    scene.wait_said("I am here.");
}

#[track_caller]
fn check_killed_and_resumed(agent: Agent) {
    let scene = Scene::conversation(agent, "acp", "<<say Begun.>>");
    scene.wait_said("Begun.");
    scene.wait_waiting("finished");
    let before = scene.eventually("a session is known", SOON, || scene.session());
    scene.deliver("<<hold for ever>>");
    wait_unanswered(&scene);
    let keeper = scene.keepers().pop().expect("a keeper");
    keeper.child.expect("an agent").kill();
    scene.eventually("the notice of the loss", SOON, || {
        scene.chat().contains("was lost with the connection; Agency does not send it again").then_some(())
    });
    scene.eventually("the connection", SOON, || {
        let shown = scene.run(&["connections", "--json"]).json();
        (shown["connections"][0]["status"] == "connected").then_some(())
    });
    scene.run(&["send", "x", "--queue", "<<say And we go on.>>"]).ok();
    let read = scene.wait_said("And we go on.");
    assert_eq!(read.lines().filter(|line| *line == "Begun.").count(), 1, "once: {read}");
    assert_eq!(scene.session(), Some(before));
}

#[track_caller]
fn check_permission_survives_the_daemon(agent: Agent) {
    let scene = Scene::conversation(agent, "acp", &format!("{} <<say It is made.>>", guarded_command(agent)));
    scene.wait_waiting("permission");
    let before = scene.run(&["approvals", "--json"]).json();
    scene.daemon().expect("a daemon").kill();
    scene.wait_waiting("permission");
    let after = scene.run(&["approvals", "--json"]).json();
    assert_eq!(before["approvals"][0]["id"], after["approvals"][0]["id"]);
    scene.run(&["approve", "x"]).ok();
    scene.wait_said("It is made.");
    assert!(scene.is_made());
}

#[test]
fn claude_over_acp_asks_is_allowed_and_ends_its_turn() {
    check_allowed(Agent::Claude);
}

#[test]
fn codex_over_acp_asks_is_allowed_and_ends_its_turn() {
    check_allowed(Agent::Codex);
}

#[test]
fn opencode_over_acp_asks_is_allowed_and_ends_its_turn() {
    check_allowed(Agent::Opencode);
}

#[test]
fn gemini_over_acp_asks_is_allowed_and_ends_its_turn() {
    check_allowed(Agent::Gemini);
}

#[test]
fn qwen_over_acp_asks_is_allowed_and_ends_its_turn() {
    check_allowed(Agent::Qwen);
}

#[test]
fn copilot_over_acp_asks_is_allowed_and_ends_its_turn() {
    check_allowed(Agent::Copilot);
}

#[test]
fn claude_over_acp_obeys_the_rules() {
    check_rules(Agent::Claude);
}

#[test]
fn codex_over_acp_obeys_the_rules() {
    check_rules(Agent::Codex);
}

#[test]
fn opencode_over_acp_obeys_the_rules() {
    check_rules(Agent::Opencode);
}

#[test]
fn gemini_over_acp_obeys_the_rules() {
    check_rules(Agent::Gemini);
}

#[test]
fn qwen_over_acp_obeys_the_rules() {
    check_rules(Agent::Qwen);
}

#[test]
fn copilot_over_acp_obeys_the_rules() {
    check_rules(Agent::Copilot);
}

#[test]
fn claude_over_acp_is_denied_and_interrupted() {
    check_denied_and_interrupted(Agent::Claude);
}

#[test]
fn codex_over_acp_is_denied_and_interrupted() {
    check_denied_and_interrupted(Agent::Codex);
}

#[test]
fn claude_over_acp_resumes_its_session_after_it_is_killed_in_a_turn() {
    check_killed_and_resumed(Agent::Claude);
}

#[test]
fn codex_over_acp_resumes_its_session_after_it_is_killed_in_a_turn() {
    check_killed_and_resumed(Agent::Codex);
}

#[test]
fn a_permission_that_claude_waits_for_over_acp_outlives_the_daemon() {
    check_permission_survives_the_daemon(Agent::Claude);
}

#[test]
fn a_permission_that_codex_waits_for_over_acp_outlives_the_daemon() {
    check_permission_survives_the_daemon(Agent::Codex);
}
