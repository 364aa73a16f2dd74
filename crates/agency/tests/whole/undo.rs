//! Trash and undo: a removed task comes back complete, also after killed daemons.

use std::fs;
use std::path::{Path, PathBuf};

use agency_testkit::{Process, Pty};
use serde_json::Value;

use crate::conversations::{chat, events, new_conversation, wait_said};
use crate::stage::{SOON, Stage};

/// A task with work of every kind in its workspace.
fn task_with_work(stage: &Stage) -> (String, String) {
    fs::write(stage.repo().join(".gitignore"), "*.log\n").expect("room");
    stage.git(&stage.repo(), &["add", ".gitignore"]);
    stage.git(&stage.repo(), &["commit", "-qm", "ignore"]);
    let new = ["new", "one", "--no-attach", "--label", "blue", "-m", "the text\nof it\n"];
    stage.run(new.into_iter().chain(["--", "fake-agent", "-c", "say hello there; ask ready?"])).ok();
    stage.wait_printed("one", "hello there");
    let worktree = stage.worktree("1-one");
    for file in ["committed", "staged", "untracked", "ignored.log"] {
        fs::write(worktree.join(file), file).expect("room");
    }
    stage.git(&worktree, &["add", "committed"]);
    stage.git(&worktree, &["commit", "-qm", "work"]);
    stage.git(&worktree, &["add", "staged"]);
    stage.run(["stop", "one"]).ok();
    workspace_and_file(stage)
}

/// Git's view of the workspace, and the task's file.
fn workspace_and_file(stage: &Stage) -> (String, String) {
    let worktree = stage.worktree("1-one");
    let git = ["status", "--porcelain", "--branch", "--ignored"];
    let state = stage.git(&worktree, &git) + &stage.git(&worktree, &["rev-parse", "agency/1-one"]);
    (state, stage.task_file("1-one"))
}

fn trash(stage: &Stage) -> Vec<Value> {
    stage.run(["undo", "--list", "--json"]).json()["entries"].as_array().expect("a list").clone()
}

pub(crate) fn wait_file(stage: &Stage, path: &Path) -> String {
    let written = || fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'));
    stage.eventually("a file is written", SOON, written)
}

#[test]
fn a_removed_task_comes_back_with_files_index_branch_text_and_history() {
    let stage = Stage::with_config("[workspace]\nkeep_ignored = true\n");
    let before = task_with_work(&stage);
    let refusal = stage.refused(&["rm", "one"]);
    assert!(refusal.contains("--discard"), "{refusal}");
    assert_eq!((workspace_and_file(&stage), trash(&stage).len()), (before.clone(), 0), "nothing changed");
    let gone = stage.run(["rm", "one", "--discard"]);
    assert!(gone.stderr.contains("undo: agency undo 1-one-"), "{gone}");
    assert_eq!(stage.listing()["tasks"], serde_json::json!([]));
    assert!(!stage.worktree("1-one").exists());
    assert_eq!(stage.git(&stage.repo(), &["branch", "--list", "agency/*"]), "");

    stage.kill_daemon();
    let entries = trash(&stage);
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!((&entries[0]["what"], &entries[0]["why"]), (&"task".into(), &"agency rm --discard".into()));
    assert!(entries[0]["bytes"].as_u64().is_some_and(|bytes| bytes > 20), "{entries:?}");
    assert!(stage.run(["undo", "--list"]).ok().contains("agency rm --discard"));
    assert_eq!(stage.run(["undo"]).ok(), "restored 1-one (stopped)\n");
    assert_eq!(workspace_and_file(&stage), before);
    assert_eq!(fs::read_to_string(stage.worktree("1-one").join("ignored.log")).expect("kept"), "ignored.log");
    assert!(stage.logs("one").contains("hello there"));
    assert_eq!(stage.task("one")["labels"], serde_json::json!(["blue"]));
    assert_eq!(trash(&stage).len(), 0);
    assert!(stage.refused(&["undo"]).contains("no task was removed"));
    stage.run(["start", "one"]).ok();
    stage.run(["new", "two", "--draft", "-m", "x"]).ok();
    assert_eq!(stage.task("two")["id"], 2, "ids are never given twice");
}

#[test]
fn a_removal_names_ignored_files_before_it_deletes_them() {
    let stage = Stage::new();
    task_with_work(&stage);
    let gone = stage.run(["rm", "one", "--discard"]);
    assert!(gone.stderr.starts_with("1 ignored file (11 bytes) cannot be restored later\n"), "{gone}");
    let events = events(&stage);
    let at = |kind: &str| events.iter().position(|event| event["type"] == kind);
    assert!(at("RemovalStarted").expect("an event") < at("TaskRemoved").expect("an event"), "{events:?}");
    stage.run(["undo"]).ok();
    assert!(!stage.worktree("1-one").join("ignored.log").exists());
}

