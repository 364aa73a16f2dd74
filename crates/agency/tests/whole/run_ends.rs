//! The end of runs: by a stop, by themselves, by a crash; and restarts.

use std::fs;
use std::time::{Duration, Instant};

use agency_testkit::{CommandOutput, Pause, Process};
use rustix::process::Signal;

use crate::stage::{SOON, Stage};
use crate::state_log;

/// The child processes whose pids the agent has printed: `child PID`.
#[track_caller]
fn children(stage: &Stage, slug: &str) -> Vec<Process> {
    let logs = stage.wait_printed(slug, "ready?");
    let pids = logs.lines().filter_map(|line| line.strip_prefix("child ")?.parse().ok());
    pids.map(|pid| Process::find(pid).unwrap_or_else(|| panic!("child {pid} is gone: {logs}"))).collect()
}

#[test]
fn an_agent_that_obeys_sigterm_ends_at_stop() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    stage.wait_printed("one", "ready?");
    let agent = stage.agent("one");
    assert_eq!(stage.run(["stop", "one"]).ok(), "1 one stopped\n");
    assert!(!agent.is_alive());
    assert_eq!(stage.task("one")["last_exit"], "-15");
    stage.eventually("its keeper goes too", SOON, || stage.keepers().is_empty().then_some(()));
    assert!(stage.worktree("1-one").is_dir(), "the workspace stays");
}

#[test]
fn the_exit_code_is_kept_beside_the_stop() {
    let stage = Stage::new();
    let line = "trap 'echo cleaning up; exit 5' TERM HUP; echo ready; while :; do sleep 0.05; done";
    stage.run(["new", "one", "--", "sh", "-c", line]).ok();
    stage.wait_printed("one", "ready");
    stage.run(["stop", "one"]).ok();
    let file = stage.task_file("1-one");
    assert!(file.contains("last_exit: {code: -15, raw: 5, at: "), "{file}");
    assert!(stage.logs("one").contains("cleaning up"), "its last words are not lost");
}

#[test]
fn an_agent_that_ignores_stop_is_killed_after_its_grace() {
    let stage = Stage::new();
    stage.play("one", "ignore-term; ask ready?");
    stage.wait_printed("one", "ready?");
    let asked_at = Instant::now();
    assert_eq!(stage.run(["stop", "one"]).ok(), "1 one stopped\n");
    assert!(asked_at.elapsed() >= Duration::from_secs(2), "it had its grace");
    let file = stage.task_file("1-one");
    assert!(file.contains("last_exit: {code: -9, raw: -9, at: "), "{file}");
}

#[test]
fn a_stop_wakes_a_suspended_keeper() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    stage.wait_printed("one", "ready?");
    let agent = stage.agent("one");
    assert!(stage.keeper("one").process.signal(Signal::STOP));
    assert_eq!(stage.run(["stop", "one"]).ok(), "1 one stopped\n");
    assert!(!agent.is_alive());
    stage.eventually("its keeper goes too", SOON, || stage.keepers().is_empty().then_some(()));
}

#[test]
fn a_holder_that_is_suspended_ends_with_its_keeper() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    stage.wait_printed("one", "ready?");
    let keeper = stage.keeper("one").process;
    let holder = keeper.parent().expect("its holder");
    assert!(holder.signal(Signal::STOP) && keeper.signal(Signal::STOP));
    stage.run(["stop", "one"]).ok();
    holder.wait_gone(SOON);
}

#[test]
fn a_stop_wakes_a_keeper_that_was_suspended_before_the_daemon_began() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    stage.wait_printed("one", "ready?");
    let (agent, keeper) = (stage.agent("one"), stage.keeper("one"));
    stage.kill_daemon();
    assert!(keeper.process.signal(Signal::STOP));
    assert_eq!(stage.run(["stop", "one"]).ok(), "1 one stopped\n");
    assert!(!agent.is_alive());
}

#[test]
fn a_task_whose_keeper_does_not_answer_has_its_last_known_state() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    stage.wait_printed("one", "ready?");
    let waiting =
        stage.wait_task("one", "it waits", |task| state_log::now(task).starts_with("needs_input question"));
    let known = state_log::now(&waiting);
    let keeper = stage.keeper("one");
    stage.kill_daemon();
    assert!(keeper.process.signal(Signal::STOP));
    let listed = stage.task("one");
    assert_eq!(state_log::now(&listed), known, "the new daemon cannot read more than the log");
    assert_eq!(listed["status"], "running");
    assert!(keeper.process.signal(Signal::CONT));
}

