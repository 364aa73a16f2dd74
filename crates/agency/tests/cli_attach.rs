//! `agency attach` on a real terminal, against a daemon that plays a script.

mod cli_support;

use agency_api::Failure;
use agency_api::pty::ViewerNotice;
use rustix::process::Signal;
use serde_json::{Value, json};

use cli_support::Home;
use cli_support::daemon::{FakeDaemon, FakeStream, task};
use cli_support::pty::{Pty, Settings};

/// Every mode that a program may have set, and the sequence that resets it.
const GIVEN_BACK: &[&str] = &[
    "\x1b[?2026l",
    "\x1b[<99u",
    "\x1b[=0u",
    "\x1b[>4m",
    "\x1b[?1049l",
    "\x1b[?1000l",
    "\x1b[?1002l",
    "\x1b[?1003l",
    "\x1b[?1004l",
    "\x1b[?1005l",
    "\x1b[?1006l",
    "\x1b[?1015l",
    "\x1b[?2004l",
    "\x1b[?1l",
    "\x1b>",
    "\x1b[r",
    "\x1b[?6l",
    "\x1b[?7h",
    "\x1b(B",
    "\x1b[0m",
    "\x1b[?25h",
    "\x1b[0 q",
    "\x1b]104\x1b\\",
    "\x1b]110\x1b\\",
    "\x1b]111\x1b\\",
    "\x1b]112\x1b\\",
    "\x1b[23;0t",
];

struct Attached {
    daemon: FakeDaemon,
    stream: FakeStream,
    terminal: Pty,
    params: Value,
    before: Settings,
    home: Home,
}

/// `agency attach fix-login`, up to the first screen.
fn attached(arguments: &[&str], environment: &[(&str, &str)]) -> Attached {
    let home = Home::new();
    let daemon = FakeDaemon::start(&home);
    attached_to(home, daemon, arguments, environment)
}

fn attached_to(home: Home, daemon: FakeDaemon, arguments: &[&str], environment: &[(&str, &str)]) -> Attached {
    let mut command = home.agency(&[&["attach", "fix-login"], arguments].concat());
    command.envs(environment.iter().copied());
    let idle = Pty::spawn(std::process::Command::new("true"));
    let before = idle.settings();
    let terminal = Pty::spawn(command);
    let params = daemon.called("pty.attach");
    let stream = daemon.stream();
    stream.notice(&ViewerNotice::Control { yours: true });
    stream.send(b"the screen");
    terminal.wait_for("the screen");
    Attached { daemon, stream, terminal, params, before, home }
}

impl Attached {
    #[track_caller]
    fn ends(&mut self, code: i32, last_line: &str) {
        let status = self.terminal.end();
        let drawn = self.terminal.wait_for(last_line);
        assert_eq!(status.code(), Some(code), "{}", drawn.escape_debug());
        assert_eq!(self.terminal.settings(), self.before, "settings of the terminal");
        let left = drawn.rfind("\x1b[?1049l").expect("the end of the view");
        for sequence in GIVEN_BACK {
            assert!(drawn[left.saturating_sub(30)..].contains(sequence), "{sequence:?} is missing");
        }
        assert!(drawn.trim_end().ends_with(last_line), "{}", drawn.escape_debug());
    }

    fn crash(self) -> (Pty, Settings, Home) {
        self.daemon.crash();
        (self.terminal, self.before, self.home)
    }
}

#[test]
fn keys_go_to_the_agent_until_the_detach_key() {
    let mut view = attached(&[], &[]);
    assert_ne!(view.terminal.settings(), view.before, "raw while attached");
    view.terminal.type_in("ls\r");
    assert_eq!(view.stream.typed_until("\r"), "ls\r");
    view.terminal.type_in("exit\r\x11never\r");
    view.ends(0, "[detached from 1-fix-login]");
    assert_eq!(view.stream.typed_until_close(), "exit\r");
}

