//! `agency path`: where a task's workspace is.

use std::io::Write;
use std::process::ExitCode;

use super::workspace;
use crate::cli::TaskName;
use crate::context::Context;
use crate::stop::Done;

pub(super) async fn path(context: &Context, args: TaskName) -> Done {
    let plan = workspace::plan(context, &args.task, None).await?;
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&plan.cwd.0)?;
    stdout.write_all(b"\n")?;
    stdout.flush()?;
    Ok(ExitCode::SUCCESS)
}
