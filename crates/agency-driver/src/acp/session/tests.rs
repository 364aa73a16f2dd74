//! Stories of sessions: recordings of real agents, and cases that no recording has.

#![allow(clippy::disallowed_methods, reason = "the tests read recordings")]

use std::time::Duration;

use agency_core::agent_state::{AgentState, Timing};
use agency_core::conversation::{Item, ToolStatus};
use agency_core::exit::ExitCode;
use serde_json::{Value, json};

use super::{AcpRun, AcpTerms, ConnectionNote, McpServer};
use crate::conversation::{
    AgentSetting, AnswerError, ApprovalAnswer, ConversationEvent, ModeChanger, NotReady, OurRequest,
};
use crate::protocol_run::{ConversationRun, ConversationTerms};

const NOW: Duration = Duration::ZERO;

fn terms() -> AcpTerms {
    AcpTerms { run: "r1".into(), cwd: "/w".into(), ..AcpTerms::default() }
}

fn line(message: &Value) -> Vec<u8> {
    super::rpc::line(message)
}

/// A session with an agent that the test plays.
struct Story {
    run: AcpRun,
    events: Vec<ConversationEvent>,
}

impl Story {
    fn begun(terms: AcpTerms) -> Story {
        Story { run: AcpRun::began(Timing::default(), NOW, terms), events: Vec::new() }
    }

    /// Connects to an agent with these capabilities.
    fn connected(mut self, can: &Value) -> Story {
        self.note(ConnectionNote::Connected);
        self.says(&json!({ "id": "agency:1", "result": { "protocolVersion": 1, "agentCapabilities": can,
            "agentInfo": { "name": "tester", "version": "1" },
            "authMethods": [{ "id": "key", "name": "A key" }] } }));
        self
    }

    /// A story with an open session.
    fn opened(terms: AcpTerms) -> Story {
        let mut story = Story::begun(terms).connected(&json!({ "sessionCapabilities": { "close": {} } }));
        let asked = story.pay();
        story.answers(&asked[0], &json!({ "sessionId": "s1" }));
        story
    }

    fn note(&mut self, note: ConnectionNote) {
        let events = self.run.on_connection(&note, NOW);
        self.events.extend(events);
    }

    fn says(&mut self, message: &Value) {
        let events = self.run.on_output(&line(message), NOW);
        self.events.extend(events);
    }

    fn updates(&mut self, update: &Value) {
        self.says(&json!({ "method": "session/update", "params": { "sessionId": "s1", "update": update } }));
    }

    fn writes(&mut self, line: &[u8]) -> Value {
        let events = self.run.on_input(line, NOW);
        self.events.extend(events);
        serde_json::from_slice(line).expect("JSON")
    }

    /// Writes every owed line.
    fn pay(&mut self) -> Vec<Value> {
        let owed = self.run.owed_lines();
        let written = owed.iter().map(|(_, line)| self.writes(line)).collect();
        assert_eq!(self.run.owed_lines(), [], "a written line is not owed again");
        written
    }

    fn answers(&mut self, request: &Value, result: &Value) {
        self.says(&json!({ "id": request["id"], "result": result }));
    }

    fn refuses(&mut self, request: &Value, code: i64, words: &str) {
        self.says(&json!({ "id": request["id"], "error": { "code": code, "message": words } }));
    }

    fn prompts(&mut self, text: &str) -> Value {
        let line = self.run.prompt(text).expect("it takes one");
        self.writes(&line)
    }

    fn asks(&mut self, id: &Value, method: &str, params: &Value) -> String {
        self.says(&json!({ "id": id, "method": method, "params": params }));
        self.run.open_requests().last().expect("it is open").to_owned()
    }

    fn state(&self) -> String {
        state(&self.run)
    }

    fn items(&self) -> Vec<Item> {
        self.run.core().conversation().entries().iter().map(|entry| entry.item.clone()).collect()
    }

    fn errors(&self) -> Vec<&str> {
        fn message(event: &ConversationEvent) -> Option<&str> {
            match event {
                ConversationEvent::Error { message, .. } => Some(message),
                _ => None,
            }
        }
        self.events.iter().filter_map(message).collect()
    }
}

fn state(run: &AcpRun) -> String {
    match run.core().state() {
        AgentState::NeedsInput { why, .. } => why.to_string(),
        AgentState::Running => "running".to_owned(),
        other => format!("{other:?}"),
    }
}

fn permission(options: &[(&str, &str)]) -> Value {
    let options: Vec<Value> =
        options.iter().map(|(id, kind)| json!({ "optionId": id, "name": id, "kind": kind })).collect();
    json!({ "sessionId": "s1", "options": options,
        "toolCall": { "toolCallId": "t1", "title": "ls", "name": "Bash", "kind": "execute",
            "rawInput": { "command": "ls" } } })
}

/// Plays a recording as the session's journal would have it. Returns the run, all its states and all its events.
fn play(name: &str) -> (AcpRun, Vec<String>, Vec<ConversationEvent>) {
    let path = format!("{}/../../tests/recordings/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let recording = std::fs::read_to_string(&path).expect(&path);
    let mut run = AcpRun::began(Timing::default(), NOW, terms());
    let (mut states, mut events) = (Vec::new(), run.on_connection(&ConnectionNote::Connected, NOW));
    for step in recording.lines() {
        let step: Value = serde_json::from_str(step).expect("a recording");
        let at = Duration::from_secs_f64(step["t"].as_f64().expect("a time"));
        let message = &step["msg"];
        let is_session = message["method"] != "initialize" && message["method"] != "session/list";
        match step["dir"].as_str() {
            Some("<-") => events.extend(run.on_output(&line(message), at)),
            Some("->") if is_session => events.extend(run.on_input(&line(message), at)),
            _ => continue,
        }
        if states.last() != Some(&state(&run)) {
            states.push(state(&run));
        }
    }
    (run, states, events)
}

#[test]
fn a_recorded_turn_with_permissions_is_followed_from_prompt_to_end() {
    let (run, states, events) = play("claude-acp");
    let expected = [
        "running",
        "prompt",
        "running",
        "permission",
        "running",
        "permission",
        "running",
        "finished",
        "running",
        "permission",
        "running",
        "finished",
        "running",
        "finished",
    ];
    assert_eq!(states[..14], expected, "{states:?}");
    assert_eq!(run.core().session_id(), Some("64782cd6-9e4f-4bb9-8141-9ec86fc2d852"));
    let usage = run.core().usage();
    assert!(usage.cost_usd.is_some_and(|cost| cost > 0.004) && usage.input_tokens > 300, "{usage:?}");
    let said = |text: &str| events.contains(&ConversationEvent::Output { text: text.into() });
    assert!(said("I will write a file.") && said("All finished.") && said("ok then"), "{events:?}");
    let results: Vec<bool> = events
        .iter()
        .filter_map(|event| match event {
            ConversationEvent::ToolResult { success, .. } => Some(*success),
            _ => None,
        })
        .collect();
    assert_eq!(results, [true, true, false]);
    let ends: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            ConversationEvent::TurnEnd(end) => end.reason.as_deref(),
            _ => None,
        })
        .collect();
    assert_eq!(ends, ["end_turn", "end_turn", "cancelled"]);
    assert_eq!(run.core().conversation().open_approvals().count(), 0);
}

