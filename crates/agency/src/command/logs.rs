//! `agency logs`: what the agent printed, as text or as it came.

use std::io::Write;
use std::process::ExitCode;

use agency_api::Failure;
use agency_api::method::{LogForm, LogRead, LogReadParams, TaskGet};
use agency_api::pty::ViewerNotice;
use agency_client::StreamSocket;
use futures_util::StreamExt;
use tokio_tungstenite::tungstenite::Message;

use super::daemon_log::daemon_log;
use crate::cli::Logs;
use crate::context::Context;
use crate::stop::{Done, Stop};
use crate::talk;

pub(super) async fn logs(context: &Context, args: Logs) -> Done {
    // Without a name it is the daemon's: the definitions see to that.
    let Some(name) = &args.task else { return daemon_log(context, args.follow).await };
    let task = context.task(name)?;
    let mut daemon = context.daemon().await?;
    if args.setup {
        let params = LogReadParams { task, form: LogForm::Setup, follow: args.follow };
        let answer = daemon.call(LogRead, params).await?;
        copy(daemon.stream(&answer.stream).await?, &mut std::io::stdout().lock()).await?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args.raw && talk::holds(&daemon.call(TaskGet, task.clone()).await?) {
        return super::chat::print(context, task, None, args.follow, false).await;
    }
    let form = if args.raw { LogForm::Raw } else { LogForm::Text };
    let answer = daemon.call(LogRead, LogReadParams { task, form, follow: args.follow }).await?;
    copy(daemon.stream(&answer.stream).await?, &mut std::io::stdout().lock()).await?;
    Ok(ExitCode::SUCCESS)
}

/// All of a log that has an end.
pub(crate) async fn log_text(stream: StreamSocket) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    match copy(stream, &mut bytes).await {
        Ok(()) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(Stop::Failed(failure)) => Err(failure),
        Err(Stop::PipeClosed) => Err(Failure::new("the log ends before its time")),
    }
}

/// The whole stream, or an error.
pub(super) async fn copy(mut stream: StreamSocket, out: &mut impl Write) -> Result<(), Stop> {
    loop {
        match stream.next().await {
            Some(Ok(Message::Binary(bytes))) => {
                out.write_all(&bytes)?;
                out.flush()?;
            }
            Some(Ok(Message::Text(text))) if daemon_leaves(&text) => {
                return Err(cut_short("the daemon left"));
            }
            Some(Ok(Message::Close(_))) | None => return Ok(()),
            Some(Ok(_)) => {}
            // Half a log must not look like a whole one.
            Some(Err(err)) => return Err(cut_short(&err.to_string())),
        }
    }
}

fn daemon_leaves(text: &str) -> bool {
    matches!(serde_json::from_str(text), Ok(ViewerNotice::DaemonLeaves))
}

fn cut_short(cause: &str) -> Stop {
    Stop::Failed(
        Failure::new("the log ends before its time")
            .because(cause)
            .hint("nothing is lost: run the same command again"),
    )
}
