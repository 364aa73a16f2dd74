//! Task files, which users may edit by hand.

use std::fs;

use crate::stage::Stage;

#[test]
fn git_clean_does_not_delete_a_task() {
    let stage = Stage::new();
    stage.run(["new", "one", "-m", "the text", "--", "fake-agent", "-c", "ask ready?"]).ok();
    let before = stage.task_file("1-one");
    for restart in [false, true] {
        // With one -f, git keeps worktrees, because they are repositories of their own.
        stage.git(&stage.repo(), &["clean", "-fdx"]);
        assert!(!stage.task_path("1-one").exists());
        if restart {
            stage.kill_daemon();
        }
        assert_eq!(stage.status("one"), "running");
        assert_eq!(stage.task_file("1-one"), before);
    }
    assert!(stage.agent("one").is_alive());
}

#[test]
fn a_file_that_was_edited_by_hand_is_picked_up() {
    let stage = Stage::new();
    stage.run(["new", "one", "--draft", "-m", "the text", "--", "fake-agent", "-c", "args; ask ready?"]).ok();
    let edited =
        stage.task_file("1-one").replace("labels: []", "labels: [urgent]").replace("the text", "another");
    fs::write(stage.task_path("1-one"), edited).expect("ours");
    assert_eq!(stage.task("one")["labels"], serde_json::json!(["urgent"]));
    stage.run(["start", "one"]).ok();
    assert_eq!(stage.run(["exec", "one", "--", "sh", "-c", "echo $AGENCY_BODY"]).ok(), "another\n");
    assert!(stage.task_file("1-one").ends_with("---\nanother"));
}

#[test]
fn a_file_written_by_hand_is_a_task() {
    let stage = Stage::new();
    stage.listing();
    fs::create_dir_all(stage.repo().join(".agency/tasks")).expect("room");
    fs::write(stage.task_path("7-by-hand"), "---\nstatus: draft\nagent: fake\n---\nwhat to do\n")
        .expect("room");
    assert_eq!(stage.task("by-hand")["id"], 7);
    assert_eq!(stage.task("by-hand")["agent"], "shell", "`fake` is the name in files of earlier versions");
    assert_eq!(stage.run(["start", "by-hand"]).ok(), "7 by-hand running\n");
    assert_eq!(stage.run(["new", "next", "--draft", "-m", "x"]).ok(), "8 next draft\n");
}

#[test]
fn unknown_keys_and_the_body_survive_byte_for_byte() {
    let stage = Stage::new();
    stage.run(["new", "one", "--draft", "-m", "x", "--", "fake-agent", "-c", "ask ready?"]).ok();
    let file = stage.task_file("1-one");
    let (head, _) = file.strip_suffix("---\nx").map(|head| (head, ())).expect("front matter");
    let body =
        "\n# A *body*\r\n\twith --- and\n---\nmore: of it   \n\n\u{feff}and \u{1f680} no last line end";
    let strange = "# a comment\nestimate:   {days: 3,  sure: false} # by hand\nwatchers:\n  - ann\n  - bob\n";
    let edited = format!("{head}{strange}---\n{body}");
    fs::write(stage.task_path("1-one"), &edited).expect("ours");

    stage.run(["start", "one"]).ok();
    stage.run(["idle", "one"]).ok();
    stage.run(["stop", "one"]).ok();
    stage.run(["complete", "one"]).ok();
    let after = stage.task_file("1-one");
    let exit = after.lines().find(|line| line.starts_with("last_exit: ")).expect("an exit").to_owned();
    let expected = edited.replace("status: draft", "status: completed");
    let without_exit = after.replacen(&format!("{exit}\n"), "", 1);
    assert_eq!(without_exit, expected);
    let mirrored = fs::read_dir(stage.state().join("projects")).expect("projects").any(|project| {
        let mirror = project.expect("a project").path().join("tasks/1-one.md");
        fs::read_to_string(mirror).is_ok_and(|mirror| mirror == after)
    });
    assert!(mirrored);
}

#[test]
fn a_broken_file_leaves_the_other_tasks_working() {
    let stage = Stage::new();
    stage.play("good", "ask ready?");
    stage.run(["new", "bad", "--draft", "-m", "precious"]).ok();
    let whole = stage.task_file("2-bad");
    let broken = whole.replace("status: draft", "status: [unclosed");
    fs::write(stage.task_path("2-bad"), &broken).expect("ours");
    for _ in 0..2 {
        let listing = stage.listing();
        assert_eq!(listing["tasks"][0]["status"], "running");
        let why = listing["tasks"][1]["broken"].as_str().expect("why it cannot be used");
        assert!(!why.is_empty());
        stage.kill_daemon();
    }
    let ran = stage.run(["ls"]);
    assert!(ran.stdout.contains("broken") && ran.stderr.contains("2-bad"), "{ran}");
    let refusal = stage.refused(&["start", "bad"]);
    assert!(refusal.contains("2-bad.md") && refusal.contains("Hint: mend"), "{refusal}");
    assert_eq!(stage.task_file("2-bad"), broken, "what a person wrote is not touched");
    assert_eq!(stage.run(["stop", "good"]).ok(), "1 good stopped\n");

    fs::write(stage.task_path("2-bad"), whole).expect("ours");
    assert_eq!(stage.status("bad"), "draft");
}

#[test]
fn a_status_written_by_hand_is_accepted_if_possible() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    stage.run(["stop", "one"]).ok();
    let set = |status: &str| {
        let file = stage.task_file("1-one");
        let line = file.lines().find(|line| line.starts_with("status: ")).expect("a status").to_owned();
        fs::write(stage.task_path("1-one"), file.replace(&line, &format!("status: {status}"))).expect("ours");
    };
    set("reviewed");
    assert_eq!(stage.status("one"), "reviewed");
    set("running");
    // There is no process, so the daemon corrects the status in the file.
    assert_eq!(stage.status("one"), "stopped");
    assert!(stage.task_file("1-one").contains("status: stopped\n"));
}