#[test]
fn the_history_of_a_loaded_session_is_not_shown_twice() {
    for name in ["claude-acp", "codex-acp"] {
        let (run, ..) = play(name);
        let entries = run.core().conversation().entries();
        let prompts = entries.iter().filter(|entry| matches!(entry.item, Item::User { .. })).count();
        assert_eq!(prompts, 3, "{name}");
    }
}

#[test]
fn a_tool_shows_its_change_its_output_and_its_name() {
    let (run, _, events) = play("claude-acp");
    let calls: Vec<_> = run
        .core()
        .conversation()
        .entries()
        .iter()
        .filter_map(|entry| match &entry.item {
            Item::ToolCall(call) => Some(call),
            _ => None,
        })
        .collect();
    assert_eq!(calls[0].name, "Write");
    assert!(calls[0].output.as_ref().is_some_and(|output| output.contains("\n+hello\n")), "{:?}", calls[0]);
    assert!(calls.iter().any(|call| call.status == ToolStatus::Failed));
    let uses = events.iter().filter(|event| matches!(event, ConversationEvent::ToolUse { .. })).count();
    assert_eq!(uses, calls.len());
    let (run, ..) = play("codex-acp");
    let shows = |entry: &agency_core::conversation::Entry| matches!(&entry.item, Item::ToolCall(call) if call.output.as_deref().is_some_and(|out| out.ends_with("sandboxed")));
    assert!(run.core().conversation().entries().iter().any(shows), "the output of the agent's own terminal");
}

#[test]
fn a_session_is_begun_and_a_turn_goes_from_prompt_to_end() {
    let mut story = Story::begun(terms());
    assert_eq!(story.state(), "running");
    assert_eq!(story.run.prompt("early"), Err(NotReady::NoSession));
    story = story.connected(&json!({}));
    let asked = story.pay();
    assert_eq!(asked[0]["method"], "session/new");
    assert_eq!(asked[0]["params"], json!({ "cwd": "/w", "mcpServers": [] }));
    story.answers(&asked[0], &json!({ "sessionId": "s1" }));
    assert_eq!((story.state().as_str(), story.run.core().session_id()), ("prompt", Some("s1")));
    let prompt = story.prompts("hello");
    assert_eq!(prompt["id"], "r1:1");
    assert_eq!(story.state(), "running");
    assert_eq!(story.run.prompt("more"), Err(NotReady::Busy));
    for part in ["He", "llo"] {
        story.updates(
            &json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": part } }),
        );
    }
    let usage = json!({ "inputTokens": 5, "outputTokens": 2, "totalTokens": 7, "cachedReadTokens": 1 });
    story.answers(&prompt, &json!({ "stopReason": "end_turn", "usage": usage }));
    assert_eq!(story.state(), "finished");
    assert_eq!(story.events[0], ConversationEvent::Output { text: "Hello".into() });
    let Some(ConversationEvent::TurnEnd(end)) = story.events.last() else { panic!("{:?}", story.events) };
    assert_eq!((end.text.as_deref(), end.usage.input_tokens, end.failed), (Some("Hello"), 5, false));
    assert_eq!(story.prompts("again")["id"], "r1:2");
}

#[test]
fn an_unwritten_prompt_does_not_block_the_next_one() {
    let mut story = Story::opened(terms());
    story.run.prompt("one").expect("room");
    assert_eq!(story.run.prompt("two"), Err(NotReady::Busy), "the first is on its way");
    story.run.drop_unwritten_prompt();
    assert_eq!(story.prompts("two")["id"], "r1:2");
}

#[test]
fn two_permissions_under_one_id_are_two_questions_and_the_answered_one_closes() {
    let mut story = Story::opened(terms());
    story.prompts("do it");
    let first = story.asks(&json!(7), "session/request_permission", &permission(&[("a", "allow_once")]));
    let second = story.asks(&json!(7), "session/request_permission", &permission(&[("b", "allow_once")]));
    assert_ne!(first, second);
    story.run.on_decision(&second, "ann", None);
    let line = story.run.answer(&second, &ApprovalAnswer::Allow).expect("open");
    let answer: Value = serde_json::from_slice(&line).expect("JSON");
    assert_eq!(answer["result"]["outcome"]["optionId"], "b", "the option of the question that was answered");
    story.writes(&line);
    assert_eq!(story.run.answer(&second, &ApprovalAnswer::Allow), Err(AnswerError::NotOpen));
    assert!(story.run.answer(&first, &ApprovalAnswer::Allow).is_ok(), "the other one still waits");
}

#[test]
fn permissions_are_answered_by_the_kind_of_their_options() {
    let mut story = Story::opened(terms());
    let prompt = story.prompts("do it");
    let options =
        [("x", "reject_once"), ("proceed", "allow_once"), ("second", "allow_once"), ("odd", "dance")];
    let id = story.asks(&json!(0), "session/request_permission", &permission(&options));
    assert_eq!(story.state(), "permission");
    let option = |story: &Story, verdict: &ApprovalAnswer| {
        let line = story.run.answer(&id, verdict)?;
        let answer: Value = serde_json::from_slice(&line).expect("JSON");
        assert_eq!(answer["id"], json!(0));
        Ok(answer["result"]["outcome"]["optionId"].clone())
    };
    assert_eq!(option(&story, &ApprovalAnswer::Allow), Ok(json!("proceed")));
    assert_eq!(option(&story, &ApprovalAnswer::Deny { message: String::new() }), Ok(json!("x")));
    assert_eq!(option(&story, &ApprovalAnswer::AllowAlways), Err(AnswerError::NothingToRemember));
    assert_eq!(option(&story, &ApprovalAnswer::Choose { id: "second".into() }), Ok(json!("second")));
    // Agency does not know its effect, so only a user may choose it.
    assert_eq!(option(&story, &ApprovalAnswer::Choose { id: "ODD".into() }), Ok(json!("odd")));
    assert_eq!(option(&story, &ApprovalAnswer::Choose { id: "even".into() }), Err(AnswerError::NotOffered));
    story.run.on_decision(&id, "ann", Some("because"));
    let yes = story.run.answer(&id, &ApprovalAnswer::Allow).expect("open");
    story.writes(&yes);
    let Some(ConversationEvent::ApprovalDecided { outcome, .. }) = story.events.last() else {
        panic!("{:?}", story.events)
    };
    assert_eq!((outcome.allowed, outcome.by.as_deref()), (true, Some("ann")));
    assert_eq!(story.run.answer(&id, &ApprovalAnswer::Allow), Err(AnswerError::NotOpen));
    assert_eq!(story.state(), "running");
    story.answers(&prompt, &json!({ "stopReason": "something_new" }));
    assert_eq!(story.state(), "finished", "an unknown reason ends the turn too");
}

