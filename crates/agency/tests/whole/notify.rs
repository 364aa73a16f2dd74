//! Notifications: one for each change, through a real command, a real listener and a real terminal.
//!
//! Notifications come in order, so the next one shows that there was no other before it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use agency_testkit::CommandOutput;
use serde_json::Value;

use crate::json::Schema;
use crate::stage::{SOON, Stage};

/// Silence counts soon, so that these tests are quick.
const QUICK: &str = "needs_input_timeout = \"300ms\"\nstale_timeout = \"300ms\"\n";

/// For agents that work: on a busy machine they must not seem silent.
const PATIENT: &str = "needs_input_timeout = \"1500ms\"\nstale_timeout = \"300ms\"\n";

/// A stage whose notification command appends each notification as a line, in one write.
fn with_command(timeouts: &str) -> (Stage, PathBuf) {
    let stage = Stage::new();
    let file = stage.home().join("notices");
    let line = format!("printf '%s\\\\n' \\\"$(cat)\\\" >> '{}'", file.display());
    stage.configure(&format!(
        "{timeouts}[notify]\ncommand = [\"sh\", \"-c\", \"{line}\"]\nterminal = \"osc9\"\n"
    ));
    (stage, file)
}

fn notices(file: &PathBuf) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|err| panic!("{err}: {line}")))
        .collect()
}

/// The tasks of all notifications until now.
fn notified_tasks(file: &PathBuf) -> Vec<String> {
    let slugs = |notice: &Value| {
        let tasks = notice["tasks"].as_array().expect("a list of tasks").iter();
        tasks.map(|task| task["slug"].as_str().expect("a slug").to_owned()).collect::<Vec<_>>()
    };
    notices(file)
        .iter()
        .map(|notice| {
            let mut slugs = slugs(notice);
            slugs.sort();
            format!("{} {}", notice["type"].as_str().unwrap_or_default(), slugs.join("+"))
        })
        .collect()
}

#[track_caller]
fn wait_notified(stage: &Stage, file: &PathBuf, last: &str) -> Vec<String> {
    let what = format!("a notification of {last:?}");
    stage.eventually(&what, SOON, || {
        Some(notified_tasks(file)).filter(|told| told.last().is_some_and(|one| one == last))
    })
}

/// An agent that works until the file `go` exists, and then waits for its user.
fn busy_until_go(stage: &Stage, slug: &str) {
    let go = stage.home().join("go");
    let line = format!("until [ -e '{}' ]; do echo at work; sleep 0.05; done; cat", go.display());
    stage.run(["new", slug, "--no-attach", "--", "sh", "-c", &line]).ok();
}

fn go(stage: &Stage) {
    fs::write(stage.home().join("go"), "").expect("room for a file");
}

#[test]
fn one_change_gives_one_notification_even_if_the_agent_becomes_stale() {
    let (stage, file) = with_command(QUICK);
    stage.play("one", "ask ready?");
    wait_notified(&stage, &file, "needs_input one");
    stage.wait_task("one", "is stale", |task| task["state"]["state"] == "stale");
    stage.play("two", "ask ready?");
    assert_eq!(wait_notified(&stage, &file, "needs_input two"), ["needs_input one", "needs_input two"]);

    let task = stage.task("one");
    let notice = &notices(&file)[0];
    Schema::of("notice").check(notice);
    assert_eq!(
        (&notice["slug"], &notice["run"], &notice["project"]),
        (&task["slug"], &task["run"], &task["project"])
    );
    assert_eq!((notice["task"].as_u64(), &notice["agent"]), (Some(1), &task["agent_name"]));
    assert_eq!(
        (&notice["state"], notice["tasks"].as_array().map(Vec::len)),
        (&"needs_input".into(), Some(1))
    );
    assert!(notice["text"].as_str().is_some_and(|text| text.starts_with("one needs you")), "{notice}");
}

