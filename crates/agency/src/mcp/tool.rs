//! The tools: their names, descriptions and arguments.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One tool, as clients see it.
pub(super) struct Definition {
    pub(super) name: &'static str,
    about: &'static str,
    effect: Effect,
    schema: fn() -> Schema,
    parse: fn(Value) -> Result<ToolCall, serde_json::Error>,
}

/// The effect of a tool on tasks. Clients show it to their users.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Reads,
    Adds,
    Ends,
}

pub(super) static TOOLS: [Definition; 11] = [
    Definition {
        name: "list_tasks",
        about: "List the tasks of this project: state, agent, branch, and the task whose agent started it.",
        effect: Effect::Reads,
        schema: schema::<ListTasks>,
        parse: |arguments| Ok(ToolCall::ListTasks(serde_json::from_value(arguments)?)),
    },
    Definition {
        name: "task_state",
        about: "Show one task: whether its agent works, waits (and for what) or has exited, and where its work is.",
        effect: Effect::Reads,
        schema: schema::<OneTask>,
        parse: |arguments| Ok(ToolCall::TaskState(serde_json::from_value(arguments)?)),
    },
    Definition {
        name: "read_task",
        about: "Read what a task's agent said and did: the end of its conversation, or of its terminal output.",
        effect: Effect::Reads,
        schema: schema::<ReadTask>,
        parse: |arguments| Ok(ToolCall::ReadTask(serde_json::from_value(arguments)?)),
    },
    Definition {
        name: "search",
        about: "Find words in the conversations and texts of this project's tasks, the newest first.",
        effect: Effect::Reads,
        schema: schema::<Search>,
        parse: |arguments| Ok(ToolCall::Search(serde_json::from_value(arguments)?)),
    },
    Definition {
        name: "wait_for_task",
        about: "Block until a task's agent waits (because it has finished or asks something) or has exited; \
                then return its state. Waits one minute by default; if time_is_up is true, call it again.",
        effect: Effect::Reads,
        schema: schema::<WaitForTask>,
        parse: |arguments| Ok(ToolCall::WaitForTask(serde_json::from_value(arguments)?)),
    },
    Definition {
        name: "list_approvals",
        about: "List actions that are waiting for approval, and questions of agents.",
        effect: Effect::Reads,
        schema: schema::<ListApprovals>,
        parse: |arguments| Ok(ToolCall::ListApprovals(serde_json::from_value(arguments)?)),
    },
    Definition {
        name: "start_task",
        about: "Create a task with its own workspace and start an agent on it. The agent starts at once and works in \
                parallel; use wait_for_task and read_task to follow it. The user limits the number and depth of tasks.",
        effect: Effect::Adds,
        schema: schema::<StartTask>,
        parse: |arguments| Ok(ToolCall::StartTask(serde_json::from_value(arguments)?)),
    },
    Definition {
        name: "send_message",
        about: "Send a message to another task's agent, as if its user had typed it. The receipt says whether the agent took it.",
        effect: Effect::Adds,
        schema: schema::<SendMessage>,
        parse: |arguments| Ok(ToolCall::SendMessage(serde_json::from_value(arguments)?)),
    },
    Definition {
        name: "interrupt_task",
        about: "Interrupt the turn of an agent that you started; its session continues and takes the next message. Only \
                for tasks with a conversation.",
        effect: Effect::Ends,
        schema: schema::<OneTask>,
        parse: |arguments| Ok(ToolCall::InterruptTask(serde_json::from_value(arguments)?)),
    },
    Definition {
        name: "stop_task",
        about: "Stop an agent that you started, and everything that it started. Its workspace and branch stay.",
        effect: Effect::Ends,
        schema: schema::<OneTask>,
        parse: |arguments| Ok(ToolCall::StopTask(serde_json::from_value(arguments)?)),
    },
    Definition {
        name: "answer_approval",
        about: "Allow or deny, in the user's name, an action that another task's agent asks for; or answer its question.",
        effect: Effect::Ends,
        schema: schema::<AnswerApproval>,
        parse: |arguments| Ok(ToolCall::AnswerApproval(serde_json::from_value(arguments)?)),
    },
];

impl Definition {
    pub(super) fn described(&self) -> Tool {
        let Value::Object(schema) = (self.schema)().to_value() else { return Tool::default() };
        let schema: Arc<JsonObject> = Arc::new(schema);
        let hints = ToolAnnotations::new()
            .read_only(self.effect == Effect::Reads)
            .destructive(self.effect == Effect::Ends)
            .open_world(false);
        Tool::new(self.name, self.about, schema).with_annotations(hints)
    }
}

/// A schema without references, because some clients do not resolve them.
fn schema<T: JsonSchema + DeserializeOwned>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>()
}

/// A call of a tool with its arguments.
#[derive(Debug)]
pub(super) enum ToolCall {
    ListTasks(ListTasks),
    TaskState(OneTask),
    ReadTask(ReadTask),
    Search(Search),
    WaitForTask(WaitForTask),
    ListApprovals(ListApprovals),
    StartTask(StartTask),
    SendMessage(SendMessage),
    InterruptTask(OneTask),
    StopTask(OneTask),
    AnswerApproval(AnswerApproval),
}

