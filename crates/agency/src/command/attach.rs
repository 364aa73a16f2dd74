//! `agency attach`: opens the terminal of a task.

use agency_api::config::Overrides;
use agency_api::pty::AttachMode;

use crate::attach::{self, Target};
use crate::cli::Attach;
use crate::context::Context;
use crate::outcome::CommandResult;

pub(super) async fn attach(context: &Context, args: Attach) -> CommandResult {
    let mode = match (args.take, args.read_only) {
        (_, true) => AttachMode::ReadOnly,
        (true, false) => AttachMode::Take,
        (false, false) => AttachMode::Control,
    };
    let overrides = Overrides::from_process(&context.options);
    let target = Target { task: context.task(&args.name.task)?, mode, frames: args.frames, overrides };
    attach::attach(context, target).await
}
