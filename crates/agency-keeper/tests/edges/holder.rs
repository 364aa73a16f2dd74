//! A killed keeper without any daemon: its parent holds the terminal and forks a new keeper.

use std::time::Instant;

use agency_api::ProcessIdentity;
use agency_api::keeper::{LaunchAnswer, ToKeeper};
use agency_journal::{Body, ExitStatus, GapCause};
use agency_keeper::keeper_search::find_keepers;
use agency_keeper::pidfile::PidFile;
use agency_keeper::platform;
use rustix::process::Signal;

use crate::harness::{PATIENCE, Run, launch, on_pipes, private_dir, spec, wait_for_end};

/// Kills the keeper and waits until another one holds the run.
fn kill_and_await_next(run: &mut Run) {
    let killed = run.keeper.clone();
    assert!(platform::signal_if_same(&killed, Signal::KILL).expect("ours"));
    let deadline = Instant::now() + PATIENCE;
    while run.keeper == killed {
        assert!(Instant::now() < deadline, "no new keeper");
        let written = PidFile::read(&run.path("pid")).ok().flatten();
        // It writes the file first without the agent.
        if let Some(PidFile { keeper, child: Some(_) }) = written {
            run.keeper = keeper;
        }
        std::thread::yield_now();
    }
}

#[test]
fn the_agent_of_a_killed_keeper_gets_a_new_one_without_a_daemon() {
    let mut run = Run::script("echo before; read line; echo after $line; exit 42");
    run.daemon().wait_for_text("before");
    let holder = run.holder();
    kill_and_await_next(&mut run);
    assert!(platform::is_alive(&run.child), "there was no hangup");
    let mut daemon = run.daemon();
    daemon.type_in(1, b"rescue\n");
    daemon.wait_for_text("after rescue");
    assert_eq!(daemon.wait_for_exit(), (ExitStatus::Code(42), None));
    daemon.wait_for_gone();
    let gap = Body::Gap { output_bytes: 0, cause: GapCause::KeeperLost };
    assert!(run.journal().iter().any(|record| record.body == gap), "the gap is recorded");
    daemon.send_message(&ToKeeper::Dismiss);
    run.wait_for_keeper();
    wait_for_end(&holder);
}

#[test]
fn keepers_may_be_killed_one_after_another() {
    let mut run = Run::of(&["cat"]);
    let child = run.child.clone();
    for round in 1..=3_u64 {
        kill_and_await_next(&mut run);
        let mut daemon = run.daemon();
        let found = find_keepers().into_iter().filter(|found| found.process == run.keeper);
        assert_eq!(found.count(), 1, "a new keeper is found by its name");
        daemon.type_in(round, format!("round {round}\n").as_bytes());
        daemon.wait_for_text(&format!("round {round}\r\nround {round}\r\n"));
    }
    assert!(platform::is_alive(&child), "it is the same agent");
}

#[test]
fn a_keeper_lives_on_without_its_holder() {
    let run = Run::of(&["cat"]);
    let holder = run.holder();
    assert!(platform::signal_if_same(&holder, Signal::KILL).expect("ours"));
    wait_for_end(&holder);
    let mut daemon = run.daemon();
    daemon.type_in(1, b"alone\n");
    daemon.wait_for_text("alone\r\nalone\r\n");
}

#[test]
fn an_agent_on_pipes_has_no_holder() {
    let dir = private_dir();
    let answer = launch(&on_pipes(spec(dir.path(), &["cat"])), Default::default());
    let LaunchAnswer::Ready { keeper, .. } = answer else { panic!("{answer:?}") };
    let parent = |keeper: &ProcessIdentity| platform::process(platform::process(keeper.pid)?.parent);
    assert!(parent(&keeper).is_none_or(|parent| parent.name != "agency-holder"));
    assert!(platform::signal_if_same(&keeper, Signal::TERM).expect("ours"));
    wait_for_end(&keeper);
}
