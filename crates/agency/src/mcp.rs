//! Agency as an agent sees it: an MCP server whose tools are calls of the API.
//!
//! Holds no limits: the daemon is asked for leave before every call, and it says why not.

mod brief;
mod deed;
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
use deed::Desk;
use tool::{Asked, TOOLS};

pub(crate) struct Server {
    desk: Desk,
}

impl Server {
    /// For the agent around us, in its project; for a person's own program, in the project where it stands.
    pub(crate) fn of(context: &Context) -> Result<Server, Failure> {
        let run = caller::inside_run();
        let root = std::env::var_os("AGENCY_PROJECT_ROOT").filter(|_| run.is_some());
        let cwd = root.map_or_else(context::here, |root| Ok(Bytes::from(root)))?;
        Ok(Server { desk: Desk { context: context.clone(), who: TermsParams { cwd, run } } })
    }

    async fn allowed(&self) -> Result<Vec<String>, Failure> {
        let mut daemon = self.desk.context.daemon().await?;
        Ok(daemon.call(McpTerms, self.desk.who.clone()).await?.allow)
    }

    async fn permit(&self, asked: &Asked) -> Result<(), Failure> {
        let (who, tool, task) = (self.desk.who.clone(), asked.name().to_owned(), asked.task());
        let mut daemon = self.desk.context.daemon().await?;
        daemon.call(McpPermit, PermitParams { who, tool, task }).await.map(drop)
    }

    async fn done(&self, asked: Asked, context: &RequestContext<RoleServer>) -> Result<String, Failure> {
        self.permit(&asked).await?;
        tokio::select! {
            done = self.desk.deed(asked) => done,
            () = context.ct.cancelled() => Err(Failure::new("cancelled").code(FailureCode::Cancelled)),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("agency", env!("CARGO_PKG_VERSION")))
            .with_instructions(ABOUT)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let allowed = self.allowed().await.map_err(internal)?;
        let tools = TOOLS.iter().filter(|tool| allowed.iter().any(|name| name == tool.name));
        Ok(ListToolsResult::with_all_items(tools.map(|tool| tool.described()).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let asked = Asked::read(&request.name, request.arguments.unwrap_or_default())
            .map_err(|problem| ErrorData::invalid_params(problem, None))?;
        let result = match self.done(asked, &context).await {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(failure) => CallToolResult::error(vec![ContentBlock::text(words(&failure))]),
        };
        Ok(CallToolResponse::Complete(result))
    }
}

const ABOUT: &str = "\
Agency runs coding agents side by side, each task in its own workspace (git worktree, branch). With these tools you \
start tasks, see what their agents do, wait for them, read what they say and send them messages. A task is named by its \
id, its slug, or a unique prefix of the slug. Give a task everything it needs to know: its agent does not see your \
conversation. Its work is on its branch; you or the user merge it.";

fn internal(failure: Failure) -> ErrorData {
    ErrorData::internal_error(Cow::Owned(words(&failure)), None)
}

/// All that is known, for a model to read.
fn words(failure: &Failure) -> String {
    let causes = failure.causes.iter().map(|cause| format!("\nCaused by: {cause}"));
    let hint = failure.hint.iter().map(|hint| format!("\nHint: {hint}"));
    let parts = std::iter::once(format!("Error: {}", failure.message)).chain(causes).chain(hint);
    output::printable(&parts.collect::<String>())
}
