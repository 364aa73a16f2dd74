//! The memory of programs: signs of work that earlier runs showed, and corrections of the user.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::stage::{SOON, Stage};
use crate::state_log::{self, NO_SILENCE};

const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ";

const DEPLOY: &str = r#"
[[rule]]
name = "deploy"
says = "waiting"
why = "question"
lines = 3
all = ['^\[mine\] Deploy']
detail = '\[mine\] Deploy (\w+)'
"#;

fn with_rule() -> Stage {
    let stage = Stage::with_config(NO_SILENCE);
    let dir = stage.config().with_file_name("rules");
    fs::create_dir_all(&dir).and_then(|()| fs::write(dir.join("mine.toml"), DEPLOY)).expect("room for rules");
    stage
}

fn explain(stage: &Stage, slug: &str) -> Value {
    stage.run(["explain", slug, "--json"]).json()
}

#[track_caller]
fn wait_explained(stage: &Stage, slug: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    stage.eventually(what, SOON, || Some(explain(stage, slug)).filter(&is_so))
}

fn memory(stage: &Stage) -> String {
    fs::read_to_string(stage.state().join("programs.json")).unwrap_or_default()
}

/// A turn that begins with Enter: a spinner with these words on the fifth row.
fn spinner(times: &str, words: &str) -> String {
    let frame = |sign: &str| format!(r"print \e[5\x3b1H{sign} {words}…\e[K; sleep 0.05");
    format!("loop {times}; {}; {}; end", frame("⠋"), frame("⠙"))
}

#[test]
fn a_sign_of_work_is_known_in_the_next_run_also_after_a_kill_of_the_daemon() {
    let stage = Stage::with_config(NO_SILENCE);
    let prompt = r"raw; print \e[?1049h\e[2J\e[1\x3b1H> ; wait-for \r";
    let turn = spinner("30", "Pondering");
    let private = spinner("30", "Seeking hunter");
    // The daemon looks at the screen before the report.
    let end = r"print \e[5\x3b1H\e[K\e[1\x3b1H\e[2K> ; sleep 0.3; print \e]7501\x3bstate=idle\a";
    let script =
        format!("{prompt}; {turn}; {end}; wait-for \\r; print \\e]7501\\x3b\\a; {private}; {end}; no-read");
    stage.play("one", &script);
    stage.wait_printed("one", ">");
    stage.run(["send", "one", "--keys", "g,o,enter"]).ok();
    let has_sign = |explained: &Value, remembered: bool| {
        let sign = serde_json::json!({ "text": "pondering", "remembered": remembered });
        explained["signs"].as_array().is_some_and(|signs| signs.contains(&sign))
    };
    wait_explained(&stage, "one", "the sign is learned", |explained| has_sign(explained, false));
    stage.eventually("it is remembered", SOON, || memory(&stage).contains("pondering").then_some(()));
    stage.run(["send", "one", "--keys", "h,u,n,t,e,r,enter"]).ok();
    wait_explained(&stage, "one", "the second turn taught something", |explained| {
        explained["signs"].to_string().contains("hunter")
    });

    stage.kill_daemon();
    stage.play("two", &format!("{prompt}; {}", spinner("", "Pondering")));
    stage.wait_printed("two", ">");
    let known = wait_explained(&stage, "two", "it knows the sign", |explained| has_sign(explained, true));
    assert_eq!(known["program"], "fake-agent", "{known}");
    stage.run(["send", "two", "--keys", "enter"]).ok();
    stage.wait_state("two", "running (sign)");
    let text = stage.run(["explain", "two"]).ok();
    assert!(text.contains("\"pondering\", known from earlier runs"), "{text}");
    let kept = memory(&stage);
    assert!(kept.contains("a spinner of dots") && !kept.contains("hunter"), "{kept}");

    stage.kill_daemon();
    stage.wait_state("two", "running (sign)");
    assert!(has_sign(&explain(&stage, "two"), true), "the journal knows what the run knew");
}

