//! The server: requests of the protocol in, tools and resources out.
//!
//! It does not know what tools do.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::child::{Fault, Program};
use super::follow::Caller;
use super::{resources, tools};

/// What a client is told of the whole.
const INSTRUCTIONS: &str = "\
t2t builds Triton kernels that replace torch operations, and judges them. The way: `add_op` or `declare_op`, `read_contract` and `read_analysis`, then \
`submit_kernel`, and again with what its failures say, until it passes and is fast. `explain` says what a class of rejections means. The resource \
t2t:///docs/guide/judging.md says what is checked.";

/// A server for one client.
#[derive(Debug)]
pub(super) struct Server {
    program: Program,
}

impl Server {
    /// Returns a server whose tools run `program`.
    pub(super) fn new(program: Program) -> Self {
        Self { program }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let own = Implementation::new("t2t", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(own).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = Caller::of(&context);
        let given = request.arguments.unwrap_or_default();
        match tools::call(&self.program, &caller, &request.name, given).await {
            Some(Ok(value)) => Ok(CallToolResult::structured(value).into()),
            // An agent reads the text of a failed call, and no error of the protocol.
            Some(Err(Fault::Told(text))) => Ok(CallToolResult::error(vec![ContentBlock::text(text)]).into()),
            Some(Err(Fault::Cancelled)) => Ok(CallToolResult::error(vec![ContentBlock::text("cancelled")]).into()),
            None => Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None)),
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list(&self.program.root)))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match resources::read(&self.program.root, &request.uri) {
            Some(contents) => Ok(ReadResourceResult::new(vec![contents]).into()),
            None => Err(ErrorData::resource_not_found(format!("there is no resource `{}`", request.uri), None)),
        }
    }
}
