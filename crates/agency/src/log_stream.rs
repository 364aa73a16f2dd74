//! Reads a log that the daemon streams.

use std::io::Write;

use agency_api::pty::ViewerNotice;
use agency_api::{Failure, FailureCode};
use agency_client::StreamSocket;
use futures_util::StreamExt;
use tokio_tungstenite::tungstenite::Message;

use crate::outcome::CommandError;

/// Reads a log that has an end.
pub(crate) async fn read_log(stream: StreamSocket) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    match copy_log(stream, &mut bytes).await {
        Ok(()) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(CommandError::Failed(failure)) => Err(failure),
        Err(CommandError::PipeClosed) => {
            Err(Failure::new("the log is incomplete").code(FailureCode::DaemonLost))
        }
    }
}

/// Copies the whole stream, or fails.
pub(crate) async fn copy_log(mut stream: StreamSocket, out: &mut impl Write) -> Result<(), CommandError> {
    loop {
        match stream.next().await {
            Some(Ok(Message::Binary(bytes))) => {
                out.write_all(&bytes)?;
                out.flush()?;
            }
            Some(Ok(Message::Text(text))) if is_daemon_leaving(&text) => {
                return Err(incomplete("the daemon stopped"));
            }
            Some(Ok(Message::Close(_))) | None => return Ok(()),
            Some(Ok(_)) => {}
            // Half a log must not look like a whole one.
            Some(Err(err)) => return Err(incomplete(&err.to_string())),
        }
    }
}

fn is_daemon_leaving(text: &str) -> bool {
    matches!(serde_json::from_str(text), Ok(ViewerNotice::DaemonLeaves))
}

fn incomplete(cause: &str) -> CommandError {
    CommandError::Failed(
        Failure::new("the log is incomplete")
            .code(FailureCode::DaemonLost)
            .because(cause)
            .hint("nothing is lost: run the same command again"),
    )
}