#[test]
fn requests_of_a_cancelled_turn_are_answered_as_cancelled_and_later_ones_too() {
    let mut story = Story::opened(terms());
    let prompt = story.prompts("do it");
    story.asks(&json!(0), "session/request_permission", &permission(&[("yes", "allow_once")]));
    story.asks(&json!("q"), "elicitation/create", &json!({ "sessionId": "s1", "message": "Why?" }));
    let cancel = story.run.interrupt().expect("a turn");
    assert_eq!(story.writes(&cancel)["params"], json!({ "sessionId": "s1" }));
    assert_eq!(story.run.open_requests().count(), 0);
    let paid = story.pay();
    assert_eq!(paid[0]["result"], json!({ "outcome": { "outcome": "cancelled" } }));
    assert_eq!((&paid[1]["id"], &paid[1]["result"]), (&json!("q"), &json!({ "action": "cancel" })));
    story.says(&json!({ "id": 7, "method": "session/request_permission", "params": permission(&[]) }));
    assert_eq!(story.pay()[0]["id"], json!(7), "a request after the cancel");
    assert_eq!(story.state(), "running", "until the agent ends the turn");
    story.answers(&prompt, &json!({ "stopReason": "cancelled" }));
    assert_eq!((story.state().as_str(), story.run.interrupt()), ("finished", None));
    assert_eq!(story.run.core().conversation().open_approvals().count(), 0);
}

#[test]
fn a_question_is_a_form_and_an_agent_can_withdraw_a_request() {
    let mut story = Story::opened(terms());
    story.prompts("do it");
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let params =
        json!({ "sessionId": "s1", "mode": "form", "message": "How many?", "requestedSchema": schema });
    let id = story.asks(&json!(3), "elicitation/create", &params);
    assert_eq!(story.state(), "question");
    assert_eq!(story.run.answer(&id, &ApprovalAnswer::Allow), Err(AnswerError::NeedsAnswers));
    let answers = [("How many?".to_owned(), "7".to_owned())].into();
    let line = story.run.answer(&id, &ApprovalAnswer::Answer { answers }).expect("it fits");
    assert_eq!(story.writes(&line)["result"], json!({ "action": "accept", "content": { "n": 7 } }));
    assert!(
        matches!(story.events.last(), Some(ConversationEvent::ApprovalDecided { outcome, .. }) if outcome.allowed)
    );
    story.asks(&json!(4), "elicitation/create", &params);
    story.says(&json!({ "method": "$/cancel_request", "params": { "requestId": 4 } }));
    assert_eq!(story.state(), "running");
    assert_eq!(story.pay()[0]["error"]["code"], json!(-32800));
}

#[test]
fn unknown_messages_are_refused_or_shown_and_never_fatal() {
    let mut story = Story::opened(terms());
    story.prompts("do it");
    story.says(
        &json!({ "id": 1, "method": "fs/read_text_file", "params": { "sessionId": "s1", "path": "/x" } }),
    );
    story.says(&json!({ "id": 2, "method": "craft/drain", "params": { "sessionId": "s1" } }));
    let codes: Vec<Value> = story.pay().iter().map(|paid| paid["error"]["code"].clone()).collect();
    assert_eq!(codes, [json!(-32601), json!(-32601)]);
    story.updates(&json!({ "sessionUpdate": "dance", "steps": 3 }));
    story.updates(&json!({ "sessionUpdate": "plan", "entries": 7 }));
    story.updates(&json!(null));
    assert!(story.events.contains(&ConversationEvent::Other { kind: "dance".into() }));
    assert!(
        story.items().iter().any(|item| matches!(item, Item::Notice { text } if text.starts_with("dance: ")))
    );
    let events = story.run.on_output(b"not json\n\n[1]\n", NOW);
    assert!(
        matches!(&events[..], [ConversationEvent::Error { .. }, ConversationEvent::Error { .. }]),
        "{events:?}"
    );
    assert_eq!(story.state(), "running");
}

#[test]
fn a_plan_is_one_entry_of_a_turn_and_thoughts_and_notices_are_separate_entries() {
    let mut story = Story::opened(terms());
    let prompt = story.prompts("do it");
    let plan = |status: &str| json!({ "sessionUpdate": "plan", "entries": [{ "content": "first", "priority": "high", "status": status }] });
    story.updates(&plan("in_progress"));
    story.updates(
        &json!({ "sessionUpdate": "agent_thought_chunk", "content": { "type": "text", "text": "hm" } }),
    );
    story.updates(&plan("completed"));
    story.updates(
        &json!({ "sessionUpdate": "notice", "severity": "warning", "title": "slow", "description": "net" }),
    );
    story.updates(
        &json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": "in_progress" }),
    );
    story.updates(
        &json!({ "sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed" }),
    );
    story.answers(&prompt, &json!({ "stopReason": "end_turn" }));
    let items = story.items();
    let Item::Plan { steps } = &items[1] else { panic!("{items:?}") };
    assert_eq!(steps[0].status, ToolStatus::Completed);
    assert_eq!(items[2], Item::Thinking { text: "hm".into() });
    assert_eq!(items[3], Item::Notice { text: "slow: net".into() });
    assert_eq!(items.len(), 6);
    story.prompts("more");
    story.updates(&plan("pending"));
    assert!(matches!(story.items().last(), Some(Item::Plan { .. })), "another turn, another plan");
}

