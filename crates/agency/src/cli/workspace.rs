//! Commands that run something in a task's workspace.

use std::ffi::OsString;

use clap::Args;

use super::TaskName;

#[derive(Debug, Args)]
#[command(after_help = "\
Prints the output of the command and exits with its exit code.

Examples:
  agency exec fix-login -- git status
  agency exec fix-login -- sh -c 'make test | tail -3'")]
pub(crate) struct Exec {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Runs the agent's `run` action in the task's workspace, next to the agent in its
terminal. Prints its output and exits with its exit code.

Examples:
  agency run fix-login \"which tests cover the login?\"")]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) name: TaskName,
    /// The question
    #[arg(required = true, value_name = "MESSAGE")]
    pub(crate) text: Vec<OsString>,
}
