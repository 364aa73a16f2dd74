//! `agency exec`: runs a command in a task's workspace.

use agency_api::Bytes;

use crate::cli::Exec;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::workspace_command;

pub(super) async fn exec(context: &Context, args: Exec) -> CommandResult {
    let plan = workspace_command::plan(context, &args.name.task, None).await?;
    let argv: Vec<Bytes> = args.command.into_iter().map(Bytes::from).collect();
    Err(workspace_command::become_command(&plan, &argv))
}
