//! Trouble that must not kill a keeper: a full disk, a deleted socket, SIGSTOP.

use std::path::Path;

use agency_api::keeper::FromKeeper;
use agency_journal::{Body, GapCause};
use agency_keeper::keeper_search::find_keepers;
use agency_keeper::platform;
use agency_keeper::run_lock::{LockState, lock_state};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

use crate::harness::{Client, Event, PATIENCE, Run};

fn set_file_limit(run: &Run, bytes: Option<u64>) {
    let keeper = Pid::from_raw(run.keeper.pid);
    prlimit(keeper, Resource::Fsize, Rlimit { current: bytes, maximum: None }).expect("our own process");
}

fn wait_for_journal(daemon: &mut Client, works: bool) {
    daemon.wait("a journal message", |event| match event {
        Event::Said(FromKeeper::Journal { cause }) => (cause.is_none() == works).then_some(()),
        _ => None,
    });
}

/// A file that cannot grow, as on a full disk: part of a record is written, then nothing more.
#[test]
fn a_full_disk_leaves_a_gap_and_does_not_stop_the_agent() {
    let run = Run::script(
        "stty -echo; echo up; while read n; do head -c $n /dev/zero | tr '\\0' x; echo end $n; done",
    );
    let mut daemon = run.daemon();
    daemon.wait_for_text("up");
    set_file_limit(&run, Some(40_000));
    daemon.type_in(1, b"100000\n");
    wait_for_journal(&mut daemon, false);
    daemon.wait_for_text("end 100000\r\n");
    assert_eq!(daemon.output.len(), 100_000 + "up\r\nend 100000\r\n".len(), "followers miss nothing");
    set_file_limit(&run, None);
    wait_for_journal(&mut daemon, true);
    daemon.type_in(2, b"5\n");
    daemon.wait_for_text("end 5\r\n");
    let records = run.journal();
    let mut offset = 0;
    for record in &records {
        assert_eq!(record.output_offset, offset, "{record:?}");
        offset = record.end_offset();
    }
    assert_eq!(offset as usize, daemon.output.len(), "every byte is recorded or counted");
    let lost = |body: &Body| matches!(body, Body::Gap { output_bytes: 1.., cause: GapCause::DiskFull });
    assert!(records.iter().any(|record| lost(&record.body)), "and the loss is recorded");
}

#[test]
fn an_exit_on_a_full_disk_is_sent_at_once_and_recorded_later() {
    let run = Run::script("echo up; read n; exit 8");
    let mut daemon = run.daemon();
    daemon.wait_for_text("up");
    set_file_limit(&run, Some(1));
    daemon.type_in(1, b"\n");
    assert_eq!(daemon.wait_for_exit().0, agency_journal::ExitStatus::Code(8));
    daemon.wait_for_gone();
    let mut late = run.connect();
    late.hello(1);
    wait_for_journal(&mut late, false);
    set_file_limit(&run, None);
    wait_for_journal(&mut daemon, true);
    assert!(run.journal().iter().any(|record| matches!(record.body, Body::Exit { .. })));
}

#[test]
fn a_dismissed_keeper_stays_until_its_journal_says_what_was_lost_and_how_the_agent_ended() {
    let run = Run::script("stty -echo; echo up; read n; echo lost; exit 8");
    let mut daemon = run.daemon();
    daemon.wait_for_text("up");
    set_file_limit(&run, Some(1));
    daemon.type_in(1, b"\n");
    daemon.wait_for_gone();
    daemon.send_message(&agency_api::keeper::ToKeeper::Dismiss);
    // The answer to a new connection shows that the keeper has read the dismissal and stayed.
    run.connect().hello(1);
    set_file_limit(&run, None);
    run.wait_for_keeper();
    let records = run.journal();
    let lost = |body: &Body| matches!(body, Body::Gap { output_bytes: 6, cause: GapCause::DiskFull });
    assert!(records.iter().any(|record| lost(&record.body)), "{records:?}");
    assert!(records.iter().any(|record| matches!(record.body, Body::Exit { .. })), "{records:?}");
}

#[test]
fn a_stopped_keeper_continues_where_it_was() {
    let run = Run::of(&["cat"]);
    let mut daemon = run.daemon();
    daemon.type_in(1, b"one\n");
    daemon.wait_for_text("one\r\none\r\n");
    assert!(platform::signal_if_same(&run.keeper, Signal::STOP).expect("ours"));
    let deadline = std::time::Instant::now() + PATIENCE;
    while platform::process(run.keeper.pid).is_some_and(|keeper| keeper.state != 'T') {
        assert!(std::time::Instant::now() < deadline, "it does not stop");
        std::thread::yield_now();
    }
    daemon.input(2, b"two\n");
    assert!(platform::signal_if_same(&run.keeper, Signal::CONT).expect("ours"));
    daemon.wait_for_text("two\r\ntwo\r\n");
}

