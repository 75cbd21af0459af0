//! A request in a form that belongs to no provider, read from JSON.

use std::sync::Arc;

use haversack_agent_core::message::{Block, Media, Message, Role, ToolCall, ToolResult, ToolStatus};
use haversack_agent_core::model::{
    ModelOptions, ModelRequest, PromptSection, ReasoningEffort, ResponseFormat, ToolChoice,
};
use haversack_agent_core::tool::ToolSpec;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The request as it stands in a file.
///
/// Messages are either Haversack's own (a role and blocks) or the short form that is used nearly everywhere: a role, a
/// `content` of text, and `tool_calls` or `tool_call_id` where they belong.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NeutralRequest {
    /// The system prompt: one text, or a list of texts.
    pub system: Value,
    /// The conversation.
    pub messages: Vec<Value>,
    /// The tools: `name`, `description`, `parameters` (or `input_schema`).
    pub tools: Vec<Value>,
    /// `auto`, `none`, `required`, or the name of a tool.
    pub tool_choice: Option<String>,
    /// A JSON Schema for the answer.
    pub response_format: Option<Value>,
    /// Limits and sampling.
    pub options: Options,
}

/// Limits and sampling.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Options {
    /// Tokens of the answer.
    #[serde(alias = "max_tokens")]
    pub max_output_tokens: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f32>,
    /// Nucleus sampling.
    pub top_p: Option<f32>,
    /// Texts at which the model stops.
    #[serde(alias = "stop")]
    pub stop_sequences: Vec<String>,
    /// How much to reason.
    pub reasoning: Option<ReasoningEffort>,
    /// Whether one answer may hold several calls.
    pub parallel_tool_calls: Option<bool>,
    /// Everything else goes into the body as it is.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl NeutralRequest {
    /// The request that is sent when none is given.
    pub fn hello() -> Self {
        Self {
            messages: vec![serde_json::json!({"role": "user", "content": "Say hello."})],
            ..Self::default()
        }
    }

    /// The request as a model takes it.
    ///
    /// # Errors
    ///
    /// When a message or a tool has not the form that it should have; the text says which.
    pub fn into_request(self) -> Result<ModelRequest, String> {
        let messages = self.messages.into_iter().enumerate();
        let messages = messages.map(|(at, value)| message(value).map_err(|e| format!("message {at}: {e}")));
        let tools = self.tools.iter().enumerate();
        let tools = tools.map(|(at, value)| tool(value).map(Arc::new).map_err(|e| format!("tool {at}: {e}")));
        let mut request = ModelRequest::default();
        request.messages = messages.collect::<Result<Vec<Message>, String>>()?.into_iter().collect();
        request.tools = tools.collect::<Result<Vec<_>, String>>()?.into();
        request.system = match self.system {
            Value::String(text) => vec![PromptSection::new("system", text)],
            Value::Array(texts) => texts
                .iter()
                .filter_map(Value::as_str)
                .map(|text| PromptSection::new("system", text))
                .collect(),
            _ => Vec::new(),
        }
        .into();
        request.tool_choice = match self.tool_choice.as_deref() {
            None | Some("auto") => ToolChoice::Auto,
            Some("none") => ToolChoice::None,
            Some("required") => ToolChoice::Required,
            Some(name) => ToolChoice::Tool(name.into()),
        };
        request.response_format = self.response_format.map(|schema| ResponseFormat::new("answer", schema));
        let options = self.options;
        let mut to = ModelOptions::default();
        to.max_output_tokens = options.max_output_tokens;
        to.temperature = options.temperature;
        to.top_p = options.top_p;
        to.stop_sequences = options.stop_sequences;
        to.reasoning = options.reasoning;
        to.parallel_tool_calls = options.parallel_tool_calls;
        to.extra = options.extra;
        request.options = to;
        Ok(request)
    }
}

