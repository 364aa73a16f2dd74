//! A cloned repository runs nothing without its user's consent.

use std::fs;

use crate::stage::Stage;

/// Writes the project's own configuration, as a clone would bring it.
fn write_project_config(stage: &Stage, toml: &str) {
    let path = stage.repo().join(".agency/config.toml");
    fs::create_dir_all(path.parent().expect("a directory"))
        .and_then(|()| fs::write(path, toml))
        .expect("room");
}

const GREETER: &str = "[agents.greeter]\nstart = [\"fake-agent\", \"-c\", \"say hello; ask ready?\"]\n";

#[test]
fn a_projects_commands_need_consent() {
    let stage = Stage::new();
    write_project_config(&stage, GREETER);
    let new = ["new", "one", "--agent", "greeter", "-m", "x"];
    let ran = stage.run(new);
    assert!(ran.stderr.contains("greeter"), "{ran}");
    ran.refused();
    assert_eq!(stage.traces(), [""; 0]);
    let warnings = stage.listing()["warnings"].to_string();
    assert!(warnings.contains("is not trusted") && warnings.contains("agency trust"), "{warnings}");

    let refusal = stage.run(["trust"]);
    assert_eq!(refusal.code, 1, "there is no terminal to ask on: {refusal}");
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
    write_project_config(&stage, GREETER);
    for (answer, code) in [("n\r", 1), ("y\r", 0)] {
        let mut terminal = stage.on_terminal(["trust"]);
        terminal.wait_for("Trust exactly this content?");
        terminal.send(answer);
        assert_eq!(terminal.wait_exit().code(), Some(code), "{terminal}");
    }
    assert_eq!(stage.run(["new", "one", "--agent", "greeter", "-m", "x"]).ok(), "1 one running\n");
}

#[test]
fn a_change_needs_new_consent() {
    let stage = Stage::new();
    write_project_config(&stage, GREETER);
    stage.run(["trust", "--yes"]).ok();
    stage.run(["new", "one", "--agent", "greeter", "-m", "x"]).ok();
    write_project_config(&stage, &GREETER.replace("hello", "something else"));
    stage.run(["new", "two", "--agent", "greeter", "-m", "x"]).refused();
    stage.kill_daemon();
    stage.run(["new", "two", "--agent", "greeter", "-m", "x"]).refused();
    write_project_config(&stage, GREETER);
    assert_eq!(
        stage.run(["new", "two", "--agent", "greeter", "-m", "x"]).ok(),
        "2 two running\n",
        "as agreed"
    );

    stage.run(["trust", "--revoke"]).ok();
    stage.run(["new", "three", "--agent", "greeter", "-m", "x"]).refused();
}

#[test]
fn the_question_shows_what_changed() {
    let stage = Stage::new();
    write_project_config(&stage, GREETER);
    stage.run(["trust", "--yes"]).ok();
    let other = GREETER.replace("hello", "bye");
    write_project_config(&stage, &format!("{other}spare = [\"sh\"]\n"));
    let asked = stage.run(["trust"]);
    let since = asked.stdout.split_once("Changes since you last agreed:\n").expect("what has changed").1;
    let marks: Vec<&str> = since.lines().collect();
    assert_eq!(marks.len(), 3, "{asked}");
    assert!(marks[0].starts_with("- agents.greeter.start") && marks[0].contains("hello"), "{asked}");
    assert_eq!(marks[1], "+ agents.greeter.spare = [\"sh\"]");
    assert!(marks[2].starts_with("+ agents.greeter.start") && marks[2].contains("bye"), "{asked}");
    assert!(
        asked.stderr.ends_with("Hint: read the commands above; `agency trust --yes` trusts them\n"),
        "{asked}"
    );
    assert_eq!(asked.code, 1);
    write_project_config(&stage, &format!("# only a comment\n{GREETER}"));
    assert!(stage.run(["trust"]).stdout.contains("the rest of the file has changed"));
}

#[test]
fn every_consent_can_be_listed_and_withdrawn() {
    let stage = Stage::new();
    assert_eq!(stage.run(["trust", "--list", "--json"]).json()["projects"], serde_json::json!([]));
    write_project_config(&stage, GREETER);
    stage.run(["trust", "--yes"]).ok();
    stage.kill_daemon();
    let listed = stage.run(["trust", "--list"]).ok();
    let root = stage.repo().canonicalize().expect("there");
    assert!(listed.starts_with(&format!("{}: 1 agreement, last on ", root.display())), "{listed}");
    assert!(listed.contains("\n  agents.greeter.start = ["), "{listed}");
    stage.run(["trust", "--revoke"]).ok();
    assert_eq!(stage.run(["trust", "--list"]).ok(), "");
}

