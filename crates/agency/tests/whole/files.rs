//! `agency files`, `cat` and `write`: files in a workspace, and nothing outside of it.

use std::fs;
use std::os::unix::fs::symlink;

use agency_testkit::CommandOutput;

use crate::stage::{Stage, refused};

fn write(stage: &Stage, args: &[&str], content: &[u8]) -> CommandOutput {
    let words = ["write", "one"].iter().chain(args);
    CommandOutput::of(stage.agency(words), content)
}

#[test]
fn files_are_listed_read_and_written_in_the_workspace() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    let made = write(&stage, &["notes.md"], b"one\n").ok();
    assert_eq!(fs::read(stage.worktree("1-one").join("notes.md")).expect("a file"), b"one\n");
    assert!(stage.run(["files", "one"]).ok().lines().any(|line| line == "notes.md"));
    assert_eq!(stage.run(["cat", "one", "notes.md"]).ok(), "one\n");
    let read = stage.run(["cat", "one", "notes.md", "--json"]).json();
    assert_eq!((&read["digest"], &read["size"]), (&made.trim().into(), &4.into()));
    let digest = read["digest"].as_str().expect("a digest");
    let refusal = refused(write(&stage, &["notes.md"], b"blind\n"));
    assert!(refusal.contains("exists already") && refusal.contains(digest), "{refusal}");

    fs::write(stage.worktree("1-one").join("notes.md"), "the agent was here\n").expect("room");
    let refusal = refused(write(&stage, &["notes.md", "--expect", digest], b"two\n"));
    assert!(refusal.contains("notes.md has changed"), "{refusal}");
    assert_eq!(stage.run(["cat", "one", "notes.md"]).ok(), "the agent was here\n");
    let now = stage.run(["cat", "one", "notes.md", "--json"]).json();
    write(&stage, &["notes.md", "--expect", now["digest"].as_str().expect("a digest")], b"two\n").ok();
    assert_eq!(stage.run(["cat", "one", "notes.md"]).ok(), "two\n");
    let status = stage.git(&stage.worktree("1-one"), &["status", "--porcelain"]);
    assert_eq!(status, "?? notes.md\n", "nothing else is left in the workspace");
}

#[test]
fn a_long_file_is_printed_whole() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    let long: String = (0..800_000).map(|number| format!("{number:08}\n")).collect();
    fs::write(stage.worktree("1-one").join("long"), &long).expect("room");
    assert!(stage.run(["cat", "one", "long"]).ok() == long, "more than one part");
    let part = stage.run(["cat", "one", "long", "--json"]).json();
    assert_eq!((&part["more"], &part["size"]), (&true.into(), &long.len().into()));
}

#[test]
fn no_path_leaves_the_workspace() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    let (inside, secret) = (stage.worktree("1-one"), stage.home().join("secret"));
    fs::write(&secret, "secret").expect("room");
    symlink(&secret, inside.join("link")).expect("room");
    symlink(stage.home(), inside.join("door")).expect("room");
    let absolute = secret.to_str().expect("text");
    for path in ["link", "door/secret", "../../../../README.md", absolute] {
        let document = stage.run(["cat", "one", path, "--json"]);
        let failure: serde_json::Value = serde_json::from_str(&document.stdout).expect("JSON");
        assert_eq!(failure["error"]["code"], "outside_workspace", "{path}: {document}");
        assert!(!document.stdout.contains("secret\"}"), "{document}");
    }
    for path in ["link", "door/new", "../new", ".git"] {
        refused(write(&stage, &[path], b"mine"));
    }
    refused(stage.run(["files", "one", "door"]));
    assert_eq!(fs::read(&secret).expect("a file"), b"secret");
    assert!(!stage.home().join("new").exists());
    let listed = stage.run(["files", "one"]).ok();
    assert!(listed.contains(&format!("link -> {absolute}")), "{listed}");
}