impl ToolCall {
    /// Fails with a text that says what is wrong with the call.
    pub(super) fn parse(name: &str, arguments: JsonObject) -> Result<ToolCall, String> {
        let tool = TOOLS.iter().find(|tool| tool.name == name);
        let tool = tool.ok_or_else(|| {
            let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            format!("there is no tool {name}; the tools are {}", known.join(", "))
        })?;
        (tool.parse)(Value::Object(arguments)).map_err(|err| format!("the arguments of {name}: {err}"))
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            ToolCall::ListTasks(_) => "list_tasks",
            ToolCall::TaskState(_) => "task_state",
            ToolCall::ReadTask(_) => "read_task",
            ToolCall::Search(_) => "search",
            ToolCall::WaitForTask(_) => "wait_for_task",
            ToolCall::ListApprovals(_) => "list_approvals",
            ToolCall::StartTask(_) => "start_task",
            ToolCall::SendMessage(_) => "send_message",
            ToolCall::InterruptTask(_) => "interrupt_task",
            ToolCall::StopTask(_) => "stop_task",
            ToolCall::AnswerApproval(_) => "answer_approval",
        }
    }

    /// The task that the call is about.
    pub(super) fn task(&self) -> Option<String> {
        match self {
            ToolCall::ListTasks(_) | ToolCall::StartTask(_) => None,
            ToolCall::Search(arguments) => arguments.task.clone(),
            ToolCall::ListApprovals(arguments) => arguments.task.clone(),
            ToolCall::TaskState(arguments)
            | ToolCall::InterruptTask(arguments)
            | ToolCall::StopTask(arguments) => Some(arguments.task.clone()),
            ToolCall::ReadTask(arguments) => Some(arguments.task.clone()),
            ToolCall::WaitForTask(arguments) => Some(arguments.task.clone()),
            ToolCall::SendMessage(arguments) => Some(arguments.task.clone()),
            ToolCall::AnswerApproval(arguments) => Some(arguments.task.clone()),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListTasks {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OneTask {
    /// Id, slug, or a unique prefix of the slug
    pub(super) task: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadTask {
    /// Id, slug, or a unique prefix of the slug
    pub(super) task: String,
    /// How much to read from the end: entries of a conversation (default 20) or lines of a terminal (default 100)
    #[serde(default)]
    pub(super) last: Option<u64>,
    /// In a conversation: read the entries before this number, to go further back
    #[serde(default)]
    pub(super) before: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Search {
    /// The words to search for, all required; double quotes mark a phrase
    pub(super) words: String,
    /// Only in this task
    #[serde(default)]
    pub(super) task: Option<String>,
    /// The maximum number of hits; default 20
    #[serde(default)]
    pub(super) limit: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitForTask {
    /// Id, slug, or a unique prefix of the slug
    pub(super) task: String,
    /// The states to wait for; default needs_input and exited
    #[serde(default)]
    pub(super) until: Vec<Until>,
    /// The maximum wait; default 60, at most 3600
    #[serde(default)]
    pub(super) timeout_seconds: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Until {
    NeedsInput,
    Running,
    Exited,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListApprovals {
    /// Only for this task
    #[serde(default)]
    pub(super) task: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartTask {
    /// A short name of letters, digits and dashes, for example fix-login
    pub(super) slug: String,
    /// The work for the agent, with everything that it needs to know
    pub(super) message: String,
    /// The agent, for example claude-code or codex; by default the user's default
    #[serde(default)]
    pub(super) agent: Option<String>,
    /// The driver: terminal, stream-json or acp; by default the agent's default
    #[serde(default)]
    pub(super) driver: Option<String>,
    /// The branch to start from; by default the branch that the user has checked out
    #[serde(default)]
    pub(super) base_branch: Option<String>,
    #[serde(default)]
    pub(super) labels: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SendMessage {
    /// Id, slug, or a unique prefix of the slug
    pub(super) task: String,
    pub(super) text: String,
    /// Hold the text until the agent is at its prompt
    #[serde(default)]
    pub(super) queue: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerApproval {
    /// Id, slug, or a unique prefix of the slug
    pub(super) task: String,
    /// The id from list_approvals; by default the request that has waited longest
    #[serde(default)]
    pub(super) id: Option<String>,
    pub(super) allow: bool,
    /// The reason; an agent whose action is denied sees it
    #[serde(default)]
    pub(super) message: Option<String>,
    /// The answers, keyed by the text of the question
    #[serde(default)]
    pub(super) answers: Option<std::collections::BTreeMap<String, String>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_tool_for_every_name_that_can_be_allowed() {
        let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        assert_eq!(names, agency_core::config::TOOLS);
    }

    #[test]
    fn every_tool_says_what_it_takes_and_reads_it() {
        for tool in &TOOLS {
            let described = tool.described();
            assert_eq!(described.input_schema["type"], "object", "{}", tool.name);
            assert_eq!(described.input_schema["additionalProperties"], false, "{}", tool.name);
            let text = serde_json::to_string(&described.input_schema).expect("JSON");
            assert!(!text.contains("$ref"), "{text}");
        }
        let arguments = |value: Value| value.as_object().cloned().unwrap_or_default();
        let call =
            ToolCall::parse("task_state", arguments(serde_json::json!({ "task": "fix" }))).expect("read");
        assert_eq!((call.name(), call.task().as_deref()), ("task_state", Some("fix")));
        let problem =
            ToolCall::parse("task_state", arguments(serde_json::json!({ "tusk": 1 }))).expect_err("wrong");
        assert!(problem.starts_with("the arguments of task_state: unknown field `tusk`"), "{problem}");
        let problem = ToolCall::parse("rm", JsonObject::new()).expect_err("unknown");
        assert!(problem.starts_with("there is no tool rm; the tools are list_tasks, "), "{problem}");
    }
}