#[test]
fn the_grace_period_can_be_configured() {
    let stage = Stage::with_config(
        "[agents.stubborn]\nstart = [\"fake-agent\", \"-c\", \"ignore-term; ask ready?\"]\nstop_grace = \"100ms\"\n",
    );
    stage.run(["new", "one", "--agent", "stubborn"]).ok();
    stage.wait_printed("one", "ready?");
    stage.run(["stop", "one"]).ok();
    assert_eq!(stage.task("one")["last_exit"], "-9");
}

#[test]
fn stop_ends_the_whole_tree_and_names_what_was_outside_the_group() {
    let stage = Stage::new();
    stage.play("one", "fork-child near; fork-child setsid far; fork-child double farther; ask ready?");
    let children = children(&stage, "one");
    let [_, far, farther] = children[..] else { panic!("three children") };
    let ran = stage.run(["stop", "one"]);
    assert!(children.iter().all(|child| !child.is_alive()));
    let said = ran.stderr.clone();
    assert_eq!(ran.ok(), "1 one stopped\n");
    assert!(said.contains(&format!("also ended: far (pid {})", far.pid)), "{said}");
    assert!(said.contains(&format!("also ended: farther (pid {})", farther.pid)), "{said}");
    assert!(!said.contains("near"), "{said}");
}

#[test]
fn a_tree_that_ignores_stop_is_killed_and_named() {
    let stage = Stage::new();
    stage.play("one", "ignore-term; fork-child setsid far; fork-child double farther; ask ready?");
    let children = children(&stage, "one");
    let ran = stage.run(["stop", "one"]);
    assert!(children.iter().all(|child| !child.is_alive()));
    assert!(
        ran.stderr.contains("also killed: far ") && ran.stderr.contains("also killed: farther "),
        "{ran}"
    );
}

#[test]
fn an_agent_that_ends_by_itself_leaves_nothing_running() {
    let stage = Stage::new();
    stage.play("one", "fork-child setsid far; fork-child double farther; ask ready?; exit 0");
    let children = children(&stage, "one");
    stage.run(["send", "one", "bye"]).ok();
    stage.wait_status("one", "stopped");
    assert!(children.iter().all(|child| !child.is_alive()));
}

#[test]
fn processes_that_the_configuration_spares_survive() {
    let stage = Stage::with_config(
        r#"
        [agents.tidy]
        start = ["fake-agent", "-c", "fork-child double gpg-agent; fork-child double helper; ask ready?"]
        spare = ["gpg-agent"]
        "#,
    );
    stage.run(["new", "one", "--agent", "tidy"]).ok();
    let children = children(&stage, "one");
    let ran = stage.run(["stop", "one"]);
    assert!(children[0].is_alive() && !children[1].is_alive());
    assert!(ran.stderr.contains("helper") && !ran.stderr.contains("gpg-agent"), "{ran}");
}

#[test]
fn exit_codes_and_signals_are_remembered() {
    let stage = Stage::new();
    for (slug, script, code, shown) in [
        ("well", "say done; exit 0", "0", "completed"),
        ("badly", "say done; exit 3", "3", "errored"),
        ("fatally", "say done; crash SEGV", "-11", "errored"),
        ("by-kill", "say done; crash KILL", "-9", "errored"),
    ] {
        stage.play(slug, script);
        let task = stage.wait_status(slug, "stopped");
        assert_eq!((&task["last_exit"], &task["workspace_status"]), (&code.into(), &shown.into()), "{slug}");
        assert_eq!(task["run"], serde_json::Value::Null);
        assert_eq!(stage.logs(slug), "done\n");
    }
    stage.eventually("no keeper stays", SOON, || stage.keepers().is_empty().then_some(()));
}

#[test]
fn a_crashed_agent_is_not_restarted_by_default() {
    let stage = Stage::new();
    let marks = stage.home().join("marks");
    stage.play("one", &format!("mark-file {}; crash 3", marks.display()));
    stage.wait_status("one", "stopped");
    assert!(stage.daemon_log().contains("the agent crashed"));
    assert_eq!(fs::read_to_string(marks).expect("it ran").lines().count(), 1);
    assert_eq!(stage.run(["start", "one"]).ok(), "1 one running\n");
    stage.wait_status("one", "stopped");
}

