//! `agency mcp`: Agency as tools of an agent, on standard input and output.

use std::process::ExitCode;

use rmcp::ServiceExt;
use rmcp::transport::io::stdio;

use crate::context::Context;
use crate::mcp::Server;
use crate::stop::{Done, failed};

/// Until the agent hangs up.
pub(super) async fn mcp(context: &Context) -> Done {
    let server = Server::of(context)?;
    let running = match server.serve(stdio()).await {
        Ok(running) => running,
        Err(err) => return Err(failed("no MCP client answers on standard input", &err)),
    };
    running.waiting().await.map_err(|err| failed("the MCP server failed", &err))?;
    Ok(ExitCode::SUCCESS)
}
