//! The server as the SDK sees it: lists the tools and calls them.

use std::sync::Arc;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};

use crate::answer::{Outcome, outcome};
use crate::api::Api;
use crate::call::{Arguments, call};
use crate::keys::Keys;
use crate::tools::{INSTRUCTIONS, ToolName};

/// The tools over one service. Cloned for each connection.
#[derive(Clone)]
pub struct Server {
    api: Arc<Api>,
    keys: Keys,
}

impl Server {
    /// Calls `api` with the keys that `keys` chooses.
    pub fn new(api: Arc<Api>, keys: Keys) -> Self {
        Self { api, keys }
    }

    async fn outcome(&self, tool: ToolName, arguments: Arguments, key: Option<String>) -> Outcome {
        let Some(key) = key else {
            return Outcome::Failed("no key: send one as Authorization: Bearer svc_…".to_owned());
        };
        let request = match call(tool, arguments) {
            Ok(request) => request,
            Err(fault) => return Outcome::Failed(fault),
        };
        match self.api.call(request, key.clone()).await {
            Ok(reply) => outcome(tool, &reply, &key),
            Err(cause) => Outcome::Failed(cause),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("tidewatch", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        ToolName::named(name).map(ToolName::describe)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = ToolName::ALL.into_iter().map(ToolName::describe);
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = ToolName::named(&request.name) else {
            return Err(ErrorData::invalid_params(
                format!("there is no tool {}", request.name),
                None,
            ));
        };
        let head = context.extensions.get::<http::request::Parts>();
        let key = self.keys.of_call(head.map(|head| &head.headers));
        let result = match self
            .outcome(tool, request.arguments.unwrap_or_default(), key)
            .await
        {
            Outcome::Done { json, hint } => CallToolResult::success(
                [Some(json), hint]
                    .into_iter()
                    .flatten()
                    .map(ContentBlock::text)
                    .collect(),
            ),
            Outcome::Failed(message) => {
                tracing::info!(tool = tool.as_str(), message, "a call failed");
                CallToolResult::error(vec![ContentBlock::text(message)])
            }
        };
        Ok(result.into())
    }
}
