//! Turns: the files at the end of each turn are kept, listed and can be restored.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::conversations::{events, new_conversation, of_kind, wait_said, wait_why};
use crate::stage::{SOON, Stage};
use crate::undo::{hold, wait_file};

fn turns(stage: &Stage) -> Vec<Value> {
    stage.run(["turns", "fix", "--json"]).json()["turns"].as_array().expect("a list").clone()
}

/// Makes a turn that ends with the current files.
#[track_caller]
fn turn(stage: &Stage, text: &str, expected: usize) -> Vec<Value> {
    stage.run(["send", "fix", text]).ok();
    wait_said(stage, "fix", &format!("echo: {text}"));
    wait_why(stage, "fix", "finished");
    let turns = turns(stage);
    assert_eq!(turns.len(), expected, "{turns:?}");
    turns
}

fn files(stage: &Stage) -> Vec<(String, String)> {
    let entries = fs::read_dir(stage.worktree("1-fix")).expect("a workspace");
    let paths = entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file());
    let name = |path: &std::path::Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut files: Vec<(String, String)> = paths
        .filter(|path| ["a", "b"].contains(&name(path).as_str()))
        .map(|path| (name(&path), fs::read_to_string(&path).expect("text")))
        .collect();
    files.sort();
    files
}

fn pairs(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn each_turn_is_kept_and_can_be_taken_back() {
    let stage = Stage::new();
    new_conversation(&stage, "fix", "go", "prompt; say On it.; end");
    wait_why(&stage, "fix", "finished");
    assert!(turns(&stage).is_empty());
    let worktree = stage.worktree("1-fix");
    let write = |name: &str, text: &str| fs::write(worktree.join(name), text).expect("room");
    let head = stage.git(&worktree, &["rev-parse", "HEAD"]);
    write("a", "1\n");
    let first = turn(&stage, "one", 1);
    assert_eq!((first.len(), &first[0]["number"], &first[0]["files"]), (1, &1.into(), &1.into()));
    write("a", "1\n2\n3\n");
    write("b", "b\n");
    let second = turn(&stage, "two", 2);
    let changed = ["number", "files", "additions", "deletions"].map(|key| second[1][key].as_u64());
    assert_eq!(changed, [Some(2), Some(2), Some(3), Some(0)]);
    // A turn without changes has no number.
    stage.run(["send", "fix", "three"]).ok();
    wait_said(&stage, "fix", "echo: three");
    wait_why(&stage, "fix", "finished");
    assert_eq!(stage.git(&worktree, &["rev-parse", "HEAD"]), head);
    assert_eq!(stage.git(&worktree, &["status", "--porcelain"]), "?? a\n?? b\n");
    let told = events(&stage);
    let told: Vec<&Value> = of_kind(&told, "TurnKept").into_iter().map(|data| &data["turn"]).collect();
    assert_eq!(told, [&Value::from(1), &Value::from(2)]);

    let said = stage.run(["undo", "--turn", "fix"]);
    assert!(
        said.stdout
            .starts_with("restored the files of 1-fix to the state after turn 1\nundo: agency undo 1-fix-")
    );
    assert!(said.stderr.contains("its agent does not know"), "{said}");
    let id = said.stdout.trim_end().rsplit(' ').next().expect("an id").to_owned();
    assert_eq!(files(&stage), pairs(&[("a", "1\n")]));
    assert!(
        stage
            .run(["undo", "--turn", "fix"])
            .ok()
            .starts_with("restored the files of 1-fix to the state before its first turn\n")
    );
    assert_eq!(files(&stage), pairs(&[]));
    assert!(stage.refused(&["undo", "--turn", "fix"]).contains("no turn to undo"));
    assert!(stage.refused(&["undo", "--turn", "fix", "77"]).contains("there is no turn 77"));
    stage.run(["undo", "--turn", "fix", "2"]).ok();
    assert_eq!(files(&stage), pairs(&[("a", "1\n2\n3\n"), ("b", "b\n")]));
    stage.run(["undo", "--turn", "fix", "1"]).ok();
    stage.kill_daemon();
    stage.run(["undo", &id]).ok();
    assert_eq!(files(&stage), pairs(&[("a", "1\n2\n3\n"), ("b", "b\n")]));
    let list = stage.run(["turns", "fix"]).ok();
    assert!(list.contains("back to 1") && list.contains("brought back"), "{list}");
    assert!(
        stage
            .run(["undo", "--turn", "fix"])
            .ok()
            .starts_with("restored the files of 1-fix to the state after turn 1\n")
    );
}

#[test]
fn changes_since_the_last_turn_are_removed_with_it_and_kept_in_the_trash() {
    let stage = Stage::new();
    new_conversation(&stage, "fix", "go", "prompt; say On it.; end");
    wait_why(&stage, "fix", "finished");
    assert!(turns(&stage).is_empty());
    let worktree = stage.worktree("1-fix");
    fs::write(worktree.join("a"), "1\n").expect("room");
    turn(&stage, "one", 1);
    stage.run(["stop", "fix"]).ok();
    fs::write(worktree.join("a"), "by hand").expect("room");
    assert!(stage.refused(&["undo", "--turn", "fix", "7"]).contains("there is no turn 7"));
    assert_eq!(turns(&stage).len(), 1, "a refusal leaves nothing behind");
    let said = stage.run(["undo", "--turn", "fix"]).ok();
    assert!(said.starts_with("restored the files of 1-fix to the state before its first turn\n"), "{said}");
    assert_eq!(files(&stage), pairs(&[]));
    let id = said.trim_end().rsplit(' ').next().expect("an id").to_owned();
    stage.run(["undo", &id]).ok();
    assert_eq!(files(&stage), pairs(&[("a", "by hand")]));
}

#[test]
fn no_turn_is_taken_back_while_the_agent_works() {
    let stage = Stage::new();
    new_conversation(&stage, "fix", "go", "prompt; say On it.; wait; end");
    wait_said(&stage, "fix", "On it.");
    let refusal = stage.refused(&["undo", "--turn", "fix"]);
    assert!(refusal.contains("is at work") && refusal.contains("agency interrupt 1"), "{refusal}");
    stage.play("term", "say here; ask ready?");
    stage.run(["stop", "term"]).ok();
    assert!(stage.refused(&["undo", "--turn", "term"]).contains("no turn to undo"));
    assert_eq!(stage.run(["turns", "term", "--json"]).json()["turns"], serde_json::json!([]));
}

/// Blocks git when it is about to move the task's branch, until `go` exists; git creates `held` then.
fn hold_branch(stage: &Stage) -> (PathBuf, PathBuf) {
    let (held, go) = (stage.home().join("held"), stage.home().join("go"));
    let hook = format!(
        "#!/bin/sh\n[ \"$1\" = prepared ] || exit 0\ngrep -q refs/heads/agency/1-fix || exit 0\n\
         touch '{held}'\nwhile ! [ -e '{go}' ]; do sleep 0.05; done\n",
        go = go.display(),
        held = held.display()
    );
    stage.write_program(&stage.repo().join(".git/hooks/reference-transaction"), hook.as_bytes());
    (held, go)
}

#[test]
fn during_a_sync_no_turn_is_taken_back_and_messages_wait() {
    let stage = crate::work_diff::stage();
    new_conversation(&stage, "fix", "go", "prompt; say On it.; end");
    wait_why(&stage, "fix", "finished");
    fs::write(stage.worktree("1-fix").join("a"), "1\n").expect("room");
    turn(&stage, "one", 1);
    fs::write(stage.repo().join("base"), "x\n").expect("room");
    crate::work_diff::commit(&stage, &stage.repo(), "base");
    let (held, go) = hold_branch(&stage);
    std::thread::scope(|scope| {
        let syncing = scope.spawn(|| stage.run(["sync", "fix"]));
        stage.eventually("a hook holds the sync", SOON, || held.exists().then_some(()));
        let refusal = stage.refused(&["undo", "--turn", "fix"]);
        assert!(refusal.contains("task 1 is being synced"), "{refusal}");
        let receipt = stage.run(["send", "fix", "more"]);
        assert!(format!("{receipt}").contains("its files are being changed"), "{receipt}");
        assert_eq!(stage.task("fix")["queued"], 1);
        fs::write(&go, "").expect("room");
        syncing.join().expect("no panic").ok();
    });
    wait_said(&stage, "fix", "echo: more");
    assert!(stage.worktree("1-fix").join("base").exists());
}

#[test]
fn a_turn_that_was_being_taken_back_when_the_daemon_was_killed_is_taken_back() {
    let stage = Stage::new();
    new_conversation(&stage, "fix", "go", "prompt; say On it.; end");
    wait_why(&stage, "fix", "finished");
    let worktree = stage.worktree("1-fix");
    let head = stage.git(&worktree, &["rev-parse", "HEAD"]);
    fs::write(worktree.join("a"), "1\n").expect("room");
    turn(&stage, "one", 1);
    fs::write(worktree.join("b"), "b\n").expect("room");
    stage.git(&worktree, &["add", "b"]);
    stage.git(&worktree, &["commit", "-qm", "b"]);
    turn(&stage, "two", 2);
    // The files are written, and the branch is about to move.
    let (held, go) = hold(&stage, "prepared", "refs/heads/agency/1-fix");
    std::thread::scope(|scope| {
        let restoring = scope.spawn(|| stage.run(["undo", "--turn", "fix"]));
        let hook = wait_file(&stage, &held);
        assert_eq!(files(&stage), pairs(&[("a", "1\n")]));
        stage.kill_daemon();
        // Without its hook, git does not move the branch.
        let killed = std::process::Command::new("kill").args(["-9", hook.trim()]).status();
        assert!(killed.expect("kill").success());
        fs::write(&go, "").expect("room");
        assert_eq!(restoring.join().expect("no panic").code, 1);
    });
    stage.listing();
    let state = || {
        let pending = stage.git(&stage.repo(), &["for-each-ref", "refs/agency/restoring"]);
        (stage.git(&worktree, &["rev-parse", "HEAD"]), files(&stage), pending)
    };
    let expected = (head, pairs(&[("a", "1\n")]), String::new());
    stage.eventually("the turn is taken back", SOON, || (state() == expected).then_some(()));
}
