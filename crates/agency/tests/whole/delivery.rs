//! `send`: a text arrives whole, once, and never in a dialog.

use std::fs;

use agency_journal::{Body, Source};
use agency_testkit::CommandOutput;

use crate::journal;
use crate::stage::{Stage, refused};
use crate::state_log::NO_SILENCE;

/// The writes that reached the agent through `send`.
fn sent(stage: &Stage, slug: &str) -> Vec<Vec<u8>> {
    let run = stage.keeper(slug).run;
    let piece = |body: Body| match body {
        Body::Input { source: Source::Send, bytes } => Some(bytes),
        _ => None,
    };
    journal::records(stage, &run).into_iter().filter_map(|record| piece(record.body)).collect()
}

fn texts(stage: &Stage, slug: &str) -> Vec<String> {
    sent(stage, slug).into_iter().map(|bytes| String::from_utf8(bytes).expect("text")).collect()
}

/// A full-screen program that accepts pastes and draws this.
fn full_screen(draws: &str) -> String {
    format!(r"raw; print \e[?1049h\e[?2004h\e[?25l{draws}")
}

const DIALOG: &str = r"print \e]7501\x3bstate=blocked:kind=permission:msg=QWxsb3cgcm0/\a";

#[test]
fn a_message_does_not_answer_a_dialog() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play(
        "one",
        &format!("{}; {DIALOG}; wait-for x; say answered; no-read", full_screen("Allow rm? 1. Yes 2. No")),
    );
    stage.wait_state("one", "needs_input permission (status)");
    let ran = stage.run(["send", "one", "fix", "the", "tests"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran}");
    assert!(ran.stderr.contains("│ Allow rm? 1. Yes 2. No"), "{ran}");
    assert!(ran.stderr.contains("refused: it waits for a permission, not for a prompt: Allow rm?"), "{ran}");
    let receipt = stage.run(["send", "one", "--json", "fix"]);
    assert_eq!(receipt.code, 1, "{receipt}");
    let receipt: serde_json::Value = serde_json::from_str(&receipt.stdout).expect("one document");
    assert_eq!((&receipt["receipt"], &receipt["bytes"]), (&"refused".into(), &0.into()), "{receipt}");
    assert_eq!(texts(&stage, "one"), [""; 0], "nothing was typed");

    stage.run(["send", "one", "--anyway", "--no-enter", "x"]).ok();
    stage.wait_printed("one", "answered");
    assert_eq!(texts(&stage, "one").concat(), "\x1b[200~x\x1b[201~");
}

#[test]
fn keys_are_encoded_as_the_program_requested() {
    let stage = Stage::with_config(NO_SILENCE);
    for (slug, modes, expected) in [
        ("plain", "", ["\x1b[B", "\r", "\x1b", "\x03"]),
        ("application", r"\e[?1h", ["\x1bOB", "\r", "\x1b", "\x03"]),
        ("kitty", r"\e[>1u", ["\x1b[B", "\r", "\x1b[27u", "\x1b[99;5u"]),
        ("all", r"\e[>8u", ["\x1b[B", "\x1b[13u", "\x1b[27u", "\x1b[99;5u"]),
    ] {
        stage.play(slug, &format!("{}; {DIALOG}; no-read", full_screen(modes)));
        stage.wait_state(slug, "needs_input permission (status)");
        let receipt = stage.run(["send", slug, "--keys", "down,enter,esc,ctrl-c"]).ok();
        assert!(receipt.starts_with("typed "), "{receipt}");
        assert_eq!(texts(&stage, slug), expected, "{slug}");
    }
    let refusal = refused(stage.run(["send", "plain", "--keys", "dwon"]));
    assert!(refusal.contains("\"dwon\" is not a key"), "{refusal}");
}

#[test]
fn a_text_that_does_not_appear_is_not_entered() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("one", &format!("{}; no-read", full_screen(r"Press any key to delete everything\r\n> ")));
    stage.wait_printed("one", "Press any key");
    let ran = stage.run(["send", "one", "fix the tests"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(
        ran.stderr.contains("the message does not show") && ran.stderr.contains("Press any key"),
        "{ran}"
    );
    assert_eq!(texts(&stage, "one"), ["\x1b[200~fix the tests\x1b[201~"], "no Enter");
}

#[test]
fn a_lost_enter_is_pressed_once_more_and_never_again() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("one", &format!(r"{}; wait-for \e[201~; print fix the tests; no-read", full_screen("> ")));
    stage.wait_printed("one", ">");
    let receipt = stage.run(["send", "one", "fix the tests"]).ok();
    assert!(receipt.starts_with("typed ") && receipt.contains("nothing shows yet"), "{receipt}");
    assert_eq!(texts(&stage, "one"), ["\x1b[200~fix the tests\x1b[201~", "\r", "\r"]);
}