#[test]
fn the_client_sends_its_size_and_its_run() {
    let view = attached(&["--take"], &[("AGENCY_RUN_ID", "abc"), ("SSH_AUTH_SOCK", "/run/agent")]);
    assert_eq!(view.params["name"], "fix-login");
    assert_eq!(view.params["mode"], "take");
    assert_eq!(view.params["size"], json!({ "cols": 80, "rows": 24, "x_pixels": 640, "y_pixels": 384 }));
    assert_eq!(view.params["inside_run"], "abc");
    assert_eq!(view.params["ssh_auth_sock"], "/run/agent");
    assert_eq!(view.params["screen_only"], false);
}

#[test]
fn the_users_screen_moves_into_the_scrollback() {
    let view = attached(&[], &[]);
    let drawn = view.terminal.drawn();
    let begins = drawn.find("the screen").unwrap();
    assert!(drawn[..begins].ends_with(&"\n".repeat(24)), "{}", drawn.escape_debug());
}

#[test]
fn the_detach_key_is_known_in_every_encoding() {
    for key in ["\x1b[113;5u", "\x1b[113;5:1u", "\x1b[27;5;113~"] {
        let mut view = attached(&[], &[]);
        view.terminal.type_in(key);
        view.ends(0, "[detached from 1-fix-login]");
        assert_eq!(view.stream.typed_until_close(), "");
    }
}

fn with_keys(keys: &str) -> serde_json::Value {
    json!({ "stream": "t", "task": task("running"), "detach_keys": keys })
}

#[test]
fn the_daemon_decides_the_detach_key_from_files_and_environment() {
    let home = Home::new();
    let daemon = FakeDaemon::start(&home);
    daemon.answer("pty.attach", with_keys("f12"));
    let output = ["--config", "detach_keys=f12"];
    let mut view = attached_to(home, daemon, &output, &[("AGENCY_DETACH_KEYS", "ctrl-p,ctrl-x")]);
    let overrides = &view.params["overrides"];
    assert_eq!(overrides["options"], json!(["detach_keys=f12"]));
    assert!(overrides["variables"].to_string().contains("ctrl-p,ctrl-x"), "{overrides}");
    view.terminal.type_in("\x11\x1b[24~");
    view.ends(0, "[detached from 1-fix-login]");
    assert_eq!(view.stream.typed_until_close(), "\x11");
}

#[test]
fn a_single_escape_is_passed_on() {
    let mut view = attached(&[], &[]);
    view.terminal.type_in("\x1b");
    assert_eq!(view.stream.typed_until("\x1b"), "\x1b");
    view.terminal.type_in("\x11");
    view.ends(0, "[detached from 1-fix-login]");
}

#[test]
fn an_exit_shows_the_last_output_and_the_code() {
    let mut view = attached(&[], &[]);
    view.stream.send("last words ".repeat(20_000).as_bytes());
    view.stream.notice(&ViewerNotice::Exited { code: "-15".into() });
    view.ends(0, "[1-fix-login exited -15]");
    assert_eq!(view.terminal.drawn().matches("last words ").count(), 20_000);
}

#[test]
fn a_signal_restores_the_terminal() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let mut view = attached(&[], &[]);
        view.terminal.signal(signal);
        view.ends(code, "\x1b[999;1H");
    }
}

#[test]
fn the_client_leaves_a_terminal_that_hangs() {
    let term: fn(&mut Pty) = |terminal| terminal.signal(Signal::TERM);
    let key: fn(&mut Pty) = |terminal| terminal.type_in("\x11");
    // If the terminal takes the last bytes in time, the client detaches normally.
    for (leave, codes) in [(term, [143, 143]), (key, [1, 0])] {
        let mut view = attached(&[], &[]);
        view.stream.send("flood ".repeat(4 << 20).as_bytes());
        view.terminal.wait_for("flood");
        view.terminal.hang();
        leave(&mut view.terminal);
        assert!(view.terminal.end().code().is_some_and(|code| codes.contains(&code)));
        assert_eq!(view.terminal.settings(), view.before);
    }
}

#[test]
fn detaching_does_not_wait_for_a_lot_of_output() {
    let mut view = attached(&[], &[]);
    view.stream.send("flood ".repeat(1 << 20).as_bytes());
    view.terminal.wait_for("flood");
    view.terminal.type_in("\x11");
    view.ends(0, "[detached from 1-fix-login]");
}