#[test]
fn a_deleted_socket_is_bound_again_on_usr1() {
    let run = Run::of(&["cat"]);
    let mut daemon = run.daemon();
    std::fs::remove_file(run.path("k")).expect("it was there");
    assert!(platform::signal_if_same(&run.keeper, Signal::USR1).expect("ours"));
    let deadline = std::time::Instant::now() + PATIENCE;
    while agency_api::socket::connect(&run.path("k")).is_err() {
        assert!(std::time::Instant::now() < deadline, "no new socket");
        std::thread::yield_now();
    }
    run.connect().hello(1);
    daemon.type_in(1, b"old connection\n");
    daemon.wait_for_text("old connection");
}

#[test]
fn a_deleted_run_directory_is_made_again_on_usr1() {
    let run = Run::of(&["cat"]);
    let mut daemon = run.daemon();
    // The keeper may write a file while its directory is being deleted.
    let deadline = std::time::Instant::now() + PATIENCE;
    while let Err(err) = std::fs::remove_dir_all(run.dir.path()) {
        assert!(std::time::Instant::now() < deadline, "the directory stays: {err}");
    }
    daemon.type_in(1, b"without files\n");
    daemon.wait_for_text("without files\r\nwithout files");
    assert!(platform::signal_if_same(&run.keeper, Signal::USR1).expect("ours"));
    let deadline = std::time::Instant::now() + PATIENCE;
    while agency_api::socket::connect(&run.path("k")).is_err() {
        assert!(std::time::Instant::now() < deadline, "no new socket");
        std::thread::yield_now();
    }
    run.connect().hello(1);
    let held = lock_state(run.dir.path()).expect("a directory");
    assert!(matches!(held, LockState::Held), "the new directory is locked, too: {held:?}");
    daemon.type_in(2, b"with files\n");
    daemon.wait_for_text("with files\r\nwith files");
    let is_kept = |body: &Body| matches!(body, Body::Input { bytes, .. } if bytes == b"with files\n");
    assert!(run.journal().iter().any(|record| is_kept(&record.body)), "the journal goes on");
}

#[test]
fn a_spoiled_journal_goes_on_in_a_new_segment_when_a_daemon_comes() {
    let spoil: [fn(&Path); 2] = [
        |path| std::fs::remove_file(path).expect("it was there"),
        |path| std::fs::write(path, "").expect("room"),
    ];
    for spoil in spoil {
        let run = Run::of(&["cat"]);
        let mut first = run.daemon();
        first.type_in(1, b"before\n");
        // The echo of the terminal, then the answer of `cat`.
        first.wait_for_text("before\r\nbefore\r\n");
        spoil(&run.path("j/00000001.aj"));
        let mut next = run.connect();
        next.hello(2);
        next.follow(1);
        next.type_in(2, b"after\n");
        next.wait_for_text("after\r\nafter");
        let is_after = |body: &Body| matches!(body, Body::Input { bytes, .. } if bytes == b"after\n");
        assert!(run.journal().iter().any(|record| is_after(&record.body)));
    }
}

/// A daemon that knows nothing of the run learns all of it from the keeper.
#[test]
fn a_keeper_says_whose_run_it_holds_and_which_epoch_it_has_seen() {
    let owner = serde_json::json!({ "task": 1, "root": "/project" });
    let run = Run::with(&["cat"], |spec| spec.owner = Some(owner.clone()));
    assert_eq!(run.connect().hello(7).epoch, 7);
    let welcome = run.connect().hello(0);
    assert_eq!((welcome.owner, welcome.epoch), (Some(owner), 7));
    assert!(matches!(lock_state(run.dir.path()), Ok(LockState::Held)));
    let found = find_keepers().into_iter().find(|found| found.process == run.keeper).expect("a keeper");
    assert_eq!((found.name.as_str(), found.run_id), ("1-test", welcome.run_id));
    assert_eq!(found.run_dir, run.dir.path().canonicalize().expect("a directory"));
}

#[test]
fn the_memory_of_a_flood_is_returned() {
    let run = Run::script("stty -echo; head -c 20000000 /dev/zero | tr '\\0' x; echo done; cat");
    let mut daemon = run.daemon();
    daemon.wait_for_text("done");
    let deadline = std::time::Instant::now() + PATIENCE;
    let heap_kb = || {
        let smaps = std::fs::read_to_string(format!("/proc/{}/smaps", run.keeper.pid)).expect("alive");
        let heap = smaps.split_once("[heap]").map(|(_, rest)| rest).unwrap_or_default();
        let line = heap.lines().find_map(|line| line.strip_prefix("Private_Dirty:")).unwrap_or("0 kB");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
    };
    while heap_kb() > 128 {
        assert!(std::time::Instant::now() < deadline, "{} KB of heap remain", heap_kb());
        std::thread::yield_now();
    }
}
