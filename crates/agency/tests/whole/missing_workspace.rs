//! A workspace that disappears: the daemon stops its agent. A project that is moved: everything of it follows.

use std::fs;
use std::path::Path;

use agency_testkit::CommandOutput;
use serde_json::{Value, json};

use crate::acp;
use crate::conversations::{events, new_conversation, of_kind, wait_approval, wait_why};
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
    let there = |args: &[&str]| run_at(&stage, &moved, args);
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

/// Runs a command in the project that was moved there.
fn run_at(stage: &Stage, root: &Path, args: &[&str]) -> CommandOutput {
    let mut agency = stage.agency(args);
    agency.current_dir(root);
    CommandOutput::of(agency, b"")
}

/// A project with a removed task that had work, and a stopped one with a conversation and a queued message. Returns the
/// port of the stopped task.
fn make_removed_and_stopped(stage: &Stage) -> u64 {
    stage.play("gone", "say here; ask ready?");
    stage.wait_printed("gone", "here");
    fs::write(stage.worktree("1-gone").join("work"), "x").expect("room");
    stage.run(["rm", "gone", "--discard"]).ok();
    new_conversation(stage, "talk", "go", "prompt; say On it.; end");
    wait_why(stage, "talk", "finished");
    stage.run(["stop", "talk"]).ok();
    stage.run(["send", "talk", "--queue", "later"]).ok();
    stage.task("talk")["port"].as_u64().expect("a port")
}

fn check_followed(stage: &Stage, root: &Path, port: u64) {
    let listed = run_at(stage, root, &["ls", "--json"]).json();
    let talk = tasks(&listed).iter().find(|task| task["slug"] == "talk").expect("listed").clone();
    assert_eq!((&talk["port"], &talk["queued"]), (&port.into(), &1.into()), "{talk}");
    assert!(run_at(stage, root, &["chat", "talk"]).ok().contains("On it."));
    assert_eq!(run_at(stage, root, &["undo"]).ok(), "restored 1-gone (stopped)\n");
    let work = root.join(".agency/worktrees/1-gone/work");
    assert_eq!(fs::read_to_string(work).expect("restored"), "x");
    assert!(run_at(stage, root, &["logs", "gone"]).ok().contains("here"));
    let refusal = run_at(stage, root, &["start", "gone"]);
    assert!(refusal.stderr.contains("agency trust"), "consent belongs to a place: {refusal}");
}

#[test]
fn trash_ports_queue_and_runs_follow_a_project_that_is_moved_while_a_daemon_runs_or_not() {
    for is_killed in [false, true] {
        let stage = Stage::with_config("[workspace]\nports = 2\n");
        let port = make_removed_and_stopped(&stage);
        if is_killed {
            stage.kill_daemon();
        }
        let moved = stage.home().join("moved");
        fs::rename(stage.repo(), &moved).expect("one file system");
        check_followed(&stage, &moved, port);
        let projects = fs::read_dir(stage.state().join("projects")).expect("a directory").count();
        assert_eq!(projects, 1, "nothing is left at the former place");
        // The next daemon knows it, too, and no id is used twice.
        stage.kill_daemon();
        let listed = run_at(&stage, &moved, &["ls", "--json"]).json();
        assert_eq!((tasks(&listed).len(), &listed["warnings"]), (2, &json!([])), "{listed}");
        run_at(&stage, &moved, &["rm", "gone", "--discard"]).ok();
        run_at(&stage, &moved, &["trust", "--yes"]).ok();
        let new = ["new", "next", "--no-attach", "--", "fake-agent", "-c", "ask ready?"];
        assert_eq!(run_at(&stage, &moved, &new).ok(), "3 next running\n");
        run_at(&stage, &moved, &["stop", "next"]).ok();
        // And back again.
        fs::rename(&moved, stage.repo()).expect("one file system");
        assert_eq!(stage.run(["undo"]).ok(), "restored 1-gone (stopped)\n");
    }
}

#[test]
fn the_trash_follows_a_moved_project_at_once_and_the_rest_when_its_last_agent_has_ended() {
    let stage = Stage::with_config("[workspace]\nports = 2\n");
    stage.play("live", "say here; ask ready?");
    stage.wait_printed("live", "here");
    let port = stage.task("live")["port"].clone();
    stage.play("gone", "ask ready?");
    stage.run(["rm", "gone", "--discard"]).ok();
    let agent = stage.agent("live");
    let moved = stage.home().join("moved");
    fs::rename(stage.repo(), &moved).expect("one file system");
    assert_eq!(run_at(&stage, &moved, &["undo"]).ok(), "restored 2-gone (stopped)\n");
    assert!(agent.is_alive());
    run_at(&stage, &moved, &["stop", "live"]).ok();
    assert!(!agent.is_alive());
    let listed = run_at(&stage, &moved, &["ls", "--json"]).json();
    let live = tasks(&listed).iter().find(|task| task["slug"] == "live").expect("listed").clone();
    assert_eq!((&live["port"], &live["status"]), (&port, &"stopped".into()), "{live}");
    assert!(run_at(&stage, &moved, &["logs", "live"]).ok().contains("here"));
    assert_eq!(fs::read_dir(stage.state().join("projects")).expect("a directory").count(), 1);
}