#[test]
fn an_agent_that_reports_work_has_taken_the_text() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play(
        "one",
        &format!(r"{}; print \e]7501\x3bstate=idle\a; wait-for \e[201~; print fix the tests; wait-for \r; print \e]7501\x3bstate=working\a; no-read", full_screen("> ")),
    );
    stage.wait_state("one", "needs_input prompt (status)");
    let receipt = stage.run(["send", "one", "fix the tests"]).ok();
    assert!(receipt.starts_with("delivered ") && receipt.contains("(status: working)"), "{receipt}");
    assert_eq!(texts(&stage, "one"), ["\x1b[200~fix the tests\x1b[201~", "\r"], "Enter comes apart, once");
}

#[test]
fn a_text_that_ends_the_agent_is_delivered() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.run(["new", "one", "--no-attach", "--", "sh"]).ok();
    stage.wait_state("one", "needs_input prompt (kernel)");
    let receipt = stage.run(["send", "one", "exit 3"]).ok();
    assert!(receipt.starts_with("delivered 7 bytes ("), "{receipt}");
    stage.wait_status("one", "stopped");
    stage.play("two", &format!("{}; wait-for q; exit 0", full_screen("q leaves")));
    stage.wait_printed("two", "q leaves");
    stage.run(["send", "two", "--keys", "q"]).ok();
    stage.wait_status("two", "stopped");
}

/// 100 KB of characters that a terminal might interpret.
fn odd_text() -> String {
    let line = "e\u{301} 👩‍🚀 👨‍👩‍👧 עברית العربية 漢字 \u{1}\u{2}\u{7}\u{8}\t\u{c}\u{1b}[31m\u{1b}]0;x\u{7}\u{7f}\u{85}\u{200d}\u{feff} ~\\\"'`$(x)\n";
    let mut text = line.repeat(100_000 / line.len() + 1);
    text.push_str("the very end");
    text
}

#[test]
fn odd_and_long_texts_arrive_byte_for_byte() {
    let stage = Stage::with_config(NO_SILENCE);
    let got = stage.home().join("got");
    let text = odd_text();
    let wanted = text.len() + "\x1b[200~\x1b[201~".len() + 1;
    let line = format!(
        "stty raw -echo; printf '\\033[?2004hready'; head -c {wanted} >'{}'; printf '\\r\\nall of it'; sleep 1000",
        got.display()
    );
    stage.run(["new", "one", "--no-attach", "--", "sh", "-c", &line]).ok();
    stage.wait_printed("one", "ready");
    let ran = CommandOutput::of(stage.agency(["send", "one", "-"]), text.as_bytes());
    let receipt = ran.ok();
    assert!(
        receipt.starts_with(&format!("delivered {wanted} bytes"))
            || receipt.starts_with(&format!("typed {wanted} bytes")),
        "{receipt}"
    );
    stage.wait_printed("one", "all of it");
    let expected = [b"\x1b[200~", text.as_bytes(), b"\x1b[201~\r"].concat();
    assert!(fs::read(&got).expect("it was written") == expected, "not the bytes that were sent");
}

#[test]
fn a_line_that_is_too_long_for_a_terminal_is_refused() {
    let stage = Stage::with_config(NO_SILENCE);
    stage
        .run([
            "new",
            "one",
            "--no-attach",
            "--",
            "sh",
            "-c",
            "while read line; do echo \"got ${#line}\"; done",
        ])
        .ok();
    stage.wait_state("one", "needs_input unknown (kernel)");
    let ran = stage.run(["send", "one", &"x".repeat(4096)]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(
        ran.stderr.contains(
            "the program reads whole lines, and a terminal passes on at most 4095 bytes of a line (4096)"
        ),
        "{ran}"
    );
    assert_eq!(sent(&stage, "one").concat(), b"");
    stage.run(["send", "one", &"x".repeat(4095)]).ok();
    stage.wait_printed("one", "got 4095");
}
