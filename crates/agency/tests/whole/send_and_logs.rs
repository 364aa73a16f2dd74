//! `agency send`, `logs` and `events`.

use std::fs::File;
use std::process::Stdio;

use agency_journal::{Body, Source};
use agency_testkit::{CommandOutput, Flood, Pause};

use crate::journal;
use crate::stage::{SOON, Stage};

/// The writes that reached the agent through `send`.
fn sent(stage: &Stage, slug: &str) -> Vec<String> {
    let run = stage.keeper(slug).run;
    let piece = |body: Body| match body {
        Body::Input { source: Source::Send, bytes } => Some(String::from_utf8(bytes).expect("text")),
        _ => None,
    };
    journal::records(stage, &run).into_iter().filter_map(|record| piece(record.body)).collect()
}

fn raw_logs(stage: &Stage, slug: &str) -> Vec<u8> {
    let path = stage.home().join("raw");
    let mut logs = stage.agency(["logs", "--raw", slug]);
    logs.stdin(Stdio::null()).stdout(File::create(&path).expect("room"));
    assert!(logs.status().expect("agency can be run").success());
    std::fs::read(path).expect("it was just written")
}

#[test]
fn send_types_a_text_presses_enter_and_prints_a_receipt() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    let receipt = stage.run(["send", "one", "hello", "there"]).ok();
    assert!(receipt.starts_with("delivered 12 bytes ("), "{receipt}");
    stage.wait_printed("one", "got: hello there");
    assert_eq!(sent(&stage, "one"), ["hello there\r"], "nothing can come between a line and its end");
}

#[test]
fn several_lines_are_typed_line_by_line_if_the_program_has_no_pastes() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    stage.run(["send", "one", "first\nsecond"]).ok();
    stage.wait_printed("one", "got: second");
    let logs = stage.logs("one");
    assert!(logs.contains("got: first"), "{logs}");
}

#[test]
fn several_lines_are_one_paste_if_the_program_supports_pastes() {
    let stage = Stage::new();
    stage.play(
        "one",
        r"raw; print \e[?2004h; say ready; wait-for \e[201~; say pasted; wait-for \r; say entered; no-read",
    );
    stage.wait_printed("one", "ready");
    stage.run(["send", "one", "first\nsecond"]).ok();
    stage.wait_printed("one", "entered");
    assert_eq!(sent(&stage, "one"), ["\x1b[200~first\nsecond\x1b[201~", "\r"]);
}

#[test]
fn a_text_can_come_from_standard_input_and_without_enter() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    CommandOutput::of(stage.agency(["send", "one", "-"]), b"from a pipe\n").ok();
    stage.wait_printed("one", "got: from a pipe");
    assert_eq!(stage.run(["send", "--no-enter", "one", "half"]).ok(), "typed 4 bytes\n");
    let receipt = stage.run(["send", "one", " whole"]).ok();
    assert!(receipt.starts_with("delivered 7 bytes ("), "{receipt}");
    stage.wait_printed("one", "got: half whole");
    let receipt = stage.run(["send", "one", ""]).ok();
    assert!(receipt.starts_with("delivered 1 byte ("), "only Enter: {receipt}");
}

#[test]
fn a_stopped_agent_takes_no_text() {
    let stage = Stage::new();
    stage.play("one", "ask ready?");
    stage.run(["stop", "one"]).ok();
    let refusal = stage.refused(&["send", "one", "hello"]);
    assert!(
        refusal.contains("has no live agent") && refusal.contains("`agency start 1` starts it again"),
        "{refusal}"
    );
}

#[test]
fn a_password_is_journaled_as_a_length() {
    let stage = Stage::new();
    stage.play("one", "getpass Password:; ask ready?");
    stage.wait_printed("one", "Password:");
    stage.run(["send", "one", "correct horse"]).ok();
    stage.wait_printed("one", "got secret of 13");
    let run = stage.keeper("one").run;
    let hidden: u64 = journal::records(&stage, &run)
        .iter()
        .map(|record| if let Body::HiddenInput { len, .. } = record.body { len } else { 0 })
        .sum();
    assert_eq!((hidden, sent(&stage, "one").concat()), (14, String::new()));
    let files =
        CommandOutput::of(stage.shell(&format!("grep -rl 'correct horse' {}", stage.state().display())), b"");
    assert_eq!(files.stdout, "", "nowhere on disk");
}

