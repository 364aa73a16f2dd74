//! Remarks about a task's work: they follow their lines, survive the daemon, and are sent once.

use std::fs;

use agency_testkit::Pause;
use serde_json::Value;

use crate::json::Schema;
use crate::stage::{SOON, Stage};
use crate::state_log::NO_SILENCE;
use crate::work_diff::{commit, put, stage};

const CODE: &str = "fn one() {\n    open();\n}\n\nfn two() {\n    shut();\n}\n";

/// The state, line and text of each remark.
fn remarks(stage: &Stage) -> Vec<(String, Option<u64>, String)> {
    let listed = stage.run(["remarks", "one", "--json"]).json();
    Schema::of("remarks").check(&listed);
    let text = |remark: &Value, key: &str| remark[key].as_str().expect("a text").to_owned();
    let remark = |remark: &Value| (text(remark, "state"), remark["line"].as_u64(), text(remark, "text"));
    listed["remarks"].as_array().expect("a list").iter().map(remark).collect()
}

fn shown(state: &str, line: u64, text: &str) -> (String, Option<u64>, String) {
    (state.to_owned(), Some(line), text.to_owned())
}

#[test]
fn remarks_follow_their_lines_and_are_sent_once() {
    let stage = stage();
    stage.configure(NO_SILENCE);
    let pause = Pause::at(stage.home().join("pause"));
    stage.play("one", &format!("say busy; await {}; loop; ask more>; end", pause.path().display()));
    stage.wait_state("one", "running (kernel)");
    let file = stage.worktree("1-one").join("src/a.rs");
    put(&file, CODE);
    assert_eq!(
        stage.run(["remark", "one", "src/a.rs:2", "close", "it", "too"]).ok(),
        "remark 1 on src/a.rs:2\n"
    );
    stage.run(["remark", "one", "src/a.rs:6", "a better name"]).ok();
    assert!(stage.refused(&["remark", "one", "README.md:1", "--old", "why?"]).contains("has no line 1"));
    assert!(stage.refused(&["remark", "one", "src/a.rs:99", "x"]).contains("src/a.rs has no line 99"));
    assert!(stage.refused(&["remark", "one", "nowhere:1", "x"]).contains("cannot read nowhere"));
    assert!(stage.refused(&["remark", "one", "../x:1", "x"]).contains("workspace"));

    stage.kill_daemon();
    put(&file, &format!("use std::fs;\n\n{}", CODE.replace("shut()", "close()")));
    commit(&stage, &stage.worktree("1-one"), "the agent goes on");
    let moved = [shown("open", 4, "close it too"), shown("outdated", 6, "a better name")];
    assert_eq!(remarks(&stage), moved);

    let sent = stage.run(["remark", "one", "--send"]);
    assert!(sent.code == 0 && sent.stderr.contains("1 remark sent to the agent as one message"), "{sent}");
    stage.kill_daemon();
    assert_eq!(stage.task("one")["queued"], 1);
    pause.release();
    stage.eventually("the agent has it", SOON, || stage.logs("one").contains("close it too").then_some(()));
    assert_eq!(remarks(&stage), [shown("sent", 4, "close it too"), shown("outdated", 6, "a better name")]);
    assert!(stage.refused(&["remark", "one", "--send"]).contains("task 1 has no open remarks"));
    assert_eq!(stage.run(["remark", "one", "--drop", "2"]).ok(), "remark 2 dropped\n");
    assert!(stage.refused(&["remark", "one", "--drop", "2"]).contains("task 1 has no remark 2"));
}

#[test]
fn remarks_go_to_the_trash_with_their_task_and_come_back() {
    let stage = stage();
    stage.play("one", "ask ready?");
    put(&stage.worktree("1-one").join("src/a.rs"), CODE);
    stage.run(["remark", "one", "src/a.rs:2", "close it"]).ok();
    stage.run(["remark", "one", "--whole", "add tests"]).ok();
    stage.run(["stop", "one"]).ok();
    stage.run(["rm", "one", "--discard"]).ok();
    stage.run(["undo"]).ok();
    let whole = ("open".to_owned(), None, "add tests".to_owned());
    assert_eq!(remarks(&stage), [shown("open", 2, "close it"), whole]);
    fs::remove_file(stage.worktree("1-one").join("src/a.rs")).expect("it is there");
    assert_eq!(remarks(&stage)[0], shown("outdated", 2, "close it"));
}

/// A daemon that is killed after it queued the message, but before it marked the remarks, leaves them so.
#[test]
fn a_kill_between_queueing_and_marking_sends_nothing_twice_and_loses_nothing() {
    let stage = stage();
    stage.play("one", "ask ready?");
    put(&stage.worktree("1-one").join("src/a.rs"), CODE);
    stage.run(["stop", "one"]).ok();
    stage.run(["remark", "one", "src/a.rs:2", "close it"]).ok();
    stage.run(["remark", "one", "--send"]).ok();
    let queue = stage.run(["queue", "one", "--json"]).json();
    let number = queue["queued"][0]["id"].as_u64().expect("a number");
    let wanted =
        "I have reviewed your work. Please address these remarks:\n\nsrc/a.rs:2\n>     open();\nclose it";
    assert_eq!(queue["queued"][0]["text"], wanted);
    for (leaving, state) in [(number, "sent"), (number + 1, "open")] {
        stage.kill_daemon();
        let path = saved(&stage);
        let mut kept: Value = serde_json::from_slice(&fs::read(&path).expect("saved")).expect("JSON");
        kept["remarks"][0]["delivery"] = serde_json::json!({ "leaving": leaving });
        fs::write(&path, kept.to_string()).expect("room");
        assert_eq!(remarks(&stage), [shown(state, 2, "close it")]);
    }
    stage.run(["remark", "one", "--send"]).ok();
    assert_eq!(remarks(&stage), [shown("sent", 2, "close it")]);
}

/// The file with the remarks of task 1.
fn saved(stage: &Stage) -> std::path::PathBuf {
    let projects = fs::read_dir(stage.state().join("projects")).expect("projects");
    let paths = projects.map(|project| project.expect("readable").path().join("w/1/remarks.json"));
    paths.into_iter().find(|path| path.exists()).expect("saved remarks")
}
