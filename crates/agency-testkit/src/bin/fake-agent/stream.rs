//! An agent that speaks stream-json instead of using a terminal, as Claude Code does.
//!
//! `fake-agent --stream-json SCRIPT [--resume SESSION]`: plays steps between `;` or line ends, then echoes every message.
//!
//! | step | effect |
//! |---|---|
//! | `prompt` | waits for a message |
//! | `say TEXT`, `think TEXT` | sends a message or a thought; `\\n` in it is a line end |
//! | `noisy N` | sends a message of N parts, and a line that is no message after each part |
//! | `long BYTES` | sends a message of this size in parts; it ends with `the end` |
//! | `commands A|B` | lists slash commands |
//! | `tool NAME COMMAND` | asks for permission, then reports a result |
//! | `ask QUESTION|A|B` | asks a question |
//! | `wait` | works until the client interrupts the turn |
//! | `end`, `fail TEXT` | ends the turn, well or with an error |
//! | `line TEXT` | prints the text as it is |
//! | `big BYTES`, `many N` | sends a tool result of this size; sends N messages |
//! | `request KIND` | sends a request that the client does not know |
//! | `forget` | does not find the session that it is to resume, and ends |
//! | `args` | says its arguments |
//! | `crash-once PATH CODE` | ends if PATH does not exist, and creates PATH |
//! | `crash CODE`, `exit CODE` | ends |

use std::collections::VecDeque;
use std::io::BufRead;
use std::process::exit;

use serde_json::{Value, json};

use crate::ending::{crash, crash_once};
use crate::lines::{print_line, record_heard, steps_of};
use crate::script::Ending;

pub(crate) fn play(mut args: impl Iterator<Item = String>) -> ! {
    let script = args.next().unwrap_or_default();
    let args: Vec<String> = args.collect();
    let resumed = args.windows(2).find(|pair| pair[0] == "--resume").map(|pair| pair[1].clone());
    let session = resumed.unwrap_or_else(|| format!("fake-session-{}", std::process::id()));
    let mut agent = Agent {
        session,
        args,
        next: 1,
        waiting: VecDeque::new(),
        is_in_turn: false,
        mode: "default".to_owned(),
        message: String::new(),
        answered: Vec::new(),
    };
    for (word, rest) in steps_of(&script) {
        agent.step(word, rest);
    }
    loop {
        agent.prompt();
        let message = agent.message.clone();
        agent.say(&format!("echo: {message}"));
        agent.end(&message, None);
    }
}

struct Agent {
    session: String,
    args: Vec<String>,
    next: u64,
    waiting: VecDeque<String>,
    is_in_turn: bool,
    mode: String,
    message: String,
    /// The ids of our requests that the client has answered.
    answered: Vec<Value>,
}

/// A message of the client that ends a wait.
enum Incoming {
    Interrupt,
    Answer(Value),
}

impl Agent {
    fn step(&mut self, word: &str, rest: &str) {
        match word {
            "prompt" => self.prompt(),
            // After an interrupt, skip the other steps of the turn.
            "noisy" | "long" | "say" | "think" | "tool" | "ask" | "wait" | "end" | "fail"
                if !self.is_in_turn => {}
            "say" => self.say(&rest.replace("\\n", "\n")),
            "think" => self.block(json!({ "type": "thinking", "thinking": rest.replace("\\n", "\n") })),
            "noisy" => {
                let parts: Vec<String> =
                    (1..=rest.parse().unwrap_or(0)).map(|part: u64| format!("part {part} ")).collect();
                self.say_parts(&parts, |part| print_line(&format!("noise after {part}")));
            }
            "long" => {
                let size = rest.parse::<usize>().unwrap_or(0);
                let parts = vec!["0123456789\n".repeat(91); size / 1001].into_iter();
                self.say_parts(&parts.chain(["the end".to_owned()]).collect::<Vec<_>>(), |_| {});
            }
            "commands" => {
                let names: Vec<&str> = rest.split('|').map(str::trim).collect();
                self.emit(json!({ "type": "system", "subtype": "init", "slash_commands": names }));
            }
            "tool" => self.tool(rest),
            "ask" => self.ask(rest),
            "wait" => {
                while !matches!(self.receive(), Incoming::Interrupt) {}
                self.end_interrupted();
            }
            "end" => self.end("done", None),
            "fail" => self.end(rest, Some("api_error")),
            "line" => print_line(rest),
            "big" => self.big(rest.parse().unwrap_or(0)),
            "request" => {
                let id = self.id("req");
                let request = json!({ "subtype": rest });
                self.emit(json!({ "type": "control_request", "request_id": id, "request": request }));
                if let Incoming::Answer(answer) = self.receive() {
                    self.say(&format!("told: {}", answer["subtype"].as_str().unwrap_or_default()));
                }
            }
            "forget" if self.args.iter().any(|arg| arg == "--resume") => {
                self.emit(json!({ "type": "result", "subtype": "error_during_execution", "is_error": true,
                    "num_turns": 0 }));
                exit(1)
            }
            "forget" => {}
            "args" => self.say(&format!("args: {}", self.args.join(" "))),
            "many" => {
                (1..=rest.parse().unwrap_or(0)).for_each(|number| self.say(&format!("message {number}")))
            }
            "crash-once" => crash_once(rest),
            "crash" => crash(Ending::Code(rest.parse().unwrap_or(1))),
            "exit" => exit(rest.parse().unwrap_or(0)),
            other => {
                eprintln!("fake-agent: no such step: {other}");
                exit(2)
            }
        }
    }

