//! `agency setup`: sets up a workspace again, without its agent.

use std::process::ExitCode;

use agency_api::method::{TaskSetup, TaskSetupParams};

use crate::caller;
use crate::cli::TaskName;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::output;
use crate::watch;

pub(super) async fn setup(context: &Context, args: TaskName) -> CommandResult {
    let watch = watch::new_token();
    let caller = caller::caller_with_watch(&context.options, &watch);
    let params = TaskSetupParams { task: context.task(&args.task)?, caller };
    let (done, _) =
        watch::call_and_watch(context, "setting up the workspace", TaskSetup, params, watch).await;
    let done = done?;
    done.notes.iter().for_each(|note| output::note(&output::printable(note)));
    output::line(&output::task_line(&done.task))?;
    Ok(ExitCode::SUCCESS)
}
