//! `agency shell`: opens the user's shell in a task's workspace.

use std::ffi::OsString;

use crate::cli::TaskName;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::workspace_command;

pub(super) async fn shell(context: &Context, args: TaskName) -> CommandResult {
    let plan = workspace_command::plan(context, &args.task, None).await?;
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let shell = shell.unwrap_or_else(|| OsString::from("/bin/sh"));
    Err(workspace_command::become_command(&plan, &[shell.into()]))
}
