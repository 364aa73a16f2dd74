//! The status that a user sets, and its effect on the agent.

use crate::stage::{SOON, Stage};

#[test]
fn an_idle_task_keeps_its_agent_and_its_slot() {
    let stage = Stage::with_config("max_agents = 1\n");
    stage.play("one", "loop; ask ready?; end");
    let agent = stage.agent("one");
    assert_eq!(stage.run(["idle", "one"]).ok(), "1 one idle\n");
    assert!(stage.task_file("1-one").contains("status: idle\n"));
    assert!(agent.is_alive());
    stage.run(["send", "one", "hello"]).ok();
    stage.wait_printed("one", "got: hello");
    let refusal = stage.refused(&["new", "two", "--", "fake-agent", "-c", "ask q"]);
    assert!(refusal.starts_with("Error: maximum number of agents reached (1)\n"), "{refusal}");

    assert_eq!(stage.run(["start", "one"]).ok(), "1 one running\n");
    assert_eq!(stage.agent("one"), agent, "no second process");
}

#[test]
fn setting_a_status_does_not_affect_a_live_agent() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    let agent = stage.agent("one");
    assert_eq!(stage.run(["complete", "one"]).ok(), "1 one completed\n");
    assert!(agent.is_alive());
    assert_eq!(stage.run(["start", "one"]).ok(), "1 one running\n");
    assert_eq!(stage.run(["fail", "one"]).ok(), "1 one failed\n");
    assert_eq!(stage.agent("one"), agent);
    assert!(stage.task_file("1-one").contains("status: failed\n"));
    assert_eq!(
        stage.run(["stop", "one"]).ok(),
        "1 one: agent stopped (task is failed)\n",
        "a verdict outlives the agent"
    );
    assert!(!agent.is_alive());
    assert_eq!(stage.status("one"), "failed");
}

#[test]
fn start_never_makes_a_second_process() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    let agent = stage.agent("one");
    for _ in 0..3 {
        assert_eq!(stage.run(["start", "one"]).ok(), "1 one running\n");
    }
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| stage.run(["start", "one"]).ok());
        }
    });
    assert_eq!(stage.agent("one"), agent);
    assert_eq!(stage.keepers().len(), 1);
}

#[test]
fn restart_waits_for_the_old_process_and_keeps_its_scrollback() {
    let stage = Stage::new();
    stage.play("one", "say the first words; ask ready?");
    stage.wait_printed("one", "ready?");
    let before = stage.agent("one");
    assert_eq!(stage.run(["restart", "one"]).ok(), "1 one running\n");
    assert!(!before.is_alive());
    assert_ne!(stage.agent("one"), before);
    stage.eventually("one keeper", SOON, || (stage.keepers().len() == 1).then_some(()));
    let mut terminal = stage.on_terminal(["attach", "one"]);
    terminal.wait_for("the first words");
    terminal.wait_for("Session restarted");
    terminal.wait_for("the first words");
    terminal.wait_for("ready?");
}

#[test]
fn a_stopped_task_starts_again_in_the_same_workspace() {
    let stage = Stage::new();
    stage.play("one", "cwd; ask ready?");
    stage.run(["exec", "one", "--", "sh", "-c", "echo unfinished > work"]).ok();
    assert_eq!(stage.run(["stop", "one"]).ok(), "1 one stopped\n");
    assert_eq!(stage.run(["start", "one"]).ok(), "1 one running\n");
    assert_eq!(stage.run(["exec", "one", "--", "cat", "work"]).ok(), "unfinished\n");
    let logs = stage.wait_printed("one", "restarted");
    assert!(logs.contains("1-one"), "{logs}");
}

#[test]
fn an_impossible_status_change_is_refused_and_names_both() {
    let stage = Stage::new();
    stage.run(["new", "draft", "--draft", "-m", "x"]).ok();
    let refusal = stage.refused(&["complete", "draft"]);
    assert_eq!(
        refusal,
        "Error: task 1 cannot go from draft to completed\nHint: from draft a task can become running\n"
    );
    assert!(stage.refused(&["idle", "draft"]).contains("cannot go from draft to idle"));
    assert!(stage.refused(&["fail", "draft"]).contains("cannot go from draft to failed"));
    assert_eq!(stage.status("draft"), "draft");

    stage.play("live", "ask ready?");
    stage.run(["idle", "live"]).ok();
    assert!(stage.refused(&["complete", "live"]).contains("cannot go from idle to completed"));
    stage.run(["stop", "live"]).ok();
    assert!(stage.refused(&["idle", "live"]).contains("cannot go from stopped to idle"));
    let refusal = stage.refused(&["stop", "live"]);
    assert!(refusal.starts_with("Error: task 2 is not running: it is stopped\n"), "{refusal}");
    stage.run(["complete", "live"]).ok();
    assert!(stage.refused(&["fail", "live"]).contains("cannot go from completed to failed"));
}

#[test]
fn a_merged_task_is_final() {
    let stage = Stage::new();
    stage.run(["new", "done", "--draft", "-m", "x"]).ok();
    let merged = stage.task_file("1-done").replace("status: draft", "status: merged");
    std::fs::write(stage.task_path("1-done"), merged).expect("a task file can be edited");
    let refusal = stage.refused(&["start", "done"]);
    assert!(refusal.starts_with("Error: task 1 cannot go from merged to running\n"), "{refusal}");
    assert!(!stage.worktree("1-done").exists());
}

#[test]
fn the_state_is_running_needs_input_or_stale() {
    let stage = Stage::with_config(
        r#"
        [agents.asker]
        start = ["fake-agent", "-c", "ask ready?; say on it; loop; print .; sleep 0.02; end"]
        needs_input_timeout = "500ms"
        [agents.forgotten]
        start = ["fake-agent", "-c", "ask ready?"]
        needs_input_timeout = "100ms"
        stale_timeout = "100ms"
        "#,
    );
    stage.run(["new", "one", "--agent", "asker", "-m", "x"]).ok();
    stage.run(["new", "two", "--agent", "forgotten", "-m", "x"]).ok();
    let task = stage.wait_task("one", "waits", |task| task["workspace_status"] == "needs_input");
    assert_eq!(task["state"]["state"], "needs_input");
    stage.wait_task("two", "is stale", |task| task["workspace_status"] == "stale");
    stage.run(["send", "one", "go"]).ok();
    stage.wait_task("one", "works", |task| task["state"]["state"] == "running");
    for slug in ["one", "two"] {
        assert_eq!(stage.status(slug), "running", "what a person said is not changed by what is seen");
    }
}
