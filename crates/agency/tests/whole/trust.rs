//! A cloned repository runs nothing that its user has not agreed to.

use std::fs;

use crate::stage::Stage;

/// Writes the project's own configuration, as a clone would bring it.
fn bring(stage: &Stage, toml: &str) {
    let path = stage.repo().join(".agency/config.toml");
    fs::create_dir_all(path.parent().expect("a directory"))
        .and_then(|()| fs::write(path, toml))
        .expect("room");
}

const GREETER: &str = "[agents.greeter]\nstart = [\"fake-agent\", \"-c\", \"say hello; ask ready?\"]\n";

#[test]
fn a_projects_commands_are_not_used_before_somebody_agreed() {
    let stage = Stage::new();
    bring(&stage, GREETER);
    let new = ["new", "one", "--agent", "greeter", "-m", "x"];
    let ran = stage.run(new);
    assert!(ran.stderr.contains("greeter"), "{ran}");
    ran.refused();
    assert_eq!(stage.traces(), [""; 0]);
    let warnings = stage.listing()["warnings"].to_string();
    assert!(warnings.contains("is not trusted") && warnings.contains("agency trust"), "{warnings}");

    let refusal = stage.run(["trust"]);
    assert_eq!(refusal.code, 1, "nobody is there to be asked: {refusal}");
    assert!(
        refusal.stdout.contains("agents.greeter.start") && refusal.stdout.contains("say hello"),
        "{refusal}"
    );
    stage.run(new).refused();

    let agreed = stage.run(["trust", "--yes"]).ok();
    assert!(agreed.contains("fake-agent") && agreed.contains("trusted: "), "{agreed}");
    assert_eq!(stage.run(new).ok(), "1 one running\n");
    stage.wait_printed("one", "hello");
}

#[test]
fn on_a_terminal_the_user_is_asked() {
    let stage = Stage::new();
    bring(&stage, GREETER);
    for (answer, code) in [("n\r", 1), ("y\r", 0)] {
        let mut terminal = stage.on_terminal(["trust"]);
        terminal.wait_for("Agree to exactly this content?");
        terminal.send(answer);
        assert_eq!(terminal.wait_exit().code(), Some(code), "{terminal}");
    }
    assert_eq!(stage.run(["new", "one", "--agent", "greeter", "-m", "x"]).ok(), "1 one running\n");
}

#[test]
fn a_change_asks_again() {
    let stage = Stage::new();
    bring(&stage, GREETER);
    stage.run(["trust", "--yes"]).ok();
    stage.run(["new", "one", "--agent", "greeter", "-m", "x"]).ok();
    bring(&stage, &GREETER.replace("hello", "something else"));
    stage.run(["new", "two", "--agent", "greeter", "-m", "x"]).refused();
    stage.kill_daemon();
    stage.run(["new", "two", "--agent", "greeter", "-m", "x"]).refused();
    bring(&stage, GREETER);
    assert_eq!(
        stage.run(["new", "two", "--agent", "greeter", "-m", "x"]).ok(),
        "2 two running\n",
        "as agreed"
    );

    stage.run(["trust", "--revoke"]).ok();
    stage.run(["new", "three", "--agent", "greeter", "-m", "x"]).refused();
}

#[test]
fn what_runs_no_commands_needs_no_consent() {
    let stage = Stage::new();
    bring(&stage, "max_agents = 1\nneeds_input_timeout = \"1s\"\n");
    assert_eq!(stage.listing()["warnings"], serde_json::json!([]));
    assert!(stage.run(["trust"]).ok().contains("nothing to agree to"));
}

#[test]
fn a_users_own_agent_cannot_be_replaced_behind_their_back() {
    let stage =
        Stage::with_config("[agents.mine]\nstart = [\"fake-agent\", \"-c\", \"say mine; ask ready?\"]\n");
    bring(&stage, "[agents.mine]\nstart = [\"fake-agent\", \"-c\", \"say theirs; ask ready?\"]\n");
    stage.run(["new", "one", "--agent", "mine", "-m", "x"]).ok();
    assert!(stage.wait_printed("one", "ready?").starts_with("mine\n"));
}

#[test]
fn a_command_in_a_task_file_that_nobody_typed_here_is_refused() {
    let stage = Stage::new();
    fs::create_dir_all(stage.repo().join(".agency/tasks")).expect("room");
    let file = "---\nstatus: draft\nagent: fake\ncommand: [fake-agent, -c, say gotcha; ask ready?]\n---\nx\n";
    fs::write(
        stage.task_path("1-gift"),
        file.replace("say gotcha; ask ready?", "\"say gotcha; ask ready?\""),
    )
    .expect("room");
    let refusal = stage.refused(&["start", "gift"]);
    assert!(refusal.starts_with("Error: the command of task 1 is not trusted\nCaused by: "), "{refusal}");
    assert!(refusal.contains("say gotcha") && refusal.contains("Hint: `agency trust`"), "{refusal}");
    assert_eq!((stage.status("gift"), stage.keepers().len()), ("draft".into(), 0));
    assert!(!stage.worktree("1-gift").exists());

    let shown = stage.run(["trust", "--yes"]).ok();
    assert!(shown.contains("say gotcha"), "{shown}");
    assert_eq!(stage.run(["start", "gift"]).ok(), "1 gift running\n");
}

#[test]
fn a_command_that_was_typed_here_needs_no_second_word() {
    let stage = Stage::new();
    stage.run(["new", "one", "--draft", "--", "fake-agent", "-c", "ask ready?"]).ok();
    stage.kill_daemon();
    assert_eq!(stage.run(["start", "one"]).ok(), "1 one running\n");
    stage.run(["stop", "one"]).ok();
    let other = stage.task_file("1-one").replace("ask ready?", "say other");
    fs::write(stage.task_path("1-one"), other).expect("ours");
    assert!(stage.refused(&["start", "one"]).contains("is not trusted"));
}
