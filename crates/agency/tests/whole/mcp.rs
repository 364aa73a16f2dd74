//! Agents that use Agency through MCP on a pipe, and their limits.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::conversations::{new_conversation, wait_approval, wait_said, wait_why};
use crate::stage::{SOON, Stage};

/// `agency mcp` at the other end of a pipe.
struct Client {
    server: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next: u64,
}

impl Client {
    /// As the agent of a task starts it; without a task, as a user's program does.
    #[track_caller]
    fn of(stage: &Stage, slug: Option<&str>) -> Client {
        let mut agency = stage.agency(["mcp"]);
        if let Some(slug) = slug {
            let run = stage.task(slug)["run"].as_str().expect("a live run").to_owned();
            agency.env("AGENCY_RUN_ID", run).env("AGENCY_PROJECT_ROOT", stage.repo()).current_dir("/");
        }
        let mut server =
            agency.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program runs");
        let stdout = server.stdout.take().expect("it was asked for");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = server.stdin.take();
        let mut client = Client { server, stdin, lines, next: 0 };
        client.initialize();
        client
    }

    #[track_caller]
    fn initialize(&mut self) {
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let begun = self.request("initialize", params);
        assert_eq!(begun["result"]["serverInfo"]["name"], "agency", "{begun}");
        assert!(begun["result"]["capabilities"]["tools"].is_object(), "{begun}");
        self.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    fn write(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("it is open");
        writeln!(stdin, "{message}").and_then(|()| stdin.flush()).expect("it listens");
    }

    /// The whole answer, result or error.
    #[track_caller]
    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        self.write(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }));
        loop {
            let line = self.lines.recv_timeout(SOON).expect("an answer");
            let message: Value = serde_json::from_str(&line).expect("nothing but JSON");
            if message["id"] == self.next {
                return message;
            }
        }
    }

    #[track_caller]
    fn tools(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", json!({}));
        let tools = listed["result"]["tools"].as_array().expect("tools").iter();
        tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// The text, and whether it is an error.
    #[track_caller]
    fn tool(&mut self, name: &str, arguments: Value) -> (String, bool) {
        let answer = self.request("tools/call", json!({ "name": name, "arguments": arguments }));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        (text.to_owned(), result["isError"] == true)
    }

    #[track_caller]
    fn call(&mut self, name: &str, arguments: Value) -> String {
        let (text, is_error) = self.tool(name, arguments);
        assert!(!is_error, "{text}");
        text
    }

    #[track_caller]
    fn json(&mut self, name: &str, arguments: Value) -> Value {
        serde_json::from_str(&self.call(name, arguments)).expect("JSON")
    }

    #[track_caller]
    fn refused(&mut self, name: &str, arguments: Value) -> String {
        let (text, is_error) = self.tool(name, arguments);
        assert!(is_error, "{text}");
        text
    }
}

impl Drop for Client {
    /// The server ends when its input ends.
    fn drop(&mut self) {
        drop(self.stdin.take());
        self.server.wait().expect("our own child");
    }
}

