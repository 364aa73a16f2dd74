//! `agency logs`: prints the output of an agent or of a setup, or the log of the daemon.

mod daemon_log;

use std::process::ExitCode;

use agency_api::method::{LogForm, LogRead, LogReadParams, TaskGet};

use crate::cli::Logs;
use crate::context::Context;
use crate::conversation;
use crate::log_stream::copy_log;
use crate::outcome::CommandResult;

pub(super) async fn logs(context: &Context, args: Logs) -> CommandResult {
    // clap requires a task unless --daemon is given.
    let Some(name) = &args.task else { return daemon_log::print_daemon_log(context, args.follow).await };
    let (task, shell) = context.terminal(name)?;
    let mut daemon = context.daemon().await?;
    if args.setup {
        let params = LogReadParams { task, shell: None, form: LogForm::Setup, follow: args.follow };
        let answer = daemon.call(LogRead, params).await?;
        copy_log(daemon.stream(&answer.stream).await?, &mut std::io::stdout().lock()).await?;
        return Ok(ExitCode::SUCCESS);
    }
    if shell.is_none()
        && !args.raw
        && conversation::has_conversation(&daemon.call(TaskGet, task.clone()).await?)
    {
        return super::chat::print_chat(context, task, None, args.follow, false).await;
    }
    let form = if args.raw { LogForm::Raw } else { LogForm::Text };
    let answer = daemon.call(LogRead, LogReadParams { task, shell, form, follow: args.follow }).await?;
    copy_log(daemon.stream(&answer.stream).await?, &mut std::io::stdout().lock()).await?;
    Ok(ExitCode::SUCCESS)
}
