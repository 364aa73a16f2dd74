//! `agency edit`: the text of a task changes, and its next fresh start sends it. `agency rename`: a draft gets another name.

use agency_testkit::Pty;

use crate::stage::Stage;

/// Prints its arguments, then waits for input.
const PARROT: &str = r#"
    [agents.parrot]
    start = ["fake-agent", "-c", "args; ask more?", "-p", "$AGENCY_PROMPT"]
"#;

#[test]
fn a_draft_starts_with_its_new_text_and_unknown_keys_stay() {
    let stage = Stage::with_config(PARROT);
    stage.run(["new", "one", "--draft", "--agent", "parrot", "-m", "old words"]).ok();
    let path = stage.task_path("1-one");
    let file = stage.task_file("1-one").replacen("---\n", "---\nticket: 77 # mine\n", 1);
    std::fs::write(&path, &file).expect("written");
    let said = stage.run(["edit", "one", "-m", "new words"]).ok();
    assert_eq!(said, "1-one: saved; agency start one sends it\n");
    assert_eq!(stage.task_file("1-one"), file.replace("old words", "new words"));
    stage.kill_daemon();
    stage.run(["start", "one"]).ok();
    assert!(!stage.wait_printed("one", "new words").contains("old words"));
    let said = stage.run(["edit", "one", "-m", "newest words"]).ok();
    assert_eq!(said, "1-one: saved; its agent has the old text already: agency send one TEXT reaches it\n");
    stage.run(["stop", "one"]).ok();
    let said = stage.run(["edit", "one", "-m", "words at last"]).ok();
    assert_eq!(said, "1-one: saved; agency start one --fresh sends it in a new session\n");
    stage.run(["start", "one", "--fresh"]).ok();
    stage.wait_printed("one", "words at last");
}

#[test]
fn an_editor_that_changes_nothing_or_leaves_no_text_changes_nothing() {
    let stage = Stage::new();
    stage.run(["new", "one", "--draft", "-m", "old words"]).ok();
    let file = stage.task_file("1-one");
    let edit = |editor: &str| {
        let mut command = stage.agency(["edit", "one"]);
        command.env("EDITOR", editor).env_remove("VISUAL");
        let mut terminal = Pty::spawn(command, 80, 24);
        let code = terminal.wait_exit().code();
        (code, terminal.to_string())
    };
    let (code, said) = edit("true");
    assert!(code == Some(0) && said.contains("1-one: the text is unchanged"), "{said}");
    let (code, said) = edit("sh -c 'echo >> \"$1\"' sh");
    assert!(code == Some(0) && said.contains("1-one: the text is unchanged"), "{said}");
    let (code, said) = edit("sh -c ': > \"$1\"' sh");
    assert!(code != Some(0) && said.contains("the new text is empty"), "{said}");
    let (code, said) = edit("sh -c 'echo lost > \"$1\"; exit 1' sh");
    assert!(code != Some(0) && said.contains("your text is saved: "), "{said}");
    assert_eq!(stage.task_file("1-one"), file);
    let (code, said) = edit("sh -c 'echo more words >> \"$1\"' sh");
    assert!(code == Some(0) && said.contains("1-one: saved"), "{said}");
    assert_eq!(stage.task_file("1-one"), file.replace("old words", "old words\nmore words"));
    let drafts = std::fs::read_dir(stage.state().join("drafts")).expect("drafts").count();
    assert_eq!(drafts, 1, "only the text of the editor that failed is kept");
    assert!(stage.refused(&["edit", "one", "-m", " "]).contains("the new text is empty"));
}

#[test]
fn a_draft_has_its_new_name_everywhere_also_for_the_next_daemon() {
    let stage = Stage::new();
    stage.run(["new", "one", "--draft", "-m", "words"]).ok();
    stage.run(["new", "two", "--draft", "-m", "x"]).ok();
    let file = stage.task_file("1-one");
    stage.run(["pin", "one"]).ok();
    assert_eq!(stage.run(["rename", "one", "new_name"]).ok(), "1-new-name: renamed\n");
    stage.kill_daemon();
    assert_eq!(stage.task("new-name")["pinned"], true);
    assert_eq!(stage.task_file("1-new-name"), file);
    assert!(!stage.task_path("1-one").exists());
    assert!(stage.refused(&["rename", "one", "other"]).contains("no task is called `one`"));
    assert!(stage.refused(&["rename", "new-name", "two"]).contains("another task has this name: 2-two"));
    stage.run(["start", "new-name"]).ok();
    assert_eq!(stage.task("new-name")["branch"], "agency/1-new-name");
    stage.run(["stop", "new-name"]).ok();
    stage.run(["rm", "new-name"]).ok();
    stage.run(["undo", "new-name"]).ok();
    assert!(stage.worktree("1-new-name").is_dir());
}

#[test]
fn a_task_that_was_started_keeps_its_name() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    let check_refusal = || {
        let refusal = stage.refused(&["rename", "one", "other"]);
        assert!(refusal.starts_with("Error: 1-one cannot be renamed\n"), "{refusal}");
        assert!(refusal.contains("agency new other --base-branch agency/1-one"), "{refusal}");
    };
    check_refusal();
    stage.run(["stop", "one"]).ok();
    check_refusal();
    assert_eq!(stage.status("one"), "stopped");
    assert!(stage.worktree("1-one").is_dir());
}
