//! A connection with several sessions: the router finds the owner of every line.

#![allow(clippy::disallowed_methods, reason = "the tests read recordings")]

use std::time::Duration;

use agency_driver::acp::Router;
use agency_driver::acp::router::{Recipient, RoutedLine};
use agent_client_protocol_schema::v1::{InitializeRequest, SessionUpdate};
use serde::Deserialize;
use serde_json::{Value, json};

const NOW: Duration = Duration::ZERO;

fn line(message: &Value) -> Vec<u8> {
    format!("{message}\n").into_bytes()
}

fn run(name: &str) -> Recipient {
    Recipient::Run(name.to_owned())
}

/// A connection and its router.
#[derive(Default)]
struct Story {
    router: Router,
}

impl Story {
    fn says(&mut self, message: &Value) -> Vec<Recipient> {
        self.router.on_output(&line(message), NOW).into_iter().map(|routed| routed.to).collect()
    }

    fn writes(&mut self, message: &Value) -> Vec<Recipient> {
        self.router.on_input(&line(message), NOW).into_iter().map(|routed| routed.to).collect()
    }

    fn greeted() -> Story {
        let mut story = Story::default();
        let greeting = story.router.initialize();
        story.router.on_input(&greeting, NOW);
        story.says(&json!({ "id": "agency:1", "result": { "protocolVersion": 1,
            "agentCapabilities": { "loadSession": true, "sessionCapabilities": { "list": {} } },
            "agentInfo": { "name": "x", "title": "X", "version": "2" } } }));
        story
    }

    /// A story with a session for each of these runs, named `s-` and the run.
    fn with(runs: &[&str]) -> Story {
        let mut story = Story::greeted();
        for run in runs {
            story.writes(&request(&format!("{run}:open1"), "session/new", &json!({ "cwd": "/" })));
            story.says(
                &json!({ "id": format!("{run}:open1"), "result": { "sessionId": format!("s-{run}") } }),
            );
        }
        story
    }

    fn codes(&mut self) -> Vec<(Value, i64)> {
        let owed = self.router.owed_lines();
        let codes = owed.iter().map(|(_, line)| {
            let answer: Value = serde_json::from_slice(line).expect("JSON");
            (answer["id"].clone(), answer["error"]["code"].as_i64().expect("a code"))
        });
        let codes = codes.collect();
        for (_, line) in owed {
            self.router.on_input(&line, NOW);
        }
        assert_eq!(self.router.owed_lines(), [], "a written line is not owed again");
        codes
    }
}

