//! Agents that report their own state: the program status protocol and hooks.

use std::path::PathBuf;

use agency_testkit::{CommandOutput, Pause};
use serde_json::Value;

use crate::journal;
use crate::stage::{SOON, Stage};
use crate::state_log::{self, NO_SILENCE, describe};

/// A step of an agent's script: OSC 7501 with these fields.
fn report(fields: &str) -> String {
    format!(r"print \e]7501\x3b{fields}\a")
}

struct Pauses {
    dir: PathBuf,
    pauses: Vec<Pause>,
}

impl Pauses {
    fn new(stage: &Stage) -> Pauses {
        Pauses { dir: stage.home(), pauses: Vec::new() }
    }

    /// The step that waits at the next pause.
    fn step(&mut self) -> String {
        let pause = Pause::at(self.dir.join(format!("pause-{}", self.pauses.len())));
        let step = format!("await {}", pause.path().display());
        self.pauses.push(pause);
        step
    }

    fn open(&self, number: usize) {
        self.pauses[number].release();
    }
}

#[test]
fn the_state_follows_the_agents_own_reports() {
    let stage = Stage::with_config(NO_SILENCE);
    let mut pauses = Pauses::new(&stage);
    let reports = [
        ("state=working:app=fake:msg=dGhpbmtpbmc=", "running (status)", None),
        (
            "state=blocked:app=fake:kind=permission:msg=QWxsb3cgQmFzaDogcm0gLXJmIGJ1aWxkPw==",
            "needs_input permission (status)",
            Some("Allow Bash: rm -rf build?"),
        ),
        ("state=blocked:kind=question:msg=V2hpY2g/", "needs_input question (status)", Some("Which?")),
        ("state=working", "running (status)", None),
        ("state=error:msg=QVBJIEVycm9yOiA1Mjk=", "needs_input error (status)", Some("API Error: 529")),
        ("state=done", "needs_input finished (status)", None),
        ("state=idle", "needs_input prompt (status)", None),
    ];
    let mut script = vec!["raw".to_owned(), r"query \e]7501\x3b?\a".to_owned()];
    for (fields, ..) in &reports {
        script.extend([pauses.step(), report(fields)]);
    }
    script.push("no-read".to_owned());
    stage.play("one", &script.join("; "));
    let reply = stage.wait_printed("one", "reply: ");
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert!(reply.contains(&hex("\x1b]7501;?:states=idle,working,done,blocked,error")), "{reply}");
    stage.wait_state("one", "running (silence)");
    let before = state_log::log(&stage, "one").len();
    for (number, (_, state, detail)) in reports.iter().enumerate() {
        pauses.open(number);
        let task = stage.wait_state("one", state);
        assert_eq!(task["evidence"]["detail"].as_str(), *detail, "{task}");
        assert_eq!(task["evidence"]["confidence"], "certain", "{task}");
    }
    // The state was already running, so this report is not a change.
    let expected: Vec<&str> = reports[1..].iter().map(|(_, state, _)| *state).collect();
    let log: Vec<String> = state_log::log(&stage, "one")[before..].iter().map(describe).collect();
    assert_eq!(log, expected);
    check_explain_and_events(&stage, &expected);
}

/// `explain` and `events` report the same as the log.
fn check_explain_and_events(stage: &Stage, expected: &[&str]) {
    let explained = stage.run(["explain", "one", "--json"]).json();
    assert_eq!(describe(&explained["state"]), expected[expected.len() - 1], "{explained}");
    let before: Vec<String> = explained["before"].as_array().expect("a list").iter().map(describe).collect();
    assert!(
        before.ends_with(
            &expected[..expected.len() - 1].iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()
        ),
        "{explained}"
    );
    let witness = &explained["witnesses"][0];
    assert_eq!((&witness["source"], &witness["decides"]), (&"status".into(), &true.into()), "{explained}");
    let text = stage.run(["explain", "one"]).ok();
    assert!(
        text.contains("evidence: status, idle") && text.contains("what would change the state"),
        "{text}"
    );

    let events = events_since(stage, "1h", "\"why\":\"prompt\"");
    let changes = events.iter().filter(|event| event["type"] == "StateChange");
    let heard: Vec<String> = changes
        .map(|event| {
            let data = &event["data"];
            describe(&serde_json::json!({
                "state": data["new"]["state"], "why": data["why"], "evidence": data["evidence"]
            }))
        })
        .collect();
    assert!(
        heard.ends_with(&expected.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()),
        "{heard:?}"
    );
}