#[test]
fn the_wanted_mode_is_set_before_the_first_message() {
    let modes = json!({ "sessionId": "s1", "modes": { "currentModeId": "auto",
        "availableModes": [{ "id": "auto", "name": "Auto" }, { "id": "ask", "name": "Ask first" }] },
        "models": { "currentModelId": "m1", "availableModels": [{ "modelId": "m2", "name": "Two" }] } });
    let wishes = AcpTerms { mode: Some("ask first".into()), model: Some("m2".into()), ..terms() };
    let mut story = Story::begun(wishes).connected(&json!({}));
    let asked = story.pay();
    story.answers(&asked[0], &modes);
    assert_eq!(story.run.prompt("now?"), Err(NotReady::NoSession));
    let set = story.pay();
    assert_eq!((&set[0]["method"], &set[0]["params"]["modeId"]), (&json!("session/set_mode"), &json!("ask")));
    assert_eq!(
        (&set[1]["method"], &set[1]["params"]["modelId"]),
        (&json!("session/set_model"), &json!("m2"))
    );
    story.answers(&set[0], &json!({}));
    assert_eq!(story.state(), "running");
    story.answers(&set[1], &json!({}));
    assert_eq!(
        (story.state().as_str(), story.run.offers(AgentSetting::Mode).current.as_deref()),
        ("prompt", Some("ask"))
    );
    assert_eq!(story.run.offers(AgentSetting::Model).current.as_deref(), Some("m2"));
    story.updates(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": "auto" }));
    let message =
        "the agent changed its mode from `ask` to `auto` by itself; it may approve its own actions now";
    assert_eq!(story.items(), [Item::Error { message: message.into(), cause: None }]);
    assert_eq!(story.run.mode_warning(), Some(message));
}

#[test]
fn a_mode_that_the_agent_lacks_blocks_messages_until_the_user_chooses_another() {
    let option = json!({ "id": "mode", "name": "Mode", "category": "mode", "type": "select",
        "currentValue": "auto", "options": [{ "value": "auto", "name": "Auto" }, { "value": "ask", "name": "Ask" }] });
    let wishes = AcpTerms { mode: Some("careful".into()), ..terms() };
    let mut story = Story::begun(wishes).connected(&json!({}));
    let asked = story.pay();
    story.answers(&asked[0], &json!({ "sessionId": "s1", "configOptions": [option, { "id": 7 }] }));
    assert_eq!(story.errors(), ["the agent has no mode called careful; it has auto, ask"]);
    assert_eq!(story.state(), "error");
    assert!(matches!(story.run.prompt("now?"), Err(NotReady::Refused { .. })));
    assert!(matches!(story.run.set(AgentSetting::Mode, "bold"), Err(NotReady::Refused { .. })));
    let OurRequest { line, .. } = story.run.set(AgentSetting::Mode, "ask").expect("there is one");
    let set = story.writes(&line);
    assert_eq!(set["params"], json!({ "configId": "mode", "value": "ask", "sessionId": "s1" }));
    story.answers(&set, &json!({ "configOptions": [] }));
    assert_eq!(story.state(), "prompt");
}

#[test]
fn a_lost_connection_loses_the_prompt_in_flight_and_the_session_comes_back() {
    let mut story = Story::begun(terms()).connected(&json!({ "loadSession": true }));
    let asked = story.pay();
    story.answers(&asked[0], &json!({ "sessionId": "s1" }));
    story.prompts("do it");
    story.updates(
        &json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "ls", "status": "in_progress" }),
    );
    story.asks(&json!(0), "session/request_permission", &permission(&[("yes", "allow_once")]));
    story.note(ConnectionNote::Lost { cause: Some("killed".into()) });
    assert_eq!(
        story.errors(),
        ["the last message was lost with the connection; Agency does not send it again"]
    );
    assert_eq!((story.run.open_requests().count(), story.run.owed_lines()), (0, Vec::new()));
    assert_eq!(story.state(), "running", "the daemon brings the connection back");
    assert!(
        story
            .items()
            .iter()
            .any(|item| matches!(item, Item::ToolCall(call) if call.status == ToolStatus::Failed))
    );
    story = story.connected(&json!({ "loadSession": true, "sessionCapabilities": { "resume": {} } }));
    let resume = story.pay();
    assert_eq!(
        (&resume[0]["method"], &resume[0]["params"]["sessionId"]),
        (&json!("session/resume"), &json!("s1"))
    );
    assert_ne!(resume[0]["id"], asked[0]["id"]);
    story.refuses(&resume[0], -32603, "no");
    let load = story.pay();
    assert_eq!(load[0]["method"], "session/load");
    story.updates(
        &json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": "do it" } }),
    );
    story.answers(&load[0], &json!({}));
    assert_eq!(story.state(), "error", "the lost turn decides the state");
    assert_eq!(story.items().iter().filter(|item| matches!(item, Item::User { .. })).count(), 1);
    // The new process begins its ids from 0 again.
    story.prompts("once more");
    let id = story.asks(&json!(0), "session/request_permission", &permission(&[("yes", "allow_once")]));
    assert!(story.run.answer(&id, &ApprovalAnswer::Allow).is_ok());
    assert_eq!(story.run.core().conversation().open_approvals().count(), 1);
}

#[test]
fn an_agent_that_lost_the_session_begins_a_new_one_and_reports_it() {
    let known = AcpTerms { session_id: Some("old".into()), ..terms() };
    let mut story = Story::begun(known.clone()).connected(&json!({}));
    assert_eq!(story.errors().len(), 1, "{:?}", story.errors());
    let asked = story.pay();
    assert_eq!(asked[0]["method"], "session/new");
    story.answers(&asked[0], &json!({ "sessionId": "new" }));
    assert_eq!((story.run.core().session_id(), story.state().as_str()), (Some("new"), "prompt"));
    let mut story = Story::begun(known).connected(&json!({ "loadSession": true }));
    let load = story.pay();
    story.refuses(&load[0], -32002, "No previous sessions found");
    assert_eq!(story.pay()[0]["method"], "session/new");
}

#[test]
fn an_unknown_conversation_is_loaded_with_its_history_and_announces_no_events() {
    let known = AcpTerms { session_id: Some("old".into()), ..terms() };
    let mut story = Story::begun(known).connected(&json!({ "loadSession": true }));
    let load = story.pay();
    let chunk = |kind: &str, text: &str| json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } });
    story.updates(&chunk("user_message_chunk", "hi"));
    story.updates(&chunk("agent_message_chunk", "hello"));
    story.updates(
        &json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "ls", "status": "completed" }),
    );
    story.updates(&json!({ "sessionUpdate": "usage_update", "used": 1, "size": 9,
        "cost": { "amount": 0.5, "currency": "USD" } }));
    story.answers(&load[0], &json!({}));
    assert_eq!(story.events, []);
    assert_eq!(story.items().len(), 3);
    assert_eq!((story.state().as_str(), story.run.core().usage().cost_usd), ("prompt", Some(0.5)));
}

