//! Moments at which a text would do harm or get lost: menus, confirmations, pagers, programs that start.
//!
//! Each receipt says what happened, and nothing is typed where no prompt is.

use agency_journal::{Body, Source};
use agency_testkit::Pause;

use crate::conversations::wait_why;
use crate::journal;
use crate::stage::Stage;
use crate::state_log::{self, NO_SILENCE};

/// Everything that reached the agent through Agency.
fn typed(stage: &Stage, slug: &str) -> String {
    let run = stage.keeper(slug).run;
    let piece = |body: Body| match body {
        Body::Input { source: Source::Send, bytes } => Some(String::from_utf8(bytes).expect("text")),
        _ => None,
    };
    journal::records(stage, &run).into_iter().filter_map(|record| piece(record.body)).collect()
}

/// Waits until the agent has printed the text and waits for input.
#[track_caller]
fn wait_asked(stage: &Stage, slug: &str, text: &str) {
    stage.wait_printed(slug, text);
    stage.wait_task(slug, "waits", |task| state_log::now(task).starts_with("needs_input"));
}

/// A send that is refused, prints the screen and a way out, and types nothing.
#[track_caller]
fn refused(stage: &Stage, slug: &str, on_screen: &str) -> String {
    let ran = stage.run(["send", slug, "jjj fix the login"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{ran}");
    assert!(ran.stderr.contains(&format!("│ {on_screen}")), "{ran}");
    for way_out in ["--keys", "--anyway", "agency attach"] {
        assert!(ran.stderr.contains(way_out), "{way_out}: {ran}");
    }
    assert_eq!(typed(stage, slug), "", "{ran}");
    ran.stderr
}

#[test]
fn a_menu_is_not_answered_and_its_mark_does_not_move() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("one", "menu Delete which database? | production | staging | test; ask next?");
    stage.wait_printed("one", "production");
    let refusal = refused(&stage, "one", "❯ production");
    assert!(refusal.contains("not for a prompt: Delete which database?"), "{refusal}");
    stage.run(["send", "one", "--keys", "down,enter"]).ok();
    stage.wait_printed("one", "chose: staging");
}

#[test]
fn a_confirmation_is_not_answered() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("radio", r"raw; print \e[?25l; say Drop the table?; say ○ Yes / ● No; no-read");
    stage.wait_printed("radio", "No");
    refused(&stage, "radio", "○ Yes / ● No");
    stage.play("line", "ask Execute shell? [Y/n/c/e/a/?]; ask next?");
    stage.wait_printed("line", "Execute shell?");
    refused(&stage, "line", "Execute shell? [Y/n/c/e/a/?]");
    let receipt = stage.run(["send", "line", "n"]).ok();
    assert!(receipt.starts_with("delivered "), "an offered answer: {receipt}");
    stage.wait_printed("line", "got: n");
}

#[test]
fn a_program_that_reads_lines_gets_the_whole_word_of_an_answer() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("one", "ask Allow this command? [yes/No]; ask [E]xecute, [A]bort; no-read");
    stage.wait_printed("one", "[yes/No]");
    wait_why(&stage, "one", "permission");
    refused(&stage, "one", "Allow this command? [yes/No]");
    stage.run(["approve", "one"]).ok();
    stage.wait_printed("one", "got: yes");
    stage.wait_printed("one", "[A]bort");
    wait_asked(&stage, "one", "[E]xecute, [A]bort");
    let refusal = stage.run(["send", "one", "fix the login"]);
    assert!(refusal.code == 1 && refusal.stderr.contains("nothing was typed"), "{refusal}");
    stage.run(["deny", "one"]).ok();
    stage.wait_printed("one", "got: a");
}

#[test]
fn a_pager_gets_no_letters() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("one", r"raw; print \e[?1049h; say the first line; print \x3a; no-read");
    stage.wait_printed("one", "the first line");
    let refusal = refused(&stage, "one", "the first line");
    assert!(refusal.contains("nothing was typed"), "{refusal}");
}

#[test]
fn a_program_in_which_enter_begins_a_new_line_has_not_taken_the_text() {
    let stage = Stage::with_config(NO_SILENCE);
    let script =
        r"raw; print > \e[?2004h; wait-for \e[201~; print fix the login; wait-for \r; print \r\n  ; no-read";
    stage.play("one", script);
    stage.wait_printed("one", ">");
    let receipt = stage.run(["send", "one", "fix the login"]).ok();
    assert!(receipt.starts_with("typed ") && receipt.contains("Enter began a new line"), "{receipt}");
    assert_eq!(typed(&stage, "one"), "\x1b[200~fix the login\x1b[201~\r", "Enter is pressed once");
}

