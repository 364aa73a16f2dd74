//! `agency open`: the caller's editor in a task's workspace.

use std::io::{self, IsTerminal};

use agency_api::method::Plan;
use agency_api::{Bytes, Failure, FailureCode};

use super::workspace;
use crate::cli::TaskName;
use crate::context::Context;
use crate::editor;
use crate::stop::{Done, Stop, with_hint};

const WHERE: &str = "set $VISUAL, $EDITOR or workspace.opener in config.toml";

pub(super) async fn open(context: &Context, args: TaskName) -> Done {
    let plan = workspace::plan(context, &args.task, None).await?;
    let argv = match plan.opener.is_empty() {
        false => plan.opener.clone(),
        true => editor_of(&plan)?,
    };
    Err(match workspace::become_command(&plan, &argv) {
        Stop::Failed(failure) => Stop::Failed(with_hint(failure, WHERE)),
        other => other,
    })
}

/// The usual editor needs a terminal, and one that nobody chose must not hang without it.
fn editor_of(plan: &Plan) -> Result<Vec<Bytes>, Failure> {
    let has_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if !editor::is_set() && !has_terminal {
        return Err(Failure::new("there is no editor to open the workspace with")
            .code(FailureCode::CommandNotFound)
            .hint(WHERE));
    }
    let words = editor::words()?.into_iter().map(Bytes::from);
    Ok(words.chain([plan.cwd.clone()]).collect())
}
