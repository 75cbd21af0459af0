//! What is asked of a server that is connected.

use std::sync::Arc;

use haversack_mcp_client::protocol::{
    Content, Listing, Notice, Problem, ProblemCode, PromptInfo, ResourceContents, ResourceInfo, ToolInfo,
};
use haversack_mcp_client::{Client, Error, Event};
use haversack_tool_adapter::naming::{NameTable, Original};
use serde_json::{Map, Value, json};

use super::report::Report;

/// What the command line asks for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) call: Option<(String, Map<String, Value>)>,
    pub(super) read: Option<String>,
    pub(super) prompt: Option<(String, Map<String, Value>)>,
}

pub(super) async fn converse(client: &Client, asked: &Asked) -> Report {
    let mut report = Report::on(client.info());
    let mut events = client.events();
    let (tools, resources, prompts) =
        tokio::join!(client.list_tools(), client.list_resources(), client.list_prompts());
    let tools = listed(&mut report, "tools", true, tools);
    report.tools = show_tools(client.label(), tools);
    let resources = listed(&mut report, "resources", asked.read.is_some(), resources);
    report.resources = resources.iter().map(show_resource).collect();
    let prompts = listed(&mut report, "prompts", asked.prompt.is_some(), prompts);
    report.prompts = prompts.iter().map(show_prompt).collect();
    ask(client, asked, &mut report).await;
    while let Some(event) = events.try_next() {
        if let Event::Notice(Notice::Problem(problem)) = event {
            report.problems(&[problem]);
        }
    }
    report
}

async fn ask(client: &Client, asked: &Asked, report: &mut Report) {
    if let Some((tool, arguments)) = &asked.call {
        match client.call_tool(tool, arguments.clone()).await {
            Ok(result) => {
                report.problems(&result.problems);
                let content: Vec<_> = result.content.iter().map(show_content).collect();
                report.call =
                    json!({"content": content, "structured": result.structured, "is_error": result.is_error});
            }
            Err(error) => report.fail(&error),
        }
    }
    if let Some(uri) = &asked.read {
        match client.read_resource(uri).await {
            Ok(result) => {
                report.problems(&result.problems);
                report.read =
                    json!({"contents": result.contents.iter().map(show_contents).collect::<Vec<_>>()});
            }
            Err(error) => report.fail(&error),
        }
    }
    if let Some((prompt, arguments)) = &asked.prompt {
        match client.get_prompt(prompt, arguments.clone()).await {
            Ok(result) => {
                report.problems(&result.problems);
                let messages: Vec<_> = result
                    .messages
                    .iter()
                    .map(|message| json!({"role": message.role, "content": show_content(&message.content)}))
                    .collect();
                report.prompt = json!({"description": result.description, "messages": messages});
            }
            Err(error) => report.fail(&error),
        }
    }
}

/// Takes what could be had of a list. An error that the server answers with leaves a list empty and is no failure, since
/// nobody asked for the list; an answer that does not come is one.
fn listed<T>(report: &mut Report, list: &str, is_asked: bool, listing: Result<Listing<T>, Error>) -> Vec<T> {
    match listing {
        Ok(listing) => {
            let worth_telling = |problem: &&Problem| is_asked || problem.code != ProblemCode::NotDeclared;
            let problems: Vec<_> = listing.problems.iter().filter(worth_telling).cloned().collect();
            report.problems(&problems);
            listing.items
        }
        Err(error @ Error::Rpc { .. }) => {
            report.problem("list_refused", &format!("no {list}: {error}"));
            Vec::new()
        }
        Err(error) => {
            report.fail(&error);
            Vec::new()
        }
    }
}

fn show_tools(server: &str, tools: Vec<ToolInfo>) -> Vec<Value> {
    let mut names = NameTable::new();
    let originals: Vec<_> = tools.iter().map(|tool| Original::new(server, tool.name.as_str())).collect();
    names.assign(originals.iter().cloned());
    let show = |(tool, original): (ToolInfo, &Original)| {
        json!({
            "name": tool.name,
            "public_name": names.public(original),
            "read_only": tool.annotations.read_only == Some(true),
            "description": tool.description,
            "schema": Arc::unwrap_or_clone(tool.input_schema),
        })
    };
    tools.into_iter().zip(&originals).map(show).collect()
}

fn show_resource(resource: &ResourceInfo) -> Value {
    present([
        ("uri", Some(resource.uri.as_str())),
        ("name", resource.name.as_deref()),
        ("title", resource.title.as_deref()),
        ("description", resource.description.as_deref()),
        ("mime_type", resource.mime_type.as_deref()),
    ])
}

fn show_prompt(prompt: &PromptInfo) -> Value {
    let arguments: Vec<_> = prompt.arguments.iter().map(|argument| argument.name.as_str()).collect();
    json!({"name": prompt.name, "description": prompt.description, "arguments": arguments})
}

fn show_content(content: &Content) -> Value {
    match content {
        Content::Text(text) => json!({"type": "text", "text": text.text}),
        Content::Image(media) => json!({"type": "image", "mime_type": media.mime_type, "data": media.data}),
        Content::Audio(media) => json!({"type": "audio", "mime_type": media.mime_type, "data": media.data}),
        Content::Resource(part) => json!({"type": "resource", "resource": show_contents(&part.resource)}),
        Content::ResourceLink(link) => {
            json!({"type": "resource_link", "uri": link.uri, "name": link.name, "mime_type": link.mime_type})
        }
        Content::Unknown(value) => json!({"type": "unknown", "value": value}),
        // A kind that a later version of the client knows.
        other => json!({"type": "unknown", "value": format!("{other:?}")}),
    }
}

fn show_contents(contents: &ResourceContents) -> Value {
    present([
        ("uri", Some(contents.uri.as_str())),
        ("mime_type", contents.mime_type.as_deref()),
        ("text", contents.text.as_deref()),
        ("blob", contents.blob.as_deref()),
    ])
}

fn present<const COUNT: usize>(members: [(&str, Option<&str>); COUNT]) -> Value {
    let members = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
    Value::Object(members.collect::<Map<_, _>>())
}