/// Agents with conversations: one starts tasks, the other works at its first message.
const AGENTS: &str = "\
[agents.helper]
driver = \"stream-json\"
stream = [\"fake-agent\", \"--stream-json\", \"prompt; say I will peel it.; end\"]

[agents.asker]
driver = \"stream-json\"
stream = [\"fake-agent\", \"--stream-json\", \"prompt; tool Bash peel; say Peeled.; end\"]
";

#[track_caller]
fn boss(stage: &Stage) -> Client {
    new_conversation(stage, "boss", "lead", "prompt; say I lead.; end");
    wait_why(stage, "boss", "finished");
    Client::of(stage, Some("boss"))
}

fn start(slug: &str, agent: &str) -> Value {
    json!({ "slug": slug, "message": "peel the kumquat", "agent": agent })
}

#[test]
fn an_agent_starts_another_waits_for_it_reads_it_and_sends_it_more() {
    let stage = Stage::with_config(AGENTS);
    let mut client = boss(&stage);
    let tools = client.tools();
    assert!(
        tools.contains(&"start_task".to_owned()) && !tools.contains(&"answer_approval".to_owned()),
        "{tools:?}"
    );

    let started = client.json("start_task", start("peel", "helper"));
    assert_eq!((&started["task"]["id"], &started["task"]["parent"]), (&json!(2), &json!(1)));
    let waited = client.json("wait_for_task", json!({ "task": "peel", "timeout_seconds": 50 }));
    assert_eq!((&waited["time_is_up"], &waited["task"]["waits_for"]), (&json!(false), &json!("finished")));
    let state = client.json("task_state", json!({ "task": "2" }));
    assert_eq!((&state["state"], &state["waits_for"]), (&json!("needs_input"), &json!("finished")));
    let read = client.call("read_task", json!({ "task": "peel" }));
    assert!(read.contains("> peel the kumquat") && read.contains("I will peel it."), "{read}");
    let sent = client.json("send_message", json!({ "task": "peel", "text": "and the quince" }));
    assert_eq!(sent["receipt"], "delivered");
    wait_said(&stage, "peel", "echo: and the quince");
    let found = client.json("search", json!({ "words": "echo quince" }));
    assert_eq!(found["hits"][0]["slug"], "peel", "{found}");

    let listed = client.json("list_tasks", json!({}));
    assert_eq!((&listed["tasks"][0]["is_you"], &listed["tasks"][1]["parent"]), (&json!(true), &json!(1)));
    let file = stage.task_file("2-peel");
    assert!(file.contains("\nparent: 1\n"), "{file}");
    assert_eq!(stage.task("peel")["parent"], 1);
    let shown = stage.run(["ls"]).ok();
    assert!(shown.lines().any(|line| line.starts_with("2   └ peel")), "{shown}");
    assert!(stage.run(["explain", "peel"]).ok().contains("started by the agent of task 1"));

    let stopped = client.json("stop_task", json!({ "task": "peel" }));
    assert_eq!((&stopped["status"], &stopped["state"]), (&json!("stopped"), &json!("exited")));
}

#[test]
fn the_daemon_enforces_the_users_limits_and_gives_the_reason() {
    let stage = Stage::with_config(&format!("{AGENTS}\n[mcp]\nmax_tasks = 1\n"));
    let mut client = boss(&stage);
    new_conversation(&stage, "other", "alone", "prompt; say Alone.; end");
    wait_why(&stage, "other", "finished");
    client.call("start_task", start("one", "helper"));
    let refused = client.refused("start_task", start("two", "helper"));
    assert!(refused.contains("task 1-boss has 1 live tasks already"), "{refused}");
    assert!(refused.contains("`max_tasks` in [mcp] is 1"), "{refused}");

    let mut child = Client::of(&stage, Some("one"));
    let refused = child.refused("start_task", start("deeper", "helper"));
    assert!(
        refused.contains("task 3-one was started by an agent itself, and `depth` in [mcp] is 1"),
        "{refused}"
    );
    assert!(refused.contains("agency config set mcp.depth 2"), "{refused}");
    assert_eq!(stage.listing()["tasks"].as_array().map(Vec::len), Some(3), "nothing was made");

    let refused = client.refused("send_message", json!({ "task": "boss", "text": "hello me" }));
    assert!(refused.contains("send_message cannot be used on your own task"), "{refused}");
    assert!(
        client.refused("wait_for_task", json!({ "task": "1" })).contains("cannot be used on your own task")
    );
    let refused = client.refused("stop_task", json!({ "task": "other" }));
    assert!(refused.contains("only the tasks that it started"), "{refused}");
    let refused = client.refused("answer_approval", json!({ "task": "one", "allow": true }));
    assert!(refused.contains("answer_approval is not allowed"), "{refused}");
    client.call("stop_task", json!({ "task": "one" }));
    client.call("start_task", start("two", "helper"));

    stage.configure(&format!("{AGENTS}\n[mcp]\nallow = [\"list_tasks\"]\n"));
    assert_eq!(client.tools(), ["list_tasks"], "a change takes effect now");
    let refused = client.refused("start_task", start("three", "helper"));
    assert!(refused.contains("it is not in `mcp.allow`"), "{refused}");
    stage.configure(&format!("{AGENTS}\n[mcp]\ndepth = 2\n"));
    let mut child = Client::of(&stage, Some("two"));
    child.call("start_task", start("deeper", "helper"));
    let shown = stage.run(["ls"]).ok();
    assert!(shown.lines().any(|line| line.starts_with("5     └ deeper")), "{shown}");
    client.call("stop_task", json!({ "task": "deeper" }));
    stage.run(["stop", "boss"]).ok();
    let refused = client.refused("list_tasks", json!({}));
    assert!(refused.contains("cannot tell which task this agent belongs to"), "{refused}");
}

#[test]
fn a_wrong_call_gets_an_error_with_the_reason() {
    let stage = Stage::with_config(AGENTS);
    let mut client = boss(&stage);
    let unknown = client.request("tools/call", json!({ "name": "rm_task", "arguments": {} }));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert!(
        unknown["error"]["message"].as_str().is_some_and(|text| text.starts_with("there is no tool rm_task"))
    );
    for (name, given, why) in [
        ("task_state", json!({}), "missing field `task`"),
        ("task_state", json!({ "task": "boss", "loud": true }), "unknown field `loud`"),
        ("wait_for_task", json!({ "task": "boss", "until": ["bored"] }), "unknown variant `bored`"),
    ] {
        let wrong = client.request("tools/call", json!({ "name": name, "arguments": given }));
        assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
        assert!(wrong["error"]["message"].as_str().is_some_and(|text| text.contains(why)), "{wrong}");
    }
    assert!(client.refused("task_state", json!({ "task": "unknown" })).contains("unknown"));
    assert!(client.refused("start_task", start("no spaces please", "helper")).contains("Error: "));
    assert!(client.refused("start_task", start("fine", "no-such-agent")).contains("no-such-agent"));
    let unheard = client.request("resources/unheard", json!({}));
    assert_eq!(unheard["error"]["code"], -32601, "{unheard}");
    client.call("list_tasks", json!({}));
}

#[test]
fn a_terminal_is_read_and_an_approval_is_answered_where_that_is_allowed() {
    let stage = Stage::with_config(&format!(
        "{AGENTS}\n[mcp]\nallow = [\"list_tasks\", \"read_task\", \"start_task\", \"list_approvals\", \"answer_approval\"]\n"
    ));
    // A user's program has no task, and needs none.
    let mut client = Client::of(&stage, None);
    stage.play("build", "say line one; say line two; ask ready?");
    stage.wait_printed("build", "ready?");
    let read = client.call("read_task", json!({ "task": "build", "last": 2 }));
    assert_eq!(read.lines().next(), Some("line two"), "{read}");
    stage.run(["stop", "build"]).ok();
    let read = client.call("read_task", json!({ "task": "build" }));
    assert!(read.contains("line one\nline two"), "{read}");

    client.call("start_task", start("ask", "asker"));
    wait_approval(&stage, "ask");
    let asked = client.json("list_approvals", json!({}));
    assert_eq!(asked["approvals"][0]["title"], "Bash: peel", "{asked}");
    let answered =
        client.call("answer_approval", json!({ "task": "ask", "allow": true, "message": "go on" }));
    assert_eq!(answered, "Bash: peel: allowed by an MCP client (go on)");
    wait_said(&stage, "ask", "Peeled.");
    assert_eq!(stage.task("ask")["parent"], Value::Null);
}

#[test]
fn an_agent_with_a_shared_process_gets_the_tools_of_its_own_task() {
    let acp = "[agents.fake]\nacp = [\"fake-agent\", \"--acp\", \"\"]\n";
    let stage = Stage::with_config(&format!("{AGENTS}\n{acp}\n[mcp]\noffer = true\n"));
    let new_task = |slug: &str, message: &str| {
        stage.run(["new", slug, "--no-attach", "--driver", "acp", "-m", message]).ok();
    };
    new_task("other", "!say I am another.; end");
    new_task("boss", &format!("!mcp start_task {}; end", start("peel", "helper")));
    wait_why(&stage, "boss", "finished");
    wait_said(&stage, "peel", "I will peel it.");
    assert_eq!(stage.task("peel")["parent"], 2);
    stage.run(["restart", "boss"]).ok();
    stage.run(["send", "boss", "--queue", "!mcp list_tasks {}; end"]).ok();
    wait_said(&stage, "boss", "\"is_you\": true");

    stage.configure(&format!("{AGENTS}\n{acp}"));
    new_task("alone", "!mcp list_tasks {}; end");
    wait_said(&stage, "alone", "there is no server that answers");
}

#[test]
fn the_tools_survive_the_death_of_the_daemon() {
    let stage = Stage::with_config(AGENTS);
    let mut client = boss(&stage);
    client.call("start_task", start("peel", "helper"));
    wait_said(&stage, "peel", "I will peel it.");
    stage.kill_daemon();
    let listed = client.json("list_tasks", json!({}));
    assert_eq!(listed["tasks"][1]["parent"], 1, "{listed}");
    client.call("stop_task", json!({ "task": "peel" }));
}
