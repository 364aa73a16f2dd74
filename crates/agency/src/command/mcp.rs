//! `agency mcp`: runs an MCP server on standard input and output.

use std::process::ExitCode;

use rmcp::ServiceExt;
use rmcp::transport::io::stdio;

use crate::context::Context;
use crate::mcp::Server;
use crate::outcome::{CommandResult, failed};

/// Serves until the client closes the connection.
pub(super) async fn mcp(context: &Context) -> CommandResult {
    let server = Server::new(context)?;
    let running = match server.serve(stdio()).await {
        Ok(running) => running,
        Err(err) => return Err(failed("no MCP client answers on standard input", &err)),
    };
    running.waiting().await.map_err(|err| failed("the MCP server failed", &err))?;
    Ok(ExitCode::SUCCESS)
}
