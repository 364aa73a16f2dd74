//! What agents may do to other tasks through `agency mcp`: `[mcp]`.
//!
//! Not here: what the tools do, and the refusing.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mcp {
    /// Words of [`TOOLS`]; the others are not there.
    pub allow: Vec<String>,
    /// How many agents may stand above one another: 1 is an agent of yours and those that it starts.
    pub depth: u32,
    /// Live tasks that one agent has started.
    pub max_tasks: u32,
    /// Sessions over ACP are given the server without being asked for.
    pub offer: bool,
}

/// Every tool there is. The last one speaks in your name, so it has to be allowed.
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
    pub fn allows(&self, tool: &str) -> bool {
        self.allow.iter().any(|allowed| allowed == tool)
    }
}