#[test]
fn an_agent_that_wants_a_login_asks_the_user() {
    let mut story = Story::begun(terms()).connected(&json!({}));
    let asked = story.pay();
    story.refuses(&asked[0], -32000, "Authentication required");
    assert_eq!(story.state(), "question");
    assert!(matches!(story.run.prompt("hi"), Err(NotReady::Refused { .. })));
    let id = story.run.open_requests().next().expect("a question").to_owned();
    let line = story.run.answer(&id, &ApprovalAnswer::Allow).expect("a way in");
    let login = story.writes(&line);
    assert_eq!((&login["method"], &login["params"]), (&json!("authenticate"), &json!({ "methodId": "key" })));
    story.answers(&login, &json!({}));
    let again = story.pay();
    assert_eq!(again[0]["method"], "session/new");
    assert_ne!(again[0]["id"], asked[0]["id"]);
    story.answers(&again[0], &json!({ "sessionId": "s1" }));
    assert_eq!(story.state(), "prompt");
}

#[test]
fn an_agent_that_opens_no_session_gives_a_reason() {
    let mut story = Story::begun(terms()).connected(&json!({}));
    let asked = story.pay();
    story.refuses(&asked[0], -32603, "the disk is full");
    assert_eq!((story.state().as_str(), story.errors()), ("error", vec!["the agent begins no session"]));
    assert_eq!(story.run.owed_lines(), []);
}

#[test]
fn stopping_cancels_the_turn_and_closes_the_session() {
    let mut story = Story::opened(terms());
    story.prompts("do it");
    let lines = story.run.stop();
    let methods: Vec<Value> = lines.iter().map(|line| story.writes(line)["method"].clone()).collect();
    assert_eq!(methods, [json!("session/cancel"), json!("session/close")]);
    assert!(matches!(story.run.prompt("more"), Err(NotReady::Busy | NotReady::Refused { .. })));
    story.run.on_exit(ExitCode::Code(0), NOW);
    assert!(matches!(story.run.core().state(), AgentState::Exited { .. }));
    assert_eq!(Story::begun(terms()).run.stop(), Vec::<Vec<u8>>::new(), "nothing to close");
}

#[test]
fn a_turn_that_the_agent_refuses_has_failed() {
    let mut story = Story::opened(terms());
    let prompt = story.prompts("do it");
    story.refuses(&prompt, -32603, "Internal error");
    assert_eq!(story.state(), "error");
    let Some(ConversationEvent::TurnEnd(end)) = story.events.last() else { panic!("{:?}", story.events) };
    assert_eq!((end.failed, end.text.as_deref()), (true, Some("Internal error")));
    let prompt = story.prompts("do it");
    story.answers(&prompt, &json!({ "stopReason": "refusal" }));
    assert_eq!(story.state(), "error");
}

#[test]
fn the_next_run_keeps_the_conversation_and_its_usage() {
    let (run, ..) = play("claude-acp");
    let (entries, usage) = (run.core().conversation().entries().len(), run.core().usage());
    let terms = ConversationTerms::Acp(AcpTerms { session_id: Some("s".into()), ..terms() });
    let next = ConversationRun::Acp(run).continued(
        terms,
        Timing::default(),
        Duration::from_secs(60),
        Duration::ZERO,
    );
    assert_eq!(next.conversation().entries().len(), entries + 1);
    assert_eq!((next.core().usage(), next.session_id()), (usage, Some("s")));
    let next =
        next.continued(ConversationTerms::Stream, Timing::default(), Duration::from_secs(90), Duration::ZERO);
    assert_eq!(next.session_id(), Some("s"), "over another protocol");
}

/// Checks that the official types can read the parameters or the result of a line of ours.
fn is<T: serde::de::DeserializeOwned>(written: &Value) {
    let part = if written["method"].is_null() { &written["result"] } else { &written["params"] };
    if let Err(cause) = T::deserialize(part) {
        panic!("{written}: {cause}");
    }
}

#[test]
fn the_official_types_can_read_our_lines() {
    use agent_client_protocol_schema::v1 as official;
    let option = json!({ "id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": "a",
        "options": [{ "value": "a", "name": "A" }, { "value": "b", "name": "B" }] });
    let mut story = Story::begun(AcpTerms { mode: Some("b".into()), ..terms() })
        .connected(&json!({ "loadSession": true, "sessionCapabilities": { "resume": {}, "close": {} } }));
    let new = story.pay();
    is::<official::NewSessionRequest>(&new[0]);
    story.refuses(&new[0], -32000, "log in");
    let id = story.run.open_requests().next().expect("a question").to_owned();
    let line = story.run.answer(&id, &ApprovalAnswer::Allow).expect("a way in");
    let login = story.writes(&line);
    is::<official::AuthenticateRequest>(&login);
    story.answers(&login, &json!({}));
    let new = story.pay();
    story.answers(&new[0], &json!({ "sessionId": "s1", "configOptions": [option] }));
    let set = story.pay();
    is::<official::SetSessionConfigOptionRequest>(&set[0]);
    story.answers(&set[0], &json!({ "configOptions": [option] }));
    is::<official::PromptRequest>(&story.prompts("hi"));
    for (verdict, kind) in
        [(ApprovalAnswer::Allow, "allow_once"), (ApprovalAnswer::AllowAlways, "allow_always")]
    {
        let id = story.asks(&json!(kind), "session/request_permission", &permission(&[("x", kind)]));
        let line = story.run.answer(&id, &verdict).expect("open");
        is::<official::RequestPermissionResponse>(&story.writes(&line));
    }
    for verdict in [ApprovalAnswer::Allow, ApprovalAnswer::Deny { message: "no".into() }] {
        let id = story.asks(&json!(1), "elicitation/create", &json!({ "sessionId": "s1", "message": "?" }));
        let line = story.run.answer(&id, &verdict).expect("open");
        is::<official::CreateElicitationResponse>(&story.writes(&line));
    }
    story.asks(&json!(2), "elicitation/create", &json!({ "sessionId": "s1", "message": "?" }));
    story.asks(&json!(3), "session/request_permission", &permission(&[("x", "allow_once")]));
    let stop = story.run.stop();
    is::<official::CancelNotification>(&story.writes(&stop[0]));
    let paid = story.pay();
    is::<official::CreateElicitationResponse>(&paid[0]);
    is::<official::RequestPermissionResponse>(&paid[1]);
    is::<official::CloseSessionRequest>(&story.writes(&stop[1]));
    story = story.connected(&json!({ "loadSession": true, "sessionCapabilities": { "resume": {} } }));
    let resume = story.pay();
    is::<official::ResumeSessionRequest>(&resume[0]);
    story.refuses(&resume[0], -1, "no");
    is::<official::LoadSessionRequest>(&story.pay()[0]);
}

