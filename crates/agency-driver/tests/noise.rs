//! No message of an agent causes a panic: random bytes, damaged recordings, messages with values in the wrong places, very
//! long lines.

#![allow(clippy::disallowed_methods, reason = "the tests read recordings")]

mod vocabulary;

use std::collections::BTreeSet;
use std::time::Duration;

use agency_core::agent_state::Timing;
use agency_core::exit::{ExitCode, RunExit};
use agency_driver::acp::{AcpRun, AcpTerms, ConnectionNote, Router};
use agency_driver::conversation::ApprovalAnswer;
use agency_driver::protocol_run::{ConversationRun, ConversationTerms};
use agency_driver::stream_json::StreamRun;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::vocabulary::{KINDS, METHODS, TYPES, WORDS};

const NOW: Duration = Duration::ZERO;

fn terms() -> AcpTerms {
    let run = "r1".to_owned();
    AcpTerms {
        run,
        cwd: "/w".into(),
        mode: Some("ask".into()),
        model: Some("m".into()),
        ..AcpTerms::default()
    }
}

fn drivers() -> [ConversationRun; 2] {
    let acp = ConversationRun::began(ConversationTerms::Acp(terms()), Timing::default(), NOW);
    [ConversationRun::Stream(StreamRun::began(Timing::default(), NOW)), acp]
}

fn recording(name: &str) -> Vec<Value> {
    let path = format!("{}/../../tests/recordings/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect(&path);
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// One step of a run.
#[derive(Clone, Debug)]
enum Step {
    Out(Vec<u8>),
    In(Vec<u8>),
    Err(Vec<u8>),
    Connected,
    Lost,
    /// Write every owed line.
    Pay,
    Prompt,
    Interrupt,
    Answer(ApprovalAnswer),
    Gap,
}

fn happens(run: &mut ConversationRun, step: &Step) {
    match step {
        Step::Out(bytes) => drop(run.on_output(bytes, NOW)),
        Step::In(bytes) => drop(run.on_input(bytes, NOW)),
        Step::Err(bytes) => run.on_errors(bytes, NOW),
        Step::Connected => drop(run.on_connection(&ConnectionNote::Connected, NOW)),
        Step::Lost => drop(run.on_connection(&ConnectionNote::Lost { cause: None }, NOW)),
        Step::Pay => {
            for (_, line) in run.owed_lines() {
                assert!(line.ends_with(b"\n") && !line[..line.len() - 1].contains(&b'\n'));
                run.on_input(&line, NOW);
            }
        }
        Step::Prompt => {
            if let Ok(line) = run.prompt("do it") {
                run.on_input(&line, NOW);
            }
        }
        Step::Interrupt => {
            if let Some(line) = run.interrupt() {
                run.on_input(&line, NOW);
            }
        }
        Step::Answer(verdict) => {
            let open: Vec<String> = run.open_requests().into_iter().map(str::to_owned).collect();
            for id in open {
                if let Ok(line) = run.answer(&id, verdict) {
                    run.on_decision(&id, "ann", None);
                    run.on_input(&line, NOW);
                }
            }
        }
        Step::Gap => {
            run.on_gap(NOW);
            drop(run.on_connection(&ConnectionNote::Gap { cause: None }, NOW));
        }
    }
    let open: BTreeSet<&str> = run.open_requests().into_iter().collect();
    let shown: BTreeSet<&str> = run.conversation().open_approvals().map(|known| known.id.as_str()).collect();
    assert_eq!(open, shown, "the open requests are those that the conversation shows as open");
}

fn ends(run: &mut ConversationRun) {
    run.on_exit(RunExit::by_itself(ExitCode::Code(0)), NOW);
    assert_eq!((run.conversation().open_approvals().count(), run.open_requests().len()), (0, 0));
}

/// Any JSON, made of words that the protocols use.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        word().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..5).prop_map(Value::from_iter),
        ]
    })
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(WORDS).prop_map(str::to_owned)
}

/// A message with a valid envelope and any content.
fn message() -> impl Strategy<Value = Value> {
    let id = prop_oneof![
        (0..4_u64).prop_map(Value::from),
        Just(json!("r1:1")),
        Just(json!("r1:open1")),
        Just(json!("r1:mode1")),
        Just(json!("agency:1")),
        Just(json!("r2:open1")),
    ];
    let update =
        (prop::sample::select(KINDS), value(), value(), value()).prop_map(|(kind, one, two, three)| {
            json!({ "method": "session/update", "params": { "sessionId": "s1", "update": {
            "sessionUpdate": kind, "content": one, "toolCallId": "t", "title": two, "entries": three,
            "status": "completed", "currentModeId": "x", "configOptions": three } } })
        });
    let request = (id.clone(), prop::sample::select(METHODS), value(), value()).prop_map(
        |(id, method, params, options)| {
            let params = match params {
                Value::Object(mut fields) => {
                    fields.insert("sessionId".into(), json!("s1"));
                    fields.entry("options").or_insert(options);
                    Value::Object(fields)
                }
                other => other,
            };
            json!({ "id": id, "method": method, "params": params })
        },
    );
    let answer = (id, any::<bool>(), value()).prop_map(|(id, good, mut value)| {
        if let Some(fields) = value.as_object_mut() {
            fields.insert("sessionId".into(), json!("s1"));
            fields.insert("protocolVersion".into(), json!(1));
        }
        if good { json!({ "id": id, "result": value }) } else { json!({ "id": id, "error": value }) }
    });
    let stream = (prop::sample::select(TYPES), value(), value()).prop_map(|(kind, one, two)| {
        json!({ "type": kind, "message": one, "request_id": "q", "request": two, "response": one, "event": two,
            "subtype": "init" })
    });
    prop_oneof![update, request, answer, stream, value()]
}

