//! Shells: terminals in the workspace of a task, beside its agent.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bytes;
use crate::caller::{Caller, TaskRef};
use crate::view::Task;

/// A terminal in the workspace of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shell {
    /// The name, unique in its workspace.
    pub name: String,
    /// The id of the task.
    pub task: u64,
    /// The slug of the task.
    pub slug: String,
    /// The root directory of the project.
    pub project: Bytes,
    /// The id of its run.
    pub run: String,
    /// The process id of the program that it was opened with, if known.
    pub pid: Option<i32>,
    /// The command that it was opened with; absent for the user's own shell.
    pub command: Option<Vec<Bytes>>,
    /// The program that runs in it now: the command, or a program in the foreground of the user's shell. Absent while the
    /// shell is at its prompt.
    pub running: Option<String>,
    /// How many viewers are attached.
    pub viewers: u64,
    /// When it was opened, in RFC 3339.
    pub opened_at: String,
}

/// One terminal of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShellRef {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The name of the terminal.
    pub shell: String,
}

/// Which terminal to open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShellOpenParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The name of the terminal; a free one when absent.
    #[serde(default)]
    pub shell: Option<String>,
    /// The command to run; the caller's shell when absent.
    #[serde(default)]
    pub command: Option<Vec<Bytes>>,
    /// The caller, whose environment and size the terminal gets.
    #[serde(default)]
    pub caller: Caller,
}

/// A terminal that is open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShellOpened {
    /// The terminal.
    pub shell: Shell,
    /// The task.
    pub task: Task,
    /// This call opened it. False if it was open already.
    pub new: bool,
}

/// Whose terminals to list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShellListParams {
    /// The task; all tasks of all projects when absent.
    #[serde(default)]
    pub task: Option<TaskRef>,
}

/// Open terminals.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shells {
    /// The terminals, by project, task and age.
    pub shells: Vec<Shell>,
}

/// Which terminal to close.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShellCloseParams {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// The name of the terminal; all terminals of the task when absent.
    #[serde(default)]
    pub shell: Option<String>,
    /// Close it even if a program runs in it.
    #[serde(default)]
    pub force: bool,
}

/// Terminals that were closed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShellsClosed {
    /// Their names.
    pub closed: Vec<String>,
}