#[test]
fn a_new_daemon_does_not_notify_about_old_changes() {
    let (stage, file) = with_command(QUICK);
    for slug in ["one", "two", "three"] {
        stage.play(slug, "ask ready?");
        wait_notified(&stage, &file, &format!("needs_input {slug}"));
    }
    let before = notified_tasks(&file);
    stage.kill_daemon();
    stage.wait_task("one", "is found waiting", |task| task["state"]["state"] == "stale");
    stage.play("four", "ask ready?");
    let now = wait_notified(&stage, &file, "needs_input four");
    assert_eq!(now, [before, vec!["needs_input four".to_owned()]].concat());
}

#[test]
fn several_changes_at_once_give_one_notification() {
    let (stage, file) = with_command(PATIENT);
    for slug in ["one", "two", "three"] {
        busy_until_go(&stage, slug);
    }
    go(&stage);
    let told = wait_notified(&stage, &file, "summary one+three+two");
    assert_eq!(told.len(), 1, "{told:?}");
    let notice = &notices(&file)[0];
    Schema::of("notice").check(notice);
    assert_eq!((&notice["slug"], notice["tasks"].as_array().map(Vec::len)), (&Value::Null, Some(3)));
    assert!(notice["text"].as_str().is_some_and(|text| text.starts_with("3 agents need you: ")), "{notice}");
}

#[test]
fn a_viewed_task_gives_no_notification_and_its_terminal_shows_those_of_others() {
    let (stage, file) = with_command(PATIENT);
    busy_until_go(&stage, "one");
    let mut terminal = stage.on_terminal(["attach", "one"]);
    terminal.wait_for("at work");
    stage.wait_task("one", "is looked at", |task| task["viewers"] == 1);
    go(&stage);
    stage.wait_task("one", "waits", |task| task["state"]["state"] == "stale");
    stage.play("two", "ask ready?");
    assert_eq!(wait_notified(&stage, &file, "needs_input two"), ["needs_input two"]);
    terminal.wait_for("\x1b]9;Agency: two needs you");
    assert!(!String::from_utf8_lossy(terminal.output()).contains("one needs you"), "{terminal}");
}

#[test]
fn an_unexpected_end_is_notified_and_a_stop_is_not() {
    let (stage, file) = with_command(QUICK);
    stage.play("one", "ask ready?");
    wait_notified(&stage, &file, "needs_input one");
    stage.run(["stop", "one"]).ok();
    stage.play("two", "exit 3");
    assert_eq!(wait_notified(&stage, &file, "exited two"), ["needs_input one", "exited two"]);
    let notice = &notices(&file)[1];
    Schema::of("notice").check(notice);
    assert_eq!((&notice["why"], &notice["detail"]), (&"exited".into(), &"it ended with 3".into()));
}

#[test]
fn only_configured_kinds_are_notified_and_a_repository_cannot_change_them() {
    let (stage, file) = with_command(QUICK);
    let text = fs::read_to_string(stage.config()).expect("it was written");
    stage.write_config(&format!("{text}on = [\"exited\"]\n"));
    let trap = stage.home().join("trap");
    fs::create_dir_all(stage.repo().join(".agency")).expect("room");
    let project = format!("[notify]\ncommand = [\"touch\", \"{}\"]\non = [\"unknown\"]\n", trap.display());
    fs::write(stage.repo().join(".agency/config.toml"), project).expect("room");

    stage.play("one", "ask ready?");
    stage.wait_task("one", "waits", |task| task["state"]["state"] == "stale");
    stage.play("two", "exit 3");
    assert_eq!(wait_notified(&stage, &file, "exited two"), ["exited two"]);
    assert!(!trap.exists());
}

/// An HTTP server that takes requests one after the other and passes on their bodies.
fn listener(answer: &'static str) -> (String, mpsc::Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address =
        format!("http://127.0.0.1:{}/hook?key=secret", listener.local_addr().expect("bound").port());
    let (sender, bodies) = mpsc::channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let (mut request, mut piece) = (Vec::new(), [0; 4096]);
            let body = loop {
                let read = stream.read(&mut piece).expect("a request");
                request.extend_from_slice(&piece[..read]);
                let text = String::from_utf8_lossy(&request).into_owned();
                match text.split_once("\r\n\r\n").map(|(_, body)| serde_json::from_str(body)) {
                    Some(Ok(body)) => break body,
                    _ => assert!(read > 0, "the request is cut off: {text}"),
                }
            };
            stream
                .write_all(format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n").as_bytes())
                .expect("answered");
            if sender.send(body).is_err() {
                return;
            }
        }
    });
    (address, bodies)
}