    fn prompt(&mut self) {
        while self.waiting.is_empty() {
            self.receive();
        }
        self.message = self.waiting.pop_front().unwrap_or_default();
        self.is_in_turn = true;
        self.state("running");
        self.emit(json!({ "type": "system", "subtype": "init", "tools": ["Bash"] }));
    }

    /// Waits for an interrupt or an answer; between turns also for a message. Queues messages.
    fn receive(&mut self) -> Incoming {
        loop {
            let mut line = String::new();
            match std::io::stdin().lock().read_line(&mut line) {
                Ok(0) | Err(_) => exit(0),
                Ok(_) => {}
            }
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            match message["type"].as_str() {
                Some("user") => {
                    let content = &message["message"]["content"];
                    let text = content[0]["text"].as_str().unwrap_or_default();
                    record_heard(text);
                    let source = &content[1]["source"];
                    let image = source["data"].as_str().map(|data| {
                        format!(" [{}, {}]", source["media_type"].as_str().unwrap_or_default(), data.len())
                    });
                    self.waiting.push_back(format!("{text}{}", image.unwrap_or_default()));
                    if !self.is_in_turn {
                        return Incoming::Answer(Value::Null);
                    }
                }
                Some("control_request") => {
                    let response = self.respond(&message["request_id"], &message["request"]);
                    self.emit(json!({ "type": "control_response", "response": response }));
                    if message["request"]["subtype"] == "interrupt" {
                        return Incoming::Interrupt;
                    }
                }
                Some("control_response") => {
                    let response = &message["response"];
                    if self.answered.contains(&response["request_id"]) {
                        self.say(&format!("answered twice: {}", response["request_id"]));
                        continue;
                    }
                    self.answered.push(response["request_id"].clone());
                    return Incoming::Answer(response.clone());
                }
                _ => {}
            }
        }
    }

    /// The response to a request of the client. A model or a mode with `no-` in its name does not exist.
    fn respond(&mut self, id: &Value, request: &Value) -> Value {
        let wanted = request["model"].as_str().or(request["mode"].as_str()).unwrap_or_default();
        if wanted.contains("no-") {
            return json!({ "subtype": "error", "request_id": id, "error": format!("unknown: {wanted}") });
        }
        let model = |id: &str, name: &str| json!({ "value": id, "displayName": name });
        let models = [model("small", "Small"), model("large", "Large")];
        let response = match request["subtype"].as_str() {
            Some("initialize") => json!({ "models": models, "current_permission_mode": self.mode }),
            Some("set_permission_mode") => {
                self.mode = wanted.to_owned();
                json!({ "mode": wanted })
            }
            _ => json!({}),
        };
        json!({ "subtype": "success", "request_id": id, "response": response })
    }

    /// Sends the text word by word, then as a whole.
    fn say(&mut self, text: &str) {
        self.say_parts(&text.split_inclusive(' ').map(str::to_owned).collect::<Vec<_>>(), |_| {});
    }

