//! `fake-agent --acp` does what its first lines say: the tests of everything above rest on it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A process and what it says, line by line. It ends when its input does.
struct Talk {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Talk {
    fn begin(script: &str, options: &[&str], sessions: Option<&Path>) -> Talk {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fake-agent"));
        command.args(["--acp", script]).args(options).env_remove("FAKE_AGENT_SESSIONS");
        if let Some(path) = sessions {
            command.env("FAKE_AGENT_SESSIONS", path);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("its output")));
        Talk { child, input, output, next: 0 }
    }

    fn write(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("its input");
        writeln!(input, "{message}").expect("it reads");
    }

    fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        self.write(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }));
        self.next
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|cause| panic!("{line:?}: {cause}"))
    }

    /// All up to the answer, and the answer.
    fn answer(&mut self, id: u64) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        loop {
            let message = self.next();
            if message["method"].is_null() && message["id"] == id {
                return (before, message);
            }
            before.push(message);
        }
    }

    fn asked(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id).1
    }

    fn session(&mut self) -> String {
        let answer = self.asked("session/new", &json!({ "cwd": "/w", "mcpServers": [] }));
        answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    fn prompt(&mut self, session: &str, text: &str) -> u64 {
        self.ask(
            "session/prompt",
            &json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] }),
        )
    }

    /// The agent's next request.
    fn request(&mut self) -> Value {
        loop {
            let message = self.next();
            if !message["method"].is_null() && !message["id"].is_null() {
                return message;
            }
        }
    }

    fn ends(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().expect("an end").code()
    }
}

fn said(messages: &[Value]) -> String {
    let text = |message: &Value| message["params"]["update"]["content"]["text"].as_str().map(str::to_owned);
    messages.iter().filter_map(text).collect()
}

#[test]
fn two_sessions_play_the_script_each_in_its_own_time() {
    let mut talk = Talk::begin("prompt; say hello there; tool Bash ls; end", &[], None);
    let can = &talk.asked("initialize", &json!({ "protocolVersion": 1 }))["result"]["agentCapabilities"];
    assert_eq!(can["loadSession"], true);
    assert!(can["sessionCapabilities"]["resume"].is_object());
    let (one, two) = (talk.session(), talk.session());
    let (first, second) = (talk.prompt(&one, "a"), talk.prompt(&two, "b"));
    let (ask, other) = (talk.request(), talk.request());
    let mut sessions =
        [&ask, &other].map(|ask| ask["params"]["sessionId"].as_str().unwrap_or_default().to_owned());
    sessions.sort();
    assert_eq!(sessions, [one.clone(), two]);
    let yes = |ask: &Value| json!({ "id": ask["id"], "result": { "outcome": { "outcome": "selected", "optionId": "yes-1" } } });
    let of_one = if ask["params"]["sessionId"] == one { (&ask, &other) } else { (&other, &ask) };
    talk.write(&yes(of_one.0));
    assert_eq!(talk.answer(first).1["result"]["stopReason"], "end_turn");
    talk.write(&yes(of_one.1));
    talk.answer(second);
    let echoed = talk.prompt(&one, "! plan a|b|c; think hm; mode; request dance; stop refusal");
    let unheard = talk.request();
    talk.write(&json!({ "id": unheard["id"], "error": { "code": -32601, "message": "no" } }));
    let (told, answer) = talk.answer(echoed);
    assert!(said(&told).ends_with("told: -32601"), "{told:?}");
    assert_eq!(answer["result"]["stopReason"], "refusal");
    assert_eq!(talk.ends(), Some(0));
}

