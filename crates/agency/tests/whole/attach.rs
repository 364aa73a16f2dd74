//! `agency attach` on a real terminal: the screen, the scrollback above it, and detaching.

use agency_terminal::{Screen, Size};
use agency_testkit::Pty;

use crate::stage::{SOON, Stage};

const CTRL_Q: &str = "\x11";

/// The screen of the user's terminal after all that was written to it.
fn users_screen(terminal: &Pty) -> Screen {
    let mut screen = Screen::new(Size::cells(80, 24), 1000);
    screen.feed(terminal.output());
    screen
}

#[test]
fn a_viewer_gets_the_screen_with_the_scrollback_above_it() {
    let stage = Stage::new();
    stage.play("one", "flood 4K; ask ready?");
    stage.wait_printed("one", "ready?");
    let mut terminal = stage.on_terminal(["attach", "one"]);
    // 64 lines are more than a screen has.
    for number in [1, 20, 40, 64] {
        terminal.wait_for(&format!("flood {number:010}"));
    }
    terminal.wait_for("ready?");
    let text = users_screen(&terminal).text();
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("flood")).collect();
    assert_eq!(lines.len(), 64, "each line once, in the user's own scrollback: {text}");
}

#[test]
fn a_terminal_that_attaches_again_gets_only_the_newest_lines_again() {
    let stage = Stage::new();
    stage.play("one", "flood 32K; ask ready?");
    stage.wait_printed("one", "ready?");
    let agency = stage.agency([""; 0]).get_program().to_owned().into_string().expect("a path");
    let script = format!("{agency} attach one; {agency} attach one; {agency} attach one --all-history");
    let mut terminal = Pty::spawn(stage.shell(&script), 80, 24);
    let mut leave_after = |visits: usize, first: usize, recent: usize| {
        terminal.wait_until("the whole screen", |output| {
            let text = String::from_utf8_lossy(output);
            let count = |line: usize| text.matches(&format!("flood {line:010}")).count();
            let is_there = text.matches("ready?").count() >= visits && count(350) == recent;
            is_there.then(|| assert_eq!(count(1), first, "the first line in {visits} visits"))
        });
        terminal.send(CTRL_Q);
        terminal.wait_until("detached", |output| {
            (String::from_utf8_lossy(output).matches("[detached from 1-one]").count() == visits).then_some(())
        });
    };
    leave_after(1, 1, 1);
    leave_after(2, 1, 2);
    leave_after(3, 2, 3);
}

#[test]
fn keys_reach_the_agent_and_ctrl_q_detaches_without_stopping_it() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    let agent = stage.agent("one");
    let mut terminal = stage.on_terminal(["attach", "one"]);
    terminal.wait_for("ready?");
    terminal.send("hello\r");
    terminal.wait_for("got: hello");
    terminal.send(CTRL_Q);
    assert!(terminal.wait_exit().success(), "{terminal}");
    terminal.wait_for("[detached from 1-one]");

    assert_eq!(stage.agent("one"), agent);
    stage.run(["send", "one", "still there"]).ok();
    stage.wait_printed("one", "got: still there");
    assert_eq!(stage.status("one"), "running");
}

#[test]
fn detaching_restores_the_users_terminal_whatever_the_agent_did_to_it() {
    let stage = Stage::new();
    let modes = r"\e[?1049h\e[?1000h\e[?1006h\e[?2004h\e[?1004h\e[>1u\e[?1h\e=\e[?25l\e[2\x3b10r\e[?6h\e[31m\e]0\x3bmine\a";
    stage.play("one", &format!("raw; print {modes}; say in disguise; no-read"));
    let terminal = Pty::spawn(stage.command("true"), 80, 24);
    let before = terminal.modes();

    let mut terminal = stage.on_terminal(["attach", "one"]);
    terminal.wait_for("in disguise");
    let attached = users_screen(&terminal);
    assert!(attached.is_alternate());
    assert_ne!(terminal.modes(), before, "keys go through one by one");
    terminal.send(CTRL_Q);
    assert!(terminal.wait_exit().success(), "{terminal}");

    assert_eq!(terminal.modes(), before);
    let given_back = users_screen(&terminal);
    let fresh = Screen::new(Size::cells(80, 24), 1000);
    assert_eq!(given_back.modes(), fresh.modes());
    assert_eq!((given_back.is_alternate(), given_back.keyboard_flags()), (false, 0));
    assert_eq!(given_back.title(), fresh.title());
}

#[test]
fn the_agents_terminal_gets_the_size_of_the_users_terminal() {
    let stage = Stage::new();
    stage.play("one", "on-winch; size; loop; ask ready?; size; end");
    stage.wait_printed("one", "ready?");
    let mut terminal = Pty::spawn(stage.agency(["attach", "one"]), 100, 30);
    terminal.wait_for("resized 30 100");
    terminal.resize(61, 17);
    terminal.wait_for("resized 17 61");
    terminal.send("\r");
    terminal.wait_for("17 61");
}

#[test]
fn a_second_viewer_looks_on_until_it_takes_over() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    let mut first = stage.on_terminal(["attach", "one"]);
    first.wait_for("ready?");
    let mut second = stage.on_terminal(["attach", "one"]);
    second.wait_for("ready?");
    second.send("from the second\r");
    first.send("from the first\r");
    for viewer in [&mut first, &mut second] {
        viewer.wait_for("got: from the first");
    }
    let mut third = stage.on_terminal(["attach", "one", "--take"]);
    third.wait_for("ready?");
    third.send("from the third\r");
    for viewer in [&mut first, &mut second, &mut third] {
        viewer.wait_for("got: from the third");
    }
    assert!(!stage.logs("one").contains("from the second"));
    assert_eq!(stage.task("one")["viewers"], 3);
}