fn step() -> impl Strategy<Value = Step> {
    let line = |message: Value| format!("{message}\n").into_bytes();
    prop_oneof![
        8 => message().prop_map(move |message| Step::Out(line(message))),
        3 => message().prop_map(move |message| Step::In(line(message))),
        1 => prop::collection::vec(any::<u8>(), 0..80).prop_map(Step::Out),
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Step::In),
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Step::Err),
        2 => Just(Step::Connected),
        1 => Just(Step::Lost),
        3 => Just(Step::Pay),
        3 => Just(Step::Prompt),
        1 => Just(Step::Interrupt),
        1 => Just(Step::Gap),
        3 => prop_oneof![
            Just(ApprovalAnswer::Allow),
            Just(ApprovalAnswer::AllowAlways),
            Just(ApprovalAnswer::Deny { message: "no".into() }),
            Just(ApprovalAnswer::Answer { answers: Default::default() }),
            Just(ApprovalAnswer::Choose { id: "yes".into() }),
        ].prop_map(Step::Answer),
    ]
}

proptest! {
    #[test]
    fn no_message_causes_a_panic(steps in prop::collection::vec(step(), 0..60)) {
        for mut run in drivers() {
            for step in &steps {
                happens(&mut run, step);
            }
            ends(&mut run);
        }
        let mut router = Router::new();
        for step in &steps {
            match step {
                Step::Out(bytes) => drop(router.on_output(bytes, NOW)),
                Step::In(bytes) => drop(router.on_input(bytes, NOW)),
                Step::Gap => router.on_gap(),
                Step::Pay => router.owed_lines().into_iter().for_each(|(_, line)| drop(router.on_input(&line, NOW))),
                _ => router.forget_run("r1"),
            }
        }
    }

    #[test]
    fn random_bytes_cause_no_panic(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20)) {
        for mut run in drivers() {
            happens(&mut run, &Step::Connected);
            for part in &parts {
                happens(&mut run, &Step::Out(part.clone()));
                happens(&mut run, &Step::In(part.clone()));
            }
            ends(&mut run);
        }
    }

    /// Every request of an agent is open, is owed an answer, or has one. The agent never waits for a forgotten request.
    #[test]
    fn every_request_of_an_agent_is_open_or_owed_an_answer(acts in prop::collection::vec(0..12_u8, 0..60)) {
        let mut run = AcpRun::began(Timing::default(), NOW, AcpTerms { mode: None, model: None, ..terms() });
        let mut unanswered: BTreeSet<u64> = BTreeSet::new();
        let (mut next, mut prompt) = (0, None);
        let say = |run: &mut AcpRun, message: Value| drop(run.on_output(format!("{message}\n").as_bytes(), NOW));
        let connect = |run: &mut AcpRun| {
            run.on_connection(&ConnectionNote::Connected, NOW);
            say(run, json!({ "id": "agency:1", "result": { "protocolVersion": 1,
                "agentCapabilities": { "sessionCapabilities": { "resume": {} } } } }));
            for (key, line) in run.owed_lines() {
                run.on_input(&line, NOW);
                say(run, json!({ "id": key, "result": { "sessionId": "s1" } }));
            }
        };
        connect(&mut run);
        for act in acts {
            let methods = ["session/request_permission", "elicitation/create", "fs/read_text_file", "dance"];
            match act {
                0..=3 => {
                    let options = json!([{ "optionId": "y", "name": "y", "kind": "allow_once" }]);
                    let params = json!({ "sessionId": "s1", "options": options, "message": "?" });
                    say(&mut run, json!({ "id": next, "method": methods[usize::from(act)], "params": params }));
                    unanswered.insert(next);
                    next += 1;
                }
                4 => if let Ok(line) = run.prompt("do it") {
                    prompt = serde_json::from_slice::<Value>(&line).ok().map(|line| line["id"].clone());
                    run.on_input(&line, NOW);
                },
                5 => if let Some(line) = run.interrupt() { run.on_input(&line, NOW); },
                6 => if let Some(id) = prompt.take() {
                    say(&mut run, json!({ "id": id, "result": { "stopReason": "end_turn" } }));
                },
                7 | 8 => {
                    let first = run.open_requests().next().map(str::to_owned);
                    if let Some(line) = first.and_then(|id| run.answer(&id, &ApprovalAnswer::Allow).ok()) {
                        let answer: Value = serde_json::from_slice(&line).expect("JSON");
                        unanswered.remove(&answer["id"].as_u64().expect("a number"));
                        run.on_input(&line, NOW);
                    }
                }
                9 => for (_, line) in run.owed_lines() {
                    let answer: Value = serde_json::from_slice(&line).expect("JSON");
                    unanswered.remove(&answer["id"].as_u64().expect("a number"));
                    run.on_input(&line, NOW);
                },
                10 => if let Some(id) = unanswered.first() {
                    say(&mut run, json!({ "method": "$/cancel_request", "params": { "requestId": id } }));
                },
                _ => {
                    unanswered.clear();
                    prompt = None;
                    connect(&mut run);
                }
            }
            let open = run.open_requests().filter_map(|id| id.rsplit_once(':')?.1.parse().ok());
            let owed = run.owed_lines().into_iter().filter_map(|(key, _)| key.rsplit_once(' ')?.1.parse().ok());
            let known: Vec<u64> = open.chain(owed).collect();
            prop_assert_eq!(known.len(), unanswered.len());
            prop_assert_eq!(&known.into_iter().collect::<BTreeSet<u64>>(), &unanswered);
        }
    }
}

