//! `agency logs`: what the agent printed, as text or as it came.

use std::io::Write;
use std::process::ExitCode;

use agency_api::Failure;
use agency_api::method::{LogRead, LogReadParams};
use agency_api::pty::ViewerNotice;
use agency_client::StreamSocket;
use futures_util::StreamExt;
use tokio_tungstenite::tungstenite::Message;

use crate::cli::Logs;
use crate::context::Context;
use crate::stop::{Done, Stop};

pub(super) async fn logs(context: &Context, args: Logs) -> Done {
    let task = context.task(&args.name.task)?;
    let mut daemon = context.daemon().await?;
    let params = LogReadParams { task, raw: args.raw, follow: args.follow };
    let answer = daemon.call(LogRead, params).await?;
    copy(daemon.stream(&answer.stream).await?).await?;
    Ok(ExitCode::SUCCESS)
}

async fn copy(mut stream: StreamSocket) -> Result<(), Stop> {
    let mut stdout = std::io::stdout().lock();
    loop {
        match stream.next().await {
            Some(Ok(Message::Binary(bytes))) => {
                stdout.write_all(&bytes)?;
                stdout.flush()?;
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