#[test]
fn a_user_contradicts_a_state_and_the_program_is_corrected_until_that_is_forgotten() {
    let stage = with_rule();
    let script = format!("raw; say {TOKEN}; say [mine] Deploy production now?; no-read");
    stage.play("one", &script);
    stage.wait_state("one", "needs_input question (screen)");
    let refusal = stage.refused(&["explain", "one", "--wrong", "working"]);
    assert!(refusal.contains("does not say that the agent is working"), "{refusal}");

    let told = stage.run(["explain", "one", "--wrong", "waiting"]).ok();
    assert!(told.contains("screen, deploy: not waiting, for this question"), "{told}");
    stage.wait_state("one", "running (user)");
    check_report(&stage, &told);
    let log: Vec<String> = state_log::log(&stage, "one").iter().map(state_log::describe).collect();

    stage.kill_daemon();
    stage.wait_state("one", "running (user)");
    let again: Vec<String> = state_log::log(&stage, "one").iter().map(state_log::describe).collect();
    assert_eq!(again, log, "the next daemon finds the same in the journal");

    // Another run of the same program: the rule still speaks, but does not decide.
    stage.play("two", &script);
    let has_claim = |explained: &Value| {
        let mut witnesses = explained["witnesses"].as_array().expect("a list").iter();
        witnesses.any(|witness| witness["source"] == "screen" && witness["decides"] == false)
    };
    let explained = wait_explained(&stage, "two", "the rule matches", has_claim);
    assert_eq!(explained["state"]["state"], "running", "{explained}");
    assert_eq!(explained["corrections"][0]["rule"], "deploy", "{explained}");
    stage.play("other", "raw; say [mine] Deploy staging now?; no-read");
    stage.wait_state("other", "needs_input question (screen)");
    let text = stage.run(["explain", "two"]).ok();
    assert!(text.contains("your corrections for fake-agent"), "{text}");

    let forgotten = stage.run(["explain", "two", "--forget"]).ok();
    assert_eq!(forgotten.trim(), "1 correction for fake-agent is forgotten");
    stage.wait_state("two", "needs_input question (screen)");
    stage.wait_state("one", "needs_input question (screen)");
}

/// The file has the screen and the evidence, is private and holds no secret.
#[track_caller]
fn check_report(stage: &Stage, told: &str) {
    let path = told.lines().find_map(|line| line.strip_prefix("report: ")).expect("a path");
    assert!(path.starts_with(stage.state().to_str().expect("text")), "{path}");
    assert_eq!(fs::metadata(path).expect("a file").permissions().mode() & 0o777, 0o600);
    let report = fs::read_to_string(path).expect("text");
    for part in [
        "said that an agent is waiting",
        "program:   fake-agent",
        "→ screen waits (question)",
        "[mine] Deploy production now?",
        "== end of the output ==",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
    let masked = "*".repeat(TOKEN.len());
    assert_eq!(report.matches(&masked).count(), 2, "on the screen and in the output: {report}");
    assert!(!report.contains("ghp_") && !report.contains("PATH="), "{report}");
}

#[test]
fn a_permission_that_the_agent_itself_reports_cannot_be_contradicted() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("one", r"raw; print \e]7501\x3bstate=blocked:kind=permission\a; no-read");
    stage.wait_state("one", "needs_input permission (status)");
    let refusal = stage.refused(&["explain", "one", "--wrong", "waiting"]);
    assert!(refusal.contains("cannot be contradicted") && refusal.contains("agency attach"), "{refusal}");
    stage.wait_state("one", "needs_input permission (status)");
    assert_eq!(memory(&stage), "");
}

#[test]
fn answers_to_dialogs_on_terminals_are_in_the_log() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("one", "menu Run rm -rf build? | Yes | No; menu Run make? | Yes | Always | No; ask next?");
    let wait_open = |title: &str| {
        stage.eventually(title, SOON, || {
            let open = stage.run(["approvals", "--json"]).json();
            (open["approvals"][0]["title"] == title).then_some(())
        })
    };
    wait_open("Run rm -rf build?");
    stage.run(["deny", "one", "-m", "not now"]).ok();
    wait_open("Run make?");
    stage.run(["approve", "one", "--option", "Always"]).ok();
    stage.kill_daemon();
    let log = stage.run(["approvals", "--log", "--json"]).json();
    let [denied, allowed] = log["decisions"].as_array().expect("a list").as_slice() else { panic!("{log}") };
    assert_eq!((&denied["title"], &allowed["title"]), (&"Run rm -rf build?".into(), &"Run make?".into()));
    let (no, yes) = (&denied["outcome"], &allowed["outcome"]);
    assert_eq!((&no["allowed"], &no["message"]), (&false.into(), &"not now".into()), "{no}");
    assert!(no["by"].as_str().is_some_and(|by| by.starts_with("cli")), "{no}");
    assert_eq!((&yes["allowed"], &yes["answer"]), (&true.into(), &"Always".into()), "{yes}");
    let text = stage.run(["approvals", "--log", "one"]).ok();
    assert!(text.contains("Run make?") && text.contains("cli"), "{text}");
}