#[test]
fn a_viewer_sees_the_end_of_the_run() {
    let stage = Stage::new();
    stage.play("one", "ask last words?; say farewell; exit 3");
    let mut terminal = stage.on_terminal(["attach", "one"]);
    terminal.wait_for("last words?");
    terminal.send("none\r");
    terminal.wait_for("farewell");
    terminal.wait_for("[1-one exited 3]");
    terminal.wait_exit();
}

#[test]
fn a_stopped_task_cannot_be_attached_until_it_is_started() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    stage.run(["stop", "one"]).ok();
    let mut terminal = stage.on_terminal(["attach", "one"]);
    assert_eq!(terminal.wait_exit().code(), Some(1), "{terminal}");
    terminal.wait_for("Error:");
    terminal.wait_for("task 1-one has no live agent: it is stopped");
    terminal.wait_for("agency start 1");
}

#[test]
fn attach_without_a_terminal_is_refused_with_an_alternative() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    let refusal = stage.refused(&["attach", "one"]);
    assert!(refusal.contains("agency logs -f one"), "{refusal}");
}

#[test]
fn the_detach_key_can_be_configured() {
    let stage = Stage::with_config("detach_keys = \"ctrl-p,ctrl-q\"\n");
    stage.play("one", "raw; loop; wait-for x; say heard; end");
    let mut terminal = stage.on_terminal(["attach", "one"]);
    terminal.send("x");
    terminal.wait_for("heard");
    terminal.send(format!("{CTRL_Q}x"));
    terminal.wait_for("heard");
    terminal.send(format!("\x10{CTRL_Q}"));
    assert!(terminal.wait_exit().success(), "{terminal}");
    terminal.wait_for("[detached from 1-one]");
}

#[test]
fn an_invalid_configuration_is_reported_and_does_not_prevent_attaching() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    stage.write_config("detach_keys = 7\n");
    let mut attach = stage.agency(["attach", "one"]);
    attach.env("AGENCY_DETACH_KEYS", "ctrl-x");
    let mut terminal = Pty::spawn(attach, 80, 24);
    terminal.wait_for("the configuration cannot be used");
    terminal.wait_for("ready?");
    terminal.send("\x18");
    assert!(terminal.wait_exit().success(), "{terminal}");
    let mut terminal = stage.on_terminal(["attach", "one", "--config", "clipboard=perhaps"]);
    assert!(!terminal.wait_exit().success(), "what is said in the call itself has to be right: {terminal}");
    terminal.wait_for("`clipboard`");
}

#[test]
fn a_viewer_stays_attached_while_the_daemon_is_killed_and_comes_back() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    let agent = stage.agent("one");
    let mut terminal = stage.on_terminal(["attach", "one"]);
    terminal.wait_for("ready?");
    for number in 1..=3 {
        stage.kill_daemon();
        // Only the viewer can start the next daemon.
        stage.eventually("the viewer starts a daemon", SOON, || stage.daemon());
        stage.wait_task("one", "is looked at again", |task| task["viewers"] == 1);
        terminal.send(format!("after {number}\r"));
        terminal.wait_for(&format!("got: after {number}"));
    }
    assert_eq!(stage.agent("one"), agent);
    terminal.send(CTRL_Q);
    assert!(terminal.wait_exit().success(), "{terminal}");
}

#[test]
fn the_detach_key_of_the_environment_wins() {
    let stage = Stage::with_config("detach_keys = \"ctrl-p\"\n");
    stage.play("one", "loop; ask ready?; end");
    let mut attach = stage.agency(["attach", "one"]);
    attach.env("AGENCY_DETACH_KEYS", "ctrl-x");
    let mut terminal = Pty::spawn(attach, 80, 24);
    terminal.wait_for("ready?");
    terminal.send("\x18");
    assert!(terminal.wait_exit().success(), "{terminal}");
    terminal.wait_for("[detached from 1-one]");
}

#[test]
fn closing_a_window_ends_neither_agent_nor_other_viewers() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    let agent = stage.agent("one");
    let mut terminal = stage.on_terminal(["attach", "one"]);
    terminal.wait_for("ready?");
    terminal.hang_up();
    stage.wait_task("one", "is left", |task| task["viewers"] == 0);
    assert_eq!((stage.agent("one"), stage.status("one")), (agent, "running".to_owned()));
}

#[test]
fn a_viewer_that_does_not_read_delays_no_other_and_sees_the_final_screen() {
    let stage = Stage::new();
    stage.play("one", "ask begin?; flood 8M; ask done?");
    let mut lagging = stage.on_terminal(["attach", "one"]);
    lagging.wait_for("begin?");
    let mut reading = stage.on_terminal(["attach", "one", "--read-only"]);
    reading.wait_for("begin?");
    stage.run(["send", "one", "go"]).ok();
    reading.wait_for("done?");
    lagging.wait_for("done?");
    // The daemon skipped output that the viewer could not read in time, instead of queueing it.
    let whole: usize = 8 << 20;
    assert!(lagging.output().len() < whole, "{} bytes were drawn", lagging.output().len());
    lagging.send("yes\r");
    lagging.wait_for("got: yes");
}

#[test]
fn keys_work_during_a_flood() {
    let stage = Stage::new();
    stage.play("one", "loop; flood 256K; sleep 0.01; end");
    let mut terminal = stage.on_terminal(["attach", "one"]);
    terminal.wait_for("flood 0000000100");
    terminal.send(CTRL_Q);
    assert!(terminal.wait_exit().success());
    let mut terminal = stage.on_terminal(["attach", "one"]);
    terminal.wait_for("flood 0000000100");
    // The terminal turns this key into a signal.
    terminal.send("\x03");
    terminal.wait_exit();
    terminal.wait_for("[1-one exited -2]");
}
