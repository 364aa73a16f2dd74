//! `agency shell`: the caller's own shell in a task's workspace.

use std::ffi::OsString;

use super::workspace;
use crate::cli::TaskName;
use crate::context::Context;
use crate::stop::Done;

pub(super) async fn shell(context: &Context, args: TaskName) -> Done {
    let plan = workspace::plan(context, &args.task, None).await?;
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
    let shell = shell.unwrap_or_else(|| OsString::from("/bin/sh"));
    Err(workspace::become_command(&plan, &[shell.into()]))
}
