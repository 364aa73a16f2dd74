//! Stories of Claude Code over stream-json: recordings, and cases that no recording has.

#![allow(clippy::disallowed_methods, reason = "the tests read recordings")]

use agency_core::agent_state::AgentState;
use agency_core::conversation::ApprovalOutcome;
use agency_core::evidence::Why;
use agency_core::exit::{ExitCode, StoppedBy};
use serde_json::json;

use super::*;
use crate::conversation::{AgentSetting, AnswerError, ApprovalAnswer, ModeChanger, OurRequest};
use crate::protocol_run::{ConversationRun, ConversationTerms};

/// Plays a recording. Returns the run, all its states and all its events.
fn play(name: &str) -> (StreamRun, Vec<String>, Vec<ConversationEvent>) {
    let path = format!("{}/../../tests/recordings/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let recording = std::fs::read_to_string(&path).expect(&path);
    let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
    let (mut states, mut events) = (Vec::new(), Vec::new());
    for line in recording.lines() {
        let step: Value = serde_json::from_str(line).expect("a recording");
        let at = Duration::from_secs_f64(step["t"].as_f64().expect("a time"));
        let bytes = super::line(&step["msg"]);
        match step["dir"].as_str() {
            Some("<-") => events.extend(run.on_output(&bytes, at)),
            Some("->") => events.extend(run.on_input(&bytes, at)),
            _ => continue,
        }
        let state = match run.core().state() {
            AgentState::NeedsInput { why, .. } => why.to_string(),
            AgentState::Running => "running".to_owned(),
            other => format!("{other:?}"),
        };
        if states.last() != Some(&state) {
            states.push(state);
        }
    }
    (run, states, events)
}

#[test]
fn a_turn_with_permissions_is_followed_from_prompt_to_end() {
    let (run, states, events) = play("claude-stream-json");
    let expected =
        ["prompt", "running", "permission", "running", "permission", "running", "finished", "running"];
    assert_eq!(states[..8], expected, "{states:?}");
    assert_eq!(run.core().session_id(), Some("11111111-2222-4333-8444-555555555555"));
    assert!(run.core().usage().cost_usd.is_some_and(|cost| cost > 0.0));
    let says = |wanted: &str| {
        run.core()
            .conversation()
            .entries()
            .iter()
            .any(|entry| entry.item == Item::Assistant { text: wanted.into() })
    };
    assert!(says("I will write a file.") && says("All finished."));
    let denied =
        events.iter().any(|event| matches!(event, ConversationEvent::ToolResult { success: false, .. }));
    assert!(denied);
    assert_eq!(run.core().conversation().open_approvals().count(), 0);
}

#[test]
fn the_parts_of_a_message_and_the_whole_message_are_one_entry() {
    let (run, ..) = play("claude-stream-json");
    let texts: Vec<&str> = run
        .core()
        .conversation()
        .entries()
        .iter()
        .filter_map(|entry| match &entry.item {
            Item::Assistant { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    let mut unique = texts.clone();
    unique.dedup();
    assert_eq!(texts, unique);
}

#[test]
fn a_question_an_error_and_an_interrupt_have_different_states() {
    let (_, states, _) = play("claude-stream-json-askuser");
    assert_eq!(states, ["running", "question", "running", "finished"]);
    let (_, states, events) = play("claude-stream-json-error400");
    assert_eq!(states.last().map(String::as_str), Some("error"));
    let ends: Vec<_> = events
        .iter()
        .filter(|event| matches!(event, ConversationEvent::TurnEnd(end) if end.failed))
        .collect();
    assert_eq!(ends.len(), 1, "the agent calls this error a success");
    let (run, _, events) = play("claude-stream-json-interrupt-pending");
    assert!(events.iter().any(|event| matches!(event, ConversationEvent::ApprovalWithdrawn { .. })));
    assert_eq!(run.core().conversation().open_approvals().count(), 0);
}

#[test]
fn a_message_during_a_turn_begins_another_turn_with_its_own_end() {
    let (_, states, events) = play("claude-stream-json-queue");
    assert_eq!(states, ["running", "finished"]);
    assert_eq!(events.iter().filter(|event| matches!(event, ConversationEvent::TurnEnd(_))).count(), 2);
}

#[test]
fn a_line_that_is_not_json_is_an_error_and_an_unknown_message_is_kept() {
    let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
    let events = run.on_output(b"not json\n{\"type\":\"dance\",\"x\":1}\n{\"type\":\"system\",\"subtype\":\"new\"}{\"type\":\"result\"}\n\n", Duration::ZERO);
    assert!(
        matches!(&events[..], [
        ConversationEvent::Error { .. },
        ConversationEvent::Other { kind },
        ConversationEvent::Other { .. },
        ConversationEvent::TurnEnd(_)
    ] if kind == "dance"),
        "{events:?}"
    );
}

#[test]
fn an_answer_repeats_the_input_of_its_request() {
    let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
    let asked = json!({ "type": "control_request", "request_id": "r1",
        "request": { "subtype": "can_use_tool", "tool_name": "Bash", "input": { "command": "ls" } } });
    run.on_output(&line(&asked), Duration::ZERO);
    let allow = run.answer("r1", &ApprovalAnswer::Allow).expect("it is open");
    let allow: Value = serde_json::from_slice(&allow).expect("JSON");
    assert_eq!(
        allow["response"]["response"],
        json!({ "behavior": "allow", "updatedInput": { "command": "ls" } })
    );
    run.on_input(&line(&allow), Duration::ZERO);
    assert_eq!(
        run.answer("r1", &ApprovalAnswer::Allow),
        Err(AnswerError::NotOpen),
        "a request is answered once"
    );
}

#[test]
fn allow_always_allows_what_the_agent_suggests_and_only_for_its_session() {
    let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
    let ask = |id: &str, suggestions: Value| {
        line(&json!({ "type": "control_request", "request_id": id,
            "request": { "subtype": "can_use_tool", "tool_name": "Bash", "input": {},
                "permission_suggestions": suggestions } }))
    };
    let rule = json!({ "type": "addRules", "rules": [{ "toolName": "Bash", "ruleContent": "ls" }],
        "behavior": "allow", "destination": "localSettings" });
    let mode = json!({ "type": "setMode", "mode": "acceptEdits", "destination": "session" });
    run.on_output(&ask("r1", json!([mode, rule])), Duration::ZERO);
    run.on_output(&ask("r2", json!([])), Duration::ZERO);
    let always = run.answer("r1", &ApprovalAnswer::AllowAlways).expect("it is open");
    let always: Value = serde_json::from_slice(&always).expect("JSON");
    let remembered = &always["response"]["response"]["updatedPermissions"];
    assert_eq!(remembered.as_array().map(Vec::len), Some(1));
    assert_eq!(remembered[0]["destination"], "session");
    assert_eq!(remembered[0]["rules"][0]["ruleContent"], "ls");
    assert_eq!(run.answer("r2", &ApprovalAnswer::AllowAlways), Err(AnswerError::NothingToRemember));
    assert_eq!(run.open_requests().collect::<Vec<_>>(), ["r1", "r2"]);
}

/// Recordings with bytes changed, removed and doubled.
#[test]
fn damaged_recordings_cause_no_panic() {
    let path = format!("{}/../../tests/recordings/claude-stream-json.jsonl", env!("CARGO_MANIFEST_DIR"));
    let recording = std::fs::read_to_string(&path).expect(&path);
    let messages: Vec<Value> =
        recording.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let mut random = 20_261_116_u64;
    let mut below = |bound: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % bound.max(1)
    };
    for _ in 0..200 {
        let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
        for (at, step) in
            messages.iter().enumerate().map(|(at, step)| (Duration::from_millis(at as u64), step))
        {
            let mut bytes = line(&step["msg"]);
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
                Some("<-") => drop(run.on_output(&bytes, at)),
                Some("->") => drop(run.on_input(&bytes, at)),
                _ => run.on_errors(&bytes, at),
            }
            let open: Vec<String> = run.open_requests().map(str::to_owned).collect();
            assert!(open.iter().all(|id| run.answer(id, &ApprovalAnswer::Allow).is_ok()));
        }
        run.on_exit(RunExit::by_itself(ExitCode::Code(0)), Duration::from_secs(60));
        assert_eq!(run.core().conversation().open_approvals().count(), 0);
    }
}

#[test]
fn a_decision_keeps_the_name_of_the_decider() {
    let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
    let asked = json!({ "type": "control_request", "request_id": "r1",
        "request": { "subtype": "can_use_tool", "tool_name": "Bash", "input": {} } });
    run.on_output(&line(&asked), Duration::ZERO);
    run.on_decision("r1", "ann", None);
    let no = run.answer("r1", &ApprovalAnswer::Deny { message: "not now".into() }).expect("it is open");
    let events = run.on_input(&no, Duration::ZERO);
    let outcome = ApprovalOutcome {
        allowed: false,
        cancelled: false,
        message: Some("not now".into()),
        by: Some("ann".into()),
        answer: None,
    };
    assert_eq!(events, [ConversationEvent::ApprovalDecided { id: "r1".into(), outcome }]);
}

#[test]
fn an_unknown_request_is_refused_once() {
    let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
    let asked = json!({ "type": "control_request", "request_id": "r1", "request": { "subtype": "dance" } });
    run.on_output(&line(&asked), Duration::ZERO);
    let owed = run.owed_lines();
    assert_eq!(owed.len(), 1);
    run.on_input(&owed[0].1, Duration::ZERO);
    assert_eq!(run.owed_lines(), []);
}

#[test]
fn the_next_run_keeps_the_conversation_and_waits_for_a_message() {
    let (run, ..) = play("claude-stream-json");
    let (entries, revision) =
        (run.core().conversation().entries().len(), run.core().conversation().revision());
    let before = ConversationRun::Stream(run);
    let terms = ConversationTerms::Stream;
    let next = before.continued(terms, Timing::default(), Duration::from_secs(60), Duration::ZERO);
    assert_eq!(next.conversation().entries().len(), entries + 1);
    assert!(next.conversation().revision() > revision);
    assert!(matches!(next.state(), AgentState::NeedsInput { why: Why::Prompt, .. }));
    assert_eq!(next.session_id(), Some("11111111-2222-4333-8444-555555555555"));
}

#[test]
fn a_second_text_that_begins_like_the_first_is_another_entry() {
    let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
    let said = |text: &str| {
        line(&json!({ "type": "assistant",
            "message": { "id": "m", "content": [{ "type": "text", "text": text }] } }))
    };
    let delta = json!({ "type": "stream_event", "event": { "type": "content_block_delta", "index": 0,
        "delta": { "text": "He" } } });
    let start =
        json!({ "type": "stream_event", "event": { "type": "message_start", "message": { "id": "m" } } });
    let all = [line(&start), line(&delta), said("Hello"), said("Hello again")].concat();
    run.on_output(&all, Duration::ZERO);
    let texts: Vec<_> = run.core().conversation().entries().iter().map(|entry| entry.item.clone()).collect();
    let entry = |text: &str| Item::Assistant { text: text.into() };
    assert_eq!(texts, [entry("Hello"), entry("Hello again")]);
}

#[test]
fn the_agent_reports_its_settings_and_a_refusal_is_announced() {
    let (run, ..) = play("claude-stream-json");
    let models = run.offers(AgentSetting::Model);
    assert!(models.offers.iter().any(|offer| offer.id == "opus"), "{models:?}");
    assert_eq!(
        models.current.as_deref(),
        Some("claude-opus-5-5"),
        "the model that the agent took, not the requested one"
    );
    assert_eq!(run.offers(AgentSetting::Mode).current.as_deref(), Some("acceptEdits"));
    let notice = Item::Notice { text: "mode: acceptEdits".into() };
    assert_eq!(run.core().conversation().entries().iter().filter(|entry| entry.item == notice).count(), 1);

    let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
    assert!(run.request_offers().is_some());
    let OurRequest { id, line: wanted } = run.set(AgentSetting::Mode, "bold");
    run.on_input(&wanted, Duration::ZERO);
    let response = json!({ "subtype": "error", "request_id": id, "error": "no such mode" });
    let refusal = line(&json!({ "type": "control_response", "response": response }));
    let outcome = Err("no such mode".to_owned());
    assert_eq!(
        run.on_output(&refusal, Duration::ZERO),
        [ConversationEvent::SettingAnswered { request: id, outcome }]
    );
    assert_eq!(run.on_output(&refusal, Duration::ZERO), [], "an answer counts once");
    assert_eq!(run.offers(AgentSetting::Mode).current, None);
}

#[test]
fn a_message_of_a_known_type_that_cannot_be_read_is_shown_as_it_came() {
    let tool = json!([{ "type": "tool_use", "id": 5 }]);
    for message in [
        json!({ "type": "assistant", "message": 5 }),
        json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": 5 }] } }),
        json!({ "type": "assistant", "message": { "content": [{ "type": "hologram" }] } }),
        json!({ "type": "assistant", "message": { "content": tool } }),
        json!({ "type": "user", "message": { "content": [{ "type": "tool_result" }] } }),
        json!({ "type": "user", "message": null }),
        json!({ "type": "stream_event", "event": [] }),
        json!({ "type": "stream_event", "event": { "type": "content_block_delta", "delta": 5 } }),
        json!({ "type": "control_request", "request": { "subtype": "can_use_tool" } }),
        json!({ "type": "control_request", "request_id": "1", "request": { "subtype": "dance" } }),
        json!({ "type": "control_cancel_request" }),
        json!({ "type": "control_response", "response": "yes" }),
        json!({ "type": "system", "subtype": 5 }),
        json!({ "type": "result", "subtype": 5 }),
    ] {
        let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
        let events = run.on_output(&line(&message), Duration::ZERO);
        let is_kept = |entry: &agency_core::conversation::Entry| matches!(&entry.item, Item::Notice { .. });
        assert!(run.core().conversation().entries().iter().any(is_kept), "{message}");
        assert!(events.iter().any(|event| matches!(event, ConversationEvent::Other { .. })), "{message}");
    }
}

#[test]
fn the_cost_of_a_conversation_never_goes_down() {
    let (run, ..) = play("claude-stream-json");
    let before = run.core().usage().cost_usd.expect("the agent reports it");
    let mut next = StreamRun::continuing(run.into_inherited(), Timing::default(), Duration::ZERO);
    let result = |cost: f64| line(&json!({ "type": "result", "subtype": "success", "total_cost_usd": cost }));
    for (told, expected) in [(before / 4.0, before * 1.25), (before / 2.0, before * 1.5)] {
        next.on_output(&result(told), Duration::ZERO);
        let total = next.core().usage().cost_usd.expect("the agent reports it");
        assert!((total - expected).abs() < 1e-9, "{total} and not {expected}");
    }
    let (inherited, going_on) = (next.into_inherited(), before * 2.0);
    let mut third = StreamRun::continuing(inherited, Timing::default(), Duration::ZERO);
    third.on_output(&result(going_on), Duration::ZERO);
    assert_eq!(
        third.core().usage().cost_usd,
        Some(going_on),
        "an agent that remembers its cost continues the count"
    );
}

#[test]
fn the_answer_to_a_question_is_kept() {
    let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
    let questions = json!([{ "question": "Which colour?" }, { "question": "How many?" }]);
    for (id, answers, expected) in [
        ("r1", vec![("Which colour?", "Blue")], "Blue"),
        ("r2", vec![("Which colour?", "Blue"), ("How many?", "two")], "How many?: two; Which colour?: Blue"),
    ] {
        let request = json!({ "subtype": "can_use_tool", "tool_name": "AskUserQuestion",
            "input": { "questions": questions } });
        let asked = json!({ "type": "control_request", "request_id": id, "request": request });
        run.on_output(&line(&asked), Duration::ZERO);
        let answers = answers.into_iter().map(|(asked, said)| (asked.to_owned(), said.to_owned())).collect();
        let answer = run.answer(id, &ApprovalAnswer::Answer { answers }).expect("it is open");
        let events = run.on_input(&answer, Duration::ZERO);
        let [ConversationEvent::ApprovalDecided { outcome, .. }] = &events[..] else { panic!("{events:?}") };
        assert_eq!(outcome.answer.as_deref(), Some(expected));
    }
}

#[test]
fn the_users_choice_is_restored_unless_the_agent_left_it_or_refuses() {
    let (run, ..) = play("claude-stream-json");
    let current = run.offers(AgentSetting::Mode).current.expect("the agent reports it");
    let mut next = StreamRun::continuing(run.into_inherited(), Timing::default(), Duration::ZERO);
    let owed = next.owed_lines();
    let mode = format!("\"mode\":\"{current}\"");
    assert!(owed.iter().any(|(_, line)| String::from_utf8_lossy(line).contains(&mode)), "{owed:?}");
    for (_, line) in owed {
        next.on_input(&line, Duration::ZERO);
    }
    assert_eq!(next.owed_lines(), [], "each is requested once");
    let told = |mode: &str| line(&json!({ "type": "system", "subtype": "status", "permissionMode": mode }));
    next.on_output(&told("default"), Duration::ZERO);
    for (id, subtype) in [("agency-again-mode", "success"), ("agency-again-model", "error")] {
        let response = json!({ "subtype": subtype, "request_id": id, "error": "no such model" });
        next.on_output(&line(&json!({ "type": "control_response", "response": response })), Duration::ZERO);
    }
    let inherited = next.into_inherited();
    assert_eq!(
        inherited.chosen,
        [(AgentSetting::Mode, current)].into(),
        "a report from before our request does not count"
    );
    let mut third = StreamRun::continuing(inherited, Timing::default(), Duration::ZERO);
    for (_, line) in third.owed_lines() {
        third.on_input(&line, Duration::ZERO);
    }
    let response = json!({ "subtype": "success", "request_id": "agency-again-mode", "response": {} });
    third.on_output(&line(&json!({ "type": "control_response", "response": response })), Duration::ZERO);
    third.on_output(&told("plan"), Duration::ZERO);
    assert_eq!(third.into_inherited().chosen, [(AgentSetting::Mode, "plan".to_owned())].into());
}

fn prompted() -> StreamRun {
    let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
    run.on_input(&StreamRun::prompt("a secret message"), Duration::ZERO);
    run
}

fn after_exit(mut run: StreamRun, exit: RunExit) -> (ConversationRun, Vec<ConversationEvent>) {
    let events = run.on_exit(exit, Duration::from_secs(1));
    let next = ConversationRun::Stream(run).continued(
        ConversationTerms::Stream,
        Timing::default(),
        Duration::from_secs(2),
        Duration::ZERO,
    );
    (next, events)
}

#[test]
fn a_crash_during_a_turn_is_an_error_until_the_next_message() {
    let (mut next, events) = after_exit(prompted(), RunExit::by_itself(ExitCode::Signal(9)));
    let [ConversationEvent::Error { message, .. }] = &events[..] else { panic!("{events:?}") };
    assert!(message.contains("the last message was lost") && !message.contains("secret"), "{message}");
    assert!(matches!(next.state(), AgentState::NeedsInput { why: Why::Error, .. }), "{:?}", next.state());
    assert_eq!(next.detector().standing().evidence.detail.as_deref(), Some(message.as_str()));
    next.on_input(&StreamRun::prompt("again"), Duration::from_secs(3));
    assert_eq!(next.state(), AgentState::Running);
}

#[test]
fn a_stop_during_a_turn_and_a_crash_after_one_lose_no_message() {
    let (next, events) = after_exit(prompted(), RunExit::stopped(StoppedBy::Term, ExitCode::Signal(15)));
    assert_eq!(events, [], "the user has stopped it");
    assert!(matches!(next.state(), AgentState::NeedsInput { why: Why::Prompt, .. }));
    let mut run = prompted();
    let running = json!({ "type": "system", "subtype": "session_state_changed", "state": "running" });
    run.on_output(&line(&running), Duration::ZERO);
    run.on_output(
        &line(&json!({ "type": "result", "subtype": "success", "result": "Done." })),
        Duration::ZERO,
    );
    let before = run.core().conversation().entries().len();
    // The agent has not reported that it is idle.
    let (next, _) = after_exit(run, RunExit::by_itself(ExitCode::Signal(9)));
    assert!(matches!(next.state(), AgentState::NeedsInput { why: Why::Prompt, .. }));
    assert_eq!(next.conversation().entries().len(), before + 1, "only the line between two runs");
}

#[test]
fn an_error_shows_its_text_wherever_it_is() {
    let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
    for error in [json!("out of memory"), json!({ "message": "out of memory" })] {
        let events = run.on_output(&line(&json!({ "type": "error", "error": error })), Duration::ZERO);
        let expected = ConversationEvent::Error { message: "out of memory".into(), cause: None };
        assert_eq!(events, [expected]);
    }
}

#[test]
fn an_agent_that_changes_its_mode_by_itself_is_announced_and_not_followed() {
    let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
    let told = |mode: &str| line(&json!({ "type": "system", "subtype": "status", "permissionMode": mode }));
    run.on_output(&told("default"), Duration::ZERO);
    let events = run.on_output(&told("bypassPermissions"), Duration::ZERO);
    let [ConversationEvent::ModeChanged(change)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((change.by, change.new.as_deref()), (ModeChanger::Agent, Some("bypassPermissions")));
    assert!(run.mode_warning().is_some_and(|words| words.contains("by itself")));
    let OurRequest { id, line: set } = run.set(AgentSetting::Mode, "plan");
    run.on_input(&set, Duration::ZERO);
    let response = json!({ "subtype": "success", "request_id": id, "response": {} });
    run.on_output(&line(&json!({ "type": "control_response", "response": response })), Duration::ZERO);
    assert_eq!(run.mode_warning(), None, "the user has chosen a mode");
}

#[test]
fn a_message_that_is_interrupted_continues_after_the_interruption_and_is_announced_once() {
    let mut run = StreamRun::began(Timing::default(), Duration::ZERO);
    let delta = |text: &str| {
        let delta = json!({ "type": "text_delta", "text": text });
        let event = json!({ "type": "content_block_delta", "index": 0, "delta": delta });
        super::line(&json!({ "type": "stream_event", "event": event }))
    };
    let start = json!({ "type": "message_start", "message": { "id": "m" } });
    run.on_output(&super::line(&json!({ "type": "stream_event", "event": start })), Duration::ZERO);
    run.on_output(&delta("one "), Duration::ZERO);
    run.on_errors(b"a warning\n", Duration::ZERO);
    run.on_output(&delta("two "), Duration::ZERO);
    run.on_output(&delta("three "), Duration::ZERO);
    run.on_errors(b"another\n", Duration::ZERO);
    let content = json!([{ "type": "text", "text": "one two three four" }]);
    let whole = json!({ "type": "assistant", "message": { "id": "m", "content": content } });
    let events = run.on_output(&super::line(&whole), Duration::ZERO);
    assert_eq!(events, [ConversationEvent::Output { text: "one two three four".into() }]);
    let said = |text: &str| Item::Assistant { text: text.into() };
    let notice = |text: &str| Item::Notice { text: text.into() };
    let items: Vec<_> = run.core().conversation().entries().iter().map(|entry| &entry.item).collect();
    let expected =
        [&said("one "), &notice("a warning"), &said("two three "), &notice("another"), &said("four")];
    assert_eq!(items, expected);
}
