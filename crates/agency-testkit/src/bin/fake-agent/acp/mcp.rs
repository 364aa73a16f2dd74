//! A client of the MCP servers that a session got: starts one, calls one tool, ends it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::{Value, json};

/// Calls a tool of the first server, and returns the text of its answer or of the error.
pub(super) fn call(servers: &Value, tool: &str, arguments: &str) -> String {
    call_first(servers, tool, arguments).unwrap_or_else(|| "there is no server that answers".to_owned())
}

fn call_first(servers: &Value, tool: &str, arguments: &str) -> Option<String> {
    let mut server = start(servers.get(0)?)?;
    let mut stdin = server.stdin.take()?;
    let mut lines = BufReader::new(server.stdout.take()?).lines().map_while(Result::ok);
    let client = json!({ "name": "fake-agent", "version": "1" });
    let greeting = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    write(&mut stdin, &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting }))?;
    read_answer(&mut lines, 1)?;
    write(&mut stdin, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let params = json!({ "name": tool, "arguments": arguments });
    write(&mut stdin, &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }))?;
    let answered = read_answer(&mut lines, 2)?;
    drop(stdin);
    server.wait().ok()?;
    answered["result"]["content"][0]["text"].as_str().map(str::to_owned)
}

fn start(server: &Value) -> Option<Child> {
    let words = server["args"].as_array()?.iter().filter_map(Value::as_str);
    let variables = server["env"].as_array()?.iter();
    let variables = variables.filter_map(|pair| Some((pair["name"].as_str()?, pair["value"].as_str()?)));
    let mut command = Command::new(server["command"].as_str()?);
    command.args(words).envs(variables).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()
}

fn write(stdin: &mut ChildStdin, message: &Value) -> Option<()> {
    writeln!(stdin, "{message}").and_then(|()| stdin.flush()).ok()
}

fn read_answer(lines: &mut impl Iterator<Item = String>, id: u64) -> Option<Value> {
    let messages = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    messages.into_iter().find(|message| message["id"] == id)
}
