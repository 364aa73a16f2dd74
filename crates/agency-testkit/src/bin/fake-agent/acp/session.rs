//! One session: plays the script, then echoes every message; a message that begins with `!` is a script itself.
//!
//! | step | effect |
//! |---|---|
//! | `prompt` | waits for a message |
//! | `say TEXT`, `think TEXT` | sends a message or a thought; `\\n` in it is a line end |
//! | `noisy N` | sends a message of N parts, and a line that is no message after each part |
//! | `commands A|B` | lists slash commands |
//! | `option NAME` | says the value of an option |
//! | `tool NAME COMMAND` | asks for permission unless the mode is `auto`, then reports a result |
//! | `edit FILE OLD|NEW` | the same with a change of a file |
//! | `ask QUESTION|A|B` | asks a question and says the answer |
//! | `plan A|B|C` | sends a plan whose first step is done |
//! | `usage COST` | reports usage |
//! | `switch MODE` | changes its mode by itself |
//! | `late COMMAND` | uses a tool, and names the command when the tool runs |
//! | `mode`, `cwd`, `env NAME` | says its mode, its directory, a variable |
//! | `mcp TOOL JSON` | calls a tool of the MCP server that it got, and says the answer |
//! | `wait` | works until the client cancels the turn |
//! | `end`, `fail TEXT`, `stop REASON` | ends the turn: well, with an error, for this reason |
//! | `line TEXT` | prints the text as it is |
//! | `update KIND`, `request METHOD` | sends an update or a request that the client does not know |
//! | `big BYTES`, `many N` | sends a tool result of this size; sends N messages |
//! | `await PATH` | waits until a process has opened and closed the named pipe at PATH |
//! | `crash-once PATH CODE`, `crash CODE`, `exit CODE` | ends the process |

use std::collections::{HashMap, VecDeque};
use std::process::exit;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Value, json};

use super::{Agent, answer, chunk, mcp, refuse, update};
use crate::ending::{crash, crash_once};
use crate::lines::{print_line, record_heard, steps_of};
use crate::script::Ending;

/// A message of the client to a session.
pub(super) enum Incoming {
    Prompt {
        id: Value,
        text: String,
    },
    Cancel,
    /// The answer to a request of the session.
    Answer(Value),
    Mode(String),
    /// The name and the value of an option.
    Option(String, Value),
    Close,
}

pub(super) struct Session {
    agent: Arc<Agent>,
    name: String,
    cwd: String,
    /// The MCP servers that the client passed.
    servers: Value,
    mode: String,
    /// The options that the client has set.
    options: HashMap<String, Value>,
    inbox: Receiver<Incoming>,
    outbox: Sender<Incoming>,
    waiting: VecDeque<(Value, String)>,
    /// The id of the prompt that the session works on.
    turn: Option<Value>,
    message: String,
    next: u64,
}

/// The client cancelled the turn.
struct Cancelled;

impl Session {
    pub(super) fn begin(agent: Arc<Agent>, name: &str, params: &Value, script: &str) -> Sender<Incoming> {
        let (outbox, inbox) = channel();
        let session = Session {
            name: name.to_owned(),
            cwd: params["cwd"].as_str().unwrap_or_default().to_owned(),
            servers: params["mcpServers"].clone(),
            mode: agent.first_mode(),
            agent,
            options: HashMap::new(),
            inbox,
            outbox: outbox.clone(),
            waiting: VecDeque::new(),
            turn: None,
            message: String::new(),
            next: 0,
        };
        let script = script.to_owned();
        std::thread::spawn(move || session.run(&script));
        outbox
    }

    fn run(mut self, script: &str) {
        if self.play(script).is_none() {
            return;
        }
        while self.prompt().is_some() {
            let message = self.message.clone();
            let played = match message.strip_prefix('!') {
                Some(script) => self.play(script),
                None => {
                    self.say(&format!("echo: {message}"));
                    Some(())
                }
            };
            if played.is_none() {
                return;
            }
            self.end("end_turn");
        }
    }

    /// `None`: the client closed the session.
    fn play(&mut self, script: &str) -> Option<()> {
        for (word, rest) in steps_of(script) {
            match (word, self.turn.is_some()) {
                ("prompt", _) => self.prompt()?,
                // After a cancel, skip the other steps of the turn.
                (_, false) => {}
                (word, true) => {
                    if let Some(Cancelled) = self.step(word, rest)? {
                        self.end("cancelled");
                    }
                }
            }
        }
        Some(())
    }

