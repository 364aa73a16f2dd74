//! The daemon starts, stops and is killed; the agents keep running unless the user stops them.

use std::fs;
use std::time::Duration;

use agency_testkit::{CommandOutput, Keeper, Pause, Process, Signal};

use crate::stage::{SOON, Stage};
use crate::{api, journal};

/// Two agents that answer and one that is idle.
fn three_agents() -> (Stage, Vec<Keeper>) {
    let stage = Stage::new();
    for slug in ["one", "two", "three"] {
        stage.play(slug, "flood 4K; loop; ask ready?; end");
        stage.wait_printed(slug, "ready?");
    }
    stage.run(["idle", "three"]).ok();
    let keepers = keepers(&stage);
    assert_eq!(keepers.len(), 3);
    (stage, keepers)
}

fn keepers(stage: &Stage) -> Vec<Keeper> {
    let mut keepers = stage.keepers();
    keepers.sort_by(|one, other| one.run.cmp(&other.run));
    keepers
}

/// Checks that another daemon has adopted every agent unchanged.
fn check_adopted(stage: &Stage, before: Process, held: &[Keeper]) {
    assert_eq!(stage.status("one"), "running");
    assert_eq!(stage.status("three"), "idle");
    assert_ne!(stage.daemon().expect("one was started"), before);
    assert_eq!(keepers(stage), held);
    assert!(held.iter().all(|keeper| keeper.child.expect("an agent").is_alive()));
    stage.run(["send", "two", "hello"]).ok();
    stage.wait_printed("two", "got: hello");
}

#[test]
fn the_next_command_after_sigkill_finds_status_state_and_screen() {
    let stage = Stage::with_config("needs_input_timeout = \"2s\"\n");
    stage.play("one", r"flood 4K; print \e[31\x3b1mred\e[2\x3b5H\e[?2004h; ask ready?");
    stage.play("two", "loop; print .; sleep 0.01; end");
    stage.run(["idle", "two"]).ok();
    stage.wait_task("one", "waits", |task| task["state"]["state"] == "needs_input");
    let before = api::screen(&stage, "one");
    let agents = [stage.agent("one"), stage.agent("two")];

    stage.kill_daemon();
    // The list must be right from the first moment on.
    let listing = stage.listing();
    assert_eq!(listing["tasks"][0]["state"]["state"], "needs_input", "{listing}");
    assert_eq!(listing["tasks"][1]["state"]["state"], "running", "{listing}");
    assert_eq!(
        (&listing["tasks"][0]["status"], &listing["tasks"][1]["status"]),
        (&"running".into(), &"idle".into())
    );
    let after = api::screen(&stage, "one");
    assert_eq!((after.size, after.cursor, &after.text), (before.size, before.cursor, &before.text));
    assert_eq!(after.dump, before.dump);
    assert_eq!([stage.agent("one"), stage.agent("two")], agents);
}

#[test]
fn killing_the_daemon_leaves_the_agents_running() {
    let (stage, held) = three_agents();
    let before = stage.daemon().expect("a daemon");
    before.kill();
    check_adopted(&stage, before, &held);
}

#[test]
fn a_hangup_leaves_the_agents_running() {
    let (stage, held) = three_agents();
    let before = stage.daemon().expect("a daemon");
    assert!(before.signal(Signal::HUP));
    before.wait_gone(SOON);
    check_adopted(&stage, before, &held);
}

#[test]
fn daemon_stop_leaves_the_agents_running() {
    let (stage, held) = three_agents();
    let before = stage.daemon().expect("a daemon");
    assert_eq!(stage.run(["daemon", "stop"]).ok(), "daemon stopped; agents keep running\n");
    assert!(!before.is_alive());
    assert_eq!(stage.daemon(), None);
    let refusal = stage.refused(&["daemon", "status"]);
    assert!(refusal.starts_with("Error: no daemon is running\n"), "{refusal}");
    check_adopted(&stage, before, &held);
}

#[test]
fn daemon_restart_leaves_the_agents_running() {
    let (stage, held) = three_agents();
    let before = stage.daemon().expect("a daemon");
    stage.run(["daemon", "restart"]).ok();
    assert!(!before.is_alive());
    assert!(stage.daemon().is_some());
    check_adopted(&stage, before, &held);
}

