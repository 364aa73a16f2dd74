//! The action behind a request of an agent: the command, the files, the change, the address. People see this, and rules
//! match it.

use serde_json::Value;

use super::subject;
use crate::conversation::{Approval, ToolCall};
use crate::plain::one_line;

/// The longest summary in characters.
const SUMMARY_CHARS: usize = 300;

/// Arguments that say nothing that is not shown elsewhere.
const SHOWN_ELSEWHERE: [&str; 6] = ["diff", "locations", "description", "questions", "rawInput", "content"];

/// The action that an agent wants to take, as far as its request says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Action {
    /// The command line.
    pub command: Option<String>,
    /// The files, as the agent names them.
    pub paths: Vec<String>,
    /// The change of the files, as a diff.
    pub diff: Option<String>,
    /// The address.
    pub address: Option<String>,
    /// The tool of an MCP server.
    pub mcp: Option<McpTool>,
    /// The directory in which the command runs, if the agent names one.
    pub directory: Option<String>,
    /// The arguments of a tool that is none of the above, as one line of JSON.
    pub arguments: Option<String>,
    /// The agent's own words about it. They may be wrong.
    pub words: Option<String>,
}

/// A tool of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpTool {
    /// The name of the server.
    pub server: String,
    /// The name of the tool.
    pub tool: String,
}

impl Action {
    /// Reads the request.
    pub fn of(approval: &Approval) -> Action {
        Action::read(&approval.tool, &approval.title, &approval.input)
    }

    /// Reads a call that the agent reports.
    pub fn of_call(call: &ToolCall) -> Action {
        Action::read(&call.name, &call.title, &call.input)
    }

    fn read(tool: &str, title: &str, input: &Value) -> Action {
        let mut action = Action {
            command: subject::shown_command(input),
            paths: subject::paths(input),
            diff: diff(input),
            address: subject::text(input, &["url"]),
            mcp: mcp_tool(tool, title),
            directory: subject::text(input, &["cwd", "workdir", "working_directory", "directory"]),
            ..Action::default()
        };
        if action.is_unnamed() {
            action.arguments = arguments(input);
        }
        let described = subject::text(input, &["description"]);
        action.words = described.or_else(|| action.is_in_words(title, tool).then(|| title.to_owned()));
        action
    }

    /// The action in one line. `None` if only the agent's own words say it.
    pub fn summary(&self) -> Option<String> {
        let mcp = self.mcp.as_ref().map(|McpTool { server, tool }| {
            format!("{tool} of {server} {}", self.arguments.as_deref().unwrap_or_default())
        });
        let paths = (!self.paths.is_empty()).then(|| self.paths.join(", "));
        let found = self.command.clone().or(mcp).or_else(|| self.address.clone()).or(paths);
        found.map(|text| one_line(text.trim(), SUMMARY_CHARS))
    }

    /// A request in one line: its title if that says what is asked, and otherwise what is asked.
    pub fn headline(approval: &Approval) -> String {
        match Action::of(approval).summary() {
            Some(summary) if !approval.title.contains(&summary) => summary,
            _ => approval.title.clone(),
        }
    }

    fn is_unnamed(&self) -> bool {
        self.command.is_none() && self.paths.is_empty() && self.address.is_none() && self.diff.is_none()
    }

    /// Whether a title is more than a repetition of what is shown anyway.
    fn is_in_words(&self, title: &str, tool: &str) -> bool {
        let shown = [self.command.as_deref(), self.address.as_deref()];
        let repeats = |part: &str| !part.is_empty() && title.contains(&one_line(part, SUMMARY_CHARS));
        let is_shown = shown.into_iter().flatten().chain(self.paths.iter().map(String::as_str)).any(repeats);
        !is_shown && title != tool && title.chars().any(char::is_alphanumeric)
    }
}

/// Claude names these tools `mcp__SERVER__TOOL`; others say `TOOL (SERVER MCP Server)` in the title.
fn mcp_tool(tool: &str, title: &str) -> Option<McpTool> {
    let mcp = |server: &str, tool: &str| McpTool { server: server.to_owned(), tool: tool.to_owned() };
    if let Some((server, tool)) = tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        return Some(mcp(server, tool));
    }
    let (named, rest) = title.split_once(" (")?;
    let (server, _) = rest.split_once(" MCP Server)")?;
    (!named.contains(' ') && !server.contains(')')).then(|| mcp(server, named))
}

/// The diff that the driver made, or the change that an editing tool names.
fn diff(input: &Value) -> Option<String> {
    if let Some(diff) = input["diff"].as_str() {
        return Some(diff.to_owned());
    }
    let marked =
        |mark: char, text: &str| text.lines().map(|line| format!("{mark}{line}\n")).collect::<String>();
    let edit = |edit: &Value| {
        let (old, new) = (edit["old_string"].as_str()?, edit["new_string"].as_str()?);
        Some(marked('-', old) + &marked('+', new))
    };
    let several = input["edits"].as_array().into_iter().flatten().filter_map(edit).collect::<String>();
    let written = || Some(marked('+', input["content"].as_str()?));
    edit(input).or((!several.is_empty()).then_some(several)).or_else(written)
}

/// All arguments that are not shown elsewhere.
fn arguments(input: &Value) -> Option<String> {
    let raw = input.get("rawInput").filter(|raw| raw.is_object()).unwrap_or(input);
    let fields = raw.as_object()?.iter();
    let rest: serde_json::Map<String, Value> = fields
        .filter(|(name, _)| !SHOWN_ELSEWHERE.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    (!rest.is_empty()).then(|| Value::Object(rest).to_string())
}