/// An agent that prints its environment at each start and then plays the rest.
fn restarting(stage: &Stage, rest: &str) {
    let marks = stage.home().join("marks");
    stage.configure(&format!(
        r#"
        [agents.phoenix]
        start = ["fake-agent", "-c", "mark-file {}; env TOKEN; {rest}"]
        restart = "on-crash"
        max_restarts = 2
        "#,
        marks.display()
    ));
    let mut new = stage.agency(["new", "one", "--agent", "phoenix"]);
    new.env("TOKEN", "held in memory");
    CommandOutput::of(new, b"").ok();
}

fn starts(stage: &Stage) -> usize {
    fs::read_to_string(stage.home().join("marks")).unwrap_or_default().lines().count()
}

#[test]
fn an_agent_is_restarted_as_often_as_configured() {
    let stage = Stage::new();
    restarting(&stage, "crash 3");
    stage.eventually("it is given up", SOON, || {
        stage.daemon_log().contains("Agency gave up restarting the agent").then_some(())
    });
    let task = stage.wait_status("one", "stopped");
    assert_eq!((starts(&stage), &task["last_exit"]), (3, &"3".into()));
    let logs = stage.logs("one");
    let lines: Vec<&str> = logs.lines().filter(|line| !line.is_empty()).collect();
    let separator = "─── Session restarted ───";
    let same = "held in memory";
    assert_eq!(lines, [same, separator, same, separator, same], "with the environment of the first");
}

#[test]
fn a_restart_keeps_the_scrollback() {
    let stage = Stage::new();
    let pause = Pause::at(stage.home().join("pause"));
    restarting(&stage, &format!("await {}; crash 3", pause.path().display()));
    pause.release();
    stage.eventually("it runs again", SOON, || (starts(&stage) == 2).then_some(()));
    stage.wait_task("one", "has an agent", |task| !task["run"].is_null());
    let mut terminal = stage.on_terminal(["attach", "one"]);
    terminal.wait_for("held in memory");
    terminal.wait_for("Session restarted");
    terminal.wait_for("held in memory");
}

#[test]
fn a_restart_by_another_daemon_has_the_environment_of_the_first_start() {
    let stage = Stage::new();
    let pause = Pause::at(stage.home().join("pause"));
    restarting(&stage, &format!("await {}; crash 3", pause.path().display()));
    stage.kill_daemon();
    assert_eq!(stage.status("one"), "running");
    pause.release();
    stage.eventually("it runs again", SOON, || (starts(&stage) == 2).then_some(()));
    stage.eventually("it says so", SOON, || {
        (stage.logs("one").matches("held in memory").count() == 2).then_some(())
    });
    assert_eq!(stage.status("one"), "running");
}

#[test]
fn an_agent_that_succeeds_or_is_stopped_is_not_restarted() {
    let stage = Stage::new();
    restarting(&stage, "ask ready?; exit 0");
    stage.run(["send", "one", "go"]).ok();
    stage.wait_status("one", "stopped");
    stage.run(["start", "one"]).ok();
    stage.run(["stop", "one"]).ok();
    assert_eq!(stage.status("one"), "stopped");
    stage.eventually("no keeper stays", SOON, || stage.keepers().is_empty().then_some(()));
    assert_eq!(starts(&stage), 2);
}

#[test]
fn removing_a_task_ends_its_agent_and_keeps_its_work() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    let agent = stage.agent("one");
    stage.run(["exec", "one", "--", "sh", "-c", "echo precious > work"]).ok();
    let refusal = stage.refused(&["rm", "one"]);
    assert!(refusal.contains("Caused by: ") && refusal.contains("--discard"), "{refusal}");
    assert!(agent.is_alive() && stage.worktree("1-one").join("work").is_file(), "nothing happened");

    let said = stage.run(["rm", "one", "--discard"]);
    assert!(said.stdout == "1 one removed\n" && said.stderr.contains("agency undo 1-one-"), "{said}");
    assert!(!agent.is_alive());
    let kept = stage.git(&stage.repo(), &["for-each-ref", "--format=%(refname)", "refs/agency/trash"]);
    let kept = kept.trim();
    assert_eq!(stage.git(&stage.repo(), &["show", &format!("{kept}:work")]), "precious\n");
    assert_eq!(stage.listing()["tasks"], serde_json::json!([]));
    assert!(!stage.worktree("1-one").exists());
}
