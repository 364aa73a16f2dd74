//! `agency path`: prints the directory of a task's workspace.

use std::io::Write;
use std::process::ExitCode;

use crate::cli::TaskName;
use crate::context::Context;
use crate::outcome::CommandResult;
use crate::workspace_command;

pub(super) async fn path(context: &Context, args: TaskName) -> CommandResult {
    let plan = workspace_command::plan(context, &args.task, None).await?;
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&plan.cwd.0)?;
    stdout.write_all(b"\n")?;
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}