#[test]
fn changes_through_agency_config_need_no_consent() {
    let stage = Stage::new();
    stage
        .run(["config", "set", "--project", "agents.own.start", "--", "fake-agent", "-c", "ask ready?"])
        .ok();
    assert_eq!(stage.run(["new", "one", "--agent", "own", "-m", "x"]).ok(), "1 one running\n");
    write_project_config(&stage, GREETER);
    let set = stage.run(["config", "set", "--project", "max_agents", "9"]);
    assert!(set.stderr.contains("you have not trusted the file: agency trust"), "{set}");
    stage.run(["new", "two", "--agent", "greeter", "-m", "x"]).refused();
    // An unreadable configuration has no consent either.
    write_project_config(&stage, &format!("max_agents = \n{GREETER}"));
    let edited = stage
        .shell("VISUAL='sed -i 1d' agency config edit --project")
        .current_dir(stage.repo())
        .output()
        .expect("run");
    let said = String::from_utf8_lossy(&edited.stderr);
    assert!(said.contains("you have not trusted the file"), "{said}");
    stage.run(["new", "two", "--agent", "greeter", "-m", "x"]).refused();
}

#[test]
fn a_projects_file_cannot_change_the_detach_key_or_spare_processes() {
    let stage = Stage::with_config("[agents.bold]\nstart = [\"fake-agent\", \"-c\", \"ask ready?\"]\n");
    write_project_config(
        &stage,
        "default_agent = \"bold\"\ndetach_keys = \"none\"\nshutdown_timeout = \"8760h\"\n[agents.fake]\nspare = [\"sh\"]\n",
    );
    let warnings = stage.listing()["warnings"].to_string();
    assert!(warnings.contains("ignored: default_agent, detach_keys, agents.shell.spare"), "{warnings}");
    assert!(warnings.contains("shutdown_timeout is ignored here"), "{warnings}");
    for (key, value) in
        [("default_agent", "shell\n"), ("detach_keys", "ctrl-q\n"), ("shutdown_timeout", "30s\n")]
    {
        assert_eq!(stage.run(["config", "get", key]).ok(), value);
    }
    write_project_config(&stage, "default_agent = \"aider\"\n");
    assert_eq!(stage.run(["config", "get", "default_agent"]).ok(), "aider\n");
    let draft = stage.run(["new", "one", "--draft", "-m", "x"]);
    assert!(draft.stderr.contains("agent: aider, chosen by "), "{draft}");
}

#[test]
fn an_agent_that_needs_consent_is_not_replaced_by_another_one() {
    let stage = Stage::new();
    write_project_config(&stage, &format!("default_agent = \"greeter\"\n{GREETER}"));
    let refused = stage.run(["new", "one", "-m", "x"]).refused();
    assert!(refused.starts_with("Error: you have not trusted this project's choice of agent\n"), "{refused}");
    assert!(refused.contains("`agency trust` shows and allows"), "{refused}");
    assert_eq!(stage.run(["new", "two", "--agent", "shell", "-m", "x"]).ok(), "1 two running\n");
    stage.run(["trust", "--yes"]).ok();
    assert_eq!(stage.run(["new", "one", "-m", "x"]).ok(), "2 one running\n");
}

#[test]
fn settings_without_commands_need_no_consent() {
    let stage = Stage::new();
    write_project_config(&stage, "stale_timeout = \"9s\"\nneeds_input_timeout = \"1s\"\n");
    assert_eq!(stage.listing()["warnings"], serde_json::json!([]));
    assert!(stage.run(["trust"]).ok().contains("nothing to trust"));
}

#[test]
fn a_project_cannot_replace_a_users_own_agent() {
    let stage =
        Stage::with_config("[agents.mine]\nstart = [\"fake-agent\", \"-c\", \"say mine; ask ready?\"]\n");
    write_project_config(
        &stage,
        "[agents.mine]\nstart = [\"fake-agent\", \"-c\", \"say theirs; ask ready?\"]\n",
    );
    stage.run(["new", "one", "--agent", "mine", "-m", "x"]).ok();
    assert!(stage.wait_printed("one", "ready?").starts_with("mine\n"));
}

#[test]
fn a_command_in_a_task_file_that_was_not_typed_here_is_refused() {
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
fn a_command_that_was_typed_here_needs_no_consent() {
    let stage = Stage::new();
    stage.run(["new", "one", "--draft", "--", "fake-agent", "-c", "ask ready?"]).ok();
    stage.kill_daemon();
    assert_eq!(stage.run(["start", "one"]).ok(), "1 one running\n");
    stage.run(["stop", "one"]).ok();
    let other = stage.task_file("1-one").replace("ask ready?", "say other");
    fs::write(stage.task_path("1-one"), other).expect("ours");
    assert!(stage.refused(&["start", "one"]).contains("is not trusted"));
}
