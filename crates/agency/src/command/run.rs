//! `agency run`: runs the agent's `run` action with one message.

use crate::cli::Run;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::text_input::join_words;
use crate::workspace_command;

pub(super) async fn run(context: &Context, args: Run) -> CommandResult {
    let plan = workspace_command::plan(context, &args.name.task, Some(join_words(&args.text))).await?;
    Err(workspace_command::become_command(&plan, &plan.argv))
}
