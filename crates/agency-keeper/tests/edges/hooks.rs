//! Hooks as an agent calls them, without a daemon.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use agency_api::keeper::HookNote;
use agency_journal::{Body, Record};
use rustix::process::Signal;

use crate::harness::{Run, keeper_binary};

fn hook(socket: Option<&Path>) -> Child {
    let mut command = Command::new(keeper_binary());
    command.arg("hook").env_remove("AGENCY_KEEPER_SOCKET");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(socket) = socket {
        command.env("AGENCY_KEEPER_SOCKET", socket);
    }
    command.spawn().expect("the keeper's binary")
}

/// Runs the hook; it must succeed and print nothing.
fn run_hook(mut hook: Child, input: &[u8]) {
    let mut stdin = hook.stdin.take().expect("piped");
    match stdin.write_all(input) {
        Err(err) if err.kind() != ErrorKind::BrokenPipe => panic!("{err}"),
        _ => drop(stdin),
    }
    assert_silent_success(hook);
}

fn assert_silent_success(hook: Child) {
    let output = hook.wait_with_output().expect("it ends");
    assert!(output.status.success());
    assert_eq!((output.stdout, output.stderr), (Vec::new(), Vec::new()));
}

fn hook_notes(records: &[Record]) -> Vec<HookNote> {
    let hooks = records.iter().filter_map(|record| match &record.body {
        Body::Note { tag, bytes } if tag == "hook" => Some(bytes),
        _ => None,
    });
    hooks.map(|bytes| serde_json::from_slice(bytes).expect("a note")).collect()
}

fn event(name: &str) -> HookNote {
    HookNote { event: name.into(), ..HookNote::default() }
}

#[test]
fn hooks_are_journaled_in_order_without_a_daemon() {
    let run = Run::of(&["cat"]);
    let socket = run.path("k");
    for input in [
        r#"{"hook_event_name":"PermissionRequest","session_id":"s1","tool_name":"Bash","tool_input":{"command":"rm -rf build"}}"#,
        r#"{"hook_event_name":"Stop","session_id":"s1","last_assistant_message":"done"}"#,
    ] {
        run_hook(hook(Some(&socket)), input.as_bytes());
    }
    let session_id = Some("s1".to_string());
    let asked =
        HookNote { session_id: session_id.clone(), tool: Some("Bash".into()), ..event("PermissionRequest") };
    assert_eq!(hook_notes(&run.journal()), [asked, HookNote { session_id, ..event("Stop") }]);
    let records = format!("{:?}", run.journal());
    assert!(!records.contains("rm -rf") && !records.contains("done"));
}

#[test]
fn a_hook_with_more_input_than_a_pipe_holds_leaves_its_note() {
    let run = Run::of(&["cat"]);
    let body = "x".repeat(256 << 10);
    let input = format!(r#"{{"tool_response":"{body}","hook_event_name":"PostToolUse"}}"#);
    run_hook(hook(Some(&run.path("k"))), input.as_bytes());
    assert_eq!(hook_notes(&run.journal()), [event("PostToolUse")]);
}

#[test]
fn a_hook_succeeds_with_garbage_and_without_a_keeper() {
    let run = Run::of(&["cat"]);
    let socket = run.path("k");
    for garbage in ["", "{", "not json at all", r#"{"session_id":"s1"}"#] {
        run_hook(hook(Some(&socket)), garbage.as_bytes());
    }
    let valid = br#"{"hook_event_name":"Stop"}"#;
    run_hook(hook(None), valid);
    run_hook(hook(Some(Path::new("/nonexistent/k"))), valid);
    assert_eq!(hook_notes(&run.journal()), []);
}

#[test]
fn a_hook_ends_when_its_input_does_not_and_when_its_keeper_hangs() {
    let run = Run::of(&["cat"]);
    let socket = run.path("k");
    let mut endless = hook(Some(&socket));
    let open = endless.stdin.take();
    assert_silent_success(endless);
    drop(open);
    agency_keeper::platform::signal_if_same(&run.keeper, Signal::STOP).expect("the keeper is ours");
    run_hook(hook(Some(&socket)), br#"{"hook_event_name":"Stop"}"#);
    let mut daemon = run.connect();
    agency_keeper::platform::signal_if_same(&run.keeper, Signal::CONT).expect("the keeper is ours");
    daemon.hello(1);
    assert_eq!(hook_notes(&run.journal()), [event("Stop")], "the note was sent before the keeper stopped");
}
