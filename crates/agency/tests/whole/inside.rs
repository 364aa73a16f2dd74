//! Agents that call `agency` themselves.

use crate::stage::Stage;

#[test]
fn an_agent_finds_its_own_daemon_wherever_it_looks_from() {
    let stage = Stage::new();
    let line = "env -u XDG_STATE_HOME HOME=/nowhere agency ls --json | cat; cat";
    stage.run(["new", "one", "--", "sh", "-c", line]).ok();
    let printed = stage.wait_printed("one", "\"tasks\"");
    let listing: serde_json::Value =
        serde_json::from_str(printed.lines().next().expect("a line")).expect("JSON");
    assert_eq!(listing["tasks"][0]["slug"], "one");
    assert_eq!(listing["tasks"][0]["run"], stage.keeper("one").run.as_str());
}

#[test]
fn an_agent_may_start_another_and_say_that_it_is_done() {
    let stage = Stage::new();
    let line = "agency new two --no-attach -m 'from one' -- fake-agent -c 'env AGENCY_SLUG; ask ready?' && agency complete one; cat";
    stage.run(["new", "one", "--", "sh", "-c", line]).ok();
    stage.wait_status("one", "completed");
    assert!(stage.wait_printed("two", "ready?").starts_with("two\n"), "with its own names, not its maker's");
    assert!(stage.worktree("2-two").is_dir(), "beside the other workspace, not inside it");
}

#[test]
fn an_agent_may_stop_itself() {
    let stage = Stage::new();
    stage.run(["new", "one", "--", "sh", "-c", "agency stop one; cat"]).ok();
    let task = stage.wait_status("one", "stopped");
    assert_eq!(task["last_exit"], "-15");
}

#[test]
fn attaching_a_run_to_itself_is_refused() {
    let stage = Stage::new();
    stage.play("other", "ask other?");
    stage.run(["new", "one", "--", "sh", "-c", "agency attach one; agency attach other"]).ok();
    stage.wait_printed("one", "cannot attach a run to itself");
    // Another one may be looked at from there.
    stage.wait_printed("one", "other?");
}