#[test]
fn an_agent_in_a_project_that_is_moved_while_no_daemon_runs_is_found_at_the_new_place_and_stays_alone() {
    for is_known in [true, false] {
        let stage = Stage::new();
        stage.play("one", "say here; loop; ask ready?; end");
        stage.wait_printed("one", "ready?");
        let agent = stage.agent("one");
        stage.kill_daemon();
        if !is_known {
            forget_directory(&stage);
        }
        let moved = stage.home().join("moved");
        fs::rename(stage.repo(), &moved).expect("one file system");
        let there = |args: &[&str]| run_at(&stage, &moved, args);
        there(&["trust", "--yes"]).ok();
        if is_known {
            stage.eventually("the task has its agent again", SOON, || {
                let listed = there(&["ls", "--json"]).json();
                (tasks(&listed)[0]["run"].is_string() && listed["orphans"] == json!([])).then_some(())
            });
            there(&["send", "one", "hello"]).ok();
            stage.eventually("it answers", SOON, || {
                there(&["logs", "one"]).ok().contains("got: hello").then_some(())
            });
            there(&["stop", "one"]).ok();
        } else {
            let refusal = there(&["start", "one"]);
            assert!(refusal.stderr.contains("task 1 may have a live agent already"), "{refusal}");
            let orphans = there(&["orphans", "--json"]).json();
            let run = orphans["orphans"][0]["run"].as_str().expect("an orphan").to_owned();
            there(&["orphans", "kill", &run]).ok();
        }
        assert!(!agent.is_alive());
        assert_eq!(there(&["start", "one"]).ok(), "1 one running\n");
    }
}

#[test]
fn a_session_in_a_project_that_is_moved_while_no_daemon_runs_is_found_at_the_new_place() {
    for process in ["", "per_workspace = true\n"] {
        let stage = Stage::new();
        acp::configure(&stage, &[], process);
        acp::new_conversation(&stage, "one", "!say Hello.; tool Bash ls; say Done.; end");
        wait_approval(&stage, "one");
        let run = stage.task("one")["run"].clone();
        stage.kill_daemon();
        let moved = stage.home().join("moved");
        fs::rename(stage.repo(), &moved).expect("one file system");
        let there = |args: &[&str]| run_at(&stage, &moved, args);
        wait_run(&stage, &moved, &run);
        there(&["approve", "one"]).ok();
        let said = |text: &str| there(&["chat", "one"]).ok().lines().filter(|line| *line == text).count();
        stage.eventually("the agent goes on", SOON, || (said("Done.") == 1).then_some(()));
        assert_eq!(said("Hello."), 1);
        // Each daemon after it finds the session, too.
        stage.kill_daemon();
        wait_run(&stage, &moved, &run);
        there(&["send", "one", "there?"]).ok();
        stage.eventually("it answers", SOON, || (said("echo: there?") == 1).then_some(()));
        assert_eq!(acp::process_count(&stage), 1);
        assert_eq!(there(&["stop", "one"]).ok(), "1 one stopped\n");
        assert_eq!(there(&["ls", "--json"]).json()["tasks"][0]["status"], "stopped");
    }
}

#[test]
fn a_session_whose_moved_project_is_not_recognised_is_an_orphan_and_stays_alone() {
    let stage = Stage::new();
    acp::configure(&stage, &[], "");
    acp::new_conversation(&stage, "one", "!say Hello.; tool Bash ls; end");
    wait_approval(&stage, "one");
    stage.kill_daemon();
    forget_directory(&stage);
    let moved = stage.home().join("moved");
    fs::rename(stage.repo(), &moved).expect("one file system");
    let there = |args: &[&str]| run_at(&stage, &moved, args);
    there(&["trust", "--yes"]).ok();
    let refusal = there(&["start", "one"]);
    assert!(refusal.stderr.contains("task 1 may have a live agent already"), "{refusal}");
    let orphans = there(&["orphans", "--json"]).json();
    let run = orphans["orphans"][0]["run"].as_str().expect("an orphan").to_owned();
    there(&["orphans", "kill", &run]).ok();
    assert_eq!(there(&["orphans", "--json"]).json()["orphans"], json!([]));
    assert_eq!(there(&["start", "one"]).ok(), "1 one running\n");
}

#[track_caller]
fn wait_run(stage: &Stage, root: &Path, run: &Value) {
    stage.eventually("the task has its agent again", SOON, || {
        let listed = run_at(stage, root, &["ls", "--json"]).json();
        (tasks(&listed)[0]["run"] == *run && listed["orphans"] == json!([])).then_some(())
    });
}

/// The record says nothing about the directory, as after an upgrade or on a file system that does not record births.
fn forget_directory(stage: &Stage) {
    let project = fs::read_dir(stage.state().join("projects")).expect("projects").flatten().next();
    let path = project.expect("a project").path().join("project.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&path).expect("a record")).expect("JSON");
    record.as_object_mut().expect("an object").remove("directory").expect("recorded");
    fs::write(path, record.to_string()).expect("room");
}

#[test]
fn a_copy_of_a_project_takes_nothing_from_the_original() {
    let stage = Stage::with_config("[workspace]\nports = 2\n");
    let port = make_removed_and_stopped(&stage);
    let copy = stage.home().join("copy");
    let shell = format!("cp -a '{}' '{}'", stage.repo().display(), copy.display());
    CommandOutput::of(stage.shell(&shell), b"").ok();
    run_at(&stage, &copy, &["ls"]).ok();
    let refusal = run_at(&stage, &copy, &["undo"]);
    assert!(refusal.stderr.contains("no task was removed or merged in this project"), "{refusal}");
    assert_eq!(stage.task("talk")["port"], port);
    assert_eq!(stage.run(["undo"]).ok(), "restored 1-gone (stopped)\n");
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

fn tasks(listing: &Value) -> &Vec<Value> {
    listing["tasks"].as_array().expect("a list")
}
