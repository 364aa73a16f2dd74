//! The fake agent on a real terminal: each command does what other tests rely on.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::Duration;

use agency_testkit::{Binaries, CommandOutput, Flood, Pause, Process, Pty, Sealed, Signal};

fn agent(script: &str) -> Command {
    let mut command = Command::new(Binaries::fake_agent());
    command.args(["-c", script]);
    command
}

fn play(script: &str) -> Pty {
    Pty::spawn(agent(script), 80, 24)
}

/// Waits for the rest of the current line.
fn rest_of_line(pty: &mut Pty) -> String {
    pty.wait_for("\r\n")
}

#[test]
fn it_says_asks_and_ends() {
    let mut pty = play("say hello; ask name?; print no newline\\x21; exit 3");
    pty.wait_for("hello\r\nname? ");
    pty.send("Ada\r");
    pty.wait_for("got: Ada\r\n");
    assert_eq!(pty.wait_exit().code(), Some(3));
    assert!(pty.output().ends_with(b"no newline!"));
}

#[test]
fn it_reads_its_script_from_a_file() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let path = dir.path().join("script");
    fs::write(&path, "# greets\nsay one; two\n\nargs\ncwd\n").expect("room");
    let mut command = Command::new(Binaries::fake_agent());
    command.arg(&path).args(["a b", ""]).current_dir(dir.path());
    let refused = CommandOutput::of(command, b"").refused();
    assert_eq!(refused, "fake-agent: two: no such command\n");
    fs::write(&path, "# greets\nsay one\n\nargs\ncwd\n").expect("room");
    let mut command = Command::new(Binaries::fake_agent());
    command.arg(&path).args(["a b", ""]).current_dir(dir.path());
    assert_eq!(
        CommandOutput::of(command, b"").ok(),
        format!("one\narg 1: a b\narg 2: \n{}\n", dir.path().display())
    );
}

#[test]
fn it_waits_for_a_text_that_comes_in_pieces() {
    let mut pty = play("raw; say ready; wait-for yes\\r; say on");
    pty.wait_for("ready\r\n");
    for piece in ["no y", "e", "s", "\r"] {
        pty.send(piece);
    }
    pty.wait_for("on\r\n");
    assert!(pty.wait_exit().success());
    assert_eq!(pty.output(), b"ready\r\non\r\n", "raw mode echoes nothing");
}

#[test]
fn it_works_on_plain_pipes_too() {
    let ran = CommandOutput::of(agent("say hi; size; ask q; wait-for end; say done"), b"line\nthe end");
    assert_eq!(ran.ok(), "hi\nno terminal\nq got: line\ndone\n");
    assert_eq!(CommandOutput::of(agent("ask q"), b"").code, 3, "input ended");
}

#[test]
fn it_outlives_sigterm_and_sighup_if_the_script_says_so() {
    let mut pty = play("ignore-term; say ready; wait-for go; say still here; no-read");
    pty.wait_for("ready");
    let process = Process::find(pty.pid()).expect("it lives");
    assert!(process.signal(Signal::TERM));
    assert!(process.signal(Signal::HUP));
    pty.send("go\r");
    pty.wait_for("still here");
    assert!(process.signal(Signal::KILL));
    assert_eq!(pty.wait_exit().signal(), Some(9));
    assert!(!process.is_alive());
    assert!(!process.signal(Signal::TERM), "no other process gets the signal");
}

#[test]
fn it_ends_at_sigterm_and_at_hang_up_otherwise() {
    let mut pty = play("say ready; no-read");
    pty.wait_for("ready");
    assert!(Process::find(pty.pid()).expect("it lives").signal(Signal::TERM));
    assert_eq!(pty.wait_exit().signal(), Some(15));

    let mut pty = play("say ready; no-read");
    pty.wait_for("ready");
    assert_eq!(pty.hang_up().signal(), Some(1));
}

#[test]
fn it_crashes_as_the_script_says() {
    for (name, signal) in [("SEGV", 11), ("SIGABRT", 6), ("KILL", 9), ("TERM", 15), ("BUS", 7)] {
        let status = play(&format!("ignore-term; crash {name}")).wait_exit();
        assert_eq!(status.signal(), Some(signal), "{name}");
        assert!(!status.core_dumped());
    }
    assert_eq!(play("crash 41").wait_exit().code(), Some(41));
}

fn session_and_parent(process: &Process) -> (i32, i32) {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.pid)).expect("it lives");
    let fields: Vec<&str> = stat.rsplit_once(')').expect("a name").1.split_whitespace().collect();
    (fields[3].parse().expect("a session"), fields[1].parse().expect("a parent"))
}