#[test]
fn a_program_that_still_starts_may_lose_the_text() {
    let stage = Stage::with_config(NO_SILENCE);
    let pause = Pause::at(stage.home().join("pause"));
    stage.play("one", &format!("say starts; await {}; flush; ask ready?", pause.path().display()));
    stage.wait_printed("one", "starts");
    let receipt = stage.run(["send", "one", "fix the login"]).ok();
    assert!(receipt.starts_with("typed ") && receipt.contains("still starting"), "{receipt}");
    pause.release();
    stage.wait_printed("one", "ready?");
}

#[test]
fn a_text_waits_for_a_program_that_begins_to_read() {
    let stage = Stage::with_config(NO_SILENCE);
    for number in 0..5 {
        let slug = format!("s{number}");
        stage.play(&slug, "flush; ask ready?; ask more?");
        let receipt = stage.run(["send", &slug, "hello"]).ok();
        assert!(receipt.starts_with("delivered "), "{receipt}");
        stage.wait_printed(&slug, "got: hello");
    }
}

#[test]
fn a_dialog_of_a_terminal_is_listed_and_answered() {
    let stage = Stage::with_config(NO_SILENCE);
    let menu = "menu Run rm -rf build? | Yes | Yes, and don't ask again | No";
    stage.play("one", &format!("{menu}; {menu}; ask next?"));
    wait_asked(&stage, "one", "No");
    let listed = stage.run(["approvals", "--json"]).json();
    let [open] = listed["approvals"].as_array().expect("a list").as_slice() else { panic!("{listed}") };
    assert_eq!((&open["tool"], &open["title"]), (&"terminal".into(), &"Run rm -rf build?".into()), "{open}");
    let labels: Vec<_> = open["choices"].as_array().expect("choices").iter().map(|c| &c["label"]).collect();
    assert_eq!(labels, ["Yes", "Yes, and don't ask again", "No"], "{open}");
    let table = stage.run(["approvals"]).ok();
    let id = open["id"].as_str().expect("an id");
    assert!(table.contains(&format!("approve 1 --id {id}")) && table.contains("3. No"), "{table}");

    let denied = stage.run(["deny", "one", "--id", id]).ok();
    assert!(denied.contains("Run rm -rf build?: denied by cli"), "{denied}");
    wait_asked(&stage, "one", "chose: No");
    let allowed = stage.run(["approve", "one", "--option", "Yes, and don't ask again"]).ok();
    assert!(allowed.contains("don't ask again"), "{allowed}");
    stage.wait_printed("one", "chose: Yes, and don't ask again");
    assert_eq!(stage.run(["approvals", "--json"]).json()["approvals"], serde_json::json!([]));
}

#[test]
fn an_answer_to_a_dialog_that_changed_presses_no_key() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("one", "menu Run rm -rf build? | Yes | No; menu Run rm -rf /? | Yes | No; ask next?");
    wait_asked(&stage, "one", "build?");
    let listed = stage.run(["approvals", "--json"]).json();
    let id = listed["approvals"][0]["id"].as_str().expect("an id").to_owned();
    stage.run(["approve", "one", "--id", &id]).ok();
    wait_asked(&stage, "one", "Run rm -rf /?");
    let before = typed(&stage, "one");
    let ran = stage.run(["approve", "one", "--id", &id]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stderr.contains("the dialog has changed") && ran.stderr.contains("│ ❯ Yes"), "{ran}");
    assert_eq!(typed(&stage, "one"), before);
}

#[test]
fn a_dialog_whose_choices_are_unknown_is_refused_and_shown() {
    let stage = Stage::with_config(NO_SILENCE);
    let blocked = r"print \e]7501\x3bstate=blocked:kind=permission:msg=QWxsb3cgcm0/\a";
    stage.play(
        "one",
        &format!(r"raw; print \e[?1049h\e[?25lAllow rm? Tap the red button; {blocked}; no-read"),
    );
    stage.wait_state("one", "needs_input permission (status)");
    let listed = stage.run(["approvals"]).ok();
    assert!(listed.contains("Allow rm?"), "{listed}");
    let ran = stage.run(["approve", "one"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(
        ran.stderr.contains("does not know the choices") && ran.stderr.contains("Tap the red button"),
        "{ran}"
    );
    assert_eq!(typed(&stage, "one"), "");
}