#[test]
fn a_conversation_and_queued_messages_come_back() {
    let stage = Stage::new();
    new_conversation(&stage, "fix", "fix the login", "prompt; say On it.; end");
    wait_said(&stage, "fix", "turn ended");
    stage.run(["stop", "fix"]).ok();
    stage.run(["send", "fix", "--queue", "more"]).ok();
    let before = chat(&stage, "fix");
    stage.run(["rm", "fix"]).ok();
    stage.kill_daemon();
    stage.run(["undo", "fix"]).ok();
    assert_eq!(chat(&stage, "fix"), before);
    assert_eq!(stage.task("fix")["queued"], 1);
    stage.run(["start", "fix"]).ok();
    wait_said(&stage, "fix", "> more");
}

#[test]
fn a_draft_comes_back_and_replaces_nothing() {
    let stage = Stage::new();
    stage.run(["new", "idea", "--draft", "-m", "an idea"]).ok();
    let before = stage.task_file("1-idea");
    stage.run(["rm", "idea"]).ok();
    let other = stage.task_path("1-other");
    fs::write(&other, "---\nstatus: draft\n---\nby hand\n").expect("room");
    let refusal = stage.refused(&["undo"]);
    assert!(refusal.contains("1-other has the same id") && refusal.contains("Hint: "), "{refusal}");
    stage.run(["rm", "other"]).ok();
    assert_eq!(stage.run(["undo", "idea"]).ok(), "restored 1-idea (draft)\n");
    assert_eq!(stage.task_file("1-idea"), before);
    assert!(stage.refused(&["undo", "other"]).contains("1-idea has the same id"));
    assert!(stage.refused(&["undo", "nothing"]).contains("the trash has nothing called `nothing`"));
}

#[test]
fn an_existing_branch_is_not_touched() {
    let stage = Stage::new();
    let before = task_with_work(&stage);
    stage.run(["rm", "one", "--discard"]).ok();
    stage.git(&stage.repo(), &["branch", "agency/1-one", "main"]);
    let refusal = stage.refused(&["undo"]);
    assert!(refusal.contains("the branch agency/1-one exists already"), "{refusal}");
    assert_eq!((trash(&stage).len(), stage.listing()["tasks"].clone()), (1, serde_json::json!([])));
    stage.git(&stage.repo(), &["branch", "-D", "agency/1-one"]);
    stage.run(["undo"]).ok();
    let now = workspace_and_file(&stage);
    assert_eq!(now.0.replace("!! ignored.log\n", ""), before.0.replace("!! ignored.log\n", ""));
    assert!(!stage.worktree("1-one").join("ignored.log").exists(), "not kept unless asked for");
}

#[test]
fn a_removal_killed_during_its_teardown_is_taken_back() {
    let stage = Stage::with_config(
        "[workspace]\nteardown = [\"sh\", \"-c\", 'echo $$ > ../../../pid; sleep 1000']\n",
    );
    let before = task_with_work(&stage);
    std::thread::scope(|scope| {
        let removing = scope.spawn(|| stage.run(["rm", "one", "--discard"]));
        let pid = wait_file(&stage, &stage.repo().join("pid"));
        let shell = Process::find(pid.trim().parse().expect("a pid")).expect("it lives");
        assert!(stage.refused(&["start", "one"]).contains("is being removed"));
        stage.kill_daemon();
        assert_eq!(removing.join().expect("no panic").code, 1);
        assert_eq!(stage.status("one"), "stopped");
        assert!(!shell.is_alive());
    });
    assert_eq!((workspace_and_file(&stage), trash(&stage).len()), (before, 0));
    assert!(stage.daemon_log().contains("undid an interrupted removal"));
}

/// Blocks git at this step of a ref transaction, until `go` exists; git creates `held` then.
pub(crate) fn hold(stage: &Stage, step: &str, reference: &str) -> (PathBuf, PathBuf) {
    let (held, go) = (stage.repo().join("held"), stage.repo().join("go"));
    let hook = format!(
        "#!/bin/sh\n[ \"$1\" = {step} ] || exit 0\ngrep -q {reference} || exit 0\n\
         [ -e '{go}' ] && exit 0\necho $$ > '{held}'\nwhile [ ! -e '{go}' ]; do sleep 0.05; done\n",
        go = go.display(),
        held = held.display()
    );
    stage.write_program(&stage.repo().join(".git/hooks/reference-transaction"), hook.as_bytes());
    (held, go)
}

