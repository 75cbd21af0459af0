//! What speaks MCP, over rmcp: lists, calls, prompts, resources and the skills extension, of both eras of the protocol.

mod drive;
mod lists;

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
    GetSkillRequestParams, GetSkillResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListSkillsResult, ListToolsResult, PaginatedRequestParams, PromptMessage,
    ReadResourceDirectoryRequestParams, ReadResourceDirectoryResult, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ResourceTemplate, Role, ServerCapabilities, ServerConfig,
    SubscriptionFilter,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use crate::served::ServedSkill;
use crate::server::SkillServer;
use crate::{manifest, render, uri};
use lists::paged;

/// What clients are told of the server as a whole.
const INSTRUCTIONS: &str = "Each tool is a skill: instructions that you read when a task fits its description, a fixed \
                            series of steps, or an agent that works on a task of its own.";

/// Speaks MCP for a [`SkillServer`]. Cheap to clone; one serves any number of connections.
#[derive(Clone, Debug)]
pub struct Handler {
    server: SkillServer,
}

impl SkillServer {
    /// What speaks MCP: one for each connection, or one for all.
    #[must_use]
    pub fn handler(&self) -> Handler {
        Handler { server: self.clone() }
    }
}

impl Handler {
    fn skill_at(&self, address: &str) -> Option<(Arc<ServedSkill>, String)> {
        let (name, path) = uri::parse(address)?;
        Some((Arc::clone(self.server.catalogue().get(&name)?), path))
    }
}

fn unknown(address: &str) -> ErrorData {
    let data = json!({"uri": address});
    ErrorData::resource_not_found(
        "there is no such resource; list the resources to see what there is",
        Some(data),
    )
}

fn invalid(message: impl Into<String>) -> ErrorData {
    ErrorData::invalid_params(message.into(), None)
}

/// Runs something that reads files where that holds up nothing else.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ErrorData> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| ErrorData::internal_error("the server is ending, or reading failed", None))
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_skills_with_directory_read()
            .build();
        let about = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(about).with_instructions(INSTRUCTIONS)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.server.keep_client(context.peer);
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        accepted.resource_subscriptions = None;
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changed = self.server.0.changed.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                more = changed.changed() => if more.is_err() { return Ok(()) },
            }
            let (sink, accepted) = (context.sink(), context.accepted());
            if accepted.tools_list_changed == Some(true) {
                let _ = sink.notify_tool_list_changed().await;
            }
            if accepted.prompts_list_changed == Some(true) {
                let _ = sink.notify_prompt_list_changed().await;
            }
            if accepted.resources_list_changed == Some(true) {
                let _ = sink.notify_resource_list_changed().await;
            }
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = lists::tools(&self.server.catalogue());
        let (tools, next) = paged(tools, request.as_ref(), |tool| &tool.name);
        let mut result = ListToolsResult::with_all_items(tools);
        result.next_cursor = next;
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(request, context).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts = lists::prompts(&self.server.catalogue());
        let (prompts, next) = paged(prompts, request.as_ref(), |prompt| &prompt.name);
        let mut result = ListPromptsResult::with_all_items(prompts);
        result.next_cursor = next;
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let catalogue = self.server.catalogue();
        let skill = catalogue.skills().iter().find(|skill| skill.is_prompt && skill.name() == request.name);
        let skill =
            skill.ok_or_else(|| invalid("there is no such prompt; list the prompts to see what there is"))?;
        let query = request.arguments.as_ref().and_then(|arguments| arguments.get("query"));
        let query =
            query.map(|query| query.as_str().ok_or_else(|| invalid("`query` is a text"))).transpose()?;
        let message = PromptMessage::new_text(Role::User, render::prompt(skill, query));
        Ok(GetPromptResult::new(vec![message]).with_description(skill.description()).into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let catalogue = self.server.catalogue();
        let resources = catalogue.skills().iter().map(|skill| manifest::resource(skill)).collect();
        let (resources, next) = paged(resources, request.as_ref(), |resource| &resource.uri);
        let mut result = ListResourcesResult::with_all_items(resources);
        result.next_cursor = next;
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("skill://{skill}/{+path}", "skill-file")
            .with_description("A file of a skill, by its path within the skill.");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (skill, path) = self.skill_at(&request.uri).ok_or_else(|| unknown(&request.uri))?;
        let read = blocking(move || manifest::contents(&skill, &path)).await?;
        let contents = read.map_err(|error| {
            tracing::debug!(uri = %request.uri, %error, "a resource was not given");
            unknown(&request.uri)
        })?;
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        let listed =
            self.server.catalogue().skills().iter().filter(|skill| skill.is_listed).cloned().collect();
        let (skills, next) = paged(listed, request.as_ref(), |skill: &Arc<ServedSkill>| skill.name());
        let server = self.server.clone();
        let entries = blocking(move || {
            let entry = |skill: &Arc<ServedSkill>| {
                let entry = server.0.manifests.entry(skill);
                entry
                    .inspect_err(|why| tracing::warn!(skill = skill.name(), %why, "a skill is not listed"))
                    .ok()
            };
            skills.iter().filter_map(entry).collect()
        });
        let mut result = ListSkillsResult::with_all_items(entries.await?);
        result.next_cursor = next;
        Ok(result)
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        let found = self.skill_at(&request.uri).filter(|(_, path)| path == haversack_skills::FILE_NAME);
        let (skill, _) = found.ok_or_else(|| invalid(format!("there is no skill {:?}", request.uri)))?;
        let server = self.server.clone();
        let entry = blocking(move || server.0.manifests.entry(&skill)).await?;
        entry.map(GetSkillResult::new).map_err(|why| invalid(format!("the skill cannot be given: {why}")))
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        let no_folder = || invalid(format!("{:?} is no folder of a skill", request.uri));
        let (skill, path) = self.skill_at(&request.uri).ok_or_else(no_folder)?;
        let children = blocking(move || manifest::children(&skill, &path)).await?;
        let children = children.ok().flatten().ok_or_else(no_folder)?;
        let cursor = request.cursor.as_deref();
        let (children, next) = lists::page_after(children, cursor, |resource| &resource.uri);
        let mut result = ReadResourceDirectoryResult::with_all_items(children);
        result.next_cursor = next;
        Ok(result)
    }
}

/// The arguments of a call, an empty object where there are none.
fn arguments(request: &CallToolRequestParams) -> Value {
    Value::Object(request.arguments.clone().unwrap_or_default())
}