fn request(id: &str, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn update(session: &str) -> Value {
    json!({ "method": "session/update", "params": { "sessionId": session, "update": {} } })
}

#[test]
fn the_greeting_offers_neither_files_nor_terminals_and_the_official_types_understand_it() {
    let mut router = Router::new();
    let greeting: Value = serde_json::from_slice(&router.initialize()).expect("JSON");
    assert_eq!((&greeting["id"], &greeting["method"]), (&json!("agency:1"), &json!("initialize")));
    let request = InitializeRequest::deserialize(&greeting["params"]).expect("a request");
    let can = request.client_capabilities;
    assert!(!can.fs.read_text_file && !can.fs.write_text_file && !can.terminal);
    assert!(can.elicitation.is_some_and(|elicitation| elicitation.supports_form()));
    assert_eq!(request.client_info.map(|info| info.name), Some("agency".to_owned()));
}

#[test]
fn the_router_reads_capabilities_and_the_reasons_of_refusals() {
    let story = Story::greeted();
    let greeted = story.router.greeting().expect("an answer").expect("a good one");
    assert_eq!(greeted.capabilities.name.as_deref(), Some("X"));
    assert!(
        greeted.capabilities.load
            && greeted.capabilities.list
            && !greeted.capabilities.resume
            && !greeted.capabilities.close
    );
    for (answer, why) in [
        (json!({ "error": { "code": -1, "message": "no" } }), "no"),
        (json!({ "result": { "protocolVersion": 2 } }), "version 2"),
        (json!({ "result": {} }), "does not say"),
    ] {
        let mut story = Story::default();
        let greeting = story.router.initialize();
        story.router.on_input(&greeting, NOW);
        assert_eq!(story.router.greeting(), None);
        let mut answer = answer;
        answer["id"] = json!("agency:1");
        story.says(&answer);
        let refused = story.router.greeting().expect("an answer").expect_err("a bad one");
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn every_line_goes_to_the_run_of_its_session() {
    let mut story = Story::with(&["a", "b"]);
    assert_eq!(story.says(&update("s-a")), [run("a")]);
    assert_eq!(story.says(&update("s-b")), [run("b")]);
    assert_eq!(story.writes(&request("b:1", "session/prompt", &json!({ "sessionId": "s-b" }))), [run("b")]);
    assert_eq!(
        story.writes(&json!({ "method": "session/cancel", "params": { "sessionId": "s-a" } })),
        [run("a")]
    );
    assert_eq!(story.says(&json!({ "id": "b:1", "result": {} })), [run("b")]);
    let ask = |id: u64, session: &str| json!({ "id": id, "method": "session/request_permission", "params": { "sessionId": session } });
    assert_eq!(story.says(&ask(0, "s-a")), [run("a")]);
    assert_eq!(story.says(&ask(1, "s-b")), [run("b")]);
    assert_eq!(
        story.says(&json!({ "method": "$/cancel_request", "params": { "requestId": 1 } })),
        [run("b")]
    );
    assert_eq!(story.writes(&json!({ "id": 1, "result": {} })), [run("b")]);
    assert_eq!(story.writes(&json!({ "id": 0, "result": {} })), [run("a")]);
    assert_eq!(
        story.says(&json!({ "method": "_auth/status_update", "params": {} })),
        [Recipient::Connection]
    );
}

#[test]
fn two_requests_under_one_id_have_two_answers() {
    let mut story = Story::with(&["a"]);
    let ask = json!({ "id": 77, "method": "session/request_permission", "params": { "sessionId": "s-a" } });
    story.says(&ask);
    story.says(&ask);
    let answer = json!({ "id": 77, "result": {} });
    assert_eq!(story.writes(&answer), [run("a")]);
    assert_eq!(story.writes(&answer), [run("a")]);
    assert_eq!(story.writes(&answer), [Recipient::Connection]);
}

#[test]
fn a_loaded_session_belongs_to_the_run_that_loaded_it() {
    let mut story = Story::with(&["a"]);
    story.writes(&request("b:open1", "session/load", &json!({ "sessionId": "s-a" })));
    assert_eq!(story.says(&update("s-a")), [run("b")]);
    story.writes(&request("b:2", "session/close", &json!({ "sessionId": "s-a" })));
    assert_eq!(story.says(&update("s-a")), [run("b")], "until the agent confirms the close");
    story.says(&json!({ "id": "b:2", "result": {} }));
    assert_eq!(story.says(&update("s-a")), [Recipient::Connection]);
}

#[test]
fn lines_wait_until_an_answer_names_their_session() {
    let mut story = Story::greeted();
    story.writes(&request("a:open1", "session/new", &json!({})));
    story.writes(&request("b:open1", "session/new", &json!({})));
    assert_eq!(story.says(&update("s-b")), []);
    let ask = json!({ "id": 5, "method": "session/request_permission", "params": { "sessionId": "s-c" } });
    assert_eq!(story.says(&ask), []);
    assert_eq!(story.says(&json!({ "id": "a:open1", "result": { "sessionId": "s-a" } })), [run("a")]);
    let named = story.says(&json!({ "id": "b:open1", "result": { "sessionId": "s-b" } }));
    assert_eq!(
        named,
        [run("b"), run("b"), Recipient::Connection],
        "the answer that names the session comes first"
    );
    assert_eq!(story.codes(), [(json!(5), -32602)]);
}

#[test]
fn requests_without_a_run_are_refused_and_answers_without_a_request_are_reported() {
    let mut story = Story::with(&["a"]);
    story.says(&json!({ "id": 1, "method": "fs/read_text_file", "params": { "sessionId": "s-x" } }));
    story.says(&json!({ "id": "two", "method": "dance", "params": {} }));
    assert_eq!(story.codes(), [(json!(1), -32602), (json!("two"), -32601)]);
    let routed = story.router.on_output(&line(&json!({ "id": 99, "result": {} })), NOW);
    assert!(
        matches!(&routed[..], [RoutedLine { to: Recipient::Connection, problem: Some(_), .. }]),
        "{routed:?}"
    );
    story.says(&json!({ "id": 3, "method": "session/request_permission", "params": { "sessionId": "s-a" } }));
    story.router.forget_run("a");
    assert_eq!(story.codes(), [(json!(3), -32602)], "the request of a run that ended");
    story.says(&json!({ "id": 4, "method": "session/request_permission", "params": { "sessionId": "s-a" } }));
    assert_eq!(story.codes(), [(json!(4), -32602)]);
}

#[test]
fn a_question_about_a_request_of_ours_goes_to_the_run_that_made_it() {
    let mut story = Story::with(&["a"]);
    let ask = |request: &str| json!({ "id": 1, "method": "elicitation/create", "params": { "requestId": request } });
    assert_eq!(story.says(&ask("a:3")), [run("a")]);
    assert_eq!(story.says(&ask("agency:2")), [Recipient::Connection]);
    assert_eq!(story.codes(), [(json!(1), -32601)]);
}

#[test]
fn requests_of_the_connection_are_numbered_after_the_journal_and_their_answers_are_kept() {
    let mut story = Story::greeted();
    let (id, list) = story.router.request_sessions(Some("/w"), None);
    assert_eq!(id, "agency:2");
    assert_eq!(story.router.on_input(&list, NOW)[0].to, Recipient::Connection);
    story.says(&json!({ "id": id, "result": { "sessions": [] } }));
    let (login, line) = story.router.authenticate("key");
    story.router.on_input(&line, NOW);
    story.says(&json!({ "id": login, "error": { "code": -1, "message": "no" } }));
    let answers = story.router.take_own_answers();
    assert_eq!(answers.len(), 3, "with the answer to the greeting: {answers:?}");
    assert_eq!(answers[1], ("agency:2".to_owned(), Ok(json!({ "sessions": [] }))));
    assert_eq!(answers[2], ("agency:3".to_owned(), Err("no".to_owned())));
    let mut another = Router::new();
    another.on_input(&list, NOW);
    assert_eq!(another.request_sessions(None, None).0, "agency:3", "numbers continue from the journal");
}

#[test]
fn a_bad_line_is_reported_and_has_no_other_effect() {
    let mut story = Story::with(&["a"]);
    let routed = story.router.on_output(b"oops\n{\"id\":[]}\n\n", NOW);
    let problems: Vec<_> = routed.iter().map(|routed| routed.problem.is_some()).collect();
    assert_eq!(problems, [true, true]);
    assert_eq!(
        Story::with(&["a", "b"]).says(&json!("oops")),
        [run("a"), run("b")],
        "the line may belong to any run"
    );
    let lost = json!({ "method": "session/update", "params": { "update": 5 } });
    assert_eq!(Story::with(&["a", "b"]).says(&lost), [run("a"), run("b")]);
    assert_eq!(Story::greeted().says(&lost), [Recipient::Connection]);
    assert_eq!(story.says(&update("s-a")), [run("a")]);
    let two = [line(&update("s-a")), line(&update("s-a"))].concat();
    let routed: Vec<Vec<u8>> =
        two.chunks(7).flat_map(|part| story.router.on_output(part, NOW)).map(|routed| routed.line).collect();
    assert_eq!(routed.concat(), two, "the lines are unchanged");
}

/// Plays a recording for two runs at the same time: the same lines, with different ids and sessions.
#[test]
fn a_recording_played_for_two_runs_at_once_is_routed_to_each() {
    for name in ["claude-acp", "codex-acp"] {
        let path = format!("{}/../../tests/recordings/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let recording = std::fs::read_to_string(&path).expect(&path);
        let mut story = Story::greeted();
        let mut updates = 0;
        for step in recording.lines() {
            let step: Value = serde_json::from_str(step).expect("JSON");
            for of in ["a", "b"] {
                let Some(message) = of_run(&step["msg"], of, step["dir"] == "->") else { continue };
                let to = match step["dir"].as_str() {
                    Some("<-") => story.says(&message),
                    Some("->") => story.writes(&message),
                    _ => continue,
                };
                if message["method"] == "session/update" {
                    updates += 1;
                    SessionUpdate::deserialize(&message["params"]["update"]).expect("the official type");
                }
                assert_eq!(to, [run(of)], "{name}: {message}");
            }
        }
        assert!(updates > 60, "{name}: {updates}");
        assert_eq!(story.router.owed_lines(), []);
    }
}

/// A recorded message with the ids and the session of a run. `None` if it does not belong to the session.
fn of_run(message: &Value, of: &str, is_ours: bool) -> Option<Value> {
    let mut message = message.as_object().map(|_| message.clone())?;
    let method = message["method"].as_str().map(str::to_owned);
    let is_request = method.is_some();
    let own = |id: &Value| Some(json!(format!("{of}:{}", id.as_u64()?)));
    if matches!(method.as_deref(), Some("initialize" | "session/list" | "_auth/status_update")) {
        return None;
    }
    if !message["id"].is_null() {
        // Our ids are in requests that we write and in answers that the agent sends.
        message["id"] = match is_request == is_ours {
            true => own(&message["id"])?,
            false => json!(format!("agent-{of}-{}", message["id"])),
        };
    }
    let listed = !message["result"]["sessions"].is_null() || !message["result"]["protocolVersion"].is_null();
    for part in ["params", "result"] {
        if let Some(session) = message.get_mut(part).and_then(|part| part.get_mut("sessionId")) {
            *session = json!(format!("{}-{of}", session.as_str()?));
        }
    }
    (!listed && message.is_object() && (is_request || !message["id"].is_null())).then_some(message)
}

#[test]
fn after_a_gap_the_journals_of_runs_say_which_session_and_which_request_is_theirs() {
    let mut story = Story::with(&["old"]);
    story.router.on_output(b"{\"method\":\"session/upd", NOW);
    story.router.on_input(b"{\"id\":\"old:1\",", NOW);
    story.router.on_gap();
    assert!(story.router.is_half_written(), "the last line to the agent may lack its end");
    // The run `new` resumed the session of `old`, and the agent asked it something. The journal has lost both.
    story.router.remember_session("s-old", "new");
    story.router.remember_request(&json!(7), "new");
    assert_eq!(story.says(&update("s-old")), [run("new")], "the half line before the gap is not part of it");
    assert_eq!(story.writes(&json!({ "id": 7, "result": {} })), [run("new")]);
    assert!(!story.router.is_half_written());
}

#[test]
fn a_new_session_is_known_although_a_gap_took_the_request_for_it() {
    let mut story = Story::greeted();
    story.writes(&request("one:open1", "session/new", &json!({ "cwd": "/" })));
    story.router.on_gap();
    assert_eq!(story.says(&json!({ "id": "one:open1", "result": { "sessionId": "s" } })), [run("one")]);
    assert_eq!(story.says(&update("s")), [run("one")]);
}

#[test]
fn a_gap_ends_the_wait_for_the_greeting() {
    let mut story = Story::default();
    let greeting = story.router.initialize();
    story.router.on_input(&greeting, NOW);
    assert!(story.router.awaits_greeting());
    story.router.on_gap();
    assert!(!story.router.awaits_greeting(), "it must be sent again");
}
