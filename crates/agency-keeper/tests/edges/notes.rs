//! The probes that the keeper journals by itself: which process waits at the terminal, and none without a change.

use agency_api::keeper::{Probe, ProcessProbe, TerminalProbe};
use agency_journal::{Body, Record};

use crate::harness::{Event, Run, on_pipes, probe_in, process_named};
use crate::waiter;

fn terminal(probe: &Probe) -> &TerminalProbe {
    probe.terminal.as_ref().expect("it has a terminal")
}

fn at_terminal(probe: &Probe, name: &str) -> bool {
    process_named(probe, name).is_some_and(|process| process.at_terminal)
}

fn notes(records: &[Record]) -> Vec<Probe> {
    records.iter().filter_map(probe_in).collect()
}

#[test]
fn a_shell_at_its_prompt_at_work_and_at_its_prompt_again() {
    let run = Run::of(&["bash", "--norc", "--noprofile", "-i"]);
    let mut daemon = run.daemon();
    let probe = daemon.wait_for_probe_note("the prompt", |probe| at_terminal(probe, "bash"));
    assert!(!terminal(&probe).canonical);
    assert_eq!(terminal(&probe).foreground_group, Some(run.child.pid));
    daemon.type_in(1, b"sleep 1000\n");
    let probe = daemon.wait_for_probe_note("the job", |probe| process_named(probe, "sleep").is_some());
    let job = process_named(&probe, "sleep").expect("seen");
    assert_eq!(terminal(&probe).foreground_group, Some(job.pid));
    assert!(terminal(&probe).canonical && !job.at_terminal && !at_terminal(&probe, "bash"));
    daemon.type_in(2, b"\x03");
    let probe = daemon.wait_for_probe_note("the prompt again", |probe| at_terminal(probe, "bash"));
    assert_eq!(probe.processes.len(), 1);
}

#[test]
fn the_echo_distinguishes_a_question_from_a_password() {
    let run = Run::of(&[
        "bash",
        "-c",
        "read -p 'Name? ' name; stty -echo; read -p 'Password: ' secret; sleep 1000",
    ]);
    let mut daemon = run.daemon();
    let probe = daemon.wait_for_probe_note("the question", |probe| at_terminal(probe, "bash"));
    assert!(terminal(&probe).canonical && terminal(&probe).echo);
    daemon.type_in(1, b"me\n");
    let probe = daemon
        .wait_for_probe_note("the password", |probe| at_terminal(probe, "bash") && !terminal(probe).echo);
    assert!(terminal(&probe).canonical);
    daemon.type_in(2, b"secret\n");
    let probe = daemon.wait_for_probe_note("work", |probe| process_named(probe, "sleep").is_some());
    assert!(!at_terminal(&probe, "bash"));
}

#[test]
fn a_program_that_never_prints_is_noted_too() {
    let run = Run::of(&["cat"]);
    let probe = run.daemon().wait_for_probe_note("cat", |probe| at_terminal(probe, "cat"));
    let cat = process_named(&probe, "cat").expect("seen");
    let expected = ProcessProbe {
        pid: run.child.pid,
        parent: run.keeper.pid,
        group: run.child.pid,
        session: run.child.pid,
        name: "cat".into(),
        state: "S".into(),
        start_time: run.child.start_time,
        syscall: Some((libc::SYS_read, 0)),
        at_terminal: true,
        watches_terminal: Some(false),
        ..ProcessProbe::default()
    };
    assert_eq!(*cat, expected, "nothing else is noted");
    let sleeper = Run::of(&["sleep", "1000"]);
    let probe =
        sleeper.daemon().wait_for_probe_note("sleep", |probe| process_named(probe, "sleep").is_some());
    assert!(!at_terminal(&probe, "sleep"));
}

#[test]
fn a_program_that_polls_several_things_watches_its_terminal() {
    let run = waiter::waiting("poll-with-pipe");
    let probe = run.daemon().wait_for_probe_note("it", |probe| {
        probe.processes.iter().any(|it| it.watches_terminal == Some(true))
    });
    assert!(probe.processes.iter().all(|it| !it.at_terminal));
}

#[test]
fn a_job_that_is_stopped_is_noted_as_such() {
    let run = Run::of(&["bash", "--norc", "--noprofile", "-i"]);
    let mut daemon = run.daemon();
    daemon.wait_for_probe_note("the prompt", |probe| at_terminal(probe, "bash"));
    daemon.type_in(1, b"sleep 1000\n");
    daemon.wait_for_probe_note("the job", |probe| process_named(probe, "sleep").is_some());
    daemon.type_in(2, b"\x1a");
    daemon.wait_for_probe_note("stopped", |probe| {
        at_terminal(probe, "bash") && process_named(probe, "sleep").is_some_and(|job| job.state == "T")
    });
}

/// A probe after a line may fall between two reads, so two notes can follow, but never two equal ones.
#[test]
fn unchanged_probes_are_not_noted() {
    let run = Run::of(&["cat"]);
    let mut daemon = run.daemon();
    for id in 0..20 {
        daemon.type_in(id, format!("line {id}\n").as_bytes());
        daemon.wait_for_text(&format!("line {id}\r\nline {id}\r\n"));
    }
    daemon.input(99, b"\x04");
    daemon.wait_for_exit();
    let notes = notes(&daemon.records);
    let tells = |probe: &Probe| {
        let TerminalProbe { canonical, echo, foreground_group, input_waiting } = terminal(probe).clone();
        (canonical, echo, foreground_group, input_waiting > Some(0), probe.processes.clone())
    };
    assert!(notes.windows(2).all(|two| tells(&two[0]) != tells(&two[1])), "{notes:#?}");
}

#[test]
fn a_flood_is_not_a_note_for_each_record() {
    let run = Run::script("head -c 20000000 /dev/zero | tr '\\0' x; echo; echo done; exec cat");
    let mut daemon = run.daemon();
    daemon.wait_for_text("done");
    daemon.wait_for_probe_note("cat", |probe| at_terminal(probe, "cat"));
    let outputs = daemon.records.iter().filter(|record| matches!(record.body, Body::Output { .. })).count();
    let noted = notes(&daemon.records).len();
    assert!(outputs > 300 && noted < outputs / 10, "{noted} notes among {outputs} records of output");
}

#[test]
fn pipes_are_not_probed() {
    let run = Run::with(&["cat"], |spec| *spec = on_pipes(spec.clone()));
    let mut daemon = run.daemon();
    daemon.type_in(1, b"echo\n");
    daemon.wait_for_text("echo");
    daemon.send_message(&agency_api::keeper::ToKeeper::CloseInput);
    daemon.wait_for_exit();
    assert_eq!(notes(&daemon.records), []);
}

#[test]
fn after_a_checkpoint_the_probe_is_noted_again() {
    let run = Run::of(&["cat"]);
    let mut daemon = run.daemon();
    daemon.wait_for_probe_note("cat", |probe| at_terminal(probe, "cat"));
    daemon.send(&agency_api::keeper::Frame::Checkpoint { at_seq: 3, bytes: vec![1] });
    daemon.wait("the checkpoint", |event| match event {
        Event::Record(record) => matches!(record.body, Body::Checkpoint { .. }).then_some(()),
        _ => None,
    });
    daemon.wait_for_probe_note("cat again", |probe| at_terminal(probe, "cat"));
}