#[test]
fn an_update_of_a_known_kind_that_cannot_be_read_is_shown_as_it_came() {
    for update in [
        json!({ "sessionUpdate": "agent_message_chunk", "content": 5 }),
        json!({ "sessionUpdate": "agent_message_chunk" }),
        json!({ "sessionUpdate": "tool_call", "title": "Look" }),
        json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Look", "content": "here" }),
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "content": [{ "type": 5 }] }),
        json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": 5 }),
        json!({ "sessionUpdate": "plan", "entries": 5 }),
        json!({ "sessionUpdate": "plan", "entries": [{ "content": 5 }] }),
        json!(5),
    ] {
        let mut story = Story::opened(terms());
        story.updates(&update);
        let is_kept = |item: &Item| matches!(item, Item::Notice { .. });
        assert!(story.items().iter().any(is_kept), "{update} {:?}", story.items());
    }
    let mut story = Story::opened(terms());
    story.says(&json!({ "method": "session/update", "params": "lost" }));
    story.says(&json!({ "method": "_dance", "params": { "sessionId": "s1" } }));
    story.says(&json!({ "id": 1, "method": "_sing", "params": { "sessionId": "s1" } }));
    assert_eq!(story.items().len(), 3, "{:?}", story.items());
}

#[test]
fn a_call_that_can_be_read_is_shown_once() {
    let mut story = Story::opened(terms());
    let content = json!([{ "type": "content", "content": { "type": "text", "text": "done" } }]);
    story
        .updates(&json!({ "sessionUpdate": "tool_call", "toolCallId": "t", "title": "Look", "kind": "dance",
        "status": "pending", "content": [], "locations": [{ "path": "/w/a" }] }));
    story.updates(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed",
        "title": null, "content": content }));
    assert_eq!(story.items().len(), 1, "{:?}", story.items());
}

#[test]
fn a_cost_that_begins_again_with_another_process_is_added() {
    let mut story = Story::opened(terms());
    let costs = |amount: f64| {
        json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2,
            "cost": { "amount": amount, "currency": "USD" } })
    };
    story.updates(&costs(2.0));
    story.updates(&costs(0.5));
    assert_eq!(story.run.core().usage().cost_usd, Some(2.5));
}

#[test]
fn a_session_is_opened_with_its_mcp_servers() {
    let env = [("AGENCY_RUN_ID".to_owned(), "r1".to_owned())].into();
    let server = McpServer { name: "agency".into(), command: "/a".into(), args: vec!["mcp".into()], env };
    let expected = json!([{ "name": "agency", "command": "/a", "args": ["mcp"],
        "env": [{ "name": "AGENCY_RUN_ID", "value": "r1" }] }]);
    for session_id in [None, Some("s1".to_owned())] {
        let terms = AcpTerms { servers: vec![server.clone()], session_id, ..terms() };
        let mut story = Story::begun(terms).connected(&json!({ "loadSession": true }));
        let asked = story.pay();
        assert_eq!(asked[0]["params"]["mcpServers"], expected, "{asked:?}");
        let official =
            serde_json::from_value::<Vec<agent_client_protocol_schema::v1::McpServer>>(expected.clone());
        assert!(official.is_ok(), "{official:?}");
    }
}

