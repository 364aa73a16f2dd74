//! The tools: their names, what they are for, and what they are given.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One tool, as it is offered.
pub(super) struct Definition {
    pub(super) name: &'static str,
    about: &'static str,
    effect: Effect,
    schema: fn() -> Schema,
    read: fn(Value) -> Result<Asked, serde_json::Error>,
}

/// What clients may tell their users.
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
        read: |given| Ok(Asked::ListTasks(serde_json::from_value(given)?)),
    },
    Definition {
        name: "task_state",
        about: "Show one task: whether its agent works, waits (and for what) or has exited, and where its work is.",
        effect: Effect::Reads,
        schema: schema::<OneTask>,
        read: |given| Ok(Asked::TaskState(serde_json::from_value(given)?)),
    },
    Definition {
        name: "read_task",
        about: "Read what a task's agent said and did: the end of its conversation, or of its terminal output.",
        effect: Effect::Reads,
        schema: schema::<ReadTask>,
        read: |given| Ok(Asked::ReadTask(serde_json::from_value(given)?)),
    },
    Definition {
        name: "search",
        about: "Find words in the conversations and texts of this project's tasks, the newest first.",
        effect: Effect::Reads,
        schema: schema::<Search>,
        read: |given| Ok(Asked::Search(serde_json::from_value(given)?)),
    },
    Definition {
        name: "wait_for_task",
        about: "Block until a task's agent waits for somebody (because it has finished or asks something) or has exited; \
                then return its state. Waits one minute by default; if time_is_up is true, call it again.",
        effect: Effect::Reads,
        schema: schema::<WaitForTask>,
        read: |given| Ok(Asked::WaitForTask(serde_json::from_value(given)?)),
    },
    Definition {
        name: "list_approvals",
        about: "List actions that are waiting for approval, and questions of agents.",
        effect: Effect::Reads,
        schema: schema::<ListApprovals>,
        read: |given| Ok(Asked::ListApprovals(serde_json::from_value(given)?)),
    },
    Definition {
        name: "start_task",
        about: "Create a task with its own workspace and start an agent on it. The agent starts at once and works in \
                parallel; use wait_for_task and read_task to follow it. The user limits the number and depth of tasks.",
        effect: Effect::Adds,
        schema: schema::<StartTask>,
        read: |given| Ok(Asked::StartTask(serde_json::from_value(given)?)),
    },
    Definition {
        name: "send_message",
        about: "Send a message to another task's agent, as if its user had typed it. The receipt says whether the agent took it.",
        effect: Effect::Adds,
        schema: schema::<SendMessage>,
        read: |given| Ok(Asked::SendMessage(serde_json::from_value(given)?)),
    },
    Definition {
        name: "interrupt_task",
        about: "Interrupt the turn of an agent that you started; its session continues and takes the next message. Only \
                for tasks with a conversation.",
        effect: Effect::Ends,
        schema: schema::<OneTask>,
        read: |given| Ok(Asked::InterruptTask(serde_json::from_value(given)?)),
    },
    Definition {
        name: "stop_task",
        about: "Stop an agent that you started, and everything that it started. Its workspace and branch stay.",
        effect: Effect::Ends,
        schema: schema::<OneTask>,
        read: |given| Ok(Asked::StopTask(serde_json::from_value(given)?)),
    },
    Definition {
        name: "answer_approval",
        about: "Allow or deny, in the user's name, an action that another task's agent asks for; or answer its question.",
        effect: Effect::Ends,
        schema: schema::<AnswerApproval>,
        read: |given| Ok(Asked::AnswerApproval(serde_json::from_value(given)?)),
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

/// Without references: not every client follows them.
fn schema<T: JsonSchema + DeserializeOwned>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>()
}

/// What a tool was asked for.
#[derive(Debug)]
pub(super) enum Asked {
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

impl Asked {
    /// Says what is wrong with the request, if something is.
    pub(super) fn read(name: &str, given: JsonObject) -> Result<Asked, String> {
        let tool = TOOLS.iter().find(|tool| tool.name == name);
        let tool = tool.ok_or_else(|| {
            let known: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
            format!("there is no tool {name}; the tools are {}", known.join(", "))
        })?;
        (tool.read)(Value::Object(given)).map_err(|err| format!("the arguments of {name}: {err}"))
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Asked::ListTasks(_) => "list_tasks",
            Asked::TaskState(_) => "task_state",
            Asked::ReadTask(_) => "read_task",
            Asked::Search(_) => "search",
            Asked::WaitForTask(_) => "wait_for_task",
            Asked::ListApprovals(_) => "list_approvals",
            Asked::StartTask(_) => "start_task",
            Asked::SendMessage(_) => "send_message",
            Asked::InterruptTask(_) => "interrupt_task",
            Asked::StopTask(_) => "stop_task",
            Asked::AnswerApproval(_) => "answer_approval",
        }
    }

    /// The task that it is about.
    pub(super) fn task(&self) -> Option<String> {
        match self {
            Asked::ListTasks(_) | Asked::StartTask(_) => None,
            Asked::Search(given) => given.task.clone(),
            Asked::ListApprovals(given) => given.task.clone(),
            Asked::TaskState(given) | Asked::InterruptTask(given) | Asked::StopTask(given) => {
                Some(given.task.clone())
            }
            Asked::ReadTask(given) => Some(given.task.clone()),
            Asked::WaitForTask(given) => Some(given.task.clone()),
            Asked::SendMessage(given) => Some(given.task.clone()),
            Asked::AnswerApproval(given) => Some(given.task.clone()),
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
    /// What the agent should do, with everything that it needs to know
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
        let given = |value: Value| value.as_object().cloned().unwrap_or_default();
        let asked = Asked::read("task_state", given(serde_json::json!({ "task": "fix" }))).expect("read");
        assert_eq!((asked.name(), asked.task().as_deref()), ("task_state", Some("fix")));
        let problem = Asked::read("task_state", given(serde_json::json!({ "tusk": 1 }))).expect_err("wrong");
        assert!(problem.starts_with("the arguments of task_state: unknown field `tusk`"), "{problem}");
        let problem = Asked::read("rm", JsonObject::new()).expect_err("unknown");
        assert!(problem.starts_with("there is no tool rm; the tools are list_tasks, "), "{problem}");
    }
}
