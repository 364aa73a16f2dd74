//! `agency attach`: the task's terminal, here.

use agency_api::pty::AttachMode;

use crate::attach::{self, Target};
use crate::cli::Attach;
use crate::context::Context;
use crate::stop::Done;

pub(super) async fn attach(context: &Context, args: Attach) -> Done {
    let mode = match (args.take, args.read_only) {
        (_, true) => AttachMode::ReadOnly,
        (true, false) => AttachMode::Take,
        (false, false) => AttachMode::Control,
    };
    let target = Target { task: context.task(&args.name.task)?, mode, frames: args.frames };
    attach::attach(context, target).await
}
