//! A killed keeper: the agent goes on, and another keeper takes over through the daemon's lifeline.

use std::os::fd::OwnedFd;
use std::time::Duration;

use agency_api::ProcessIdentity;
use agency_api::keeper::{LaunchAnswer, LaunchSpec, Start};
use agency_journal::{Body, ExitStatus, GapCause, StopSignal};
use agency_keeper::platform;
use rustix::process::Signal;

use crate::harness::{Client, Run, Setup, environment, is_alive, launch, run_id, spec, wait_for_end};

/// Kills the keeper of a run and its holder; returns the lifeline that the daemon holds.
fn kill_keeper(run: &Run) -> OwnedFd {
    let mut daemon = run.connect();
    let (_, master) = daemon.hello_with_lifeline(1);
    assert!(platform::signal_if_same(&run.holder(), Signal::KILL).expect("ours"));
    assert!(platform::signal_if_same(&run.keeper, Signal::KILL).expect("ours"));
    wait_for_end(&run.keeper);
    daemon.wait_for_close();
    master
}

fn rescue_spec(run: &Run, child: Option<ProcessIdentity>) -> LaunchSpec {
    let env = environment(&run_id(run.dir.path()));
    LaunchSpec { start: Start::Rescue { child, env }, ..spec(run.dir.path(), &[]) }
}

fn rescue(run: &mut Run, child: Option<ProcessIdentity>, master: OwnedFd) -> Client {
    let setup = Setup { rescue_master: Some(master), ..Setup::default() };
    match launch(&rescue_spec(run, child), setup) {
        LaunchAnswer::Ready { keeper, .. } => run.keeper = keeper,
        LaunchAnswer::Failed { what, errno } => panic!("cannot {what}: errno {errno}"),
    }
    let mut daemon = run.connect();
    daemon.hello(2);
    daemon.follow(1);
    daemon
}

#[test]
fn the_agent_goes_on_and_its_exit_code_is_still_known() {
    let mut run = Run::script("echo before; read line; echo after $line; exit 42");
    run.daemon().wait_for_text("before");
    let master = kill_keeper(&run);
    assert!(platform::is_alive(&run.child), "there was no hangup");
    let child = run.child.clone();
    let mut daemon = rescue(&mut run, Some(child), master);
    daemon.type_in(1, b"rescue\n");
    daemon.wait_for_text("after rescue");
    assert_eq!(daemon.wait_for_exit(), (ExitStatus::Code(42), None));
    daemon.wait_for_gone();
    assert_eq!(daemon.text(), "before\r\nrescue\r\nafter rescue\r\n");
    let bodies: Vec<Body> = run.journal().into_iter().map(|record| record.body).collect();
    let gap = Body::Gap { output_bytes: 0, cause: GapCause::KeeperLost };
    let at = bodies.iter().position(|body| *body == gap).expect("the gap is recorded");
    assert!(matches!(bodies[at + 1], Body::Anchor { .. }));
}

#[test]
fn an_agent_without_a_recorded_pid_is_found_by_its_run_id() {
    let mut run = Run::script("echo up; cat");
    run.daemon().wait_for_text("up");
    let master = kill_keeper(&run);
    let mut daemon = rescue(&mut run, None, master);
    let welcome = run.connect().hello(2);
    assert_eq!(welcome.child, Some(run.child.clone()));
    daemon.type_in(1, b"\x04");
    assert_eq!(daemon.wait_for_exit(), (ExitStatus::Code(0), None));
}

#[test]
fn half_a_record_at_the_end_of_the_journal_is_cut_off() {
    let mut run = Run::script("echo up; cat");
    run.daemon().wait_for_text("up");
    let master = kill_keeper(&run);
    let whole = run.journal();
    let segment = run.path("j").join("00000001.aj");
    let bytes = std::fs::read(&segment).expect("a segment");
    std::fs::write(&segment, &bytes[..bytes.len() - 3]).expect("torn");
    let child = run.child.clone();
    let mut daemon = rescue(&mut run, Some(child), master);
    daemon.type_in(1, b"on\n");
    daemon.wait_for_text("on\r\non\r\n");
    let seqs: Vec<u64> = daemon.records.iter().map(|record| record.seq).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    assert_eq!(daemon.records[..whole.len() - 1], whole[..whole.len() - 1], "only the torn one is lost");
}