#[test]
fn a_cancelled_turn_ends_once_its_permission_is_answered() {
    let mut talk = Talk::begin("prompt; tool Bash ls; say never", &[], None);
    let session = talk.session();
    let prompt = talk.prompt(&session, "a");
    let ask = talk.request();
    talk.write(&json!({ "method": "session/cancel", "params": { "sessionId": session } }));
    talk.write(&json!({ "id": ask["id"], "result": { "outcome": { "outcome": "cancelled" } } }));
    let (told, answer) = talk.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    assert_eq!(said(&told), "");
    let prompt = talk.prompt(&session, "! wait; say never");
    talk.write(&json!({ "method": "session/cancel", "params": { "sessionId": session } }));
    assert_eq!(talk.answer(prompt).1["result"]["stopReason"], "cancelled");
    assert_eq!(talk.ends(), Some(0));
}

#[test]
fn sessions_outlive_their_process_in_a_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("sessions");
    let mut talk = Talk::begin("", &[], Some(&file));
    let session = talk.session();
    let prompt = talk.prompt(&session, "hi");
    talk.answer(prompt);
    talk.prompt(&session, "! crash 7");
    assert_eq!(talk.child.wait().expect("an end").code(), Some(7));
    let mut talk = Talk::begin("", &[], Some(&file));
    let listed = talk.asked("session/list", &json!({}));
    assert_eq!(listed["result"]["sessions"][0]["sessionId"], session.as_str());
    let load = talk.ask("session/load", &json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] }));
    let (told, answer) = talk.answer(load);
    assert_eq!(said(&told), "hiecho: hi! crash 7");
    assert!(answer["result"]["modes"].is_object());
    let prompt = talk.prompt(&session, "again");
    assert_eq!(said(&talk.answer(prompt).0), "echo: again");
    talk.ends();
    let mut talk = Talk::begin("", &["--forget", "--no-resume"], Some(&file));
    let can = talk.asked("initialize", &json!({}));
    assert!(can["result"]["agentCapabilities"]["sessionCapabilities"]["resume"].is_null());
    assert_eq!(talk.asked("session/load", &json!({ "sessionId": session }))["error"]["code"], -32002);
    talk.ends();
}

#[test]
fn a_question_is_a_form_and_modes_decide_who_is_asked() {
    let mut talk =
        Talk::begin("prompt; ask Which?|Red|Blue; tool Bash ls; edit a.txt x|y; end", &["--login"], None);
    assert_eq!(talk.asked("session/new", &json!({ "cwd": "/" }))["error"]["code"], -32000);
    talk.asked("authenticate", &json!({ "methodId": "key" }));
    let session = talk.session();
    talk.asked("session/set_mode", &json!({ "sessionId": session, "modeId": "auto" }));
    let prompt = talk.prompt(&session, "a");
    let ask = talk.request();
    assert_eq!((&ask["method"], &ask["params"]["message"]), (&json!("elicitation/create"), &json!("Which?")));
    talk.write(
        &json!({ "id": ask["id"], "result": { "action": "accept", "content": { "answer": "Blue" } } }),
    );
    let (told, _) = talk.answer(prompt);
    assert_eq!(said(&told), "answered: Blue");
    let unasked = told.iter().filter(|message| message.to_string().contains("unasked")).count();
    assert_eq!(unasked, 2);
    talk.ends();
}

#[test]
fn a_greeting_can_go_wrong_in_every_way() {
    let mut talk = Talk::begin("", &["--refuse", "not you"], None);
    assert_eq!(talk.asked("initialize", &json!({}))["error"]["message"], "not you");
    talk.ends();
    let mut talk = Talk::begin("", &["--speaks", "2"], None);
    assert_eq!(talk.asked("initialize", &json!({}))["result"]["protocolVersion"], 2);
    talk.ends();
    let mut talk = Talk::begin("", &["--die", "3"], None);
    talk.ask("initialize", &json!({}));
    assert_eq!(talk.child.wait().expect("an end").code(), Some(3));
    let dir = tempfile::tempdir().expect("a directory");
    let mark = dir.path().join("mark");
    let mark = mark.to_str().expect("text");
    for code in [Some(4), Some(0)] {
        let mut talk = Talk::begin("", &["--die-once", mark, "4"], None);
        talk.ask("initialize", &json!({}));
        assert_eq!(talk.ends(), code);
    }
}