/// Two agents end at SIGTERM and one ignores it.
fn check_all_ended(end: impl Fn(&Stage)) {
    let stage = Stage::new();
    for (slug, script) in [
        ("one", "fork-child setsid helper; ask ready?"),
        ("two", "ask ready?"),
        ("stubborn", "ignore-term; ask ready?"),
    ] {
        stage.play(slug, script);
        stage.wait_printed(slug, "ready?");
    }
    stage.run(["idle", "two"]).ok();
    let daemon = stage.daemon().expect("a daemon");
    end(&stage);
    daemon.wait_gone(SOON);
    // No agents and no children are left, so the keepers end too.
    stage.eventually("the end of all processes", SOON, || stage.processes().is_empty().then_some(()));
    for (name, code) in [("1-one", "code: -15"), ("2-two", "code: -15"), ("3-stubborn", "code: -9")] {
        let file = stage.task_file(name);
        assert!(file.contains("status: stopped\n") && file.contains(code), "{file}");
    }
}

#[test]
fn sigterm_ends_every_agent_and_marks_it_stopped() {
    check_all_ended(|stage| assert!(stage.daemon().expect("a daemon").signal(Signal::TERM)));
}

#[test]
fn sigint_ends_every_agent_and_marks_it_stopped() {
    check_all_ended(|stage| assert!(stage.daemon().expect("a daemon").signal(Signal::INT)));
}

#[test]
fn daemon_stop_with_agents_ends_every_agent_before_it_returns() {
    check_all_ended(|stage| {
        assert_eq!(stage.run(["daemon", "stop", "--agents"]).ok(), "agents and daemon stopped\n");
    });
}

#[test]
fn eight_commands_at_once_start_one_daemon() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    for _ in 0..3 {
        stage.kill_daemon();
        let pids: Vec<i64> = std::thread::scope(|scope| {
            let status = || stage.run(["daemon", "start"]).ok();
            let started: Vec<_> = (0..8).map(|_| scope.spawn(status)).collect();
            started.into_iter().map(|said| pid_in(&said.join().expect("it was started"))).collect()
        });
        let daemon = stage.daemon().expect("one of them");
        assert_eq!(pids, [i64::from(daemon.pid); 8]);
        // The daemons that came second have ended.
        stage.eventually("one daemon", SOON, || (daemons(&stage) == [daemon]).then_some(()));
    }
    assert_eq!(stage.keepers().len(), 1);
}

fn pid_in(text: &str) -> i64 {
    let pid = text.trim().strip_prefix("daemon running, pid ").and_then(|pid| pid.parse().ok());
    pid.unwrap_or_else(|| panic!("no pid in {text:?}"))
}

/// All daemons, with and without the lock.
fn daemons(stage: &Stage) -> Vec<Process> {
    let is_daemon = |process: &Process| {
        let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        line.starts_with(b"agency: daemon")
    };
    stage.processes().into_iter().filter(is_daemon).collect()
}

#[test]
fn a_second_daemon_gives_way_to_the_first() {
    let stage = Stage::new();
    stage.listing();
    let first = stage.daemon().expect("a daemon");
    assert_eq!(stage.run(["daemon", "run"]).ok(), "ready\n", "the other daemon is ready");
    assert_eq!(daemons(&stage), [first]);
}

#[test]
fn files_of_a_dead_daemon_do_not_prevent_a_new_one() {
    let stage = Stage::new();
    stage.listing();
    stage.kill_daemon();
    let socket = fs::read_dir(stage.state()).expect("a state directory").find_map(|entry| {
        let path = entry.expect("an entry").path();
        path.extension().is_some_and(|extension| extension == "sock").then_some(path)
    });
    let socket = socket.expect("kill -9 leaves the socket");
    stage.listing();
    stage.kill_daemon();
    fs::remove_file(&socket).and_then(|()| fs::write(&socket, "not even a socket")).expect("our own file");
    stage.listing();
}

#[test]
fn boot_marks_a_task_stopped_if_its_process_is_gone() {
    let (stage, held) = three_agents();
    stage.run(["new", "draft", "--draft", "-m", "x"]).ok();
    let lost: Vec<Keeper> = [stage.keeper("one"), stage.keeper("three")].into();
    stage.kill_daemon();
    for keeper in &lost {
        keeper.kill_for_good();
        keeper.child.expect("an agent").kill();
    }
    let statuses = ["one", "two", "three", "draft"].map(|slug| stage.status(slug));
    assert_eq!(statuses, ["stopped", "running", "stopped", "draft"]);
    assert!(stage.task_file("1-one").contains("status: stopped\n"), "written back");
    assert_eq!(stage.task("one")["last_exit"], "unknown", "no daemon saw the exit");
    let log = stage.daemon_log();
    let line = log.lines().find(|line| line.contains("daemon_resume_mark_stopped")).expect("it is logged");
    assert!(line.contains("marked_stopped=2") && line.contains("adopted=1"), "{line}");
    assert_eq!(keepers(&stage).len(), held.len() - 2, "nothing was spawned");

    let mut terminal = stage.on_terminal(["attach", "one"]);
    assert_eq!(terminal.wait_exit().code(), Some(1), "{terminal}");
    assert_eq!(stage.run(["start", "one"]).ok(), "1 one running\n");
    stage.wait_printed("one", "Session restarted");
}