#[test]
fn a_new_size_is_sent() {
    let view = attached(&[], &[]);
    view.terminal.resize(100, 30);
    let size = json!({ "cols": 100, "rows": 30, "x_pixels": 800, "y_pixels": 480 });
    assert_eq!(view.stream.request(), json!({ "type": "resize", "size": size }));
}

#[test]
fn a_read_only_viewer_sends_no_keys() {
    let mut view = attached(&["--read-only"], &[]);
    assert_eq!(view.params["mode"], "read_only");
    view.terminal.type_in("rm -rf\r\x11");
    view.ends(0, "[detached from 1-fix-login]");
    assert_eq!(view.stream.typed_until_close(), "");
}

#[test]
fn a_viewer_that_lost_control_sends_no_keys() {
    let mut view = attached(&[], &[]);
    view.stream.notice(&ViewerNotice::Control { yours: false });
    view.terminal.wait_for("watching");
    view.terminal.type_in("lost\x11");
    let others = "[detached from 1-fix-login; another viewer has control, `agency attach 1-fix-login --take` takes it]";
    view.ends(0, others);
    assert_eq!(view.stream.typed_until_close(), "");
}

#[test]
fn a_viewer_that_gets_control_back_sends_keys_again() {
    let mut view = attached(&[], &[]);
    view.stream.notice(&ViewerNotice::Control { yours: false });
    view.stream.notice(&ViewerNotice::Control { yours: true });
    // The viewer that had control meanwhile had another size.
    assert_eq!(view.stream.request()["type"], "resize");
    view.stream.send(b"yours again");
    view.terminal.wait_for("yours again");
    view.terminal.type_in("kept\x11");
    view.ends(0, "[detached from 1-fix-login]");
    assert_eq!(view.stream.typed_until_close(), "kept");
}

#[test]
fn the_client_survives_a_crash_of_the_daemon() {
    let view = attached(&["--take"], &[]);
    let (mut terminal, before, home) = view.crash();
    let daemon = FakeDaemon::start(&home);
    let params = daemon.called("pty.attach");
    // The client has noticed the crash by now. Keys that are typed at the moment of a crash may be lost.
    terminal.type_in("typed meanwhile ");
    assert_eq!(params["screen_only"], true);
    assert_eq!(params["mode"], "control", "taking over is not repeated");
    let stream = daemon.stream();
    stream.send(b"the screen again");
    terminal.wait_for("the screen again");
    terminal.type_in("and after");
    assert_eq!(stream.typed_until("after"), "typed meanwhile and after");
    terminal.type_in("\x11");
    let mut view = Attached { daemon, stream, terminal, params, before, home };
    view.ends(0, "[detached from 1-fix-login]");
}

#[test]
fn the_client_connects_to_the_next_daemon() {
    let view = attached(&[], &[]);
    view.stream.notice(&ViewerNotice::DaemonLeaves);
    view.stream.close();
    let (mut terminal, before, home) = view.crash();
    let daemon = FakeDaemon::start(&home);
    let params = daemon.called("pty.attach");
    let stream = daemon.stream();
    stream.notice(&ViewerNotice::Exited { code: "0".into() });
    terminal.end();
    let mut view = Attached { daemon, stream, terminal, params, before, home };
    view.ends(0, "[1-fix-login exited 0]");
}

#[test]
fn a_long_search_is_reported_and_the_user_can_detach() {
    let view = attached(&[], &[]);
    let (mut terminal, _before, _home) = view.crash();
    terminal.wait_for("[the daemon is gone, 1-fix-login keeps running; reconnecting]");
    terminal.type_in("\x11");
    assert_eq!(terminal.end().code(), Some(0));
    terminal.wait_for("[detached from 1-fix-login]");
}

#[test]
fn an_exit_while_no_daemon_was_running_is_reported() {
    let view = attached(&[], &[]);
    let (mut terminal, before, home) = view.crash();
    let daemon = FakeDaemon::start(&home);
    daemon
        .refuse("pty.attach", Failure::new("1-fix-login is not running"))
        .answer("task.get", task("stopped"));
    assert_eq!(terminal.end().code(), Some(0));
    terminal.wait_for("[1-fix-login exited -15 while no daemon was running]");
    assert_eq!(terminal.settings(), before);
    drop((daemon, home));
}

