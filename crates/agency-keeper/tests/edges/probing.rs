//! Probes of an agent's processes, without privileges.

use std::os::unix::fs::PermissionsExt;

use agency_api::keeper::{LaunchAnswer, Probe};

use crate::harness::{Run, Setup, keeper_binary, launch, private_dir, process_named, spec};
use crate::waiter;

/// A keeper without privileges: as another user if we are root, otherwise as ourselves.
fn unprivileged(argv: &[&str]) -> Run {
    let dir = private_dir();
    let other_user = rustix::process::geteuid().is_root().then_some(65534);
    // Other users may not be able to read the build directory.
    let binary = dir.path().join("agency-keeper");
    std::fs::copy(keeper_binary(), &binary).expect("a copy");
    for path in [dir.path(), &binary] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("ours");
        std::os::unix::fs::chown(path, other_user, other_user).expect("allowed");
    }
    let setup = Setup { user: other_user, binary: Some(binary), ..Setup::default() };
    match launch(&spec(dir.path(), argv), setup) {
        LaunchAnswer::Ready { keeper, child } => Run { dir, keeper, child },
        LaunchAnswer::Failed { what, errno } => panic!("cannot {what}: errno {errno}"),
    }
}

#[test]
fn a_shell_at_its_prompt_is_blocked_reading_the_terminal() {
    let run = unprivileged(&["sh", "-c", "echo up; read line; exec cat"]);
    let mut daemon = run.daemon();
    daemon.wait_for_text("up");
    let probe = daemon
        .probe_until("reading", |probe| process_named(probe, "sh").is_some_and(|shell| shell.at_terminal));
    let shell = process_named(&probe, "sh").expect("seen");
    assert_eq!((shell.pid, shell.state.as_str()), (run.child.pid, "S"));
    assert_eq!(shell.syscall, Some((libc::SYS_read, 0)));
    assert!(shell.wchan.is_some());
    let terminal = probe.terminal.expect("it has a terminal");
    assert!(terminal.canonical && terminal.echo);
    assert_eq!(terminal.foreground_group, Some(run.child.pid));
}

#[test]
fn a_sleeping_child_is_at_work_and_its_shell_waits() {
    let run = unprivileged(&["sh", "-c", "stty raw -echo; sleep 1000; echo"]);
    let mut daemon = run.daemon();
    let asleep =
        |probe: &Probe| process_named(probe, "sleep").is_some_and(|sleeper| sleeper.syscall.is_some());
    let probe = daemon.probe_until("asleep", asleep);
    let sleeper = process_named(&probe, "sleep").expect("seen");
    assert_eq!((sleeper.parent, sleeper.at_terminal), (run.child.pid, false));
    assert!(!process_named(&probe, "sh").expect("seen").at_terminal);
    let terminal = probe.terminal.expect("it has a terminal");
    assert!(!terminal.canonical && !terminal.echo);
}

#[test]
fn a_line_editor_that_selects_on_its_terminal_counts_as_reading() {
    let run = unprivileged(&["bash", "--norc", "--noprofile", "-i"]);
    let mut daemon = run.daemon();
    let waits = |probe: &Probe| process_named(probe, "bash").is_some_and(|shell| shell.at_terminal);
    let probe = daemon.probe_until("at its prompt", waits);
    assert!(!probe.terminal.expect("it has a terminal").canonical);
}

#[test]
fn descendants_that_left_the_session_are_seen() {
    let run = unprivileged(&["sh", "-c", "setsid sh -c 'exec sleep 1000' & cat"]);
    let mut daemon = run.daemon();
    let probe = daemon.probe_until("left", |probe| process_named(probe, "sleep").is_some());
    let sleeper = process_named(&probe, "sleep").expect("seen");
    assert_eq!(sleeper.session, sleeper.pid);
}

#[test]
fn a_probe_shows_what_is_waited_for_in_every_system_call() {
    for (how, at_terminal, watches_terminal, timeout) in [
        ("read", true, Some(false), false),
        ("poll", true, Some(false), false),
        ("poll-a-while", true, Some(false), true),
        ("poll-with-pipe", false, Some(true), false),
        ("poll-pipe", false, Some(false), false),
        ("select", true, Some(false), false),
        ("select-as-editors-do", true, Some(false), false),
        ("select-with-pipe", false, Some(true), false),
        ("epoll", true, Some(false), false),
        ("epoll-a-while", true, Some(false), true),
        ("epoll-with-pipe", false, Some(true), false),
        ("another-thread", false, None, false),
    ] {
        let run = waiter::waiting(how);
        let mut daemon = run.daemon();
        daemon.wait_for_text("waiting");
        let seen = |probe: &Probe| {
            let process = probe.processes.iter().find(|process| process.parent == run.child.pid);
            process.map(|process| (process.at_terminal, process.watches_terminal, process.timeout))
        };
        let told = Some((at_terminal, watches_terminal, timeout));
        let probe = daemon.probe_until(how, |probe| seen(probe) == told);
        assert_eq!(probe.processes[0].start_time, run.child.start_time);
    }
}

#[test]
fn a_process_that_reads_an_inner_terminal_is_recognised() {
    let run = waiter::waiting("inner-terminal");
    let mut daemon = run.daemon();
    daemon.wait_for_text("waiting");
    daemon.probe_until("the inner terminal is read", |probe| {
        let process = probe.processes.iter().find(|process| process.parent == run.child.pid);
        process.is_some_and(|process| process.at_inner_terminal && !process.at_terminal)
    });
}

#[test]
fn unread_input_is_counted() {
    let waits = |count| {
        move |probe: &Probe| probe.terminal.as_ref().is_some_and(|it| it.input_waiting == Some(count))
    };
    let run = Run::script("stty -echo; echo up; sleep 1000");
    let mut daemon = run.daemon();
    daemon.wait_for_text("up");
    daemon.type_in(1, b"half");
    daemon.type_in(2, b" a line\nand");
    daemon.probe_until("a whole line", waits(12));
    let raw = Run::script("stty raw -echo; echo up; sleep 1000");
    let mut daemon = raw.daemon();
    daemon.wait_for_text("up");
    daemon.type_in(1, b"keys");
    daemon.probe_until("every key", waits(4));
}
