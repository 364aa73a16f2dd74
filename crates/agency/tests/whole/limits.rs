//! The limits of the machine: the daemon refuses before it reaches them, with a hint, and other agents are not affected.

use std::os::unix::net::UnixStream;

use agency_api::paths::StateDir;
use agency_testkit::CommandOutput;

use crate::stage::{SOON, Stage};

/// Enough for a daemon and a handful of agents.
const FILES: u64 = 80;

const AGENT: [&str; 4] = ["--", "fake-agent", "-c", "loop; ask ready?; end"];

/// A daemon with a low hard limit of open files; it raises its soft limit.
fn daemon_with_few_files(stage: &Stage) {
    CommandOutput::of(
        stage.shell(&format!("ulimit -n {FILES} && ulimit -Sn 20 && exec agency daemon start")),
        b"",
    )
    .ok();
}

fn new(stage: &Stage, slug: &str) -> CommandOutput {
    stage.run(["new", slug, "--no-attach"].iter().chain(&AGENT))
}

/// Starts agents until the daemon refuses one; returns their number, and the refusal.
fn fill(stage: &Stage) -> (usize, String) {
    let refused = |count: usize| {
        let traces = stage.traces();
        // A refusal may be due to files that are open for a moment, so try again before it counts.
        let slug = format!("agent-{count}");
        let ran =
            (0..4).map(|_| new(stage, &slug)).find(|ran| ran.code == 0).unwrap_or_else(|| new(stage, &slug));
        (ran.code != 0).then(|| {
            assert_eq!(stage.traces(), traces, "nothing was made: {ran}");
            (count, crate::stage::refused(ran))
        })
    };
    (0..FILES as usize).find_map(refused).expect("there are not files for all of these")
}

#[track_caller]
fn check_refusal(said: &str) {
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert_eq!(lines[0], "Error: there is no room for another agent");
    assert!(lines[1].starts_with("Caused by: the daemon has ") && lines[1].contains("may have 80"), "{said}");
    assert!(lines[1].contains("(RLIMIT_NOFILE)"), "{said}");
    assert!(lines[2].starts_with("Hint: stop another task, or raise the hard limit (`ulimit -Hn`"), "{said}");
}

#[track_caller]
fn check_all_answer(stage: &Stage, count: usize) {
    let listing = stage.listing();
    let running = listing["tasks"].as_array().expect("a list").iter();
    assert_eq!(running.filter(|task| task["status"] == "running").count(), count, "{listing}");
    for agent in 0..count {
        let (slug, word) = (format!("agent-{agent}"), format!("word-{agent}"));
        stage.run(["send", &slug, &word]).ok();
        stage.wait_printed(&slug, &format!("got: {word}"));
    }
}

#[test]
fn an_agent_is_refused_if_files_run_out_and_the_others_still_answer() {
    let stage = Stage::with_config("max_agents = 0\n");
    daemon_with_few_files(&stage);
    let (count, refusal) = fill(&stage);
    assert!(count > 2, "{count}");
    check_refusal(&refusal);
    check_all_answer(&stage, count);

    let files = stage.run(["daemon", "status", "--json"]).json()["open_files"].clone();
    assert_eq!(files["limit"], FILES);
    assert!(stage.run(["daemon", "status"]).ok().contains("open of at most 80\n"));

    let mut viewer = stage.on_terminal(["attach", "agent-0"]);
    viewer.wait_for("ready?");
    viewer.send("still there\r");
    viewer.wait_for("got: still there");
    viewer.send("\x11");
    assert!(viewer.wait_exit().success());

    let draft = ["new", "later", "--draft"];
    stage.run(draft.iter().chain(&AGENT)).ok();
    let traces = stage.traces();
    check_refusal(&stage.refused(&["start", "later"]));
    assert_eq!(stage.status("later"), "draft");
    assert_eq!(stage.traces(), traces);

    stage.run(["stop", "agent-1"]).ok();
    stage.run(["start", "later"]).ok();
    stage.wait_printed("later", "ready?");
    check_refusal(&stage.refused(&["start", "agent-1"]));
    assert_eq!(stage.status("agent-1"), "stopped");
    // A restart needs no more files than the live agent has.
    stage.run(["restart", "agent-0"]).ok();
}

#[test]
fn the_daemon_after_a_killed_one_at_its_limit_adopts_all_agents() {
    let stage = Stage::with_config("max_agents = 0\n");
    daemon_with_few_files(&stage);
    let (count, _) = fill(&stage);
    stage.kill_daemon();
    daemon_with_few_files(&stage);
    check_all_answer(&stage, count);
    // It may have fewer open files than the daemon before, so one more agent may fit.
    let refusal = (0..FILES).map(|more| new(&stage, &format!("more-{more}"))).find(|ran| ran.code != 0);
    check_refusal(&crate::stage::refused(refusal.expect("there are not files for all of these")));
    stage.run(["daemon", "stop", "--agents"]).ok();
    stage.eventually("no keeper stays", SOON, || stage.keepers().is_empty().then_some(()));
}

#[test]
fn callers_that_use_up_all_files_do_no_lasting_harm() {
    let stage = Stage::new();
    daemon_with_few_files(&stage);
    new(&stage, "agent-0").ok();
    let agent = stage.agent("agent-0");
    let socket = StateDir::at(stage.state()).daemon_socket();
    let callers: Vec<UnixStream> =
        (0..2 * FILES).map(|_| agency_api::socket::connect(&socket).expect("room in the queue")).collect();
    let log = "cannot accept a connection";
    stage.eventually("no file is left", SOON, || stage.daemon_log().contains(log).then_some(()));
    drop(callers);
    check_all_answer(&stage, 1);
    assert_eq!(stage.agent("agent-0"), agent);
}