/// Recordings with bytes changed, removed and doubled.
#[test]
fn damaged_recordings_cause_no_panic() {
    let mut random = 20_261_116_u64;
    let mut below = |bound: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % bound.max(1)
    };
    for name in ["claude-acp", "codex-acp"] {
        let messages = recording(name);
        for _ in 0..60 {
            let [_, mut run] = drivers();
            let mut router = Router::new();
            happens(&mut run, &Step::Connected);
            for step in &messages {
                let mut bytes = format!("{}\n", step["msg"]).into_bytes();
                for _ in 0..below(3) {
                    let place = below(bytes.len());
                    match below(3) {
                        _ if bytes.is_empty() => {}
                        0 => bytes[place] = below(256) as u8,
                        1 => bytes.truncate(place),
                        _ => bytes.extend_from_within(place..),
                    }
                }
                match step["dir"].as_str() {
                    Some("<-") => drop((router.on_output(&bytes, NOW), happens(&mut run, &Step::Out(bytes)))),
                    Some("->") => drop((router.on_input(&bytes, NOW), happens(&mut run, &Step::In(bytes)))),
                    _ => happens(&mut run, &Step::Err(bytes)),
                }
            }
            ends(&mut run);
        }
    }
}

#[test]
fn a_conversation_is_the_same_however_its_bytes_arrive() {
    for name in ["claude-acp", "codex-acp"] {
        let messages = recording(name);
        let played = |size: usize| {
            let [_, mut run] = drivers();
            happens(&mut run, &Step::Connected);
            for step in &messages {
                let bytes = format!("{}\n", step["msg"]).into_bytes();
                let is_session = step["msg"]["method"] != "initialize";
                for part in bytes.chunks(size) {
                    match step["dir"].as_str() {
                        Some("<-") => happens(&mut run, &Step::Out(part.to_vec())),
                        Some("->") if is_session => happens(&mut run, &Step::In(part.to_vec())),
                        _ => {}
                    }
                }
            }
            serde_json::to_value(run.conversation().entries()).expect("entries")
        };
        let whole = played(usize::MAX);
        assert!(whole.as_array().is_some_and(|entries| entries.len() > 10));
        assert_eq!(played(97), whole, "{name}");
    }
}

#[test]
fn a_line_of_ten_megabytes_is_read() {
    let text = "x".repeat(10 << 20);
    let update = json!({ "method": "session/update", "params": { "sessionId": "s1", "update": {
        "sessionUpdate": "tool_call", "toolCallId": "t", "title": "read", "status": "completed",
        "content": [{ "type": "content", "content": { "type": "text", "text": text } }] } } });
    let line = format!("{update}\n").into_bytes();
    let [_, mut run] = drivers();
    happens(&mut run, &Step::Connected);
    line.chunks(64 << 10).for_each(|part| happens(&mut run, &Step::Out(part.to_vec())));
    let entries = serde_json::to_value(run.conversation().entries()).expect("entries");
    assert_eq!(entries[0]["item"]["output"].as_str().map(str::len), Some(10 << 20));
    let mut router = Router::new();
    let routed: Vec<_> = line.chunks(64 << 10).flat_map(|part| router.on_output(part, NOW)).collect();
    assert_eq!(routed[0].line.len(), line.len());
    let result = json!({ "type": "user", "message": { "content": [
        { "type": "tool_result", "tool_use_id": "t", "content": text }] } });
    let [mut run, _] = drivers();
    happens(&mut run, &Step::Out(format!("{result}\n").into_bytes()));
    happens(&mut run, &Step::Out(b"{\"type\":\"dance\"}\n".to_vec()));
    assert_eq!(run.conversation().entries().len(), 1);
}
