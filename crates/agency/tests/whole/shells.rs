//! Terminals beside an agent: opened, listed, attached, closed, found again, and ended with their task.

use std::fs;

use agency_testkit::{Keeper, Pause};
use serde_json::Value;

use crate::agent_reports::events_since;
use crate::stage::{SOON, Stage};

const CTRL_Q: &str = "\x11";

/// A task whose agent waits, and a terminal `server` beside it that runs until a key comes.
fn with_server() -> Stage {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    let opened =
        stage.run(["shell", "one", "--name", "server", "--", "fake-agent", "-c", "loop; ask served; end"]);
    assert_eq!(opened.ok(), "1-one:server opened\n");
    stage
}

fn shells(stage: &Stage) -> Vec<Value> {
    let listing = stage.run(["shells", "--json"]).json();
    listing["shells"].as_array().expect("a list").clone()
}

fn shell(stage: &Stage, name: &str) -> Value {
    let found = shells(stage).into_iter().find(|shell| shell["name"] == name);
    found.unwrap_or_else(|| panic!("no terminal {name}"))
}

fn keeper(stage: &Stage, name: &str) -> Keeper {
    stage.keeper_of(shell(stage, name)["run"].as_str().expect("a run"))
}

/// Waits until the program runs in the terminal; `None`: until the shell is at its prompt.
fn wait_running(stage: &Stage, name: &str, program: Option<&str>) {
    let is_so = |running: &Value| match program {
        Some(program) => running.as_str().is_some_and(|running| running.starts_with(program)),
        None => running.is_null(),
    };
    stage.eventually(&format!("{program:?} runs in {name}"), SOON, || {
        let listed = shells(stage).into_iter().find(|shell| shell["name"] == name)?;
        is_so(&listed["running"]).then_some(())
    });
}

#[test]
fn a_terminal_beside_the_agent_is_listed_attached_and_closed() {
    let stage = with_server();
    let listed = shell(&stage, "server");
    assert_eq!((&listed["task"], &listed["slug"]), (&1.into(), &"one".into()));
    assert!(listed["running"].as_str().expect("a program").starts_with("fake-agent"), "{listed}");
    let mut terminal = stage.on_terminal(["attach", "one:server"]);
    terminal.wait_for("served");
    terminal.send("hello\r");
    terminal.wait_for("got: hello");
    terminal.send(CTRL_Q);
    assert!(terminal.wait_exit().success(), "{terminal}");
    terminal.wait_for("[detached from 1-one:server]");

    assert!(stage.run(["logs", "one:server"]).ok().contains("got: hello"));
    assert!(stage.run(["screen", "one:server"]).ok().contains("got: hello"));
    assert!(!stage.logs("one").contains("hello"), "the agent has a terminal of its own");
    assert!(stage.run(["shells", "one"]).ok().contains("1-one:server"));

    let refusal = stage.refused(&["shell", "one", "--name", "server", "--close"]);
    assert!(
        refusal.contains("`fake-agent") && refusal.contains("runs in terminal 1-one:server"),
        "{refusal}"
    );
    assert!(refusal.contains("--force"), "{refusal}");
    let program = keeper(&stage, "server").child.expect("a program");
    assert_eq!(stage.run(["shell", "one:server", "--close", "--force"]).ok(), "server closed\n");
    program.wait_gone(SOON);
    assert!(shells(&stage).is_empty());
    assert!(stage.agent("one").is_alive(), "the agent goes on");
    assert!(stage.run(["logs", "one:server"]).ok().contains("got: hello"), "its output stays");
    let kinds: Vec<String> = events_since(&stage, "1h", "\"type\":\"ShellEnded\"")
        .iter()
        .filter(|event| event["type"].as_str().is_some_and(|kind| kind.starts_with("Shell")))
        .map(|event| format!("{} {}", event["type"].as_str().expect("a word"), event["data"]["name"]))
        .collect();
    assert_eq!(kinds, ["ShellOpened \"server\"", "ShellEnded \"server\""]);
}