/// The events since then, up to the one with this text.
pub fn events_since(stage: &Stage, since: &str, last: &str) -> Vec<Value> {
    let path = stage.home().join("heard");
    let mut events = stage.agency(["events", "--json", "--since", since]);
    events.stdin(std::process::Stdio::null()).stdout(std::fs::File::create(&path).expect("room"));
    let mut listening = events.spawn().expect("agency can be run");
    let text = stage.eventually(&format!("an event with {last:?}"), SOON, || {
        let text = std::fs::read_to_string(&path).expect("it is there");
        text.lines().any(|line| line.contains(last)).then_some(text)
    });
    listening.kill().and_then(|()| listening.wait()).expect("our own child");
    let whole = text.lines().filter(|line| line.ends_with('}'));
    whole.map(|line| serde_json::from_str(line).unwrap_or_else(|err| panic!("{err}: {line}"))).collect()
}

#[test]
fn an_agent_with_a_blinking_question_still_waits() {
    let stage = Stage::with_config(NO_SILENCE);
    let ask = report("state=blocked:kind=permission");
    let blink = r"loop 40; print \e[1\x3b1H> ; sleep 0.02; print \e[1\x3b1H* ; sleep 0.02; end";
    stage.play("one", &format!("raw; {}; {ask}; {blink}; say blinked; no-read", report("state=working")));
    stage.wait_printed("one", "blinked");
    stage.wait_state("one", "needs_input permission (status)");
    let log: Vec<String> = state_log::log(&stage, "one").iter().map(describe).collect();
    let from = log.iter().position(|word| word == "needs_input permission (status)").expect("it asked");
    assert_eq!(log[from..], ["needs_input permission (status)"], "it never went back to work");
}

#[test]
fn a_report_ends_with_its_program() {
    let stage = Stage::with_config(NO_SILENCE);
    let pause = Pause::at(stage.home().join("pause"));
    // With job control, the program gets its own foreground group, as in an interactive shell.
    stage.run(["new", "one", "--no-attach", "--", "bash", "--norc", "-i"]).ok();
    stage.wait_state("one", "needs_input prompt (kernel)");
    let script =
        format!("raw; {}; await {}; exit 0", report("state=blocked:kind=permission"), pause.path().display());
    stage.run(["send", "one", "--anyway", &format!("fake-agent -c '{script}'; stty sane")]).ok();
    stage.wait_state("one", "needs_input permission (status)");
    pause.release();
    let task = stage.wait_state("one", "needs_input prompt (kernel)");
    assert_eq!(task["evidence"]["rule"], "bash reads keys", "{task}");
    let explained = stage.run(["explain", "one", "--json"]).json();
    let sources = explained["witnesses"].as_array().expect("a list").iter().map(|one| one["source"].clone());
    assert!(!sources.into_iter().any(|source| source == "status"), "{explained}");
}

/// Calls the hook as an agent does.
fn hook(stage: &Stage, socket: &str, json: &str) {
    let mut command = stage.command("agency-keeper");
    command.arg("hook").env("AGENCY_KEEPER_SOCKET", socket);
    CommandOutput::of(command, json.as_bytes()).ok();
}

fn socket_of(stage: &Stage, slug: &str) -> String {
    let logs = stage.wait_printed(slug, "ready");
    logs.lines()
        .find(|line| line.starts_with('/'))
        .unwrap_or_else(|| panic!("no socket: {logs}"))
        .trim()
        .to_owned()
}

