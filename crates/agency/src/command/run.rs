//! `agency run`: the agent's `run` action with one message.

use super::{send, workspace};
use crate::cli::Run;
use crate::context::Context;
use crate::stop::Done;

pub(super) async fn run(context: &Context, args: Run) -> Done {
    let plan = workspace::plan(context, &args.name.task, Some(send::joined(&args.text))).await?;
    Err(workspace::become_command(&plan, &plan.argv))
}
