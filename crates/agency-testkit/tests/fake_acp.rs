//! `fake-agent --acp` does what the head of `acp.rs` says; many other tests depend on it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A client of one fake agent, which ends when its input ends.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    fn start(script: &str, options: &[&str], sessions: Option<&Path>) -> Client {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fake-agent"));
        command.args(["--acp", script]).args(options).env_remove("FAKE_AGENT_SESSIONS");
        if let Some(path) = sessions {
            command.env("FAKE_AGENT_SESSIONS", path);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("its output")));
        Client { child, input, output, next: 0 }
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

    /// The messages before the answer, and the answer.
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

    fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id).1
    }

    fn new_session(&mut self) -> String {
        let answer = self.call("session/new", &json!({ "cwd": "/w", "mcpServers": [] }));
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

    fn end(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().expect("an end").code()
    }
}

fn text_of(messages: &[Value]) -> String {
    let text = |message: &Value| message["params"]["update"]["content"]["text"].as_str().map(str::to_owned);
    messages.iter().filter_map(text).collect()
}

#[test]
fn two_sessions_play_the_script_each_in_its_own_time() {
    let mut client = Client::start("prompt; say hello there; tool Bash ls; end", &[], None);
    let can = &client.call("initialize", &json!({ "protocolVersion": 1 }))["result"]["agentCapabilities"];
    assert_eq!(can["loadSession"], true);
    assert!(can["sessionCapabilities"]["resume"].is_object());
    let (one, two) = (client.new_session(), client.new_session());
    let (first, second) = (client.prompt(&one, "a"), client.prompt(&two, "b"));
    let (ask, other) = (client.request(), client.request());
    let mut sessions =
        [&ask, &other].map(|ask| ask["params"]["sessionId"].as_str().unwrap_or_default().to_owned());
    sessions.sort();
    assert_eq!(sessions, [one.clone(), two]);
    let yes = |ask: &Value| json!({ "id": ask["id"], "result": { "outcome": { "outcome": "selected", "optionId": "yes-1" } } });
    let of_one = if ask["params"]["sessionId"] == one { (&ask, &other) } else { (&other, &ask) };
    client.write(&yes(of_one.0));
    assert_eq!(client.answer(first).1["result"]["stopReason"], "end_turn");
    client.write(&yes(of_one.1));
    client.answer(second);
    let echoed = client.prompt(&one, "! plan a|b|c; think hm; mode; request dance; stop refusal");
    let unheard = client.request();
    client.write(&json!({ "id": unheard["id"], "error": { "code": -32601, "message": "no" } }));
    let (messages, answer) = client.answer(echoed);
    assert!(text_of(&messages).ends_with("told: -32601"), "{messages:?}");
    assert_eq!(answer["result"]["stopReason"], "refusal");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn a_cancelled_turn_ends_once_its_permission_is_answered() {
    let mut client = Client::start("prompt; tool Bash ls; say never", &[], None);
    let session = client.new_session();
    let prompt = client.prompt(&session, "a");
    let ask = client.request();
    client.write(&json!({ "method": "session/cancel", "params": { "sessionId": session } }));
    client.write(&json!({ "id": ask["id"], "result": { "outcome": { "outcome": "cancelled" } } }));
    let (messages, answer) = client.answer(prompt);
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    assert_eq!(text_of(&messages), "");
    let prompt = client.prompt(&session, "! wait; say never");
    client.write(&json!({ "method": "session/cancel", "params": { "sessionId": session } }));
    assert_eq!(client.answer(prompt).1["result"]["stopReason"], "cancelled");
    assert_eq!(client.end(), Some(0));
}

#[test]
fn sessions_outlive_their_process_in_a_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("sessions");
    let mut client = Client::start("", &[], Some(&file));
    let session = client.new_session();
    let prompt = client.prompt(&session, "hi");
    client.answer(prompt);
    client.prompt(&session, "! crash 7");
    assert_eq!(client.child.wait().expect("an end").code(), Some(7));
    let mut client = Client::start("", &[], Some(&file));
    let listed = client.call("session/list", &json!({}));
    assert_eq!(listed["result"]["sessions"][0]["sessionId"], session.as_str());
    let load = client.ask("session/load", &json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] }));
    let (messages, answer) = client.answer(load);
    assert_eq!(text_of(&messages), "hiecho: hi! crash 7");
    assert!(answer["result"]["modes"].is_object());
    let prompt = client.prompt(&session, "again");
    assert_eq!(text_of(&client.answer(prompt).0), "echo: again");
    client.end();
    let mut client = Client::start("", &["--forget", "--no-resume"], Some(&file));
    let can = client.call("initialize", &json!({}));
    assert!(can["result"]["agentCapabilities"]["sessionCapabilities"]["resume"].is_null());
    assert_eq!(client.call("session/load", &json!({ "sessionId": session }))["error"]["code"], -32002);
    client.end();
}

#[test]
fn a_question_is_a_form_and_the_mode_decides_whether_the_agent_asks() {
    let mut client =
        Client::start("prompt; ask Which?|Red|Blue; tool Bash ls; edit a.txt x|y; end", &["--login"], None);
    assert_eq!(client.call("session/new", &json!({ "cwd": "/" }))["error"]["code"], -32000);
    client.call("authenticate", &json!({ "methodId": "key" }));
    let session = client.new_session();
    client.call("session/set_mode", &json!({ "sessionId": session, "modeId": "auto" }));
    let prompt = client.prompt(&session, "a");
    let ask = client.request();
    assert_eq!((&ask["method"], &ask["params"]["message"]), (&json!("elicitation/create"), &json!("Which?")));
    client.write(
        &json!({ "id": ask["id"], "result": { "action": "accept", "content": { "answer": "Blue" } } }),
    );
    let (messages, _) = client.answer(prompt);
    assert_eq!(text_of(&messages), "answered: Blue");
    let unasked = messages.iter().filter(|message| message.to_string().contains("unasked")).count();
    assert_eq!(unasked, 2);
    client.end();
}

#[test]
fn initialize_can_fail_in_every_way() {
    let mut client = Client::start("", &["--refuse", "not you"], None);
    assert_eq!(client.call("initialize", &json!({}))["error"]["message"], "not you");
    client.end();
    let mut client = Client::start("", &["--speaks", "2"], None);
    assert_eq!(client.call("initialize", &json!({}))["result"]["protocolVersion"], 2);
    client.end();
    let mut client = Client::start("", &["--die", "3"], None);
    client.ask("initialize", &json!({}));
    assert_eq!(client.child.wait().expect("an end").code(), Some(3));
    let dir = tempfile::tempdir().expect("a directory");
    let mark = dir.path().join("mark");
    let mark = mark.to_str().expect("text");
    for code in [Some(4), Some(0)] {
        let mut client = Client::start("", &["--die-once", mark, "4"], None);
        client.ask("initialize", &json!({}));
        assert_eq!(client.end(), code);
    }
}
