//! `agency exec`: a command of the caller's in a task's workspace.

use agency_api::Bytes;

use super::workspace;
use crate::cli::Exec;
use crate::context::Context;
use crate::stop::Done;

pub(super) async fn exec(context: &Context, args: Exec) -> Done {
    let plan = workspace::plan(context, &args.name.task, None).await?;
    let argv: Vec<Bytes> = args.command.into_iter().map(Bytes::from).collect();
    Err(workspace::become_command(&plan, &argv))
}
