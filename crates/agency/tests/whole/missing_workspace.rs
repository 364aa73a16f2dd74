//! A workspace that disappears: the daemon stops its agent.

use std::fs;

use agency_testkit::CommandOutput;

use crate::conversations::{events, new_conversation, of_kind, wait_why};
use crate::stage::{SOON, Stage};

#[track_caller]
fn wait_stopped(stage: &Stage, slug: &str) {
    let task = stage.wait_task(slug, "stopped", |task| task["status"] == "stopped");
    assert!(task["vanished"].is_string() && task["run"].is_null(), "{task}");
    assert!(stage.run(["ls"]).ok().contains("workspace missing"));
    let events = events(stage);
    assert!(of_kind(&events, "Error").iter().any(|data| data["message"] == "the workspace is gone"));
}

#[test]
fn an_agent_whose_directory_is_deleted_is_stopped_and_the_next_start_makes_it_again() {
    let stage = Stage::new();
    let log = stage.home().join("told");
    stage.configure(&format!("[notify]\ncommand = [\"tee\", \"-a\", \"{}\"]\n", log.display()));
    stage.play("one", "say here; ask ready?");
    stage.wait_printed("one", "here");
    let agent = stage.agent("one");
    fs::write(stage.worktree("1-one").join("work"), "x").expect("room");
    stage.git(&stage.worktree("1-one"), &["add", "work"]);
    stage.git(&stage.worktree("1-one"), &["commit", "-qm", "work"]);
    fs::remove_dir_all(stage.worktree("1-one")).expect("ours");
    wait_stopped(&stage, "one");
    assert!(!agent.is_alive());
    stage.eventually("a notification", SOON, || {
        fs::read_to_string(&log).ok().filter(|told| told.contains("its workspace is gone"))
    });
    let committed = stage.run(["diff", "one"]);
    assert!(committed.stderr.contains("the workspace of 1-one is gone"), "{committed}");
    assert!(committed.ok().contains("+++ b/work"));
    let started = stage.run(["start", "one"]);
    assert!(started.stderr.contains("was gone, and Agency made it again from its branch"), "{started}");
    assert!(started.ok().contains("1 one running"));
    assert_eq!(fs::read_to_string(stage.worktree("1-one").join("work")).expect("committed"), "x");
    assert!(stage.task("one")["vanished"].is_null());
}

#[test]
fn a_moved_workspace_counts_as_gone_and_a_conversation_is_not_restarted() {
    let stage = Stage::new();
    new_conversation(&stage, "fix", "go", "prompt; say On it.; end");
    wait_why(&stage, "fix", "finished");
    fs::rename(stage.worktree("1-fix"), stage.home().join("elsewhere")).expect("one file system");
    wait_stopped(&stage, "fix");
    let refusal = stage.refused(&["diff", "fix"]);
    assert!(refusal.contains("1-fix is gone") && refusal.contains("agency start 1"), "{refusal}");
    stage.eventually("nothing of it lives", SOON, || stage.keepers().is_empty().then_some(()));
}

#[test]
fn the_next_daemon_finds_a_workspace_that_disappeared_without_a_daemon() {
    let stage = Stage::new();
    stage.play("one", "say here; ask ready?");
    stage.wait_printed("one", "here");
    let agent = stage.agent("one");
    stage.kill_daemon();
    fs::remove_dir_all(stage.worktree("1-one")).expect("ours");
    wait_stopped(&stage, "one");
    assert!(!agent.is_alive());
}

#[test]
fn an_agent_whose_task_file_disappears_with_its_workspace_is_stopped_and_says_so() {
    let stage = Stage::new();
    stage.play("one", "say here; ask ready?");
    stage.wait_printed("one", "here");
    let agent = stage.agent("one");
    stage.git(&stage.repo(), &["clean", "--quiet", "-ffdx"]);
    wait_stopped(&stage, "one");
    assert!(!agent.is_alive());
    assert!(stage.task_file("1-one").contains("status: stopped"));
    assert_eq!(stage.run(["start", "one"]).ok(), "1 one running\n");
}

#[test]
fn an_agent_in_a_project_that_is_moved_stays_listed_at_the_new_place_and_is_stopped_there() {
    let stage = Stage::new();
    stage.play("one", "say here; ask ready?");
    stage.wait_printed("one", "here");
    let agent = stage.agent("one");
    let moved = stage.home().join("moved");
    fs::rename(stage.repo(), &moved).expect("one file system");
    let there = |args: &[&str]| {
        let mut agency = stage.agency(args);
        agency.current_dir(&moved);
        CommandOutput::of(agency, b"")
    };
    for everywhere in [&["ls", "--json"][..], &["ls", "--all", "--json"]] {
        let listed = there(everywhere).json();
        let running: Vec<_> = tasks(&listed).iter().filter(|task| task["status"] == "running").collect();
        assert!(!running.is_empty() && running.iter().all(|task| task["run"].is_string()), "{listed}");
    }
    let task = there(&["ls", "--json"]).json();
    assert_eq!(tasks(&task)[0]["project"], moved.to_str().expect("text"), "{task}");
    assert!(agent.is_alive());
    assert!(there(&["logs", "one"]).ok().contains("here"));
    assert_eq!(there(&["stop", "one"]).ok(), "1 one stopped\n");
    assert!(!agent.is_alive());
    assert_eq!(there(&["ls", "--json"]).json()["tasks"][0]["status"], "stopped");
    // Git's records are repaired, so the task goes on at the new place.
    there(&["diff", "one"]).ok();
    let refusal = there(&["start", "one"]);
    assert!(refusal.stderr.contains("agency trust"), "consent belongs to a place: {refusal}");
    assert_eq!(there(&["rm", "one"]).ok().lines().next(), Some("1 one removed"));
}

#[test]
fn an_agent_in_a_project_that_is_deleted_is_stopped() {
    let stage = Stage::new();
    stage.play("one", "say here; ask ready?");
    stage.wait_printed("one", "here");
    let agent = stage.agent("one");
    // The daemon may write a task file again while its directory is being deleted.
    stage.eventually("the project is deleted", SOON, || {
        fs::remove_dir_all(stage.repo()).is_ok().then_some(())
    });
    stage.eventually("the agent ends", SOON, || (!agent.is_alive()).then_some(()));
    stage.eventually("nothing of it lives", SOON, || stage.keepers().is_empty().then_some(()));
}

fn tasks(listing: &serde_json::Value) -> &Vec<serde_json::Value> {
    listing["tasks"].as_array().expect("a list")
}