#[test]
fn its_children_live_on_under_their_names() {
    let sealed = Sealed::new();
    let mut command = sealed.command("fake-agent");
    command.args([
        "-c",
        "fork-child near; fork-child setsid far; fork-child double gone; say done; wait-for go",
    ]);
    let mut pty = Pty::spawn(command, 80, 24);
    let agent = pty.pid();
    let mut child = |name: &str| {
        pty.wait_for("child ");
        let pid = rest_of_line(&mut pty).parse().expect("a pid");
        let process = Process::find(pid).expect("the child lives");
        assert_eq!(process.name(), name);
        process
    };
    let (near, far, gone) = (child("near"), child("far"), child("gone"));
    assert_eq!(session_and_parent(&near), (agent, agent));
    assert_eq!(session_and_parent(&far), (far.pid, agent));
    let (session, parent) = session_and_parent(&gone);
    assert!(session != agent && session != gone.pid && parent != agent, "{session} {parent}");

    pty.wait_for("done");
    pty.send("go\r");
    assert!(pty.wait_exit().success());
    assert!(far.is_alive() && gone.is_alive());
    assert!(sealed.processes().contains(&far));
    let outsider = Pty::spawn(agent_that_stays(), 80, 24);
    drop(sealed);
    for process in [near, far, gone] {
        process.wait_gone(Duration::from_secs(10));
    }
    assert!(Process::find(outsider.pid()).is_some(), "only its own processes are ended");
}

fn agent_that_stays() -> Command {
    agent("no-read")
}

#[test]
fn a_child_of_an_agent_that_ignores_sigterm_ignores_it_too() {
    let sealed = Sealed::new();
    let mut command = sealed.command("fake-agent");
    command.args(["-c", "ignore-term; fork-child setsid tough; wait-for go"]);
    let mut pty = Pty::spawn(command, 80, 24);
    pty.wait_for("child ");
    let tough = Process::find(rest_of_line(&mut pty).parse().expect("a pid")).expect("it lives");
    assert!(tough.signal(Signal::TERM) && tough.signal(Signal::HUP));
    pty.send("go\r");
    assert!(pty.wait_exit().success());
    assert!(tough.is_alive());
    tough.kill();
}

#[test]
fn its_floods_have_known_bytes() {
    let ran = CommandOutput::of(agent("flood 1000; flood 2K"), b"");
    assert_eq!(ran.ok().into_bytes(), [Flood::bytes(1000), Flood::bytes(2048)].concat());

    let mut pty = play("flood 1M; say over");
    pty.wait_for("over\r\n");
    assert!(pty.wait_exit().success());
    let printed: Vec<u8> = pty.output().iter().copied().filter(|byte| *byte != b'\r').collect();
    assert_eq!(printed, [&Flood::bytes(1 << 20)[..], b"over\n"].concat());
}

#[test]
fn it_shows_its_environment() {
    let mut command = agent("env COLOUR; env NOTHING_LIKE_THIS");
    command.env("COLOUR", "green");
    assert_eq!(CommandOutput::of(command, b"").ok(), "green\nunset\n");
}

#[test]
fn it_knows_its_size_and_notices_a_new_one() {
    let mut pty = play("size; on-winch; say ready; wait-for go");
    pty.wait_for("24 80\r\nready");
    pty.resize(132, 50);
    pty.wait_for("resized 50 132\r\n");
    pty.resize(10, 5);
    pty.wait_for("resized 5 10\r\n");
    pty.send("go\r");
    assert!(pty.wait_exit().success());
}

#[test]
fn a_secret_is_not_echoed() {
    let mut pty = play("getpass password:; ask name?");
    pty.wait_for("password: ");
    pty.send("hunter2\r");
    pty.wait_for("got secret of 7\r\nname? ");
    pty.send("visible\r");
    pty.wait_for("visible\r\ngot: visible");
    assert!(!String::from_utf8_lossy(pty.output()).contains("hunter2"));
}

#[test]
fn it_queries_the_terminal_and_shows_the_reply() {
    let mut pty = play("query \\e[6n; query \\e]11\\x3b?\\a; ask name?");
    pty.wait_for("\x1b[6n");
    pty.send("\x1b[24;80R");
    pty.wait_for("reply: 1b5b32343b383052\r\n\x1b]11;?\x07");
    pty.send("\x1b]11;x\x1b\\");
    pty.wait_for("reply: 1b5d31313b781b5c\r\nname? ");
    pty.send("Ada\r");
    pty.wait_for("Ada\r\ngot: Ada\r\n");
}

#[test]
fn it_marks_a_file_with_its_pid() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let path = dir.path().join("marks");
    let mut pty = play(&format!("loop 2; mark-file {}; end; wait-for go", path.display()));
    let pid = pty.pid();
    agency_testkit::eventually("two marks", Duration::from_secs(20), || {
        let marks = fs::read_to_string(&path).ok()?;
        (marks == format!("{pid}\n{pid}\n")).then_some(())
    });
    pty.send("go\r");
    assert!(pty.wait_exit().success());
}

#[test]
fn loops_repeat_and_nest() {
    let ran =
        CommandOutput::of(agent("loop 2; say a; loop 2; say b; end; end; loop; ask more?; end"), b"x\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (3, "a\nb\nb\na\nb\nb\nmore? got: x\nmore? "));
}

#[test]
fn an_agent_that_does_not_read_lets_its_terminal_fill_up() {
    let mut pty = play("raw; say ready; no-read");
    pty.wait_for("ready");
    let typed = vec![b'x'; 1 << 20];
    let taken = pty.send_what_fits(&typed);
    assert!(taken < typed.len(), "{taken} bytes taken");
}

#[test]
fn it_waits_at_a_pause_until_the_test_releases_it() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let pause = Pause::at(dir.path().join("pause"));
    let mut agent = play(&format!("say before; await {}; say after", pause.path().display()));
    agent.wait_for("before");
    pause.release();
    agent.wait_for("after");
    assert!(agent.wait_exit().success());
}
