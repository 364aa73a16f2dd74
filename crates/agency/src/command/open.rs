//! `agency open`: the caller's editor in a task's workspace.

use agency_api::Bytes;

use super::{prompt, workspace};
use crate::cli::TaskName;
use crate::context::Context;
use crate::stop::{Done, Stop, with_hint};

pub(super) async fn open(context: &Context, args: TaskName) -> Done {
    let plan = workspace::plan(context, &args.task, None).await?;
    let argv = match plan.opener.is_empty() {
        false => plan.opener.clone(),
        true => {
            let editor = prompt::editor();
            let words = editor.split_whitespace().map(Bytes::from);
            words.chain([plan.cwd.clone()]).collect()
        }
    };
    Err(match workspace::become_command(&plan, &argv) {
        Stop::Failed(failure) => {
            Stop::Failed(with_hint(failure, "set $VISUAL, $EDITOR or workspace.opener in config.toml"))
        }
        other => other,
    })
}