#[test]
fn a_terminal_takes_no_slot_and_is_no_run_of_the_agent() {
    let stage = Stage::with_config("max_agents = 1\n");
    stage.play("one", "ask ready?");
    stage.run(["shell", "one", "--no-attach"]).ok();
    stage.run(["shell", "one", "--new"]).ok();
    let names: Vec<String> =
        shells(&stage).iter().map(|shell| shell["name"].as_str().expect("a name").to_owned()).collect();
    assert_eq!(names, ["shell", "shell-2"]);
    assert_eq!(stage.run(["shell", "one"]).ok(), "1-one:shell is open already\n");
    let run = stage.task("one")["run"].clone();
    stage.kill_daemon();
    assert_eq!(stage.task("one")["run"], run, "the agent's run is the task's run");
    assert_eq!(shells(&stage).len(), 2);
    assert_eq!(stage.listing()["orphans"], serde_json::json!([]));
    assert_eq!(
        stage.run(["stop", "one"]).ok(),
        "1 one stopped\n",
        "shells at their prompts are closed silently"
    );
    assert!(shells(&stage).is_empty());
    stage.eventually("no keeper is left", SOON, || stage.keepers().is_empty().then_some(()));
}

#[test]
fn a_terminal_outlives_a_killed_daemon_and_a_lost_file() {
    let stage = with_server();
    let before = keeper(&stage, "server");
    stage.kill_daemon();
    assert_eq!(keeper(&stage, "server"), before);
    stage.kill_daemon();
    fs::remove_file(stage.state().join("r").join(&before.run).join("run.json")).expect("it was there");
    assert_eq!(keeper(&stage, "server"), before, "its keeper says whose terminal it is");
    assert_eq!(stage.listing()["orphans"], serde_json::json!([]));
    let mut terminal = stage.on_terminal(["shell", "one", "--name", "server"]);
    terminal.wait_for("served");
    stage.kill_daemon();
    terminal.send("again\r");
    terminal.wait_for("got: again");
}

#[test]
fn a_terminal_that_ended_while_no_daemon_ran_is_not_listed() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    let pause = Pause::at(stage.home().join("pause"));
    stage.run(["shell", "one", "-n", "short", "--", "cat", pause.path().to_str().expect("text")]).ok();
    let program = keeper(&stage, "short").child.expect("a program");
    stage.kill_daemon();
    pause.release();
    program.wait_gone(SOON);
    stage.eventually("the daemon knows the end", SOON, || shells(&stage).is_empty().then_some(()));
    let ends = events_since(&stage, "1h", "\"type\":\"ShellEnded\"");
    let end = ends.iter().find(|event| event["type"] == "ShellEnded").expect("an event");
    assert_eq!((&end["data"]["name"], &end["data"]["code"]), (&"short".into(), &"0".into()));
}

#[test]
fn a_running_program_keeps_its_task_from_being_stopped_and_removed_by_scripts() {
    let stage = with_server();
    for args in [&["stop", "one"][..], &["daemon", "stop", "--agents"]] {
        let refusal = stage.refused(args);
        assert!(
            refusal.contains("runs in terminal 1-one:server") && refusal.contains("--force"),
            "{refusal}"
        );
    }
    let agent = stage.agent("one");
    assert!(agent.is_alive());
    let program = keeper(&stage, "server").child.expect("a program");
    let stopped = stage.run(["stop", "one", "--force"]);
    assert!(stopped.stderr.contains("also closed: terminal server"), "{stopped}");
    program.wait_gone(SOON);
    agent.wait_gone(SOON);

    stage.run(["shell", "one", "-n", "server", "--", "fake-agent", "-c", "ask served"]).ok();
    let program = keeper(&stage, "server").child.expect("a program");
    let refusal = stage.refused(&["rm", "one"]);
    assert!(refusal.contains("cannot remove task 1-one") && refusal.contains("1-one:server"), "{refusal}");
    stage.run(["rm", "one", "--force"]).ok();
    program.wait_gone(SOON);
    assert!(!stage.worktree("1-one").exists());
    stage.run(["undo"]).ok();
    assert_eq!(stage.status("one"), "stopped");
    assert!(stage.task("one")["run"].is_null());
}