#[test]
fn logs_are_text_and_raw_logs_are_every_byte() {
    let stage = Stage::new();
    stage.play("one", r"raw; flood 300K; print \e[31mred\e[m \xe2\x82\xac\xff\r\n; no-read");
    stage.wait_printed("one", "red €");
    let mut expected = Flood::bytes(300 << 10);
    expected.extend_from_slice(b"\x1b[31mred\x1b[m \xe2\x82\xac\xff\r\n");
    assert!(raw_logs(&stage, "one") == expected);
    let logs = stage.logs("one");
    let lines: Vec<&str> = logs.lines().collect();
    assert_eq!(lines.len(), 4801);
    // In raw mode a line feed does not return to the first column.
    assert!(lines[4799].trim_start().starts_with("flood 0000004800 "), "{}", lines[4799]);
    assert!(lines[4800].trim_start().starts_with("red €"), "{}", lines[4800]);
}

#[test]
fn the_last_output_of_an_agent_is_never_lost() {
    let stage = Stage::new();
    stage.play("one", "raw; flood 1M; exit 3");
    stage.wait_status("one", "stopped");
    assert!(raw_logs(&stage, "one") == Flood::bytes(1 << 20));
}

#[test]
fn followed_logs_end_with_the_run() {
    let stage = Stage::new();
    let pause = Pause::at(stage.home().join("pause"));
    stage
        .play("one", &format!("say before; await {}; flood 100K; say after; exit 0", pause.path().display()));
    let path = stage.home().join("followed");
    let mut logs = stage.agency(["logs", "-f", "one"]);
    logs.stdin(Stdio::null()).stdout(File::create(&path).expect("room"));
    let mut following = logs.spawn().expect("agency can be run");
    let text = || std::fs::read_to_string(&path).expect("it is there");
    stage.eventually("what was printed before", SOON, || (text() == "before\n").then_some(()));
    pause.release();
    stage.eventually("the end of the log", SOON, || following.try_wait().expect("our own child"));
    let lines = text();
    assert_eq!(lines.lines().count(), 1602);
    assert!(lines.ends_with("after\n"));
    assert_eq!(lines, stage.logs("one"));
}

#[test]
fn followed_logs_of_a_run_that_is_over_end_at_once() {
    let stage = Stage::new();
    stage.play("one", "say done; exit 0");
    stage.wait_status("one", "stopped");
    assert_eq!(stage.run(["logs", "-f", "one"]).ok(), "done\n");
}

#[test]
fn a_closed_pipe_ends_logs_quietly() {
    let stage = Stage::new();
    stage.play("one", "flood 2M; ask ready?");
    stage.wait_printed("one", "ready?");
    let ran = CommandOutput::of(stage.shell("{ agency logs one; echo $? >code; } | head -1"), b"");
    assert_eq!(ran.stderr, "");
    assert!(ran.ok().starts_with("flood 0000000001 "));
    let code = stage.repo().join("code");
    stage.eventually("the log ends", SOON, || {
        Some(std::fs::read_to_string(&code).ok()?).filter(|code| code == "0\n")
    });
}

#[test]
fn a_log_without_a_run_is_empty() {
    let stage = Stage::new();
    stage.run(["new", "draft", "--draft", "-m", "x"]).ok();
    assert_eq!(stage.logs("draft"), "");
    assert_eq!(stage.run(["logs", "-f", "draft"]).ok(), "");
}

#[test]
fn events_are_printed_as_they_happen() {
    let stage = Stage::new();
    stage.play("one", "loop; ask ready?; end");
    let path = stage.home().join("events");
    let mut events = stage.agency(["events", "--json"]);
    events.stdin(Stdio::null()).stdout(File::create(&path).expect("room")).stderr(Stdio::null());
    let mut listening = events.spawn().expect("agency can be run");
    let heard = |what: &str| {
        stage.eventually(what, SOON, || {
            // Events before its subscription do not reach it.
            let text = std::fs::read_to_string(&path).expect("it is there");
            text.lines().any(|line| line.contains(what)).then_some(())
        });
    };
    stage.eventually("a subscriber", SOON, || {
        stage.run(["idle", "one"]).ok();
        stage.run(["start", "one"]).ok();
        (std::fs::metadata(&path).expect("it is there").len() > 0).then_some(())
    });
    stage.run(["complete", "one"]).ok();
    heard("\"status\":\"completed\"");
    stage.kill_daemon();
    let ended =
        stage.eventually("the end of the events", SOON, || listening.try_wait().expect("our own child"));
    assert_eq!(ended.code(), Some(1), "who missed events must know");
}

#[test]
fn a_long_text_arrives_whole() {
    let stage = Stage::new();
    stage.play("one", "raw; say ready; print >; wait-for the end; say got it; no-read");
    stage.wait_printed("one", "ready");
    let text = format!("{}the end", "a long story, ".repeat(20_000));
    let ran = CommandOutput::of(stage.agency(["send", "--no-enter", "one", "-"]), text.as_bytes());
    assert_eq!(ran.ok(), format!("typed {} bytes\n", text.len()));
    stage.wait_printed("one", "got it");
    assert!(sent(&stage, "one").concat() == text, "in pieces as the terminal took them, but all of it");
}