/// Kills the daemon at a step of a removal; `between` runs before the next daemon starts.
#[track_caller]
fn kill_during_removal(stage: &Stage, step: &str, reference: &str, between: impl FnOnce()) {
    let (held, go) = hold(stage, step, reference);
    std::thread::scope(|scope| {
        let removing = scope.spawn(|| stage.run(["rm", "one", "--discard"]));
        wait_file(stage, &held);
        // A removal in progress is not yet an entry that `gc --trash` could delete.
        stage.run(["gc", "--trash", "--older-than", "0s"]).ok();
        stage.kill_daemon();
        between();
        fs::write(&go, "").expect("room");
        assert_eq!(removing.join().expect("no panic").code, 1);
    });
}

/// The next daemon finishes the removal.
#[track_caller]
fn check_removal_killed_at(step: &str, reference: &str) {
    let stage = Stage::with_config("[workspace]\nkeep_ignored = true\n");
    let before = task_with_work(&stage);
    kill_during_removal(&stage, step, reference, || {});
    assert_eq!(stage.listing()["tasks"], serde_json::json!([]), "{}", stage.daemon_log());
    assert!(stage.daemon_log().contains("finished an interrupted removal"));
    assert!(!stage.worktree("1-one").exists());
    assert_eq!(stage.git(&stage.repo(), &["branch", "--list", "agency/*"]), "");
    stage.run(["undo", "one"]).ok();
    assert_eq!(workspace_and_file(&stage), before);
}

#[test]
fn a_removal_that_cannot_be_finished_keeps_its_workspace_closed_until_it_can() {
    let stage = Stage::with_config("[workspace]\nkeep_ignored = true\n");
    let before = task_with_work(&stage);
    let broken = stage.repo().join(".git/refs/agency/trash/1-one-1");
    kill_during_removal(&stage, "prepared", "refs/heads/agency/1-one", || {
        fs::write(&broken, "1234567890123456789012345678901234567890\n").expect("room");
    });
    for command in [&["start", "one"][..], &["rm", "one"]] {
        let refusal = stage.refused(command);
        assert!(refusal.contains("missing object"), "{refusal}");
    }
    let refusal = stage.refused(&["start", "one"]);
    assert!(
        refusal.contains("was interrupted") && refusal.contains("`agency rm 1` tries again"),
        "{refusal}"
    );
    fs::remove_file(&broken).expect("there");
    assert!(stage.run(["rm", "one"]).ok().contains("1 one removed"));
    stage.run(["undo", "one"]).ok();
    assert_eq!(workspace_and_file(&stage), before);
}

#[test]
fn a_removal_killed_after_everything_is_kept_is_finished() {
    check_removal_killed_at("committed", "refs/agency/trash/");
}

#[test]
fn a_removal_killed_before_it_deletes_the_branch_is_finished() {
    check_removal_killed_at("prepared", "refs/heads/agency/1-one");
}

#[test]
fn a_killed_undo_is_finished() {
    let stage = Stage::with_config("[workspace]\nkeep_ignored = true\n");
    let before = task_with_work(&stage);
    stage.run(["rm", "one", "--discard"]).ok();
    let (held, go) = (stage.repo().join("held"), stage.repo().join("go"));
    let hook = format!(
        "#!/bin/sh\n[ -e '{go}' ] && exit 0\necho $$ > '{held}'\nwhile [ ! -e '{go}' ]; do sleep 0.05; done\n",
        go = go.display(),
        held = held.display()
    );
    stage.write_program(&stage.repo().join(".git/hooks/post-checkout"), hook.as_bytes());
    std::thread::scope(|scope| {
        let restoring = scope.spawn(|| stage.run(["undo"]));
        wait_file(&stage, &held);
        stage.kill_daemon();
        fs::write(&go, "").expect("room");
        assert_eq!(restoring.join().expect("no panic").code, 1);
    });
    assert_eq!(stage.status("one"), "stopped", "{}", stage.daemon_log());
    assert_eq!(workspace_and_file(&stage), before);
    assert!(stage.logs("one").contains("hello there"));
}

fn verdicts(listing: &Value) -> Vec<(String, bool, String)> {
    let tasks = listing["tasks"].as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    tasks
        .map(|task| (text(&task["slug"]), task["goes"].as_bool().expect("a truth"), text(&task["reason"])))
        .collect()
}