    fn step(&mut self, word: &str, rest: &str) -> Option<Option<Cancelled>> {
        match word {
            "say" => self.say(&rest.replace("\\n", "\n")),
            "think" => self.update(&chunk("agent_thought_chunk", &rest.replace("\\n", "\n"))),
            "noisy" => {
                for part in 1..=rest.parse::<u64>().unwrap_or(0) {
                    self.update(&chunk("agent_message_chunk", &format!("part {part} ")));
                    print_line(&format!("noise after part {part}"));
                }
            }
            "commands" => {
                let command = |name: &str| {
                    json!({ "name": name.trim(), "description": format!("does {name}"),
                    "input": { "hint": "what" } })
                };
                let commands: Vec<Value> = rest.split('|').map(command).collect();
                let update =
                    json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands });
                self.update(&update);
            }
            "option" => {
                let value = self.options.get(rest).cloned().unwrap_or_default();
                self.say(&format!("{rest} is {value}"));
            }
            "tool" => return self.tool(rest),
            "edit" => return self.edit(rest),
            "bare" => return self.bare(rest),
            "described" => return self.described(rest),
            "server-tool" => return self.server_tool(rest),
            "ask" => return self.ask(rest),
            "request" => return self.request(rest),
            "plan" => self.plan(rest),
            "usage" => {
                let cost = json!({ "amount": rest.parse::<f64>().unwrap_or(0.25), "currency": "USD" });
                self.update(
                    &json!({ "sessionUpdate": "usage_update", "used": 120, "size": 1000, "cost": cost }),
                );
            }
            "switch" => {
                self.mode = rest.to_owned();
                self.update(&json!({ "sessionUpdate": "current_mode_update", "currentModeId": rest }));
            }
            "late" => self.late(rest),
            "mode" => self.say(&format!("mode: {}", self.mode.clone())),
            "cwd" => self.say(&format!("cwd: {}", self.cwd.clone())),
            "mcp" => {
                let (tool, arguments) = rest.split_once(' ').unwrap_or((rest, "{}"));
                let answer = mcp::call(&self.servers, tool, arguments);
                self.say(&answer);
            }
            "env" => self.say(&std::env::var(rest).unwrap_or_else(|_| "unset".into())),
            "wait" => return self.wait_for_cancel(),
            "end" => self.end("end_turn"),
            "stop" => self.end(rest),
            "fail" => self.fail(rest),
            "line" => print_line(rest),
            "update" => self.update(&json!({ "sessionUpdate": rest, "more": [1, 2] })),
            "big" => self.big(rest.parse().unwrap_or(0)),
            "many" => (1..=rest.parse().unwrap_or(0)).for_each(|at| self.say(&format!("message {at}"))),
            "await" => drop(std::fs::read(rest)),
            "crash-once" => crash_once(rest),
            "crash" => crash(Ending::Code(rest.parse().unwrap_or(1))),
            "exit" => exit(rest.parse().unwrap_or(0)),
            other => {
                eprintln!("fake-agent: no such step: {other}");
                exit(2)
            }
        }
        Some(None)
    }

    fn prompt(&mut self) -> Option<()> {
        while self.waiting.is_empty() {
            self.receive()?;
        }
        let (id, text) = self.waiting.pop_front()?;
        self.agent.session_file.add_message(&self.name, "user_message_chunk", &text);
        (self.turn, self.message) = (Some(id), text);
        Some(())
    }

    /// Handles one message of the client, and returns it if it is a cancel or an answer. `None`: the client closed the
    /// session.
    fn receive(&mut self) -> Option<Option<Incoming>> {
        match self.inbox.recv().ok()? {
            Incoming::Prompt { id, text } => {
                record_heard(&text);
                self.waiting.push_back((id, text));
                Some(None)
            }
            Incoming::Mode(mode) => {
                self.mode = mode;
                Some(None)
            }
            Incoming::Option(name, value) => {
                self.options.insert(name, value);
                Some(None)
            }
            Incoming::Close => None,
            incoming @ (Incoming::Cancel | Incoming::Answer(_)) => Some(Some(incoming)),
        }
    }

    /// Sends the text word by word.
    fn say(&mut self, text: &str) {
        self.next += 1;
        let message = format!("m{}", self.next);
        for piece in text.split_inclusive(' ') {
            let mut part = chunk("agent_message_chunk", piece);
            part["messageId"] = json!(message);
            self.update(&part);
        }
        self.agent.session_file.add_message(&self.name, "agent_message_chunk", text);
    }

    fn plan(&self, rest: &str) {
        let step = |(at, text): (usize, &str)| {
            let status = ["completed", "in_progress"].get(at).copied().unwrap_or("pending");
            json!({ "content": text.trim(), "priority": "medium", "status": status })
        };
        let entries: Vec<Value> = rest.split('|').enumerate().map(step).collect();
        self.update(&json!({ "sessionUpdate": "plan", "entries": entries }));
    }

    fn tool(&mut self, rest: &str) -> Option<Option<Cancelled>> {
        let (name, command) = rest.split_once(' ').unwrap_or((rest, ""));
        let call = self.id("call");
        let known = json!({ "toolCallId": call, "name": name, "title": format!("{name}: {command}"),
            "kind": "execute", "rawInput": { "command": command } });
        self.call_tool(known.clone(), known, &format!("ran {command}"))
    }

    /// Asks without the arguments of the tool, as Gemini CLI does.
    fn bare(&mut self, command: &str) -> Option<Option<Cancelled>> {
        let known = json!({ "toolCallId": self.id("call"), "title": command, "kind": "execute" });
        self.call_tool(known.clone(), known, &format!("ran {command}"))
    }

    /// Asks with words of the model as the title, as Copilot does.
    fn described(&mut self, rest: &str) -> Option<Option<Cancelled>> {
        let (words, command) = rest.split_once('|').unwrap_or((rest, ""));
        let known = json!({ "toolCallId": self.id("call"), "title": words, "kind": "execute",
            "rawInput": { "command": command, "cwd": "/srv" } });
        self.call_tool(known.clone(), known, &format!("ran {command}"))
    }

    /// Asks for a tool of an MCP server with `{}` as the title, as Qwen Code does.
    fn server_tool(&mut self, tool: &str) -> Option<Option<Cancelled>> {
        let call = self.id("call");
        let title = format!("{tool} (agency MCP Server): {{}}");
        let known =
            json!({ "toolCallId": call, "title": title, "kind": "other", "rawInput": { "all": true } });
        self.call_tool(known, json!({ "toolCallId": call, "title": "{}" }), &format!("called {tool}"))
    }

    fn edit(&mut self, rest: &str) -> Option<Option<Cancelled>> {
        let (file, change) = rest.split_once(' ').unwrap_or((rest, ""));
        let (old, new) = change.split_once('|').unwrap_or(("", change));
        let call = self.id("call");
        let diff = json!([{ "type": "diff", "path": file, "oldText": old, "newText": new }]);
        let known = json!({ "toolCallId": call, "name": "Edit", "title": format!("Edit {file}"), "kind": "edit",
            "rawInput": { "file_path": file }, "content": diff });
        self.call_tool(known.clone(), known, "changed")
    }

    /// Reports a call, then asks for permission with `call`.
    fn call_tool(&mut self, mut started: Value, call: Value, done: &str) -> Option<Option<Cancelled>> {
        (started["sessionUpdate"], started["status"]) = (json!("tool_call"), json!("pending"));
        self.update(&started);
        let id = call["toolCallId"].clone();
        if self.mode == "auto" {
            self.result(&id, "completed", &format!("{done} unasked"));
            return Some(None);
        }
        let options = [
            ("yes-1", "Allow", "allow_once"),
            ("yes-2", "Always allow", "allow_always"),
            ("yes-3", "Switch to default mode", "allow_once"),
            ("no-1", "Reject", "reject_once"),
        ];
        let options = options.map(|(id, name, kind)| json!({ "optionId": id, "name": name, "kind": kind }));
        let params = json!({ "sessionId": self.name, "toolCall": call, "options": options });
        let (answered, cancelled) = self.request_and_wait("session/request_permission", &params)?;
        match answered["result"]["outcome"]["optionId"].as_str() {
            Some("yes-1") => self.result(&id, "completed", done),
            Some("yes-2") => self.result(&id, "completed", &format!("{done} for good")),
            Some("yes-3") => self.result(&id, "completed", &format!("{done} in the default mode")),
            Some(_) => self.result(&id, "failed", "the user said no"),
            None => self.result(&id, "failed", "cancelled"),
        }
        Some(cancelled)
    }

    fn result(&self, call: &Value, status: &str, text: &str) {
        let content = json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
        self.update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": call, "status": status,
            "content": content }));
    }

    fn ask(&mut self, rest: &str) -> Option<Option<Cancelled>> {
        let mut words = rest.split('|').map(str::trim);
        let question = words.next().unwrap_or_default().to_owned();
        let options: Vec<Value> = words.map(|word| json!({ "const": word, "title": word })).collect();
        let mut field = json!({ "type": "string" });
        if !options.is_empty() {
            field["oneOf"] = json!(options);
        }
        let schema = json!({ "type": "object", "properties": { "answer": field }, "required": ["answer"] });
        let params = json!({ "sessionId": self.name, "mode": "form", "message": question,
            "requestedSchema": schema });
        let (answered, cancelled) = self.request_and_wait("elicitation/create", &params)?;
        let result = &answered["result"];
        let words = match result["action"].as_str() {
            Some("accept") => result["content"]["answer"].as_str().unwrap_or_default().to_owned(),
            Some(other) => other.to_owned(),
            None => "nothing".to_owned(),
        };
        if cancelled.is_none() {
            self.say(&format!("answered: {words}"));
        }
        Some(cancelled)
    }

    fn request(&mut self, method: &str) -> Option<Option<Cancelled>> {
        let (answered, cancelled) = self.request_and_wait(method, &json!({ "sessionId": self.name }))?;
        self.say(&format!("told: {}", answered["error"]["code"]));
        Some(cancelled)
    }

    /// The answer, and whether the client cancelled the turn meanwhile. A client that cancels must still answer.
    fn request_and_wait(&mut self, method: &str, params: &Value) -> Option<(Value, Option<Cancelled>)> {
        self.agent.ask(method, params, self.outbox.clone());
        let mut cancelled = None;
        loop {
            match self.receive()? {
                Some(Incoming::Answer(answer)) => return Some((answer, cancelled)),
                Some(Incoming::Cancel) => cancelled = Some(Cancelled),
                _ => {}
            }
        }
    }

    fn wait_for_cancel(&mut self) -> Option<Option<Cancelled>> {
        loop {
            if let Some(Incoming::Cancel) = self.receive()? {
                return Some(Some(Cancelled));
            }
        }
    }

    /// Names the command only in an update, as opencode does.
    fn late(&mut self, command: &str) {
        let call = json!(self.id("call"));
        self.update(
            &json!({ "sessionUpdate": "tool_call", "toolCallId": call, "title": "shell", "kind": "execute",
            "status": "in_progress", "rawInput": { "cwd": "/srv" } }),
        );
        self.update(&json!({ "sessionUpdate": "tool_call_update", "toolCallId": call, "title": command,
            "rawInput": { "cwd": "/srv", "command": command } }));
        self.result(&call, "completed", "ran it");
    }

    fn big(&mut self, bytes: usize) {
        let call = json!(self.id("call"));
        self.update(&json!({ "sessionUpdate": "tool_call", "toolCallId": call, "name": "Read", "title": "Read big.txt",
            "kind": "read", "status": "in_progress", "rawInput": { "file_path": "big.txt" } }));
        self.result(&call, "completed", &"x".repeat(bytes));
    }

    fn end(&mut self, reason: &str) {
        if let Some(id) = self.turn.take() {
            let usage =
                json!({ "totalTokens": 127, "inputTokens": 100, "outputTokens": 20, "cachedReadTokens": 7 });
            answer(&id, &json!({ "stopReason": reason, "usage": usage }));
        }
    }

    fn fail(&mut self, words: &str) {
        if let Some(id) = self.turn.take() {
            refuse(&id, -32603, words);
        }
    }

    fn id(&mut self, kind: &str) -> String {
        self.next += 1;
        format!("{kind}-{}-{}", self.name, self.next)
    }

    fn update(&self, what: &Value) {
        update(&self.name, what);
    }
}
