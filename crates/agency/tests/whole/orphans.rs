//! Orphans, agents without a task: listing, adopting and ending them.

use std::fs;

use agency_testkit::{Keeper, Signal};

use crate::stage::{SOON, Stage};

/// A task whose file and mirror were deleted while no daemon was running, and its remaining keeper.
fn orphaned(script: &str) -> (Stage, Keeper) {
    let stage = Stage::new();
    stage.play("lost", script);
    stage.wait_printed("lost", "ready?");
    let keeper = stage.keeper("lost");
    stage.kill_daemon();
    forget_task(&stage);
    (stage, keeper)
}

fn forget_task(stage: &Stage) {
    fs::remove_file(stage.task_path("1-lost")).expect("it was there");
    for project in fs::read_dir(stage.state().join("projects")).expect("projects") {
        fs::remove_file(project.expect("a project").path().join("tasks/1-lost.md")).expect("a mirror");
    }
}

#[test]
fn an_agent_whose_task_is_gone_is_listed_and_not_touched() {
    let (stage, keeper) = orphaned("loop; ask ready?; end");
    let listing = stage.listing();
    assert_eq!(listing["tasks"], serde_json::json!([]));
    let orphan = &listing["orphans"][0];
    assert_eq!((&orphan["run"], &orphan["kind"]), (&keeper.run.as_str().into(), &"keeper".into()));
    assert_eq!((&orphan["task"], &orphan["slug"]), (&1.into(), &"lost".into()));
    assert!(stage.run(["ls"]).ok().contains("1 orphan: agency orphans"));
    let table = stage.run(["orphans"]).ok();
    assert!(table.contains(&keeper.run) && table.contains("1-lost"), "{table}");
    assert_eq!(stage.run(["orphans", "--json"]).json()["orphans"][0]["run"], keeper.run.as_str());
    assert!(stage.daemon_log().contains("an orphan"));
    assert!(keeper.child.expect("an agent").is_alive());
}

#[test]
fn an_orphan_can_be_adopted_by_its_task() {
    let (stage, keeper) = orphaned("say the first words; loop; ask ready?; end");
    assert_eq!(stage.run(["orphans", "attach", &keeper.run]).ok(), "1 lost running\n");
    let listing = stage.listing();
    assert_eq!(listing["orphans"], serde_json::json!([]));
    assert_eq!(stage.keeper("lost"), keeper);
    assert!(stage.task_file("1-lost").contains("status: running\n"));
    stage.run(["send", "lost", "hello"]).ok();
    let logs = stage.wait_printed("lost", "got: hello");
    assert!(logs.starts_with("the first words\n"), "{logs}");
    assert_eq!(stage.run(["stop", "lost"]).ok(), "1 lost stopped\n");
}

#[test]
fn adopting_an_orphan_on_a_terminal_attaches() {
    let (stage, keeper) = orphaned("loop; ask ready?; end");
    let mut terminal = stage.on_terminal(["orphans", "attach", &keeper.run]);
    terminal.wait_for("ready?");
    terminal.send("hello\r");
    terminal.wait_for("got: hello");
    terminal.send("\x11");
    assert!(terminal.wait_exit().success(), "{terminal}");
}

#[test]
fn an_orphan_can_be_ended_with_its_whole_tree() {
    let (stage, keeper) = orphaned("fork-child setsid far; ask ready?");
    let ran = stage.run(["orphans", "kill", &keeper.run]);
    assert!(ran.stderr.contains("also ended: far "), "{ran}");
    assert_eq!(ran.ok(), format!("{} stopped\n", keeper.run));
    assert!(!keeper.child.expect("an agent").is_alive());
    assert_eq!(stage.listing()["orphans"], serde_json::json!([]));
    stage.eventually("its keeper goes too", SOON, || stage.keepers().is_empty().then_some(()));
    assert!(stage.run(["orphans"]).ok().contains("No orphans"));
}

#[test]
fn an_unknown_orphan_is_refused() {
    let stage = Stage::new();
    for verb in ["kill", "attach"] {
        let refusal = stage.refused(&["orphans", verb, "unknown"]);
        assert!(refusal.starts_with("Error: no orphan is called unknown\n"), "{refusal}");
    }
}

/// An agent that ignores signals and outlived its daemon, its keeper and its terminal.
fn only_the_process_left() -> (Stage, Keeper) {
    let stage = Stage::new();
    stage.play("lost", "ignore-term; ask ready?");
    stage.wait_printed("lost", "ready?");
    let keeper = stage.keeper("lost");
    stage.kill_daemon();
    keeper.kill_for_good();
    (stage, keeper)
}

#[test]
fn a_process_without_a_keeper_is_an_orphan_and_its_task_is_stopped() {
    let (stage, keeper) = only_the_process_left();
    let agent = keeper.child.expect("an agent");
    assert_eq!(stage.status("lost"), "stopped");
    let orphan = &stage.listing()["orphans"][0];
    assert_eq!((&orphan["kind"], &orphan["pid"]), (&"process".into(), &agent.pid.into()));
    assert!(agent.is_alive(), "no user has ended it");
    assert_eq!(stage.run(["orphans", "kill", &keeper.run]).ok(), format!("{} stopped\n", keeper.run));
    agent.wait_gone(SOON);
    assert_eq!(stage.listing()["orphans"], serde_json::json!([]));
}

#[test]
fn adopting_a_process_without_a_keeper_ends_it_and_starts_again() {
    let (stage, keeper) = only_the_process_left();
    assert_eq!(stage.run(["orphans", "attach", &keeper.run]).ok(), "1 lost running\n");
    keeper.child.expect("an agent").wait_gone(SOON);
    assert_ne!(stage.agent("lost"), keeper.child.expect("an agent"));
    stage.wait_printed("lost", "Session restarted");
    assert_eq!(stage.listing()["orphans"], serde_json::json!([]));
}

#[test]
fn a_keeper_that_does_not_answer_is_not_an_orphan_and_is_followed_later() {
    let stage = Stage::new();
    stage.play("slow", "loop; ask ready?; end");
    let keeper = stage.keeper("slow");
    stage.kill_daemon();
    assert!(keeper.process.signal(Signal::STOP));
    assert_eq!(stage.listing()["orphans"], serde_json::json!([]));
    assert_eq!(stage.status("slow"), "running", "it has the status it had");
    assert!(keeper.process.signal(Signal::CONT));
    stage.run(["send", "slow", "hello"]).ok();
    stage.wait_printed("slow", "got: hello");
    assert_eq!(stage.keeper("slow"), keeper, "its agent was not ended");
}
