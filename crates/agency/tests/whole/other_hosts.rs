//! One home on several hosts: Agency shows runs on another host as such and never touches them.

use std::fs;
use std::path::PathBuf;

use agency_testkit::CommandOutput;

use crate::stage::{SOON, Stage, refused};

/// A task that seems to run on another host, and that host's pid file.
fn on_another_host() -> (Stage, PathBuf) {
    let stage = Stage::new();
    stage.play("far", "ask ready?");
    let keeper = stage.keeper("far");
    let run = keeper.run;
    let dir = stage.state().join("r").join(&run);
    let pid_file = fs::read(dir.join("pid")).expect("a pid file");
    stage.run(["stop", "far"]).ok();
    // A keeper removes its pid file at last.
    keeper.process.wait_gone(SOON);
    stage.kill_daemon();

    let meta = fs::read_to_string(dir.join("run.json")).expect("a description");
    let mut meta: serde_json::Value = serde_json::from_str(&meta).expect("JSON");
    meta["host"] = "0123abcd".into();
    meta["host_name"] = "build-7".into();
    fs::write(dir.join("run.json"), meta.to_string()).expect("ours");
    fs::write(dir.join("pid"), pid_file).expect("ours");
    let file = stage.task_file("1-far").replace("status: stopped", "status: running");
    fs::write(stage.task_path("1-far"), file).expect("ours");
    (stage, dir.join("pid"))
}

#[test]
fn a_run_on_another_host_is_shown_as_elsewhere_and_never_marked_stopped() {
    let (stage, pid_file) = on_another_host();
    for _ in 0..2 {
        let task = stage.task("far");
        assert_eq!((&task["status"], &task["elsewhere"]), (&"running".into(), &"build-7".into()));
        stage.kill_daemon();
    }
    assert!(stage.task_file("1-far").contains("status: running\n"));
    let shown = stage.run(["ls"]).ok();
    assert!(shown.contains("on build-7") && shown.contains("on another host: attach there"), "{shown}");
    assert!(pid_file.exists(), "it is that host's to remove");
}

#[test]
fn no_command_here_changes_a_run_on_another_host() {
    let (stage, _) = on_another_host();
    for args in
        [&["stop", "far"][..], &["start", "far"], &["idle", "far"], &["send", "far", "x"], &["rm", "far"]]
    {
        let refusal = stage.refused(args);
        assert!(refusal.contains("build-7") || refusal.contains("another host"), "{args:?}: {refusal}");
    }
    assert!(stage.worktree("1-far").is_dir());
    assert_eq!(stage.status("far"), "running");
}

#[test]
fn the_files_of_an_agent_on_another_host_are_not_removed() {
    let (stage, pid_file) = on_another_host();
    // Also if the daemon here no longer knows its project.
    fs::rename(stage.repo().join(".git"), stage.home().join("git")).expect("the same disk");
    let mut uninstall = stage.agency(["uninstall", "--yes"]);
    uninstall.current_dir(stage.home());
    let refusal = refused(CommandOutput::of(uninstall, b""));
    let wanted =
        "Error: nothing was removed\nCaused by: 1 agent is still running on build-7\nHint: stop them there: ";
    assert!(refusal.starts_with(wanted), "{refusal}");
    assert!(pid_file.exists());
    fs::rename(stage.home().join("git"), stage.repo().join(".git")).expect("the same disk");
    assert!(stage.refused(&["uninstall", "--yes"]).starts_with(wanted));
}

#[test]
fn after_the_run_on_the_other_host_ends_this_host_may_start_the_task() {
    let (stage, pid_file) = on_another_host();
    assert_eq!(stage.task("far")["elsewhere"], "build-7");
    fs::remove_file(pid_file).expect("the other host's keeper removes it");
    stage.kill_daemon();
    assert_eq!(stage.status("far"), "stopped");
    assert_eq!(stage.run(["start", "far"]).ok(), "1 far running\n");
}
