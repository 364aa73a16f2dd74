//! `agency mcp`: runs an MCP server on standard input and output.

use std::process::ExitCode;

use agency_api::{Failure, FailureCode};
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::io::stdio;

use crate::context::Context;
use crate::mcp::Server;
use crate::outcome::{CommandResult, failed};

/// Serves until the client closes the connection.
pub(super) async fn mcp(context: &Context) -> CommandResult {
    let server = Server::new(context)?;
    let running = match server.serve(stdio()).await {
        Ok(running) => running,
        Err(ServerInitializeError::ConnectionClosed(_)) => {
            return Err(Failure::new("the MCP client closed standard input before it sent `initialize`")
                .code(FailureCode::InvalidArgument)
                .hint("an MCP client starts `agency mcp` itself: see `agency mcp --help`")
                .into());
        }
        Err(err) => return Err(failed("cannot begin to speak MCP with the client", &err)),
    };
    running.waiting().await.map_err(|err| failed("the MCP server failed", &err))?;
    Ok(ExitCode::SUCCESS)
}
