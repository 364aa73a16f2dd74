//! Agents that call `agency` themselves.

use crate::stage::Stage;

#[test]
fn an_agent_finds_its_daemon_from_any_directory() {
    let stage = Stage::new();
    let line = "read go; env -u XDG_STATE_HOME HOME=/nowhere agency ls --json | cat; cat";
    stage.run(["new", "one", "--", "sh", "-c", line]).ok();
    stage.run(["send", "one", "go"]).ok();
    let printed = stage.wait_printed("one", "\"warnings\"");
    let json = printed.lines().find(|line| line.starts_with('{')).expect("a line of JSON");
    let listing: serde_json::Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(listing["tasks"][0]["slug"], "one");
    assert_eq!(listing["tasks"][0]["run"], stage.keeper("one").run.as_str());
}

#[test]
fn an_agent_may_start_another_task_and_complete_its_own() {
    let stage = Stage::new();
    let line = "read go; agency new two --no-attach -m 'from one' -- fake-agent -c 'env AGENCY_SLUG; ask ready?' && agency complete one; cat";
    stage.run(["new", "one", "--", "sh", "-c", line]).ok();
    stage.run(["send", "one", "go"]).ok();
    stage.wait_status("one", "completed");
    assert!(stage.wait_printed("two", "ready?").starts_with("two\n"), "with its own names, not its maker's");
    assert!(stage.worktree("2-two").is_dir(), "beside the other workspace, not inside it");
}

#[test]
fn an_agent_may_stop_itself() {
    let stage = Stage::new();
    // Wait for the end of the start: an earlier stop would cancel the start.
    stage.run(["new", "one", "--", "sh", "-c", "read go; agency stop one; cat"]).ok();
    stage.run(["send", "one", "go"]).ok();
    let task = stage.wait_status("one", "stopped");
    assert_eq!(task["last_exit"], "-15");
}

#[test]
fn attaching_to_the_own_run_is_refused() {
    let stage = Stage::new();
    stage.play("other", "ask other?");
    stage.run(["new", "one", "--", "sh", "-c", "read go; agency attach one; agency attach other"]).ok();
    stage.run(["send", "one", "go"]).ok();
    stage.wait_printed("one", "cannot attach a run to itself");
    // It may attach to another task.
    stage.wait_printed("one", "other?");
}
