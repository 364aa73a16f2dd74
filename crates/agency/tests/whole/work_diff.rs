//! `agency diff`, and helpers for work in workspaces.

use std::fs;
use std::path::Path;

use agency_testkit::CommandOutput;
use serde_json::Value;

use crate::json::Schema;
use crate::stage::Stage;

/// A stage whose repository has a committer, and whose tasks wait at a prompt.
pub fn stage() -> Stage {
    let stage = Stage::new();
    for (key, value) in [("user.name", "Tester"), ("user.email", "tester@example.com")] {
        stage.git(&stage.repo(), &["config", key, value]);
    }
    stage
}

pub fn put(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().expect("a directory"))
        .and_then(|()| fs::write(path, content))
        .expect("room");
}

pub fn commit(stage: &Stage, dir: &Path, message: &str) {
    stage.git(dir, &["add", "--all"]);
    stage.git(dir, &["commit", "-qm", message]);
}

/// The paths of a JSON diff with their counts.
fn counted(diff: &Value) -> Vec<(String, u64, u64)> {
    let files = diff["files"].as_array().expect("files");
    let number = |file: &Value, key: &str| file[key].as_u64().expect("a number");
    let text = |file: &Value| file["path"].as_str().expect("a path").to_owned();
    files.iter().map(|file| (text(file), number(file, "additions"), number(file, "deletions"))).collect()
}

#[test]
fn diff_shows_all_of_the_work_and_is_a_patch() {
    let stage = stage();
    stage.play("one", "ask ready?");
    let worktree = stage.worktree("1-one");
    put(&worktree.join("committed.txt"), "a\nb\n");
    commit(&stage, &worktree, "work");
    put(&worktree.join("README.md"), "# changed\n");
    put(&worktree.join("new file ü.txt"), "untracked\n");
    // New commits of the base are not this task's work.
    put(&stage.repo().join("elsewhere"), "x\n");
    commit(&stage, &stage.repo(), "elsewhere");
    let status = stage.git(&worktree, &["status", "--porcelain"]);

    let json = stage.run(["diff", "one", "--json"]).json();
    Schema::of("diff").check(&json);
    let wanted = [("README.md", 1, 1), ("committed.txt", 2, 0), ("new file ü.txt", 1, 0)];
    assert_eq!(counted(&json), wanted.map(|(path, added, removed)| (path.to_owned(), added, removed)));
    assert_eq!((json["base"].as_str(), json["additions"].as_u64()), (Some("main"), Some(4)));
    let stat = stage.run(["diff", "one", "--stat"]).ok();
    assert!(stat.contains("3 files, 4 added, 1 removed\n") && stat.contains("new file ü.txt"), "{stat}");

    // The patch applies to the base, and `diff` changed nothing.
    let patch = stage.run(["diff", "one"]).ok();
    let mut apply = stage.command("git");
    apply.args(["apply", "-"]);
    CommandOutput::of(apply, patch.as_bytes()).ok();
    assert_eq!(fs::read_to_string(stage.repo().join("new file ü.txt")).expect("applied"), "untracked\n");
    assert_eq!(stage.git(&worktree, &["status", "--porcelain"]), status);
}

#[test]
fn diff_says_what_it_cannot_show() {
    let stage = stage();
    stage.play("one", "ask ready?");
    stage.run(["new", "idea", "--draft", "-m", "x"]).ok();
    let nothing = stage.run(["diff", "one"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (0, ""), "{nothing}");
    assert!(nothing.stderr.contains("1-one: no changes against main"), "{nothing}");
    let refusal = stage.refused(&["diff", "idea"]);
    assert!(refusal.contains("cannot compare workspace 2-idea"), "{refusal}");
    let refusal = stage.refused(&["diff", "one", "--turn", "3"]);
    assert!(refusal.contains("1-one has no recorded turn 3"), "{refusal}");
}

#[test]
fn diff_on_a_terminal_is_coloured_and_paged() {
    let stage = stage();
    stage.play("one", "ask ready?");
    put(&stage.worktree("1-one").join("new.txt"), "hello \x1b[2J\n");
    let pager = stage.home().join("pager");
    stage.write_program(&pager, b"#!/bin/sh\necho the pager\ncat -v\n");
    let mut showing = stage.agency(["diff", "one"]);
    showing.env("PAGER", &pager);
    let mut terminal = agency_testkit::Pty::spawn(showing, 80, 24);
    terminal.wait_for("the pager");
    terminal.wait_for("^[[32m+hello \\u{1b}[2J^[[0m");
    assert_eq!(terminal.wait_exit().code(), Some(0), "{terminal}");
}

#[test]
fn gits_configured_pager_is_preferred() {
    let stage = stage();
    stage.play("one", "ask ready?");
    put(&stage.worktree("1-one").join("new.txt"), "hello\n");
    let shown_by = |variables: &[(&str, &str)]| {
        let mut showing = stage.agency(["diff", "one"]);
        showing.env_remove("GIT_PAGER").envs(variables.iter().copied());
        let mut terminal = agency_testkit::Pty::spawn(showing, 80, 24);
        terminal.wait_for("shown by ");
        assert_eq!(terminal.wait_exit().code(), Some(0), "{terminal}");
        terminal.to_string()
    };
    let of_pager = ("PAGER", "echo shown by PAGER; cat >/dev/null");
    assert!(shown_by(&[of_pager]).contains("by PAGER"));
    stage.git(&stage.repo(), &["config", "core.pager", "echo shown by core.pager; cat >/dev/null"]);
    assert!(shown_by(&[of_pager]).contains("by core.pager"));
    let of_git = ("GIT_PAGER", "echo shown by GIT_PAGER; cat >/dev/null");
    assert!(shown_by(&[of_pager, of_git]).contains("by GIT_PAGER"));
}
