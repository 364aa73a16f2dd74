//! A killed keeper: its parent or the daemon starts a new one, and the agent keeps running.

use std::process::Stdio;

use agency_journal::{Body, GapCause};
use agency_testkit::{Keeper, Process, Signal};

use crate::journal;
use crate::stage::{SOON, Stage};

/// Waits until another keeper than this one holds the run.
#[track_caller]
fn wait_rescued(stage: &Stage, before: &Keeper) -> Keeper {
    stage.eventually("another keeper", SOON, || {
        let held = stage.keepers().into_iter().find(|keeper| keeper.run == before.run)?;
        // It holds the terminal at once, and finds the agent a moment later.
        (held.process != before.process && held.child.is_some()).then_some(held)
    })
}

fn gaps(stage: &Stage, run: &str) -> usize {
    let records = journal::records(stage, run);
    let is_gap = |body: &Body| matches!(body, Body::Gap { cause: GapCause::KeeperLost, .. });
    records.iter().filter(|record| is_gap(&record.body)).count()
}

#[test]
fn a_killed_keeper_is_replaced_and_the_agent_survives() {
    let stage = Stage::new();
    stage.play("one", "say the first words; loop; ask ready?; end");
    stage.wait_printed("one", "ready?");
    let mut terminal = stage.on_terminal(["attach", "one"]);
    terminal.wait_for("ready?");
    let before = stage.keeper("one");

    // Only the daemon is left to start another one.
    before.kill_for_good();
    let after = wait_rescued(&stage, &before);
    assert_eq!(after.child, before.child);
    assert!(after.child.expect("an agent").is_alive());
    assert_eq!(gaps(&stage, &before.run), 1, "what was printed meanwhile may be missing, and that is said");
    terminal.send("still here\r");
    terminal.wait_for("got: still here");
    stage.run(["send", "one", "and here"]).ok();
    terminal.wait_for("got: and here");
    let logs = stage.logs("one");
    assert!(logs.starts_with("the first words\n") && logs.contains("got: still here"), "{logs}");
    assert_eq!(stage.status("one"), "running");
    assert!(stage.daemon_log().contains("another one holds the run now"));
}

#[test]
fn keepers_may_be_killed_one_after_another() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    let agent = stage.agent("one");
    for number in 1..=5 {
        let before = stage.keeper("one");
        before.process.kill();
        wait_rescued(&stage, &before);
        stage.eventually("input goes on", SOON, || {
            // A text that reaches the dying keeper is refused, and not typed later.
            (stage.run(["send", "one", &format!("hello {number}")]).code == 0).then_some(())
        });
        stage.wait_printed("one", &format!("got: hello {number}"));
    }
    assert_eq!(stage.agent("one"), agent);
}

#[test]
fn the_exit_code_of_a_rescued_agent_is_right() {
    let stage = Stage::new();
    for (slug, script, code) in
        [("code", "ask ready?; exit 5", "5"), ("signal", "ask ready?; crash SEGV", "-11")]
    {
        stage.play(slug, script);
        stage.wait_printed(slug, "ready?");
        let before = stage.keeper(slug);
        before.process.kill();
        wait_rescued(&stage, &before);
        stage.eventually("input goes on", SOON, || (stage.run(["send", slug, "go"]).code == 0).then_some(()));
        let task = stage.wait_status(slug, "stopped");
        let said = task["last_exit"].as_str().expect("a code");
        // Kernels before 6.15 have forgotten it by then, and the keeper must not guess.
        assert!(said == code || (said == "unknown" && !kernel_reports_exit_status()), "{slug}: {said}");
    }
}

/// Whether the kernel tells the exit status of a process that is not our child.
fn kernel_reports_exit_status() -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split('.').map(|number| number.parse().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(15))
}

#[test]
fn stop_finds_the_whole_tree_of_a_rescued_agent() {
    let stage = Stage::new();
    stage.play("one", "fork-child near; fork-child setsid far; fork-child double farther; ask ready?");
    let logs = stage.wait_printed("one", "ready?");
    let pids = logs.lines().filter_map(|line| line.strip_prefix("child ")?.parse().ok());
    let mut family: Vec<Process> = pids.map(|pid| Process::find(pid).expect("it lives")).collect();
    assert_eq!(family.len(), 3);
    let before = stage.keeper("one");
    family.extend(before.child);
    before.process.kill();
    wait_rescued(&stage, &before);
    assert_eq!(stage.run(["stop", "one"]).ok(), "1 one stopped\n");
    assert!(family.iter().all(|process| !process.is_alive()));
    assert_eq!(stage.task("one")["last_exit"], "-15");
}

#[test]
fn an_agent_survives_a_keeper_and_a_daemon_that_are_killed_together() {
    let stage = Stage::new();
    stage.play("one", "say the first words; loop; ask ready?; end");
    stage.wait_printed("one", "ready?");
    for number in 1..=5 {
        let (before, daemon) = (stage.keeper("one"), stage.daemon().expect("a daemon lives"));
        if number % 2 == 0 {
            assert!(before.process.signal(Signal::KILL));
            daemon.kill();
        } else {
            assert!(daemon.signal(Signal::KILL));
            before.process.kill();
        }
        let after = wait_rescued(&stage, &before);
        assert_eq!(after.child, before.child);
        assert_eq!(stage.status("one"), "running");
        stage.run(["send", "one", &format!("hello {number}")]).ok();
        stage.wait_printed("one", &format!("got: hello {number}"));
    }
    assert!(stage.logs("one").starts_with("the first words\n"));
    let (keeper, agent) = (stage.keeper("one"), stage.agent("one"));
    let holder = keeper.holder().expect("a holder");
    stage.run(["daemon", "stop", "--agents"]).ok();
    [keeper.process, agent, holder].iter().for_each(|process| process.wait_gone(SOON));
}

#[test]
fn the_next_daemon_adopts_a_rescued_run() {
    let stage = Stage::new();
    stage.play("one", "say the first words; loop; ask ready?; end");
    stage.wait_printed("one", "ready?");
    let before = stage.keeper("one");
    before.process.kill();
    let after = wait_rescued(&stage, &before);
    stage.kill_daemon();
    assert_eq!(stage.keeper("one"), after);
    stage.run(["send", "one", "hello"]).ok();
    let logs = stage.wait_printed("one", "got: hello");
    assert!(logs.starts_with("the first words\n"), "{logs}");
}

#[test]
fn a_keeper_that_is_paused_for_a_while_loses_nothing() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    stage.wait_printed("one", "ready?");
    let keeper = stage.keeper("one");
    assert!(keeper.process.signal(Signal::STOP));
    let mut send = stage.agency(["send", "one", "hello"]);
    let mut sending = send.stdout(Stdio::null()).spawn().expect("agency can be run");
    assert_eq!(stage.status("one"), "running", "the daemon does not wait for it");
    assert!(sending.try_wait().expect("our own child").is_none(), "nothing was taken yet");
    assert!(keeper.process.signal(Signal::CONT));
    assert!(sending.wait().expect("our own child").success());
    stage.wait_printed("one", "got: hello");
    assert_eq!(stage.keeper("one"), keeper);
}