#[test]
fn a_refusal_does_not_change_the_terminal() {
    let home = Home::new();
    let daemon = FakeDaemon::start(&home);
    daemon.refuse("pty.attach", Failure::new("1-fix-login is not running").hint("agency start fix-login"));
    let mut terminal = Pty::spawn(home.agency(&["attach", "fix-login"]));
    assert_eq!(terminal.end().code(), Some(1));
    let drawn = terminal.wait_for("agency start fix-login");
    assert!(!drawn.contains("\x1b[?1049l"), "{}", drawn.escape_debug());
}

#[test]
fn a_stop_and_a_continue_draw_the_screen_again() {
    let view = attached(&[], &[]);
    view.terminal.signal(Signal::STOP);
    view.terminal.signal(Signal::CONT);
    assert_eq!(view.daemon.called("pty.attach")["screen_only"], true);
    view.daemon.stream().send(b"drawn again");
    view.terminal.wait_for("drawn again");
}

#[test]
fn attaching_needs_a_terminal() {
    Home::new().run(&["attach", "fix-login"]).is(
        1,
        "",
        "Error: cannot attach to fix-login without a terminal\n\
         Caused by: standard input and standard output must both be terminals\n\
         Hint: `agency logs -f fix-login` prints its output, `agency send fix-login MESSAGE` sends it a message\n",
    );
}

#[test]
fn a_wrong_detach_key_is_refused_before_the_terminal_changes() {
    let home = Home::new();
    let daemon = FakeDaemon::start(&home);
    daemon.answer("pty.attach", with_keys("ctlr-q"));
    let mut command = home.agency(&["attach", "fix-login"]);
    command.env("AGENCY_DETACH_KEYS", "ctlr-q");
    let mut terminal = Pty::spawn(command);
    assert_eq!(terminal.end().code(), Some(1));
    terminal.wait_for("AGENCY_DETACH_KEYS cannot be used");
    terminal.wait_for("\"ctlr-q\" is not a key");
}

#[test]
fn answers_about_colours_are_not_sent_as_keys() {
    let mut view = attached(&[], &[]);
    view.terminal.wait_for("\x1b]11;?\x1b\\");
    view.terminal.type_in("a\x1b]10;rgb:3030/3030/3030\x1b\\b\x1b]11;rgb:fdfd/");
    view.terminal.type_in("f6f6/e3e3\x07\x1b]4;1;rgb:dcdc/3232/2f2f\x1b\\\x1b[?62;22cc\r");
    let request = view.stream.request();
    assert_eq!(
        request,
        json!({
            "type": "colours", "foreground": [48, 48, 48], "background": [253, 246, 227], "cursor": null,
            "palette": [[1, [220, 50, 47]]],
        })
    );
    view.terminal.type_in("\x11");
    view.ends(0, "[detached from 1-fix-login]");
}

#[test]
fn late_answers_do_not_reach_the_shell() {
    let mut view = attached(&[], &[]);
    view.terminal.type_in("x\r\x11\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?62c");
    view.ends(0, "[detached from 1-fix-login]");
    assert_eq!(view.stream.typed_until_close(), "x\r");
}

#[test]
fn a_terminal_that_would_print_the_question_is_not_asked() {
    let view = attached(&[], &[("TERM", "dumb")]);
    assert!(!view.terminal.drawn().contains("\x1b]11;?"));
}

#[test]
fn only_valid_clipboard_data_is_copied() {
    let mut view = attached(&[], &[]);
    let copy = |selection: &str, data: &str| ViewerNotice::Clipboard {
        selection: selection.into(),
        data: data.into(),
    };
    for (selection, data) in [("c", "YQ==\x07\x1b[5n"), ("c;x", "YQ=="), ("c", ""), ("c", "?")] {
        view.stream.notice(&copy(selection, data));
    }
    view.stream.notice(&copy("c", "aGk="));
    view.stream.send(b"drawn");
    let drawn = view.terminal.wait_for("drawn");
    assert_eq!(drawn.matches("\x1b]52;").count(), 1, "{}", drawn.escape_debug());
    assert!(drawn.contains("\x1b]52;c;aGk=\x1b\\"));
    view.terminal.type_in("\x11");
    view.ends(0, "[detached from 1-fix-login]");
}
