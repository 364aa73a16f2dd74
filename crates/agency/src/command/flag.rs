//! `agency pin` and `agency snooze`: flags that every surface shares.

use std::process::ExitCode;

use agency_api::method::{TaskPin, TaskPinParams, TaskSnooze, TaskSnoozeParams};
use agency_api::{Failure, FailureCode};

use crate::cli::{Pin, Snooze};
use crate::context::Context;
use crate::moment;
use crate::outcome::CommandResult;
use crate::output;

pub(super) async fn pin(context: &Context, args: Pin) -> CommandResult {
    let params = TaskPinParams { task: context.task(&args.name.task)?, pinned: !args.off };
    let task = context.daemon().await?.call(TaskPin, params).await?;
    let what = if task.pinned { "pinned" } else { "not pinned" };
    output::line(&format!("{}-{}: {what}", task.id, task.slug))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn snooze(context: &Context, args: Snooze) -> CommandResult {
    let until = match (args.until, args.span, args.off) {
        (_, _, true) => None,
        (Some(until), _, _) => Some(until),
        (None, Some(span), _) => Some(moment::after(span).map_err(too_far)?),
        (None, None, false) => {
            return Err(Failure::new("`agency snooze` needs a time")
                .code(FailureCode::InvalidArgument)
                .hint("agency snooze TASK 14:05, agency snooze TASK --for 2h, or --off to bring it back")
                .into());
        }
    };
    let until = until.map(|until| until.to_string());
    let params = TaskSnoozeParams { task: context.task(&args.name.task)?, until };
    let task = context.daemon().await?.call(TaskSnooze, params).await?;
    let words = match &task.snoozed_until {
        Some(until) => format!("snoozed until {}", moment::format_local(until)),
        None => "not snoozed".to_owned(),
    };
    output::line(&format!("{}-{}: {words}", task.id, task.slug))?;
    Ok(ExitCode::SUCCESS)
}

fn too_far(cause: String) -> Failure {
    Failure::new("that time is too far away").code(FailureCode::InvalidArgument).because(cause)
}
