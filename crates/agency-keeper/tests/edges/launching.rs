//! A launch either works completely or leaves nothing behind.

use std::io::{Read, Write};
use std::process::{Command, Stdio as Piped};

use agency_api::Bytes;
use agency_api::keeper::{Frame, LaunchAnswer, LaunchSpec, Start};
use agency_journal::Body;
use agency_keeper::pidfile::PidFile;
use agency_keeper::platform;

use crate::harness::{Client, Run, Setup, journal, keeper_binary, launch, private_dir, run_id, spec};

fn failure(change: impl FnOnce(&mut LaunchSpec)) -> (String, i32) {
    let dir = private_dir();
    let mut spec = spec(dir.path(), &["no-such-program", "argument"]);
    if let Start::Spawn { env, .. } = &mut spec.start {
        // A directory on the path that we may not read would change the error.
        env[0].1 = "/usr/bin:/bin".into();
    }
    change(&mut spec);
    let LaunchAnswer::Failed { what, errno } = launch(&spec, Setup::default()) else { panic!("it started") };
    assert_eq!(platform::processes_with_environment("AGENCY_RUN_ID", &run_id(dir.path())), [], "no process");
    assert!(!dir.path().join("k").exists() && !dir.path().join("pid").exists(), "no socket, no pid file");
    (what, errno)
}

fn set_cwd(spec: &mut LaunchSpec, path: &str) {
    if let Start::Spawn { cwd, .. } = &mut spec.start {
        *cwd = path.into();
    }
}

fn set_argv(spec: &mut LaunchSpec, words: &[&[u8]]) {
    if let Start::Spawn { argv, .. } = &mut spec.start {
        *argv = words.iter().map(|word| Bytes(word.to_vec())).collect();
    }
}

#[test]
fn a_missing_program_is_a_clear_failure() {
    assert_eq!(failure(|_| {}), ("exec no-such-program".into(), libc::ENOENT));
    assert_eq!(failure(|spec| set_argv(spec, &[b"/etc/passwd"])), ("exec /etc/passwd".into(), libc::EACCES));
    assert_eq!(failure(|spec| set_argv(spec, &[])), ("exec: no command".into(), libc::EINVAL));
    let (what, errno) = failure(|spec| set_argv(spec, &[b"sh", b"a\0b"]));
    assert!(what.starts_with("exec sh: nul byte"), "{what}");
    assert_eq!(errno, libc::EINVAL);
    let long = vec![b'x'; 4 << 20];
    assert_eq!(failure(|spec| set_argv(spec, &[b"sh", &long])), ("exec sh".into(), libc::E2BIG));
}

#[test]
fn a_missing_directory_is_not_blamed_on_the_program() {
    assert_eq!(
        failure(|spec| set_cwd(spec, "/no/such/place")),
        ("enter /no/such/place".into(), libc::ENOENT)
    );
    let (what, errno) = failure(|spec| spec.run_dir = "/no/such/run".into());
    assert_eq!((what.as_str(), errno), ("enter /no/such/run", libc::ENOENT));
}

#[test]
fn an_invalid_spec_is_a_clear_failure() {
    let secret = Frame::control(&serde_json::json!({"run_id": 5, "name": "secret"})).expect("json").encoded();
    let dir = private_dir();
    let mut torn = Frame::control(&spec(dir.path(), &["cat"])).expect("json").encoded();
    torn.extend_from_slice(&Frame::Checkpoint { at_seq: 1, bytes: vec![0; 50] }.encoded()[..20]);
    let wrong_kind = Frame::Record(vec![1]).encoded();
    for garbage in [&b""[..], b"hello", &[9, 0, 0, 0, 0, b'{'], &wrong_kind, &secret, &torn] {
        let mut keeper = Command::new(keeper_binary())
            .stdin(Piped::piped())
            .stdout(Piped::piped())
            .spawn()
            .expect("a keeper");
        keeper.stdin.take().expect("piped").write_all(garbage).expect("sent");
        let mut line = String::new();
        keeper.stdout.take().expect("piped").read_to_string(&mut line).expect("an answer");
        assert!(!line.contains("secret"), "{line}");
        let answer: LaunchAnswer = serde_json::from_str(&line).expect("json");
        assert!(
            matches!(answer, LaunchAnswer::Failed { what, .. } if what.starts_with("read the launch spec"))
        );
        assert!(!keeper.wait().expect("it ends").success());
    }
}

