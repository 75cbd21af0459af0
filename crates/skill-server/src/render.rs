//! What calls give back: prompts put together, outputs of tools as results of MCP.

use haversack_agent_core::message::{Block, Media, MediaSource};
use haversack_agent_core::tool::{ToolError, ToolOutput};
use haversack_skill_runtime::redact::Redactor;
use haversack_skills::files::SkillFiles;
use haversack_skills::limits;
use haversack_skills::page::{Page, page};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

use crate::manifest::is_hidden;
use crate::served::ServedSkill;

/// The text of a prompt skill, whole, with what it is needed for in front.
pub(crate) fn prompt(skill: &ServedSkill, query: Option<&str>) -> String {
    with_query(skill.id(), skill.body.trim_start(), query)
}

fn with_query(id: &str, text: &str, query: Option<&str>) -> String {
    match query.map(str::trim).filter(|query| !query.is_empty()) {
        Some(query) => format!("## Query\n{query}\n\n## SKILL: {id}\n\n{text}"),
        None => text.to_owned(),
    }
}

/// A page of a prompt skill, or of a file that it brings along, as the result of its tool.
pub(crate) fn prompt_page(skill: &ServedSkill, arguments: &Value) -> Result<ToolOutput, ToolError> {
    let number = arguments.get("page").and_then(Value::as_u64).unwrap_or(1);
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    let query = arguments.get("query").and_then(Value::as_str);
    let file = arguments.get("file").and_then(Value::as_str);
    let (text, chars) = match file {
        None => (skill.body.trim_start().to_owned(), limits::BODY_PAGE_CHARS),
        Some(path) => (bundled(skill, path)?, limits::RESOURCE_PAGE_CHARS),
    };
    let Page { text: shown, number, of, .. } = page(&text, number, chars).map_err(|pages| {
        ToolError::invalid_arguments(format!("there is no page {number}; pages go from 1 to {pages}"))
    })?;
    let mut reply = with_query(skill.id(), shown, query);
    if number < of {
        let next = number + 1;
        if !reply.ends_with('\n') {
            reply.push('\n');
        }
        reply.push_str(&format!(
            "\n[Page {number} of {of}. For the next one call this tool with page {next}.]"
        ));
    }
    let structured = json!({
        "skill": skill.name, "mode": "prompt", "file": file, "page": number, "pages": of, "text": reply,
    });
    Ok(ToolOutput::text(reply).with_structured(structured))
}

fn bundled(skill: &ServedSkill, path: &str) -> Result<String, ToolError> {
    let refused = |why: String| {
        let shown: String = path.chars().take(200).collect();
        ToolError::invalid_arguments(format!("{shown:?} of the skill `{}`: {why}", skill.name))
    };
    if is_hidden(&path.replace('\\', "/")) {
        return Err(refused("there is no such file".to_owned()));
    }
    let bytes = SkillFiles::open(&skill.folder)
        .map_err(|error| refused(error.to_string()))
        .and_then(|files| files.read(path, limits::RESOURCE_BYTES).map_err(|e| refused(e.to_string())))?;
    let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| refused("it is not a text".to_owned()))
}

/// The output of a tool as a result of MCP, with secrets masked.
pub(crate) fn result(output: Result<ToolOutput, ToolError>, redactor: &Redactor) -> CallToolResult {
    let output = output.unwrap_or_else(|error| ToolOutput::error(error.message));
    let content = output.blocks.into_iter().filter_map(|block| content(block, redactor)).collect();
    let mut result =
        if output.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    // Results of earlier revisions take objects only.
    result.structured_content = output.structured.filter(Value::is_object).map(|value| redactor.json(value));
    result
}

fn content(block: Block, redactor: &Redactor) -> Option<ContentBlock> {
    match block {
        Block::Text { text } => Some(ContentBlock::text(redactor.text(&text).into_owned())),
        Block::Image(Media { media_type, source: MediaSource::Base64(data), .. }) => {
            Some(ContentBlock::image(data.to_string(), media_type))
        }
        Block::Image(media) | Block::Document(media) => {
            let name = media.name.unwrap_or_else(|| "without a name".to_owned());
            Some(ContentBlock::text(format!("[a {} ({name}) is not shown here]", media.media_type)))
        }
        _ => None,
    }
}
