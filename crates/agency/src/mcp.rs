//! An MCP server whose tools call the API, for agents.
//!
//! Knows no limits itself: it asks the daemon for permission before every tool call.

mod runner;
mod summary;
mod tool;

use std::borrow::Cow;

use agency_api::mcp::{PermitParams, TermsParams};
use agency_api::method::{McpPermit, McpTerms};
use agency_api::{Bytes, Failure, FailureCode};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::context::{self, Context};
use crate::{caller, output};
use runner::ToolRunner;
use tool::{TOOLS, ToolCall};

pub(crate) struct Server {
    runner: ToolRunner,
}

impl Server {
    /// If an agent started us, the server works in that agent's project; otherwise in the project of the current directory.
    pub(crate) fn new(context: &Context) -> Result<Server, Failure> {
        let run = caller::inside_run();
        let root = std::env::var_os("AGENCY_PROJECT_ROOT").filter(|_| run.is_some());
        let cwd = root.map_or_else(context::here, |root| Ok(Bytes::from(root)))?;
        Ok(Server { runner: ToolRunner { context: context.clone(), who: TermsParams { cwd, run } } })
    }

    async fn allowed_tools(&self) -> Result<Vec<String>, Failure> {
        let mut daemon = self.runner.context.daemon().await?;
        Ok(daemon.call(McpTerms, self.runner.who.clone()).await?.allow)
    }

    async fn permit(&self, call: &ToolCall) -> Result<(), Failure> {
        let (who, tool, task) = (self.runner.who.clone(), call.name().to_owned(), call.task());
        let mut daemon = self.runner.context.daemon().await?;
        daemon.call(McpPermit, PermitParams { who, tool, task }).await.map(drop)
    }

    async fn run_tool(
        &self,
        call: ToolCall,
        context: &RequestContext<RoleServer>,
    ) -> Result<String, Failure> {
        self.permit(&call).await?;
        tokio::select! {
            result = self.runner.run(call) => result,
            () = context.ct.cancelled() => Err(Failure::new("cancelled").code(FailureCode::Cancelled)),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("agency", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let allowed = self.allowed_tools().await.map_err(internal_error)?;
        let tools = TOOLS.iter().filter(|tool| allowed.iter().any(|name| name == tool.name));
        Ok(ListToolsResult::with_all_items(tools.map(|tool| tool.described()).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = ToolCall::parse(&request.name, request.arguments.unwrap_or_default())
            .map_err(|problem| ErrorData::invalid_params(problem, None))?;
        let result = match self.run_tool(call, &context).await {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(failure) => CallToolResult::error(vec![ContentBlock::text(failure_text(&failure))]),
        };
        Ok(CallToolResponse::Complete(result))
    }
}

const INSTRUCTIONS: &str = "\
Agency runs coding agents side by side, each task in its own workspace (git worktree, branch). With these tools you \
start tasks, see what their agents do, wait for them, read what they say and send them messages. A task is named by its \
id, its slug, or a unique prefix of the slug. Give a task everything it needs to know: its agent does not see your \
conversation. Its work is on its branch; you or the user merge it.";

fn internal_error(failure: Failure) -> ErrorData {
    ErrorData::internal_error(Cow::Owned(failure_text(&failure)), None)
}

/// The whole failure as text, for a model to read.
fn failure_text(failure: &Failure) -> String {
    let causes = failure.causes.iter().map(|cause| format!("\nCaused by: {cause}"));
    let hint = failure.hint.iter().map(|hint| format!("\nHint: {hint}"));
    let parts = std::iter::once(format!("Error: {}", failure.message)).chain(causes).chain(hint);
    output::printable(&parts.collect::<String>())
}
