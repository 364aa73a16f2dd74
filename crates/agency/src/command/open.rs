//! `agency open`: opens a task's workspace in the user's editor.

use std::io::{self, IsTerminal};

use agency_api::method::Plan;
use agency_api::{Bytes, Failure, FailureCode};

use crate::cli::TaskName;
use crate::context::Context;
use crate::editor;
use crate::outcome::{CommandError, CommandResult, with_hint};
use crate::workspace_command;

const EDITOR_HINT: &str = "set $VISUAL, $EDITOR or workspace.opener in config.toml";

pub(super) async fn open(context: &Context, args: TaskName) -> CommandResult {
    let plan = workspace_command::plan(context, &args.task, None).await?;
    let argv = match plan.opener.is_empty() {
        false => plan.opener.clone(),
        true => editor_command(&plan)?,
    };
    Err(match workspace_command::become_command(&plan, &argv) {
        CommandError::Failed(failure) => CommandError::Failed(with_hint(failure, EDITOR_HINT)),
        other => other,
    })
}

/// The default editor needs a terminal. Without one it would hang, so the user must have chosen an editor.
fn editor_command(plan: &Plan) -> Result<Vec<Bytes>, Failure> {
    let has_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if !editor::is_set() && !has_terminal {
        return Err(Failure::new("there is no editor to open the workspace with")
            .code(FailureCode::CommandNotFound)
            .hint(EDITOR_HINT));
    }
    let words = editor::words()?.into_iter().map(Bytes::from);
    Ok(words.chain([plan.cwd.clone()]).collect())
}