#[test]
fn the_next_daemon_finds_an_exit_with_its_code_and_last_output() {
    let stage = Stage::new();
    let pause = Pause::at(stage.home().join("pause"));
    stage.play("one", &format!("await {}; say last words; exit 7", pause.path().display()));
    let agent = stage.agent("one");
    stage.kill_daemon();
    pause.release();
    agent.wait_gone(SOON);
    let task = stage.task("one");
    assert_eq!((&task["status"], &task["last_exit"]), (&"stopped".into(), &"7".into()));
    assert!(stage.task_file("1-one").contains("last_exit: {code: 7, raw: 7, at: "));
    assert!(stage.logs("one").contains("last words"));
    stage.eventually("the keeper has been let go", SOON, || stage.keepers().is_empty().then_some(()));
}

#[test]
fn a_status_set_by_the_user_survives_an_exit_without_a_daemon() {
    let stage = Stage::new();
    let pause = Pause::at(stage.home().join("pause"));
    stage.play("one", &format!("await {}; exit 0", pause.path().display()));
    stage.run(["complete", "one"]).ok();
    let agent = stage.agent("one");
    stage.kill_daemon();
    pause.release();
    agent.wait_gone(SOON);
    let task = stage.task("one");
    assert_eq!((&task["status"], &task["last_exit"]), (&"completed".into(), &"0".into()));
}

#[test]
fn a_terminal_query_without_a_daemon_is_answered_once_by_the_next() {
    let stage = Stage::new();
    let pause = Pause::at(stage.home().join("pause"));
    let asked = stage.home().join("asked");
    // Queries for the cursor position, the terminal's identity and its status.
    let script = format!(
        r"raw; await {}; print abc\e[6n; print \e[c\e[5n; mark-file {}; wait-for R; wait-for c; wait-for n; say answered; no-read",
        pause.path().display(),
        asked.display(),
    );
    stage.play("one", &script);
    let run = stage.keeper("one").run;
    stage.kill_daemon();
    pause.release();
    stage.eventually("the agent asks", SOON, || asked.exists().then_some(()));
    assert_eq!(journal::answered_queries(&stage, &run), [0; 0], "no daemon is running");
    stage.listing();
    stage.wait_printed("one", "answered");
    let answered = journal::answered_queries(&stage, &run);
    for _ in 0..3 {
        stage.kill_daemon();
        stage.listing();
        api::screen(&stage, "one");
    }
    assert_eq!(journal::answered_queries(&stage, &run), answered, "no later daemon answers again");
    let mut once = answered.clone();
    once.dedup();
    assert_eq!(once, answered);
}

#[test]
fn daemon_status_prints_text_and_json() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    let status = stage.run(["daemon", "status", "--json"]).json();
    assert_eq!(status["pid"], stage.daemon().expect("a daemon").pid);
    assert_eq!((&status["live_runs"], &status["orphans"]), (&1.into(), &0.into()));
    assert!(stage.run(["daemon", "status"]).ok().contains(&format!("pid {}", status["pid"])));
}

#[test]
fn many_first_commands_start_one_daemon() {
    let stage = Stage::new();
    let listings: Vec<CommandOutput> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..8).map(|_| scope.spawn(|| stage.run(["ls", "--json"]))).collect();
        started.into_iter().map(|ran| ran.join().expect("it ran")).collect()
    });
    for ran in listings {
        assert_eq!(ran.json()["tasks"], serde_json::json!([]));
    }
    stage.eventually("one daemon", Duration::from_secs(30), || (daemons(&stage).len() == 1).then_some(()));
}

#[test]
fn a_keeper_whose_socket_was_deleted_is_still_reached() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    let keeper = stage.keeper("one");
    stage.kill_daemon();
    fs::remove_file(stage.state().join("r").join(&keeper.run).join("k")).expect("a socket");
    assert_eq!(stage.status("one"), "running");
    stage.run(["send", "one", "hello"]).ok();
    stage.wait_printed("one", "got: hello");
    assert_eq!(stage.keeper("one"), keeper);
}

#[test]
fn a_daemon_whose_socket_was_deleted_makes_another() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    let daemon = stage.daemon().expect("a daemon");
    let entries = std::fs::read_dir(stage.state()).expect("the state directory");
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let socket = paths.find(|path| path.extension().is_some_and(|end| end == "sock")).expect("a socket");
    std::fs::remove_file(socket).expect("a socket to delete");
    assert_eq!(stage.status("one"), "running");
    assert_eq!(stage.daemon(), Some(daemon), "the same one answers");
}
