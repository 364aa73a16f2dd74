//! Programs that read lines: Agency detects a prompt at once, and never takes silent work for one.

use agency_testkit::Pause;

use crate::stage::Stage;
use crate::state_log::{self, NO_SILENCE, describe};

/// Silence counts soon, so that the detector must know that a silent program works.
const HASTY: &str = "needs_input_timeout = \"300ms\"\n";

fn start(stage: &Stage, slug: &str, line: &str) {
    stage.run(["new", slug, "--no-attach", "--", "sh", "-c", line]).ok();
}

/// Waits longer than the silence timeout: until an agent without other evidence needs input.
fn let_silence_pass(stage: &Stage, slug: &str) {
    stage.play(slug, "raw; say hello; no-read");
    stage.wait_state(slug, "needs_input unknown (silence)");
}

#[test]
fn a_shell_waits_at_its_prompt() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.run(["new", "shell", "--no-attach", "--", "sh"]).ok();
    let task = stage.wait_state("shell", "needs_input prompt (kernel)");
    assert_eq!(task["evidence"]["rule"], "sh reads the terminal", "{task}");
    assert_eq!(task["evidence"]["confidence"], "high", "{task}");
    let pause = Pause::at(stage.home().join("pause"));
    stage.run(["send", "shell", &format!("cat {}", pause.path().display())]).ok();
    stage.wait_state("shell", "running (kernel)");
    pause.release();
    stage.wait_state("shell", "needs_input prompt (kernel)");
    let log = state_log::log(&stage, "shell");
    assert!(log.iter().all(|change| change["source"] != "silence" || change["state"] == "running"));
}

#[test]
fn a_question_is_shown_with_its_text() {
    let stage = Stage::with_config(NO_SILENCE);
    start(&stage, "one", "printf 'Delete everything? '; read answer; echo \"so: $answer\"; read more");
    let task = stage.wait_state("one", "needs_input question (kernel)");
    assert_eq!(task["evidence"]["detail"], "Delete everything?", "{task}");
    let listing = stage.run(["ls"]).ok();
    assert!(listing.contains("asks ") && listing.contains("unread: Delete everything?"), "{listing}");
    let receipt = stage.run(["send", "one", "no"]).ok();
    assert!(receipt.starts_with("delivered 3 bytes ("), "{receipt}");
    stage.wait_printed("one", "so: no");
    let task = stage.wait_state("one", "needs_input unknown (kernel)");
    assert_eq!(task["evidence"]["detail"], serde_json::Value::Null, "it asked nothing: {task}");
}

#[test]
fn a_password_prompt_is_a_question_without_its_text() {
    let stage = Stage::with_config(NO_SILENCE);
    start(&stage, "one", "stty -echo; printf 'Password: '; read secret; stty echo; echo thanks; read more");
    let task = stage.wait_state("one", "needs_input question (kernel)");
    assert_eq!(task["evidence"]["rule"], "sh reads without echo", "{task}");
    assert_eq!(task["evidence"]["detail"], "Password:", "{task}");
    stage.run(["send", "one", "hunter2"]).ok();
    stage.wait_printed("one", "thanks");
    stage.wait_state("one", "needs_input unknown (kernel)");
}

#[test]
fn silent_work_counts_as_work_until_its_end() {
    let stage = Stage::with_config(HASTY);
    let (script, shell) = (Pause::at(stage.home().join("script")), Pause::at(stage.home().join("shell")));
    start(&stage, "script", &format!("cat '{}'; printf 'Well? '; read answer", script.path().display()));
    stage.wait_state("script", "running (kernel)");
    stage.run(["new", "shell", "--no-attach", "--", "sh"]).ok();
    stage.wait_state("shell", "needs_input prompt (kernel)");
    stage.run(["send", "shell", &format!("cat '{}'", shell.path().display())]).ok();
    stage.wait_state("shell", "running (kernel)");
    let_silence_pass(&stage, "silent");
    let_silence_pass(&stage, "silent-too");

    for (slug, pause, at_the_end) in
        [("script", script, "needs_input question (kernel)"), ("shell", shell, "needs_input prompt (kernel)")]
    {
        assert_eq!(state_log::now(&stage.task(slug)), "running (kernel)");
        let before = state_log::log(&stage, slug).len();
        pause.release();
        stage.wait_state(slug, at_the_end);
        let log = state_log::log(&stage, slug);
        let since: Vec<String> = log[before..].iter().map(describe).collect();
        assert_eq!(since, [at_the_end], "{slug} worked until then: {log:#?}");
        let silent = log.iter().filter(|change| describe(change).starts_with("needs_input unknown"));
        assert_eq!(silent.count(), 0, "{slug}: {log:#?}");
    }
}

#[test]
fn a_question_on_an_inner_terminal_is_not_work() {
    let stage = Stage::with_config(HASTY);
    let pause = Pause::at(stage.home().join("pause"));
    let inner =
        format!("printf \"Go on? \"; read answer; cat {}; echo done; read more", pause.path().display());
    start(&stage, "one", &format!("script -qc '{inner}' /dev/null"));
    stage.wait_printed("one", "Go on?");
    stage.wait_state("one", "needs_input question (editor)");
    stage.run(["send", "one", "yes"]).ok();
    stage.wait_state("one", "running (child)");
    let_silence_pass(&stage, "silent");
    assert_eq!(state_log::now(&stage.task("one")), "running (child)");
    pause.release();
    stage.wait_printed("one", "done");
    stage.wait_state("one", "needs_input unknown (silence)");
}