#[test]
fn hooks_report_permissions_and_the_session() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("one", "env AGENCY_KEEPER_SOCKET; raw; say ready; no-read");
    let socket = socket_of(&stage, "one");
    hook(
        &stage,
        &socket,
        r#"{"hook_event_name":"UserPromptSubmit","session_id":"s-1","prompt":"secret words"}"#,
    );
    stage.wait_state("one", "running (progress)");
    hook(&stage, &socket, r#"{"hook_event_name":"PermissionRequest","session_id":"s-1","tool_name":"Bash"}"#);
    let task = stage.wait_state("one", "needs_input permission (hook)");
    assert_eq!(task["evidence"]["detail"], "Allow Bash?", "{task}");
    stage.eventually("the session is kept", SOON, || {
        stage.task_file("1-one").contains("session_id: s-1").then_some(())
    });
    hook(&stage, &socket, "no JSON at all");
    hook(&stage, &socket, r#"{"hook_event_name":"Stop","session_id":"s-2"}"#);
    stage.wait_state("one", "needs_input finished (hook)");
    stage.eventually("the new session is kept", SOON, || {
        stage.task_file("1-one").contains("session_id: s-2").then_some(())
    });
    let run = stage.keeper("one").run;
    let notes = format!("{:?}", journal::records(&stage, &run));
    assert!(!notes.contains("secret words"), "what was asked is none of our business");
}

#[test]
fn a_task_that_never_had_a_turn_starts_afresh() {
    let line = "env AGENCY_KEEPER_SOCKET; raw; say ready; no-read";
    let stage = Stage::with_config(&format!(
        "{NO_SILENCE}[agents.fake]\nstart = [\"fake-agent\", \"-c\", \"{line}\"]\n\
         resume = [\"fake-agent\", \"-c\", \"say resumed $AGENCY_SESSION_ID; {line}\"]\n"
    ));
    stage.run(["new", "one", "--no-attach", "-m", ""]).ok();
    let socket = socket_of(&stage, "one");
    hook(&stage, &socket, r#"{"hook_event_name":"SessionStart","session_id":"s-1"}"#);
    let idle = r#"{"hook_event_name":"Notification","session_id":"s-1","notification_type":"idle_prompt"}"#;
    hook(&stage, &socket, idle);
    stage.wait_state("one", "needs_input prompt (hook)");
    stage.run(["restart", "one"]).ok();
    stage.eventually("it starts again", SOON, || {
        (stage.logs("one").matches("ready").count() == 2).then_some(())
    });
    assert!(!stage.logs("one").contains("resumed"), "a session without a turn cannot be resumed");
    assert!(!stage.task_file("1-one").contains("session_id"));
}

#[test]
fn the_next_daemon_knows_a_hook_report_without_a_daemon() {
    let stage = Stage::with_config(NO_SILENCE);
    stage.play("one", "env AGENCY_KEEPER_SOCKET; raw; say ready; no-read");
    let socket = socket_of(&stage, "one");
    stage.kill_daemon();
    hook(&stage, &socket, r#"{"hook_event_name":"PreToolUse","session_id":"s-9","tool_name":"Bash"}"#);
    hook(&stage, &socket, r#"{"hook_event_name":"PermissionRequest","session_id":"s-9","tool_name":"Bash"}"#);
    assert!(stage.daemon().is_none(), "a hook starts no daemon");
    let task = stage.wait_state("one", "needs_input permission (hook)");
    assert_eq!(task["evidence"]["rule"], "PermissionRequest", "{task}");
    stage.eventually("the session is kept", SOON, || {
        stage.task_file("1-one").contains("session_id: s-9").then_some(())
    });
    let heard = events_since(&stage, "1h", "\"why\":\"permission\"");
    let last: Vec<String> = heard
        .iter()
        .filter(|event| event["type"] == "StateChange")
        .map(|event| event["data"]["new"]["state"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(
        last.ends_with(&["running".to_owned(), "needs_input".to_owned()]),
        "the events contain what no daemon saw: {heard:?}"
    );
}