#[test]
fn on_a_terminal_stop_asks_before_it_ends_a_program() {
    let stage = with_server();
    let program = keeper(&stage, "server").child.expect("a program");
    let mut terminal = stage.on_terminal(["stop", "one"]);
    terminal.wait_for("runs in terminal 1-one:server");
    terminal.wait_for("End it? [y/N]");
    terminal.send("n\r");
    assert_eq!(terminal.wait_exit().code(), Some(1));
    assert!(program.is_alive() && stage.agent("one").is_alive());
    let mut terminal = stage.on_terminal(["stop", "one"]);
    terminal.wait_for("End it? [y/N]");
    terminal.send("y\r");
    assert!(terminal.wait_exit().success(), "{terminal}");
    program.wait_gone(SOON);
    assert_eq!(stage.status("one"), "stopped");
}

#[test]
fn only_the_program_in_the_foreground_counts_as_running() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    let pause = Pause::at(stage.home().join("pause"));
    let mut terminal = stage.on_terminal(["shell", "one"]);
    wait_running(&stage, "shell", None);
    terminal.send(format!("cat {}; echo it is over | tr a-z A-Z\r", pause.path().display()));
    wait_running(&stage, "shell", Some("cat"));
    let refusal = stage.refused(&["stop", "one"]);
    assert!(refusal.contains("`cat "), "{refusal}");
    pause.release();
    terminal.wait_for("IT IS OVER");
    wait_running(&stage, "shell", None);
    assert_eq!(stage.run(["stop", "one"]).ok(), "1 one stopped\n");
    terminal.wait_for("[1-one:shell exited");
}

#[test]
fn daemon_stop_with_agents_leaves_no_terminal() {
    let stage = with_server();
    let program = keeper(&stage, "server").child.expect("a program");
    stage.run(["daemon", "stop", "--agents", "--force"]).ok();
    assert!(!program.is_alive());
    assert!(stage.keepers().is_empty());
}

#[test]
fn a_terminal_whose_task_is_gone_is_an_orphan_and_can_be_given_back() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    stage.run(["stop", "one"]).ok();
    stage.run(["shell", "one", "-n", "server", "--", "fake-agent", "-c", "ask served"]).ok();
    let before = keeper(&stage, "server");
    stage.kill_daemon();
    fs::remove_file(stage.task_path("1-one")).expect("it was there");
    for project in fs::read_dir(stage.state().join("projects")).expect("projects") {
        fs::remove_file(project.expect("a project").path().join("tasks/1-one.md")).expect("a mirror");
    }
    let orphan = stage.run(["orphans", "--json"]).json()["orphans"][0].clone();
    assert_eq!((&orphan["shell"], &orphan["run"]), (&"server".into(), &before.run.as_str().into()));
    assert!(orphan["agent"].is_null(), "{orphan}");
    assert!(stage.run(["orphans"]).ok().contains("terminal server"));
    assert_eq!(stage.run(["orphans", "attach", &before.run]).ok(), "1-one:server is open\n");
    assert_eq!(keeper(&stage, "server"), before);
    assert!(stage.task("one")["run"].is_null(), "no agent was started");
}

#[test]
fn a_name_that_is_taken_or_wrong_is_refused() {
    let stage = with_server();
    let refusal = stage.refused(&["shell", "one", "-n", "server", "--", "true"]);
    assert!(
        refusal.contains("is open already") && refusal.contains("agency attach 1-one:server"),
        "{refusal}"
    );
    let refusal = stage.refused(&["shell", "one", "-n", "a b"]);
    assert!(refusal.contains("a terminal cannot have this name"), "{refusal}");
    let refusal = stage.refused(&["shell", "one", "-n", "x", "--", "no-such-program"]);
    assert!(refusal.contains("cannot find the command `no-such-program`"), "{refusal}");
    let refusal = stage.refused(&["logs", "one:serverr"]);
    assert!(refusal.contains("has no open terminal serverr") && refusal.contains("`server`"), "{refusal}");
    assert_eq!(shells(&stage).len(), 1);
}