fn tool(value: &Value) -> Result<ToolSpec, String> {
    let value = value.get("function").unwrap_or(value);
    let name = value.get("name").and_then(Value::as_str).ok_or("it needs a name")?;
    let description = value.get("description").and_then(Value::as_str).unwrap_or_default();
    let spec = ToolSpec::new(name, description);
    let schema = ["parameters", "input_schema"].iter().find_map(|key| value.get(*key));
    Ok(match schema {
        Some(schema) => spec.with_schema(schema.clone()),
        None => spec,
    })
}

fn message(value: Value) -> Result<Message, String> {
    if value.get("blocks").is_some() {
        return serde_json::from_value(value).map_err(|e| e.to_string());
    }
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let mut blocks = match value.get("content") {
        Some(Value::String(text)) if text.is_empty() => Vec::new(),
        Some(Value::String(text)) => vec![Block::text(text)],
        Some(Value::Array(parts)) => parts.iter().map(part).collect::<Result<_, _>>()?,
        _ => Vec::new(),
    };
    let role = match text("role") {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => {
            let id = text("tool_call_id").ok_or("a tool result needs a `tool_call_id`")?;
            let is_error = value.get("is_error").and_then(Value::as_bool).unwrap_or(false);
            let status = if is_error { ToolStatus::Error } else { ToolStatus::Ok };
            let result = ToolResult::new(id, text("name").unwrap_or_default(), status, blocks);
            return Ok(Message::new(Role::Tool, vec![result.into()]));
        }
        other => return Err(format!("its role is {other:?}, which is none of user, assistant, tool")),
    };
    for call in value.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let function = call.get("function").unwrap_or(call);
        let id = call.get("id").and_then(Value::as_str).ok_or("a tool call needs an `id`")?;
        let name = function.get("name").and_then(Value::as_str).ok_or("a tool call needs a `name`")?;
        blocks.push(Block::ToolCall(match function.get("arguments") {
            Some(Value::String(arguments)) => ToolCall::from_text(id, name, arguments),
            Some(arguments) => ToolCall::new(id, name, arguments.clone()),
            None => ToolCall::from_text(id, name, ""),
        }));
    }
    Ok(Message::new(role, blocks))
}

fn part(value: &Value) -> Result<Block, String> {
    if let Some(text) = value.get("text").and_then(Value::as_str) {
        return Ok(Block::text(text));
    }
    let url = value.get("image_url").and_then(|image| image.get("url").unwrap_or(image).as_str());
    let Some(url) = url else {
        return serde_json::from_value(value.clone())
            .map_err(|e| format!("a part that is neither text nor image: {e}"));
    };
    let inline = url.strip_prefix("data:").and_then(|data| data.split_once(";base64,"));
    Ok(Block::Image(match inline {
        Some((kind, data)) => Media::base64(kind, data),
        None => Media::url("image/*", url),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_of_messages_is_read_and_mistakes_are_named() {
        let json = r#"{
            "system": "Be kind.",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]},
                {"role": "assistant", "content": null, "tool_calls": [{"id": "1", "function": {"name": "t", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "1", "content": "b"},
                {"role": "assistant", "blocks": [{"type": "text", "text": "c"}]}
            ],
            "tools": [{"name": "t", "parameters": {"type": "object"}}],
            "tool_choice": "t",
            "options": {"max_tokens": 5, "seed": 7}
        }"#;
        let request = serde_json::from_str::<NeutralRequest>(json).unwrap().into_request().unwrap();
        let roles: Vec<_> = request.messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
        assert_eq!((request.options.max_output_tokens, request.options.extra.len()), (Some(5), 1));
        assert_eq!(request.tool_choice, ToolChoice::Tool("t".into()));
        for (json, part) in [
            (r#"{"messages": [{"role": "robot"}]}"#, "message 0"),
            (r#"{"messages": [{"role": "tool"}]}"#, "tool_call_id"),
            (r#"{"tools": [{}]}"#, "tool 0"),
        ] {
            let error = serde_json::from_str::<NeutralRequest>(json).unwrap().into_request().unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
