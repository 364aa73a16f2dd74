//! A task's workspace in the user's own editor.

use agency_testkit::CommandOutput;

use crate::stage::{Stage, refused};

#[test]
fn open_starts_the_users_editor_in_the_workspace() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    stage.run(["new", "draft", "--draft", "-m", "x"]).ok();
    let tool = stage.home().join("tool");
    stage.write_program(
        &tool,
        b"#!/bin/sh\necho \"$@\"; pwd; echo port $AGENCY_PORT; test -t 1 && echo tty\nexit 3\n",
    );
    let worktree = stage.worktree("1-one").display().to_string();
    let port = stage.task("one")["port"].to_string();
    let mut editing = stage.agency(["open", "one"]);
    editing.env("VISUAL", format!("{} --wait", tool.display()));
    let ran = CommandOutput::of(editing, b"");
    assert_eq!(ran.stdout, format!("--wait {worktree}\n{worktree}\nport {port}\n"), "{ran}");
    assert_eq!(ran.code, 3);
    stage.configure(&format!(
        "[workspace]\nopener = [\"{}\", \"in\", \"$AGENCY_WORKTREE\"]\n",
        tool.display()
    ));
    let mut terminal = stage.on_terminal(["open", "one"]);
    terminal.wait_for(&format!("in {worktree}"));
    terminal.wait_for("tty");
    assert_eq!(terminal.wait_exit().code(), Some(3), "{terminal}");
    let refusal = stage.refused(&["open", "draft"]);
    assert!(refusal.contains("has no workspace yet") && refusal.contains("agency start 2"), "{refusal}");
    let mut missing = stage.agency(["open", "one", "--config", "workspace.opener=[\"no-such-editor\"]"]);
    missing.env_remove("VISUAL");
    let refusal = refused(CommandOutput::of(missing, b""));
    assert!(
        refusal.contains("cannot run no-such-editor") && refusal.contains("workspace.opener"),
        "{refusal}"
    );
}

#[test]
fn the_editor_variable_is_split_like_a_shell_command_and_may_be_missing() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    let opened = |editor: &str| {
        let mut opening = stage.agency(["open", "one"]);
        opening.env_remove("VISUAL").env("EDITOR", editor);
        CommandOutput::of(opening, b"")
    };
    let worktree = stage.worktree("1-one").display().to_string();
    assert_eq!(opened("printf '%s|' \"a b\"").ok(), format!("a b|{worktree}|"));
    let refusal = refused(opened("code \"a"));
    assert!(refusal.contains("$EDITOR cannot be read: code \"a"), "{refusal}");
    // The default editor would wait for keys.
    let refusal = refused(opened(""));
    assert!(refusal.contains("there is no editor") && refusal.contains("workspace.opener"), "{refusal}");
}