#[test]
fn a_webhook_is_called_once_for_each_change() {
    let (address, bodies) = listener("200 OK");
    let stage = Stage::with_config(&format!("{QUICK}[notify]\nwebhook = \"{address}\"\n"));
    for slug in ["one", "two"] {
        stage.play(slug, "ask ready?");
        let notice = bodies.recv_timeout(SOON).expect("it is called");
        Schema::of("notice").check(&notice);
        assert_eq!(notice["slug"], slug);
    }
    assert!(bodies.try_recv().is_err());
}

#[test]
fn notify_test_reports_the_result_of_each_channel() {
    let (address, bodies) = listener("500 No");
    let stage = Stage::with_config(&format!("[notify]\nwebhook = \"{address}\"\ncommand = [\"true\"]\n"));
    let ran = stage.run(["notify", "test", "--json"]);
    assert_eq!(ran.code, 1, "{ran}");
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    Schema::of("notify-test").check(&report);
    let ways: Vec<String> = report["ways"]
        .as_array()
        .expect("ways")
        .iter()
        .map(|way| format!("{} {}", way["way"].as_str().unwrap_or(""), way["outcome"].as_str().unwrap_or("")))
        .collect();
    assert_eq!(ways, ["desktop off", "command sent", "webhook failed", "terminal off"]);
    assert_eq!(bodies.recv_timeout(SOON).expect("called")["type"], "test");
    assert!(ran.stdout.contains("it answered 500") && !ran.stdout.contains("secret"), "{ran}");
    assert!(stage.daemon_log().contains("it answered 500") && !stage.daemon_log().contains("secret"));

    let doctor = stage.run(["doctor"]);
    assert!(doctor.stdout.contains("the last notification by webhook failed"), "{doctor}");
    // A test works without a configured channel, and also notifies the terminal.
    let mut terminal = stage.on_terminal(["notify", "test", "--config", "notify.terminal=osc777"]);
    terminal.wait_for("\x1b]777;notify;Agency;this is a test");
}

#[test]
fn desktop_notifications_use_the_desktops_program() {
    let stage = Stage::new();
    let (tools, said) = (stage.home().join("tools"), stage.home().join("said"));
    fs::create_dir(&tools).expect("room");
    let program = format!("#!/bin/sh\nprintf '%s|' \"$@\" > '{}'\n", said.display());
    stage.write_program(&tools.join("notify-send"), program.as_bytes());
    let mut command = stage.agency(["notify", "test"]);
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap_or_default());
    command.env("PATH", path).env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere");
    let out = CommandOutput::of(command, b"").ok();
    assert!(out.contains("notify-send"), "{out}");
    let said = fs::read_to_string(said).expect("it was run");
    assert_eq!(said, "--app-name=Agency|--|Agency reaches you|this is a test, no agent needs you|");
}

#[test]
fn an_open_conversation_gives_no_notification() {
    let (stage, file) = with_command(PATIENT);
    crate::conversations::new_conversation(&stage, "open", "go", "prompt; wait; prompt; say Hm.; end");
    stage.wait_task("open", "works", |task| task["state"]["state"] == "running");
    let before = notified_tasks(&file).len();
    let mut terminal = stage.on_terminal(["chat", "open"]);
    terminal.wait_for("> go");
    // A reader that waits for the next entry counts as a viewer.
    terminal.send("\x03");
    terminal.wait_for("turn interrupted");
    stage.play("other", "ask ready?");
    assert_eq!(wait_notified(&stage, &file, "needs_input other")[before..], ["needs_input other"]);
    terminal.send("\x04");
    assert!(terminal.wait_exit().success());
    stage.run(["send", "open", "again"]).ok();
    wait_notified(&stage, &file, "needs_input open");
}