#[test]
fn gc_removes_finished_tasks_and_says_why_the_others_stay() {
    let stage = Stage::new();
    for slug in ["lives", "empty", "merged", "ahead", "dirty"] {
        stage.play(slug, "say here; ask ready?");
    }
    stage.run(["new", "draft", "--draft", "-m", "x"]).ok();
    for (id, slug) in [(2, "empty"), (3, "merged"), (4, "ahead"), (5, "dirty")] {
        stage.run(["stop", slug]).ok();
        if slug != "empty" {
            let worktree = stage.worktree(&format!("{id}-{slug}"));
            fs::write(worktree.join(slug), slug).expect("room");
            if slug != "dirty" {
                stage.git(&worktree, &["add", slug]);
                stage.git(&worktree, &["commit", "-qm", slug]);
            }
        }
    }
    stage.run(["complete", "merged"]).ok();
    stage.run(["complete", "ahead"]).ok();
    stage.git(&stage.repo(), &["merge", "-q", "agency/3-merged"]);
    let planned = stage.run(["gc", "--dry-run", "--json"]).json();
    let expected = [
        ("lives", false, "its agent is running"),
        ("empty", true, "stopped, and all of its work is in main"),
        ("merged", true, "completed, and all of its work is in main"),
        ("ahead", false, "1 commit is not in main"),
        ("dirty", false, "not committed: dirty"),
        ("draft", false, "it is a draft"),
    ];
    let expected = expected.map(|(slug, goes, why)| (slug.to_owned(), goes, why.to_owned()));
    assert_eq!(verdicts(&planned), expected);
    assert_eq!(stage.listing()["tasks"].as_array().map(Vec::len), Some(6), "nothing was removed");
    let said = stage.run(["gc"]).ok();
    assert!(said.contains("removed  completed, and all of its work is in main"), "{said}");
    assert_eq!(stage.listing()["tasks"].as_array().map(Vec::len), Some(4));
    assert!(stage.agent("lives").is_alive());
    let entries = trash(&stage);
    assert_eq!(entries[0]["why"], "agency gc: completed, and all of its work is in main");
    stage.run(["undo", "empty"]).ok();
    assert!(stage.worktree("2-empty").is_dir());

    let kept = stage.run(["gc", "--trash"]).ok();
    assert_eq!(kept, "0 items deleted, 1 item left in the trash\n");
    let runs = || fs::read_dir(stage.state().join("r")).expect("runs").count();
    let before = runs();
    let planned = stage.run(["gc", "--trash", "--older-than", "0s", "--dry-run"]).ok();
    assert!(planned.ends_with("1 item would be deleted, 0 items left in the trash\n"), "{planned}");
    assert_eq!((runs(), trash(&stage).len()), (before, 1));
    stage.run(["gc", "--trash", "--older-than", "0s"]).ok();
    assert_eq!((runs(), trash(&stage).len()), (before - 1, 0), "only the run of the one that expired");
    assert_eq!(stage.git(&stage.repo(), &["for-each-ref", "refs/agency/trash"]), "");
    assert!(stage.refused(&["undo", "merged"]).contains("the trash has nothing called"));
}

#[test]
fn nothing_can_be_restored_while_the_trash_is_emptied() {
    let stage = Stage::new();
    task_with_work(&stage);
    stage.run(["rm", "one", "--discard"]).ok();
    let (held, go) = hold(&stage, "prepared", "refs/agency/trash/");
    std::thread::scope(|scope| {
        let expiring = scope.spawn(|| stage.run(["gc", "--trash", "--older-than", "0s"]));
        wait_file(&stage, &held);
        for command in [&["undo", "one"][..], &["gc", "--trash", "--older-than", "0s"]] {
            let refusal = stage.refused(command);
            assert!(refusal.contains("is being emptied"), "{refusal}");
        }
        fs::write(&go, "").expect("room");
        let said = expiring.join().expect("no panic").ok();
        assert!(said.ends_with("1 item deleted, 0 items left in the trash\n"), "{said}");
    });
    assert!(stage.refused(&["undo", "one"]).contains("the trash has nothing called `one`"));
}

#[test]
fn a_removal_shows_on_a_terminal_that_it_saves_files() {
    let stage = Stage::new();
    task_with_work(&stage);
    // Git reads this file until the test lets it go on.
    let (held, go) = (stage.home().join("held"), stage.home().join("go"));
    let waits =
        format!("echo >'{}'; while ! test -e '{}'; do sleep 0.05; done", held.display(), go.display());
    stage.git(&stage.repo(), &["config", "filter.slow.clean", &format!("{waits}; cat")]);
    fs::write(stage.repo().join(".git/info/attributes"), "slow filter=slow\n").expect("room");
    fs::write(stage.worktree("1-one").join("slow"), "slow").expect("room");
    let mut terminal = Pty::spawn(stage.agency(["rm", "one", "--discard"]), 80, 24);
    wait_file(&stage, &held);
    terminal.wait_for("removing the task \u{2026}");
    fs::write(&go, "").expect("room");
    terminal.wait_for("1 one removed");
    assert!(terminal.wait_exit().success());
}