#[test]
fn the_users_choice_is_restored_in_the_next_session_and_in_the_next_run() {
    let modes = json!({ "modes": { "currentModeId": "ask", "availableModes": [
        { "id": "ask", "name": "Ask" }, { "id": "auto", "name": "Auto" }, { "id": "plan", "name": "Plan" }] } });
    let terms = AcpTerms { session_id: Some("s1".into()), ..terms() };
    let mut story = Story::begun(terms.clone()).connected(&json!({ "loadSession": true }));
    let asked = story.pay();
    story.answers(&asked[0], &modes);
    let OurRequest { line, .. } = story.run.set(AgentSetting::Mode, "auto").expect("it is offered");
    let asked = story.writes(&line);
    story.answers(&asked, &json!({}));

    story.note(ConnectionNote::Lost { cause: None });
    let mut story = story.connected(&json!({ "loadSession": true }));
    let asked = story.pay();
    story.answers(&asked[0], &modes);
    let asked = story.pay();
    assert_eq!(asked[0]["params"]["modeId"], "auto", "{asked:?}");
    story.answers(&asked[0], &json!({}));
    story.updates(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan" }));

    let run =
        ConversationRun::Acp(story.run).continued(ConversationTerms::Acp(terms), Timing::default(), NOW, NOW);
    let ConversationRun::Acp(run) = run else { panic!("another driver") };
    let mut story = Story { run, events: Vec::new() }.connected(&json!({ "loadSession": true }));
    let asked = story.pay();
    story.answers(&asked[0], &modes);
    assert_eq!(story.pay()[0]["params"]["modeId"], "plan", "the mode that the agent chose itself");
}

fn gap() -> ConnectionNote {
    ConnectionNote::Gap { cause: Some("damaged".into()) }
}

#[test]
fn a_turn_whose_answer_may_be_lost_fails_and_the_agent_gets_a_cancel_before_the_next_message() {
    let mut story = Story::opened(terms());
    let lost = story.prompts("do it");
    story.asks(&json!(0), "session/request_permission", &permission(&[("yes", "allow_once")]));
    story.note(gap());
    let message =
        "the agent's answer may be lost; Agency cancels the turn and does not send the message again";
    assert_eq!(story.errors(), [message]);
    assert_eq!((story.state().as_str(), story.run.open_requests().count()), ("error", 0));
    assert!(matches!(story.run.prompt("next"), Err(NotReady::Busy)), "the cancel would end the next turn");
    let written = story.pay();
    assert_eq!(written[0]["result"]["outcome"]["outcome"], "cancelled", "the agent's request gets an answer");
    assert_eq!(
        (&written[1]["method"], &written[1]["params"]["sessionId"]),
        (&json!("session/cancel"), &json!("s1"))
    );
    let next = story.prompts("next");
    story.answers(&lost, &json!({ "stopReason": "cancelled" }));
    assert!(story.run.is_working(), "a late answer to the lost message does not end the next turn");
    story.answers(&next, &json!({ "stopReason": "end_turn" }));
    assert_eq!(story.state(), "finished");
}

#[test]
fn a_session_whose_opening_may_be_lost_is_opened_again() {
    let mut story = Story::begun(terms()).connected(&json!({}));
    let lost = story.pay();
    story.note(gap());
    let opened = story.pay();
    assert_eq!((opened.len(), &opened[0]["method"]), (1, &json!("session/new")));
    assert_ne!(opened[0]["id"], lost[0]["id"]);
    story.answers(&lost[0], &json!({ "sessionId": "s0" }));
    assert!(!story.run.is_ready(), "the answer to the lost request opens nothing");
    story.answers(&opened[0], &json!({ "sessionId": "s1" }));
    assert!(story.run.is_ready());
    assert_eq!(story.run.core().session_id(), Some("s1"));
}

#[test]
fn a_setting_whose_answer_may_be_lost_is_set_again_while_the_session_opens_and_fails_later() {
    let modes = json!({ "sessionId": "s1", "modes": { "currentModeId": "ask", "availableModes": [
        { "id": "ask", "name": "Ask" }, { "id": "auto", "name": "Auto" }] } });
    let wanted = AcpTerms { mode: Some("auto".into()), ..terms() };
    let mut story = Story::begun(wanted).connected(&json!({}));
    let asked = story.pay();
    story.answers(&asked[0], &modes);
    let lost = story.pay();
    story.note(gap());
    let again = story.pay();
    let set = again.iter().find(|line| line["method"] == "session/set_mode").expect("it is set again");
    assert_eq!(set["params"]["modeId"], "auto");
    assert_ne!(set["id"], lost[0]["id"]);
    assert!(!story.run.is_ready());
    story.answers(set, &json!({}));
    assert!(story.run.is_ready());

    let OurRequest { id, line } = story.run.set(AgentSetting::Mode, "ask").expect("it is offered");
    story.writes(&line);
    story.note(gap());
    let is_answered = |event: &ConversationEvent| matches!(event, ConversationEvent::SettingAnswered { request, outcome: Err(_) } if *request == id);
    assert!(story.events.iter().any(is_answered), "the caller does not wait for ever");
}

#[test]
fn a_gap_before_the_connection_changes_nothing() {
    let mut story = Story::begun(terms());
    story.note(gap());
    assert_eq!((story.run.owed_lines(), story.items()), (Vec::new(), Vec::new()));
    let mut story = story.connected(&json!({}));
    let asked = story.pay();
    story.answers(&asked[0], &json!({ "sessionId": "s1" }));
    assert!(story.run.is_ready());
}

fn modes(current: &str, offered: &[&str]) -> Value {
    let offered: Vec<Value> = offered.iter().map(|mode| json!({ "id": mode, "name": mode })).collect();
    json!({ "sessionId": "s1", "modes": { "currentModeId": current, "availableModes": offered } })
}

/// The changes of the mode that were announced: who changed it to what, and whether the user should look.
fn mode_changes(story: &Story) -> Vec<(ModeChanger, String, bool)> {
    let change = |event: &ConversationEvent| match event {
        ConversationEvent::ModeChanged(change) => {
            Some((change.by, change.new.clone().unwrap_or_default(), change.warning.is_some()))
        }
        _ => None,
    };
    story.events.iter().filter_map(change).collect()
}

#[test]
fn an_agent_that_begins_in_a_mode_that_approves_its_actions_is_put_into_one_that_asks() {
    let mut story = Story::begun(terms()).connected(&json!({}));
    let asked = story.pay();
    story.answers(&asked[0], &modes("auto", &["plan", "default", "auto", "yolo"]));
    assert_eq!(story.run.prompt("now?"), Err(NotReady::NoSession), "not in that mode");
    let set = story.pay();
    assert_eq!(set[0]["params"]["modeId"], "default");
    // Some agents report the mode before they answer.
    story.updates(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": "default" }));
    story.answers(&set[0], &json!({}));
    assert_eq!((story.state().as_str(), story.run.mode_warning()), ("prompt", None));
    assert_eq!(mode_changes(&story), [(ModeChanger::Agency, "default".to_owned(), false)]);
    assert_eq!(story.errors(), [""; 0]);
}

#[test]
fn the_user_gets_one_warning_if_no_mode_is_known_to_ask() {
    for (current, offered, part) in [
        ("yolo", &["yolo", "plan"][..], "it offers no mode in which it asks"),
        ("build", &["build", "plan"][..], "Agency does not know whether it asks"),
    ] {
        let mut story = Story::begun(terms()).connected(&json!({}));
        let asked = story.pay();
        story.answers(&asked[0], &modes(current, offered));
        assert_eq!(story.state(), "prompt", "it takes messages");
        assert!(story.run.mode_warning().is_some_and(|words| words.contains(part)), "{:?}", story.items());
        assert_eq!(mode_changes(&story), [(ModeChanger::Agent, current.to_owned(), true)]);
        // The next connection does not repeat it.
        story.note(ConnectionNote::Lost { cause: None });
        let mut story = story.connected(&json!({ "sessionCapabilities": { "resume": {} } }));
        let asked = story.pay();
        story.answers(&asked[0], &modes(current, offered));
        assert_eq!(mode_changes(&story).len(), 1);
        let OurRequest { line, .. } = story.run.set(AgentSetting::Mode, "plan").expect("it is offered");
        let set = story.writes(&line);
        story.answers(&set, &json!({}));
        assert_eq!(story.run.mode_warning(), None, "the user has chosen a mode");
    }
}

#[test]
fn a_mode_that_an_allowed_option_names_is_no_change_by_the_agent_itself() {
    let mut story = Story::begun(terms()).connected(&json!({}));
    let asked = story.pay();
    story.answers(&asked[0], &modes("plan", &["plan", "default", "acceptEdits"]));
    story.prompts("do it");
    let id = story.asks(
        &json!(7),
        "session/request_permission",
        &json!({ "sessionId": "s1", "toolCall": { "toolCallId": "c", "title": "Ready?" },
            "options": [{ "optionId": "acceptEdits", "name": "Yes, and accept edits", "kind": "allow_always" }] }),
    );
    let line = story.run.answer(&id, &ApprovalAnswer::AllowAlways).expect("it is open");
    story.writes(&line);
    story.updates(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": "acceptEdits" }));
    assert_eq!(mode_changes(&story), [(ModeChanger::User, "acceptEdits".to_owned(), false)]);
    assert_eq!(story.run.mode_warning(), None);
    story.updates(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": "default" }));
    assert_eq!(mode_changes(&story)[1], (ModeChanger::Agent, "default".to_owned(), true));
    assert_eq!(story.run.mode_warning(), None, "it asks in that mode");
}

#[test]
fn an_agent_without_modes_works_although_the_built_in_agent_has_a_usual_one() {
    let usual = AcpTerms { mode: Some("default".into()), is_mode_usual: true, ..terms() };
    let mut story = Story::begun(usual.clone()).connected(&json!({}));
    let asked = story.pay();
    story.answers(&asked[0], &json!({ "sessionId": "s1" }));
    assert_eq!(story.state(), "prompt");
    assert!(story.run.mode_warning().is_some_and(|words| words.contains("offers no modes")));
    let mut story = Story::begun(AcpTerms { is_mode_usual: false, ..usual }).connected(&json!({}));
    let asked = story.pay();
    story.answers(&asked[0], &json!({ "sessionId": "s1" }));
    assert_eq!(story.state(), "error", "the user wants this mode");
}

#[test]
fn a_session_that_is_not_opened_in_time_is_an_error_and_a_late_answer_opens_it() {
    let mut story = Story::begun(terms()).connected(&json!({}));
    let asked = story.pay();
    let due = story.run.deadline().expect("a time limit");
    assert_eq!(due, Duration::from_secs(60));
    assert_eq!((story.run.tick(Duration::from_secs(59)).len(), story.state()), (0, "running".to_owned()));
    let events = story.run.tick(due);
    story.events.extend(events);
    assert_eq!((story.state().as_str(), story.errors()), ("error", vec!["the agent begins no session"]));
    assert!(matches!(story.run.prompt("now?"), Err(NotReady::Refused { .. })));
    assert_eq!((story.run.tick(due).len(), story.run.owed_lines()), (0, Vec::new()), "it fails once");
    story.answers(&asked[0], &json!({ "sessionId": "s1" }));
    assert_eq!(story.state(), "prompt");
}

#[test]
fn every_fold_of_a_journal_says_the_same_about_a_late_session() {
    let late = Duration::from_secs(90);
    let [ticked, folded] = [true, false].map(|ticks| {
        let mut story = Story::begun(terms()).connected(&json!({}));
        let asked = story.pay();
        if ticks {
            story.run.tick(Duration::from_secs(61));
        }
        let opened = line(&json!({ "id": asked[0]["id"], "result": { "sessionId": "s1" } }));
        story.run.on_output(&opened, late);
        story.items()
    });
    assert_eq!(ticked, folded);
    assert!(matches!(&ticked[..], [Item::Error { .. }, Item::Notice { .. }]), "{ticked:?}");
}

#[test]
fn a_mode_that_the_agent_does_not_set_in_time_is_an_error() {
    let wishes = AcpTerms { mode: Some("ask".into()), ..terms() };
    let mut story = Story::begun(wishes).connected(&json!({}));
    let asked = story.pay();
    story.answers(&asked[0], &modes("auto", &["auto", "ask"]));
    let set = story.pay();
    let due = story.run.deadline().expect("a time limit");
    story.run.tick(due);
    assert_eq!(story.state(), "error");
    story.answers(&set[0], &json!({}));
    assert_eq!(story.state(), "prompt", "a late answer helps");
}

#[test]
fn a_session_under_an_id_that_nobody_used_is_an_error() {
    let mut story = Story::begun(terms()).connected(&json!({}));
    story.pay();
    story.says(&json!({ "id": 4711, "result": { "sessionId": "s1" } }));
    assert_eq!((story.state().as_str(), story.errors()), ("error", vec!["the agent begins no session"]));
}

#[test]
fn a_tool_that_names_its_command_late_is_announced_again_with_it() {
    let mut story = Story::opened(terms());
    story.prompts("do it");
    let call = |kind: &str, title: &str, input: &Value| {
        json!({ "sessionUpdate": kind, "toolCallId": "c1", "title": title, "kind": "execute",
            "status": "in_progress", "rawInput": input })
    };
    story.updates(&call("tool_call", "shell", &json!({ "cwd": "/w" })));
    story.updates(&call("tool_call_update", "make test", &json!({ "command": "make test" })));
    story.updates(&call("tool_call_update", "make test", &json!({ "command": "make test" })));
    let uses: Vec<_> = story
        .events
        .iter()
        .filter_map(|event| match event {
            ConversationEvent::ToolUse { title, command, .. } => Some((title.as_str(), command.as_deref())),
            _ => None,
        })
        .collect();
    assert_eq!(uses, [("shell", None), ("make test", Some("make test"))]);
}

#[test]
fn an_extension_of_the_agent_is_shown_once() {
    let mut story = Story::opened(terms());
    for attempt in 0..3 {
        story.says(
            &json!({ "method": "_session/retrying", "params": { "sessionId": "s1", "attempt": attempt } }),
        );
    }
    assert_eq!(story.items().len(), 1, "{:?}", story.items());
}

#[test]
fn the_tokens_of_gemini_count() {
    let mut story = Story::opened(terms());
    let prompt = story.prompts("do it");
    let quota = json!({ "quota": { "token_count": { "input_tokens": 11, "output_tokens": 3 } } });
    story.answers(&prompt, &json!({ "stopReason": "end_turn", "_meta": quota }));
    let usage = story.run.core().usage();
    assert_eq!((usage.input_tokens, usage.output_tokens), (11, 3));
}

#[test]
fn a_message_that_is_interrupted_continues_after_the_interruption_and_is_announced_once() {
    let mut story = Story::opened(terms());
    let prompt = story.prompts("go");
    let chunk = |text: &str| json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
    story.updates(&chunk("one "));
    story.run.on_output(b"not json\n", NOW);
    story.updates(&chunk("two "));
    story.updates(&chunk("three"));
    story.answers(&prompt, &json!({ "stopReason": "end_turn" }));
    let items = story.items();
    let said = |text: &str| Item::Assistant { text: text.into() };
    assert_eq!(items[1], said("one "));
    assert!(matches!(items[2], Item::Error { .. }), "{items:?}");
    assert_eq!(items[3], said("two three"));
    let outputs: Vec<_> =
        story.events.iter().filter(|event| matches!(event, ConversationEvent::Output { .. })).collect();
    assert_eq!(outputs, [&ConversationEvent::Output { text: "one two three".into() }]);
    assert!(matches!(&items[4], Item::TurnEnd(end) if end.text.as_deref() == Some("one two three")));
}
