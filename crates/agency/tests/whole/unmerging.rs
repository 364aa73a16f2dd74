//! `agency undo` takes merges back, and whole garbage collections.

use std::fs;

use crate::json::Schema;
use crate::merging::{completed_task, install_hook, log, repository};
use crate::stage::{SOON, Stage};
use crate::work_diff::{commit, put, stage};

#[test]
fn a_merge_of_every_kind_is_taken_back() {
    let stage = stage();
    for (slug, way) in [("plain", "--commit"), ("squash", "--squash"), ("rebase", "--rebase"), ("ff", "--ff")]
    {
        completed_task(&stage, slug, slug);
        let before = repository(&stage);
        stage.run(["merge", slug, way]).ok();
        let list = stage.run(["undo", "--list"]).ok();
        assert!(list.contains(&format!("-{slug}")) && list.contains("merged into main"), "{list}");
        let undone = stage.run(["undo"]);
        let id = stage.task(slug)["id"].clone();
        assert_eq!(undone.stdout, format!("undid the merge of {id}-{slug} (completed)\n"), "{undone}");
        assert!(undone.stderr.contains("updated your checkout: "), "{undone}");
        assert_eq!((repository(&stage), stage.status(slug)), (before, "completed".to_owned()));
        assert!(!stage.repo().join(slug).exists());
        assert!(!stage.run(["undo", "--list"]).ok().contains("merged into"));
    }
    stage.run(["merge", "plain"]).ok();
    let undone = stage.run(["undo", "plain", "--json"]).json();
    Schema::of("undo").check(&undone);
    assert_eq!(undone["entry"]["what"], "merge");
    stage.run(["merge", "plain", "--squash"]).ok();
    assert!(stage.repo().join("plain").exists());

    stage.git(&stage.repo(), &["branch", "develop", "HEAD~1"]);
    stage.run(["merge", "ff", "--into", "develop"]).ok();
    let before = log(&stage, "develop");
    stage.run(["undo", "ff"]).ok();
    assert_eq!(log(&stage, "develop"), before[2..]);
}

#[test]
fn a_merge_with_work_on_top_of_it_stays() {
    let stage = stage();
    completed_task(&stage, "one", "a");
    stage.run(["merge", "one"]).ok();
    put(&stage.repo().join("README.md"), "# mine\n");
    let refusal = stage.refused(&["undo", "one"]);
    assert!(refusal.contains("with uncommitted changes: README.md"), "{refusal}");
    stage.git(&stage.repo(), &["checkout", "-q", "README.md"]);

    stage.git(&stage.repo(), &["branch", "other"]);
    let refusal = stage.refused(&["undo", "one"]);
    assert!(refusal.contains("other has the merge, too") && refusal.contains("git revert"), "{refusal}");
    stage.git(&stage.repo(), &["branch", "-q", "-D", "other"]);

    put(&stage.repo().join("b"), "b\n");
    commit(&stage, &stage.repo(), "later");
    let before = repository(&stage);
    let refusal = stage.refused(&["undo", "one"]);
    assert!(refusal.contains("main has moved on since the merge"), "{refusal}");
    assert!(stage.refused(&["undo"]).contains("no task was removed or merged"));
    assert_eq!((repository(&stage), stage.status("one")), (before, "merged".to_owned()));
}

/// Kills the daemon while git takes the merge back, at this state of the transaction that moves `main`.
fn kill_during_undo(stage: &Stage, state: &str) {
    completed_task(stage, "one", "README.md");
    stage.run(["merge", "one"]).ok();
    let (held, go) = (stage.home().join("held"), stage.home().join("go"));
    let script = format!(
        "test \"$1\" = {state} && grep -q ' refs/heads/main$' || exit 0\ntest -e '{go}' && exit 0\n\
         touch '{held}'\nwhile ! test -e '{go}'; do sleep 0.05; done",
        go = go.display(),
        held = held.display()
    );
    install_hook(stage, "reference-transaction", &script);
    std::thread::scope(|scope| {
        let undoing = scope.spawn(|| stage.run(["undo"]));
        stage.eventually("the hook holds git", SOON, || held.exists().then_some(()));
        assert!(stage.refused(&["start", "one"]).contains("task 1"));
        stage.kill_daemon();
        assert_eq!(undoing.join().expect("no panic").code, 1);
    });
    stage.listing();
    put(&go, "");
}

#[test]
fn a_daemon_killed_before_the_branch_moves_back_keeps_the_merge() {
    let stage = stage();
    kill_during_undo(&stage, "prepared");
    assert_eq!(stage.status("one"), "merged");
    assert_eq!(stage.git(&stage.repo(), &["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(stage.repo().join("README.md")).expect("a file"), "one\n");
    stage.run(["undo"]).ok();
    assert_eq!(
        (log(&stage, "main"), stage.status("one")),
        (vec!["first".to_owned()], "completed".to_owned())
    );
}

#[test]
fn a_daemon_killed_after_the_branch_moved_back_has_undone_the_merge() {
    let stage = stage();
    kill_during_undo(&stage, "committed");
    assert_eq!(stage.wait_status("one", "completed")["status"], "completed");
    assert_eq!(log(&stage, "main"), ["first"]);
    assert_eq!(stage.git(&stage.repo(), &["status", "--porcelain"]), "");
    stage.run(["merge", "one"]).ok();
}

#[test]
fn one_undo_restores_everything_that_one_gc_removed() {
    let stage = stage();
    for slug in ["one", "two", "three"] {
        completed_task(&stage, slug, slug);
        stage.run(["merge", slug]).ok();
    }
    stage.play("lives", "ask ready?");
    let collected = stage.run(["gc"]);
    let undo = collected.stderr.lines().last().expect("a way back").to_owned();
    let batch = undo.strip_prefix("undo: agency undo ").expect("a command").to_owned();
    assert!(batch.starts_with("gc-"), "{collected}");
    assert_eq!(stage.listing()["tasks"].as_array().map(Vec::len), Some(1));
    let list = stage.run(["undo", "--list"]);
    assert!(list.stderr.contains(&format!("agency undo {batch} restores 3 tasks")), "{list}");

    stage.run(["undo", "two"]).ok();
    let restored = stage.run(["undo"]).ok();
    assert_eq!(restored.lines().count(), 2, "the rest of it: {restored}");
    for slug in ["one", "two", "three"] {
        assert_eq!(stage.status(slug), "merged");
    }
    assert!(stage.refused(&["undo", &batch]).contains("the trash has nothing called"));
}