    fn say_parts(&mut self, parts: &[String], after_part: impl Fn(&str)) {
        let id = self.id("msg");
        let part = |event: Value| json!({ "type": "stream_event", "event": event });
        self.emit(part(json!({ "type": "message_start", "message": { "id": id } })));
        for piece in parts {
            let delta = json!({ "type": "text_delta", "text": piece });
            self.emit(part(json!({ "type": "content_block_delta", "index": 0, "delta": delta })));
            after_part(piece);
        }
        let text = parts.concat();
        let content = json!([{ "type": "text", "text": text }]);
        self.emit(json!({ "type": "assistant", "message": { "id": id, "content": content } }));
    }

    fn block(&mut self, block: Value) {
        let id = self.id("msg");
        self.emit(json!({ "type": "assistant", "message": { "id": id, "content": [block] } }));
    }

    fn tool(&mut self, rest: &str) {
        let (name, command) = rest.split_once(' ').unwrap_or((rest, ""));
        let rule = json!({ "type": "addRules", "rules": [{ "toolName": name, "ruleContent": command }],
            "behavior": "allow", "destination": "localSettings" });
        self.ask_permission(name, json!({ "command": command }), json!([rule]), |answer| {
            let always = if answer["updatedPermissions"].is_null() { "" } else { " for good" };
            format!("ran {command}{always}")
        });
    }

    fn ask(&mut self, rest: &str) {
        let mut words = rest.split('|').map(str::trim);
        let question = words.next().unwrap_or_default().to_owned();
        let options: Vec<Value> = words.map(|word| json!({ "label": word, "description": "" })).collect();
        let input = json!({ "questions": [{ "question": question, "options": options }] });
        self.ask_permission("AskUserQuestion", input, json!([]), |answer| {
            format!(
                "answered: {}",
                answer["updatedInput"]["answers"][&question].as_str().unwrap_or("nothing")
            )
        });
    }

    fn ask_permission(
        &mut self,
        name: &str,
        input: Value,
        suggestions: Value,
        done: impl Fn(&Value) -> String,
    ) {
        let (call, request) = (self.id("toolu"), self.id("req"));
        self.block(json!({ "type": "tool_use", "id": call, "name": name, "input": input }));
        self.state("requires_action");
        let ask = json!({ "subtype": "can_use_tool", "tool_name": name, "input": input, "tool_use_id": call,
            "permission_suggestions": suggestions });
        self.emit(json!({ "type": "control_request", "request_id": request, "request": ask }));
        match self.receive() {
            Incoming::Interrupt => {
                self.emit(json!({ "type": "control_cancel_request", "request_id": request }));
                self.result_of(&call, "interrupted", true);
                self.end_interrupted();
            }
            Incoming::Answer(answer) => {
                let answer = &answer["response"];
                self.state("running");
                match answer["behavior"].as_str() {
                    Some("allow") => self.result_of(&call, &done(answer), false),
                    _ => self.result_of(&call, answer["message"].as_str().unwrap_or_default(), true),
                }
            }
        }
    }

    fn result_of(&mut self, call: &str, text: &str, is_error: bool) {
        let block =
            json!({ "type": "tool_result", "tool_use_id": call, "content": text, "is_error": is_error });
        self.emit(json!({ "type": "user", "message": { "role": "user", "content": [block] } }));
    }

    fn big(&mut self, bytes: usize) {
        let call = self.id("toolu");
        let input = json!({ "file_path": "big.txt" });
        self.block(json!({ "type": "tool_use", "id": call, "name": "Read", "input": input }));
        self.result_of(&call, &"x".repeat(bytes), false);
    }

    fn end_interrupted(&mut self) {
        self.end("", Some("aborted_tools"));
    }

    fn end(&mut self, text: &str, failed: Option<&str>) {
        self.is_in_turn = false;
        let subtype = if failed.is_some_and(|why| why.starts_with("aborted")) {
            "error_during_execution"
        } else {
            "success"
        };
        self.emit(json!({
            "duration_ms": 1, "result": text, "type": "result", "subtype": subtype, "is_error": failed.is_some(),
            "terminal_reason": failed.unwrap_or("completed"), "total_cost_usd": 0.25,
            "usage": { "input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 7 },
        }));
        self.state("idle");
    }

    fn state(&self, state: &str) {
        self.emit(json!({ "type": "system", "subtype": "session_state_changed", "state": state }));
    }

    fn id(&mut self, kind: &str) -> String {
        self.next += 1;
        format!("{kind}-{}-{}", std::process::id(), self.next)
    }

    fn emit(&self, mut message: Value) {
        message["session_id"] = json!(self.session);
        print_line(&message.to_string());
    }
}