#[test]
fn a_rescued_tree_is_ended_completely() {
    let mut run =
        Run::script("setsid sh -c 'trap \"\" TERM HUP; echo deaf=$$; while :; do sleep 0.01; done' & cat");
    let mut before = run.daemon();
    before.wait_for_text("deaf=");
    let text = before.text();
    let deaf = text.trim().trim_start_matches("deaf=").parse().expect("a pid");
    let master = kill_keeper(&run);
    let child = run.child.clone();
    let mut daemon = rescue(&mut run, Some(child), master);
    daemon.probe_until("all processes are found", |probe| {
        probe.processes.iter().any(|process| process.pid == deaf)
    });
    daemon.stop(Duration::from_millis(200));
    assert_eq!(daemon.wait_for_exit(), (ExitStatus::Signal(15), Some(StopSignal::Term)));
    let ended = daemon.wait_for_gone();
    assert!(!is_alive(deaf));
    assert!(ended.iter().any(|ended| ended.pid == deaf && ended.killed), "{ended:?}");
}

#[test]
fn the_exit_of_an_agent_that_ended_without_a_keeper_is_unknown() {
    let mut run = Run::script("echo up; read line; exit 3");
    run.daemon().wait_for_text("up");
    let master = kill_keeper(&run);
    rustix::io::write(&master, b"\n").expect("the lifeline works");
    let child = run.child.clone();
    wait_until_reaped(&child);
    let mut daemon = rescue(&mut run, Some(child), master);
    assert_eq!(daemon.wait_for_exit(), (ExitStatus::Unknown, None));
    daemon.wait_for_gone();
}

#[test]
fn a_descriptor_that_is_no_terminal_is_refused() {
    let dir = crate::harness::private_dir();
    let start = Start::Rescue { child: None, env: Vec::new() };
    let spec = LaunchSpec { start, ..spec(dir.path(), &[]) };
    let (reader, _writer) = std::io::pipe().expect("a pipe");
    let answer = launch(&spec, Setup { rescue_master: Some(reader.into()), ..Setup::default() });
    let what = "take over the terminal".to_string();
    assert_eq!(answer, LaunchAnswer::Failed { what, errno: libc::ENOTTY });
    assert!(!dir.path().join("k").exists());
}

fn wait_until_reaped(child: &ProcessIdentity) {
    wait_for_end(child);
    let deadline = std::time::Instant::now() + crate::harness::PATIENCE;
    while platform::process(child.pid).is_some_and(|process| process.has_identity(child)) {
        assert!(std::time::Instant::now() < deadline, "init does not reap");
        std::thread::yield_now();
    }
}

#[test]
fn a_second_rescue_continues_the_first() {
    let mut run = Run::script("echo up; cat");
    run.daemon().wait_for_text("up");
    for round in 1..=3_u64 {
        let mut daemon = run.connect();
        let (_, master) = daemon.hello_with_lifeline(round);
        assert!(platform::signal_if_same(&run.holder(), Signal::KILL).expect("ours"));
        assert!(platform::signal_if_same(&run.keeper, Signal::KILL).expect("ours"));
        wait_for_end(&run.keeper);
        let child = run.child.clone();
        let setup = Setup { rescue_master: Some(master), ..Setup::default() };
        let answer = launch(&rescue_spec(&run, Some(child)), setup);
        let LaunchAnswer::Ready { keeper, .. } = answer else { panic!("{answer:?}") };
        run.keeper = keeper;
        let mut next = run.connect();
        next.hello(round + 1);
        next.follow(1);
        next.type_in(round, format!("round {round}\n").as_bytes());
        next.wait_for_text(&format!("round {round}\r\nround {round}\r\n"));
    }
    let seqs: Vec<u64> = run.journal().iter().map(|record| record.seq).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "one journal without holes");
}