#[test]
fn the_program_is_found_on_the_path_that_the_agent_gets() {
    let dir = private_dir();
    let program = dir.path().join("only-here");
    std::fs::write(&program, "#!/bin/sh\necho found in $PWD; cat\n").expect("a script");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .expect("executable");
    let run = Run::with(&["only-here"], |spec| {
        if let Start::Spawn { env, cwd, .. } = &mut spec.start {
            env[0].1 = format!("{}:/bin:/usr/bin", dir.path().display()).into();
            *cwd = "/tmp".into();
        }
    });
    run.daemon().wait_for_text("found in /tmp");
}

#[test]
fn the_pid_file_names_both_and_the_command_line_names_the_run_only() {
    let run = Run::of(&["cat", "-"]);
    let file = PidFile::read(&run.path("pid")).expect("readable").expect("there");
    assert_eq!(file, PidFile { keeper: run.keeper.clone(), child: Some(run.child.clone()) });
    assert!(platform::is_alive(&file.keeper) && platform::is_alive(&run.child));
    let cmdline = std::fs::read(format!("/proc/{}/cmdline", run.keeper.pid)).expect("alive");
    assert_eq!(
        String::from_utf8_lossy(&cmdline),
        format!("agency-keeper: 1-test {}\0", run_id(run.dir.path()))
    );
    let mode = std::fs::metadata(run.path("k"))
        .map(|meta| std::os::unix::fs::PermissionsExt::mode(&meta.permissions()));
    assert_eq!(mode.expect("a socket") & 0o777, 0o600);
}

#[test]
fn a_keeper_has_its_own_session_and_inherits_no_descriptors() {
    let (_reader, leaked) = rustix::pipe::pipe().expect("a pipe without CLOEXEC");
    let run = Run::of(&["cat"]);
    let keeper = platform::process(run.keeper.pid).expect("alive");
    // It is 0 if the session leader is outside our namespace.
    let ours = platform::process(std::process::id() as i32).expect("alive");
    assert_ne!(keeper.session, ours.session);
    assert_eq!(keeper.terminal, 0);
    let leak = std::os::fd::AsRawFd::as_raw_fd(&leaked);
    let ours = std::fs::read_link(format!("/proc/self/fd/{leak}")).expect("open");
    for entry in std::fs::read_dir(format!("/proc/{}/fd", run.keeper.pid)).expect("alive").flatten() {
        assert_ne!(std::fs::read_link(entry.path()).ok(), Some(ours.clone()));
    }
}

#[test]
fn a_checkpoint_given_at_launch_is_the_first_record() {
    let dir = private_dir();
    let spec = spec(dir.path(), &["true"]);
    let checkpoint = Frame::Checkpoint { at_seq: 0, bytes: vec![5; 1 << 20] };
    let answer = launch(&spec, Setup { checkpoint: Some(checkpoint), ..Setup::default() });
    let LaunchAnswer::Ready { keeper, child } = answer else { panic!("{answer:?}") };
    let run = Run { dir, keeper, child };
    run.daemon().wait_for_gone();
    let records = journal(&run.path("j"));
    assert_eq!(records[0].body, Body::Checkpoint { at_seq: 0, bytes: vec![5; 1 << 20] });
    assert!(matches!(records[1].body, Body::Anchor { .. }));
}

#[test]
fn a_run_directory_may_be_deeper_than_a_socket_address() {
    let dir = private_dir();
    let deep = dir.path().join("d".repeat(100)).join("e".repeat(100));
    std::fs::create_dir_all(&deep).expect("directories");
    let answer = launch(&spec(&deep, &["cat"]), Setup::default());
    let LaunchAnswer::Ready { keeper, child } = answer else { panic!("{answer:?}") };
    let _run = Run { dir, keeper, child };
    Client::to(&deep).hello(1);
}

#[test]
fn one_run_has_one_keeper() {
    let run = Run::of(&["cat"]);
    let answer = launch(&spec(run.dir.path(), &["cat"]), Setup::default());
    let LaunchAnswer::Failed { what, .. } = answer else { panic!("two keepers") };
    assert_eq!(what, "lock the run: another keeper holds it");
    run.daemon().type_in(1, b"unharmed\n");
}
