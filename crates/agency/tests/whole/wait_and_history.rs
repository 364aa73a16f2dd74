//! `agency wait`, `next`, `events` and `explain --at`.

use std::fs::File;
use std::process::{Child, ExitStatus, Stdio};

use agency_testkit::Pause;
use serde_json::Value;

use crate::agent_reports::events_since;
use crate::stage::{SOON, Stage};
use crate::state_log::{self, NO_SILENCE, describe};

fn start_wait(stage: &Stage, args: &[&str]) -> Child {
    let mut wait = stage.agency([&["wait"], args].concat());
    wait.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    wait.spawn().expect("agency can be run")
}

#[track_caller]
fn wait_exit(stage: &Stage, mut wait: Child) -> ExitStatus {
    stage.eventually("the end of the wait", SOON, || wait.try_wait().expect("our own child"))
}

#[test]
fn the_exit_code_of_wait_says_how_it_ended() {
    let stage = Stage::with_config(NO_SILENCE);
    let pause = Pause::at(stage.home().join("pause"));
    stage.play("one", &format!("await {}; ask ready?; exit 7", pause.path().display()));
    stage.wait_state("one", "running (kernel)");
    assert_eq!(stage.run(["wait", "one", "--timeout", "50ms"]).code, 4);
    assert_eq!(stage.run(["wait", "one", "--until", "running"]).code, 0);
    let waiting = start_wait(&stage, &["one"]);
    let several = start_wait(&stage, &["one", "--until", "exited,needs-input"]);
    let to_the_end = start_wait(&stage, &["one", "--until", "exited"]);
    pause.release();
    assert_eq!(wait_exit(&stage, waiting).code(), Some(0));
    assert_eq!(wait_exit(&stage, several).code(), Some(0));
    let said = stage.run(["wait", "one"]).ok();
    assert!(said.contains("ready?"), "{said}");
    let for_work = start_wait(&stage, &["one", "--until", "running"]);
    stage.run(["send", "one", "go"]).ok();
    assert_eq!(wait_exit(&stage, to_the_end).code(), Some(0));
    let code = wait_exit(&stage, for_work).code();
    assert!(matches!(code, Some(0 | 3)), "it worked, or it ended before the wait began: {code:?}");
    stage.wait_status("one", "stopped");
    assert_eq!(stage.run(["wait", "one"]).code, 3, "it will never need input again");
    assert_eq!(stage.run(["wait", "one", "--until", "needs-input,exited"]).code, 0);
    stage.run(["new", "draft", "--draft", "-m", "x"]).ok();
    assert!(stage.refused(&["wait", "draft"]).contains("has no agent to wait for"));
}

#[test]
fn a_stale_agent_still_needs_input() {
    let stage = Stage::with_config("needs_input_timeout = \"1h\"\nstale_timeout = \"100ms\"\n");
    stage.play("one", "ask ready?");
    stage.wait_task("one", "is stale", |task| task["state"]["state"] == "stale");
    assert_eq!(stage.run(["wait", "one"]).code, 0);
}

#[test]
fn wait_survives_killed_daemons() {
    let stage = Stage::with_config(NO_SILENCE);
    let pause = Pause::at(stage.home().join("pause"));
    stage.play("one", &format!("await {}; ask ready?", pause.path().display()));
    stage.wait_state("one", "running (kernel)");
    let waiting = start_wait(&stage, &["one"]);
    for _ in 0..10 {
        stage.eventually("a daemon", SOON, || stage.daemon());
        stage.kill_daemon();
    }
    pause.release();
    assert_eq!(wait_exit(&stage, waiting).code(), Some(0));
}

fn at(stage: &Stage, slug: &str, time: &str) -> String {
    let explained = stage.run(["explain", slug, "--at", time, "--json"]).json();
    match explained["state"].is_null() {
        true => "nothing".to_owned(),
        false => describe(&explained["state"]),
    }
}

#[test]
fn explain_works_for_the_past_and_for_ended_runs() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("one", r"raw; say hello; wait-for 1; print \e]7501\x3bstate=working\a; wait-for 2; print \e]7501\x3bstate=blocked:kind=permission\a; wait-for 3; exit 5");
    stage.wait_printed("one", "hello");
    for (key, state) in [("1", "running (status)"), ("2", "needs_input permission (status)")] {
        stage.run(["send", "one", "--keys", key]).ok();
        stage.wait_state("one", state);
    }
    let run = stage.keeper("one").run;
    stage.run(["send", "one", "--keys", "3"]).ok();
    stage.wait_status("one", "stopped");
    let log = state_log::log_of(&stage, &run);
    let expected: Vec<String> = log.iter().map(describe).collect();
    assert_eq!(expected[expected.len() - 2..], ["needs_input permission (status)", "exited (kernel)"]);
    for daemons in 0..2 {
        for change in &log {
            let time = change["time"].as_str().expect("a time");
            // Of several changes within one millisecond, the last one counts.
            let last = log.iter().rfind(|other| other["time"] == time).map(describe);
            assert_eq!(Some(at(&stage, "one", time)), last, "{change} by daemon {daemons}");
        }
        assert_eq!(at(&stage, "one", "2001-01-01T00:00:00Z"), "nothing");
        assert_eq!(&at(&stage, "one", "0s"), expected.last().expect("some"));
        stage.kill_daemon();
    }
    let text = stage.run(["explain", "one"]).ok();
    assert!(text.contains("exited") && text.contains("previous states, newest first"), "{text}");
}

