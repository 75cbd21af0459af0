//! What a server answered, as blocks for the model.

use haversack_agent_core::message::{Block, Media as Image};
use haversack_agent_core::tool::ToolOutput;
use haversack_mcp_client::protocol::{Content, EmbeddedResource, Media, ResourceLink, ToolResult};

/// The largest image that is passed on, in decoded bytes: what the strictest of the large providers takes.
const MAX_IMAGE_BYTES: usize = 5 * 1024 * 1024;

const OPEN: &str = "mcp_result";

/// Turns an answer into an output: texts joined by line ends in one wrapper that marks them as data, images as
/// images, and a placeholder for what no model reads.
pub(super) fn output(server: &str, tool: &str, answer: ToolResult) -> ToolOutput {
    let mut texts: Vec<String> = Vec::new();
    let mut images = Vec::new();
    let mut has_text = false;
    for part in answer.content {
        has_text |= matches!(part, Content::Text(_));
        match part {
            Content::Image(media) if is_sound(&media) => {
                texts.push(format!("[image {}: {}]", images.len() + 1, describe(&media)));
                images.push(Image::base64(media.mime_type.unwrap_or_default(), media.data));
            }
            part => texts.push(text_of(part)),
        }
    }
    if let Some(structured) = answer.structured.as_ref().filter(|_| !has_text) {
        texts.push(structured.to_string());
    }
    if texts.is_empty() {
        texts.push("[no output]".to_owned());
    }
    let mut blocks = vec![Block::text(wrap(server, tool, &texts.join("\n")))];
    blocks.extend(images.into_iter().map(Block::Image));
    let mut output = ToolOutput::blocks(blocks);
    output.is_error = answer.is_error;
    output.structured = answer.structured;
    output
}

/// The wrapper. Whatever in the text looks like its end, or like the start of another server's, is broken up: so the
/// text can neither leave it nor speak for others.
fn wrap(server: &str, tool: &str, text: &str) -> String {
    let text = broken_up(text);
    format!("<{OPEN} server=\"{}\" tool=\"{}\">\n{text}\n</{OPEN}>", attribute(server), attribute(tool))
}

/// The text with a zero width space in each tag of the wrapper's name. A model reads a tag in other letters or with
/// spaces in it just the same.
fn broken_up(text: &str) -> String {
    let mut pieces = text.split('<');
    let mut safe = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        safe.push_str(if names_wrapper(piece) { "<\u{200b}" } else { "<" });
        safe.push_str(piece);
    }
    safe
}

/// Whether a text behind a `<` makes it a tag of the wrapper.
fn names_wrapper(text: &str) -> bool {
    let name = text.trim_start_matches(|c: char| c == '/' || c.is_whitespace() || c.is_control());
    name.get(..OPEN.len()).is_some_and(|name| name.eq_ignore_ascii_case(OPEN))
}

fn attribute(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || matches!(c, '"' | '<' | '>' | '&') { '_' } else { c }).collect()
}

fn text_of(part: Content) -> String {
    match part {
        Content::Text(text) => text.text,
        Content::Image(media) => format!("[image: {}, not shown]", describe(&media)),
        Content::Audio(media) => format!("[audio: {}, not shown]", describe(&media)),
        Content::ResourceLink(link) => link_text(&link),
        Content::Resource(resource) => resource_text(resource),
        Content::Unknown(value) => {
            let kind = value.get("type").and_then(|t| t.as_str()).unwrap_or("without a type");
            format!("[content of an unknown kind: {}]", attribute(kind))
        }
        _ => "[content of an unknown kind]".to_owned(),
    }
}

fn link_text(link: &ResourceLink) -> String {
    let name = link.title.as_ref().or(link.name.as_ref());
    let name = name.map(|n| format!("{n}: ")).unwrap_or_default();
    let more = link.description.as_ref().map(|d| format!(" ({d})")).unwrap_or_default();
    format!("[resource] {name}{}{more}", link.uri)
}

fn resource_text(embedded: EmbeddedResource) -> String {
    let resource = embedded.resource;
    match (resource.text, resource.blob) {
        (Some(text), _) => format!("[resource] {}\n{text}", resource.uri),
        (None, blob) => {
            let media = resource.mime_type.as_deref().unwrap_or("unknown type");
            let bytes = blob.map_or(0, |b| decoded_len(&b));
            format!("[resource {}: {media}, {bytes} bytes, not shown]", resource.uri)
        }
    }
}

fn describe(media: &Media) -> String {
    format!("{}, {} bytes", media.mime_type.as_deref().unwrap_or("unknown type"), media.decoded_len())
}

fn decoded_len(base64: &str) -> usize {
    base64.trim_end_matches('=').len() * 3 / 4
}

/// Whether a provider would take the image: one it refuses would make every later request fail.
fn is_sound(media: &Media) -> bool {
    let data = media.data.as_bytes();
    let body = media.data.trim_end_matches('=').as_bytes();
    let kind = media
        .mime_type
        .as_deref()
        .is_some_and(|m| matches!(m, "image/png" | "image/jpeg" | "image/gif" | "image/webp"));
    kind && !data.is_empty()
        && data.len().is_multiple_of(4)
        && data.len() - body.len() <= 2
        && media.decoded_len() <= MAX_IMAGE_BYTES
        && body.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}

#[cfg(test)]
mod tests;
