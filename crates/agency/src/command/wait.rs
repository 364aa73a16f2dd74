//! `agency wait`: waits until agents are in one of the given states, for scripts.

use std::process::ExitCode;

use agency_api::Failure;
use serde::Serialize;
use tokio::task::JoinSet;

use crate::agent_wait::{WaitEnd, wait_until};
use crate::cli::Wait;
use crate::context::Context;
use crate::outcome::{CommandError, CommandResult, failed};
use crate::output;

/// The agent exited, and the caller waited for something else.
const EXITED_INSTEAD: u8 = 3;
const TIMED_OUT: u8 = 4;

/// The document of `agency wait --json`, one for each task.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Waited {
    /// The task, as the caller named it.
    task: String,
    /// Whether the agent is in a state that the caller waited for. If not, it exited first.
    reached: bool,
    /// The state, in words.
    state: String,
}

pub(super) async fn wait(context: &Context, args: Wait) -> CommandResult {
    let waiting = wait_for_tasks(context, &args);
    let Some(timeout) = args.timeout else { return waiting.await };
    match tokio::time::timeout(timeout, waiting).await {
        Ok(end) => end,
        Err(_) => {
            output::note(&format!("timed out: {} not in that state yet", named(&args.names.tasks)));
            Ok(ExitCode::from(TIMED_OUT))
        }
    }
}

fn named(tasks: &[String]) -> String {
    match tasks {
        [only] => format!("{only} is"),
        several => format!("some of {} are", several.join(", ")),
    }
}

/// Prints each task as soon as its wait ends. With `--any`, the first state that is reached ends the command.
async fn wait_for_tasks(context: &Context, args: &Wait) -> CommandResult {
    let mut waits: JoinSet<(String, Result<WaitEnd, Failure>)> = JoinSet::new();
    for name in &args.names.tasks {
        let (context, name, until) = (context.clone(), name.clone(), args.until.clone());
        let task = context.task(&name)?;
        waits.spawn(async move {
            let end = wait_until(&context, &task, &until).await;
            (name, end)
        });
    }
    let mut has_exited = false;
    while let Some(ended) = waits.join_next().await {
        let (name, end) = ended.map_err(|err| failed("cannot wait", &err))?;
        let waited = match end? {
            WaitEnd::Reached(state) => Waited { task: name, reached: true, state },
            WaitEnd::ExitedInstead(state) => Waited { task: name, reached: false, state },
        };
        print(&waited, args)?;
        if args.any && waited.reached {
            return Ok(ExitCode::SUCCESS);
        }
        has_exited |= !waited.reached;
    }
    Ok(if has_exited { ExitCode::from(EXITED_INSTEAD) } else { ExitCode::SUCCESS })
}

fn print(waited: &Waited, args: &Wait) -> Result<(), CommandError> {
    match (args.json, args.names.tasks.as_slice()) {
        (true, _) => output::json_line(waited)?,
        (false, [_]) => output::line(&waited.state)?,
        (false, _) => output::line(&format!("{} {}", waited.task, waited.state))?,
    }
    Ok(())
}
