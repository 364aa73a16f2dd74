//! `agency setup`: sets a workspace up again, without its agent.

use std::process::ExitCode;

use agency_api::method::{TaskSetup, TaskSetupParams};

use crate::caller;
use crate::cli::TaskName;
use crate::context::Context;
use crate::output;
use crate::stop::Done;
use crate::watch;

pub(super) async fn setup(context: &Context, args: TaskName) -> Done {
    let watch = watch::word();
    let caller = caller::listening(&context.options, &watch);
    let params = TaskSetupParams { task: context.task(&args.task)?, caller };
    let (done, _) = watch::call(context, "setting up the workspace", TaskSetup, params, watch).await;
    let done = done?;
    done.notes.iter().for_each(|note| output::note(&output::printable(note)));
    output::line(&output::task_line(&done.task))?;
    Ok(ExitCode::SUCCESS)
}