/// The agent's reports in a log, in order: `working` and `blocked` alternate.
fn flips(log: &[Value]) -> Vec<String> {
    log.iter().filter(|change| change["source"] == "status").map(describe).collect()
}

#[test]
fn the_state_log_has_no_gaps_and_no_duplicates_whoever_is_killed() {
    const FLIPS: usize = 500;
    let stage = Stage::with_config(NO_SILENCE);
    let pause = Pause::at(stage.home().join("pause"));
    let flip = r"print \e]7501\x3bstate=blocked:kind=question\a; sleep 0.013; print \e]7501\x3bstate=working\a; sleep 0.013";
    stage.play(
        "one",
        &format!(
            "raw; say hello; await {}; loop {FLIPS}; {flip}; end; say flipped; no-read",
            pause.path().display()
        ),
    );
    let run = stage.keeper("one").run;
    pause.release();
    let mut killed = 0;
    while !stage.logs("one").contains("flipped") {
        stage.kill_daemon();
        killed += 1;
    }
    stage.wait_state("one", "running (status)");
    assert!(killed > 5, "{killed}");
    let log = state_log::log_of(&stage, &run);
    let times: Vec<u64> = log.iter().map(|change| change["at_ns"].as_u64().expect("a time")).collect();
    assert!(times.is_sorted(), "{times:?}");
    let expected: Vec<&str> = ["needs_input question (status)", "running (status)"].repeat(FLIPS);
    let flips = flips(&log);
    let odd = flips.iter().zip(&expected).position(|(one, other)| one != other);
    assert_eq!((flips.len(), odd), (expected.len(), None), "after {killed} kills: {flips:?}");

    let events = events_since(&stage, "1h", "\"type\":\"StateChange\"");
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().expect("a number")).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "numbers go on over daemons: {numbers:?}");
}

#[test]
fn events_begin_with_the_past_and_continue_without_duplicates() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("one", "loop; ask ready?; end");
    stage.wait_state("one", "needs_input question (kernel)");
    let path = stage.home().join("events");
    let mut events = stage.agency(["events", "--json", "--since", "1h"]);
    events.stdin(Stdio::null()).stdout(File::create(&path).expect("room")).stderr(Stdio::null());
    let mut listening = events.spawn().expect("agency can be run");
    let heard = || -> Vec<Value> {
        let text = std::fs::read_to_string(&path).expect("it is there");
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    for status in ["idle", "running", "completed"] {
        let verb = if status == "idle" {
            "idle"
        } else if status == "running" {
            "start"
        } else {
            "complete"
        };
        stage.run([verb, "one"]).ok();
    }
    stage.eventually("the last event", SOON, || {
        heard().iter().any(|event| event.to_string().contains("completed")).then_some(())
    });
    let first = heard();
    let numbers: Vec<u64> = first.iter().map(|event| event["seq"].as_u64().expect("a number")).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "no hole and no double: {numbers:?}");
    assert!(first.iter().any(|event| event["data"]["new"]["state"] == "needs_input"), "{first:?}");
    stage.kill_daemon();
    assert_eq!(
        stage.eventually("its end", SOON, || listening.try_wait().expect("our own child")).code(),
        Some(1)
    );
    stage.run(["start", "one"]).ok();
    let last = numbers.last().copied().expect("some");
    let again = events_since(&stage, "1h", &format!("\"seq\":{}", last + 1));
    let numbers: Vec<u64> = again.iter().map(|event| event["seq"].as_u64().expect("a number")).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
}

#[test]
fn next_is_the_blocked_agent_that_waited_longest_without_a_viewer() {
    let stage = Stage::with_config(NO_SILENCE);
    assert!(stage.refused(&["next"]).starts_with("Error: no agent is waiting for you"));
    stage.play("busy", "raw; say busy; no-read");
    for slug in ["first", "second"] {
        stage.play(slug, &format!("say I am {slug}; ask ready?"));
        let task = stage.wait_state(slug, "needs_input question (kernel)");
        assert_eq!(task["seen"], false, "{task}");
        // `next` compares whole seconds.
        stage.wait_task(slug, "has waited", |task| task["state"]["for_seconds"].as_u64() >= Some(1));
    }
    stage.play("done", r"print \e]7501\x3bstate=done\a; no-read");
    stage.wait_task("done", "is done", |task| task["headline"] == "done");
    let line = stage.run(["next"]).ok();
    assert!(line.contains("first"), "{line}");
    let mut terminal = stage.on_terminal(["next"]);
    terminal.wait_for("I am first");
    terminal.send("\x11");
    assert!(terminal.wait_exit().success(), "{terminal}");
    assert_eq!(stage.task("first")["seen"], true);
    let line = stage.run(["next"]).ok();
    assert!(line.contains("second"), "of the blocked, the one that was looked at comes last: {line}");
    for slug in ["first", "second"] {
        stage.run(["stop", slug]).ok();
    }
    let line = stage.run(["next"]).ok();
    assert!(line.contains("done"), "then finished work: {line}");
}
