//! Permissions of agents over other tasks through `agency mcp`: `[mcp]`.
//!
//! Not here: the tools themselves, and the checks of each call.

/// The table `[mcp]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mcp {
    /// Words of [`TOOLS`]. Agents do not see the other tools.
    pub allow: Vec<String>,
    /// How many levels of agents may start tasks. With 1, agents that the user started may, and theirs may not.
    pub depth: u32,
    /// Live tasks that one agent may have started; 0 means no limit.
    pub max_tasks: u32,
    /// Whether every ACP session gets the server automatically.
    pub offer: bool,
}

/// Every tool. The last one answers in the name of the user, so the user must allow it.
pub const TOOLS: [&str; 11] = [
    "list_tasks",
    "task_state",
    "read_task",
    "search",
    "wait_for_task",
    "list_approvals",
    "start_task",
    "send_message",
    "interrupt_task",
    "stop_task",
    "answer_approval",
];

impl Default for Mcp {
    fn default() -> Mcp {
        let allow = TOOLS.into_iter().filter(|tool| *tool != "answer_approval");
        Mcp { allow: allow.map(str::to_owned).collect(), depth: 1, max_tasks: 5, offer: false }
    }
}

impl Mcp {
    /// Whether agents may call this tool.
    pub fn allows(&self, tool: &str) -> bool {
        self.allow.iter().any(|allowed| allowed == tool)
    }
}
