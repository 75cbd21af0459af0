//! The spans and what is recorded in them.

use std::sync::Arc;

use serde_json::{Value, json};
use tracing::Span;
use tracing::field::Empty;

use crate::message::{Author, Block, CallId, Media, Message, Role};
use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest, TimeoutPhase};
use crate::outcome::{Outcome, RunError, StopCause};
use crate::tool::{ToolError, ToolErrorKind, ToolOutput, ToolSpec};
use crate::usage::{StopReason, Usage};

/// One span; whether it may hold contents.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    span: Span,
    contents: bool,
}

impl Default for Trace {
    fn default() -> Self {
        Self { span: Span::none(), contents: false }
    }
}

impl Trace {
    /// A run. `path` are the sub-agents that lead to it.
    pub(crate) fn run(author: &Author, path: &[Arc<str>], contents: bool) -> Self {
        let span = tracing::info_span!(
            "invoke_agent",
            otel.name = Empty,
            otel.kind = "internal",
            gen_ai.operation.name = "invoke_agent",
            gen_ai.provider.name = &*author.provider,
            gen_ai.request.model = &*author.model,
            gen_ai.agent.name = Empty,
            gen_ai.response.finish_reasons = Empty,
            error.type = Empty,
        );
        if let Some(name) = path.last() {
            span.record("otel.name", format!("invoke_agent {name}"));
            span.record("gen_ai.agent.name", &**name);
        }
        Self { span, contents }
    }

    /// One model call.
    pub(crate) fn chat(author: &Author, request: &ModelRequest, contents: bool) -> Self {
        let span = tracing::info_span!(
            "chat",
            otel.name = Empty,
            otel.kind = "client",
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = &*author.provider,
            gen_ai.request.model = &*author.model,
            gen_ai.request.max_tokens = request.options.max_output_tokens,
            gen_ai.request.temperature = request.options.temperature.map(f64::from),
            gen_ai.request.top_p = request.options.top_p.map(f64::from),
            gen_ai.response.id = Empty,
            gen_ai.response.model = Empty,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            gen_ai.usage.cache_creation.input_tokens = Empty,
            gen_ai.system_instructions = Empty,
            gen_ai.input.messages = Empty,
            gen_ai.output.messages = Empty,
            error.type = Empty,
        );
        if !span.is_disabled() {
            span.record("otel.name", format!("chat {}", author.model));
            if contents {
                let system = json!([{"type": "text", "content": request.system_text()}]);
                span.record("gen_ai.system_instructions", system.to_string());
                let messages: Vec<Value> = request.messages.iter().map(|m| message_json(m)).collect();
                span.record("gen_ai.input.messages", Value::Array(messages).to_string());
            }
        }
        Self { span, contents }
    }

    /// One call that runs.
    pub(crate) fn tool(spec: &ToolSpec, call: &CallId, arguments: &Value, contents: bool) -> Self {
        let span = tracing::info_span!(
            "execute_tool",
            otel.name = Empty,
            otel.kind = "internal",
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = &*spec.name,
            gen_ai.tool.call.id = call.as_str(),
            gen_ai.tool.type = "function",
            gen_ai.tool.call.arguments = Empty,
            gen_ai.tool.call.result = Empty,
            error.type = Empty,
        );
        if !span.is_disabled() {
            span.record("otel.name", format!("execute_tool {}", spec.name));
            if contents {
                span.record("gen_ai.tool.call.arguments", arguments.to_string());
            }
        }
        Self { span, contents }
    }

    /// Works inside the span.
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        self.span.in_scope(work)
    }

    /// Records what a model says of its answer; `None` when its stream closed too early.
    pub(crate) fn model_event(&self, event: Option<&Result<ModelEvent, ModelError>>) {
        if self.span.is_disabled() {
            return;
        }
        match event {
            Some(Ok(ModelEvent::Started { response_id, model })) => {
                self.text("gen_ai.response.id", response_id.as_deref());
                self.text("gen_ai.response.model", model.as_deref());
            }
            Some(Ok(ModelEvent::Usage(usage))) => self.usage(usage),
            Some(Ok(ModelEvent::Stop { reason, .. })) => {
                let reason = json!([finish_reason(reason)]).to_string();
                self.span.record("gen_ai.response.finish_reasons", reason);
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => self.text("error.type", Some(kind_of_model_error(&error.kind))),
            None => self.text("error.type", Some("interrupted")),
        }
    }

    fn usage(&self, usage: &Usage) {
        for (field, count) in [
            ("gen_ai.usage.input_tokens", usage.input),
            ("gen_ai.usage.output_tokens", usage.output),
            ("gen_ai.usage.cache_read.input_tokens", usage.cached),
            ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write),
        ] {
            if let Some(count) = count {
                self.span.record(field, count);
            }
        }
    }

    /// Records the answer, where contents are wanted.
    pub(crate) fn answered(&self, message: Option<&Arc<Message>>) {
        if let Some(message) = message
            && self.contents
            && message.role == Role::Assistant
            && !self.span.is_disabled()
        {
            let messages = json!([message_json(message)]);
            self.span.record("gen_ai.output.messages", messages.to_string());
        }
    }

    /// Records how a call ended.
    pub(crate) fn tool_ended(&self, result: &Result<ToolOutput, ToolError>) {
        if self.span.is_disabled() {
            return;
        }
        let error = match result {
            Ok(output) if output.is_error => Some("tool_error"),
            Ok(_) => None,
            Err(error) => Some(kind_of_tool_error(error.kind)),
        };
        self.text("error.type", error);
        if self.contents {
            let said = match result {
                Ok(output) => Value::Array(output.blocks.iter().map(part).collect()).to_string(),
                Err(error) => error.message.clone(),
            };
            self.span.record("gen_ai.tool.call.result", said);
        }
    }

    /// Records how a run ended.
    pub(crate) fn run_ended(&self, outcome: &Result<Outcome, RunError>) {
        if self.span.is_disabled() {
            return;
        }
        let (finished, error) = match outcome {
            Ok(Outcome::Done { .. }) => ("stop", None),
            Ok(Outcome::Paused) => ("paused", None),
            Ok(Outcome::Cancelled { .. }) => ("cancelled", None),
            Ok(Outcome::Stopped { why }) => (stop_cause(why), None),
            Err(error) => ("error", Some(kind_of_run_error(error))),
        };
        self.span.record("gen_ai.response.finish_reasons", json!([finished]).to_string());
        self.text("error.type", error);
    }

    fn text(&self, field: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.span.record(field, value);
        }
    }
}

/// A message as the conventions write it.
fn message_json(message: &Message) -> Value {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let parts: Vec<Value> = message.blocks.iter().map(part).collect();
    match &message.stop {
        Some(stop) => json!({"role": role, "parts": parts, "finish_reason": finish_reason(stop)}),
        None => json!({"role": role, "parts": parts}),
    }
}

fn part(block: &Block) -> Value {
    // Never the bytes of a file: a span is no place for them.
    let file = |media: &Media| json!({"type": "file", "mime_type": *media.media_type});
    match block {
        Block::Text { text } => json!({"type": "text", "content": text}),
        Block::Reasoning(reasoning) => json!({"type": "reasoning", "content": reasoning.text}),
        Block::ToolCall(call) => {
            json!({"type": "tool_call", "id": call.id, "name": *call.name, "arguments": call.arguments})
        }
        Block::ToolResult(result) => {
            let response: Vec<Value> = result.content.iter().map(part).collect();
            json!({"type": "tool_call_response", "id": result.id, "response": response})
        }
        Block::Image(media) | Block::Document(media) => file(media),
        _ => json!({"type": "opaque"}),
    }
}

fn finish_reason(reason: &StopReason) -> &str {
    match reason {
        StopReason::EndTurn | StopReason::StopSequence => "stop",
        StopReason::ToolUse => "tool_call",
        StopReason::MaxTokens | StopReason::ContextWindow => "length",
        StopReason::Filtered => "content_filter",
        StopReason::Pause => "pause",
        StopReason::Other(word) => word,
    }
}

fn kind_of_model_error(kind: &ModelErrorKind) -> &'static str {
    use ModelErrorKind as K;
    match kind {
        K::Auth => "auth",
        K::Permission => "permission",
        K::NotFound => "not_found",
        K::InvalidRequest { .. } => "invalid_request",
        K::ToolsUnsupported => "tools_unsupported",
        K::InvalidToolCall => "invalid_tool_call",
        K::ContextOverflow { .. } => "context_overflow",
        K::RateLimited => "rate_limited",
        K::QuotaExhausted => "quota_exhausted",
        K::Overloaded => "overloaded",
        K::Server => "server",
        K::Timeout(TimeoutPhase::Connect) => "connect_timeout",
        K::Timeout(_) => "timeout",
        K::Interrupted => "interrupted",
        K::Filtered => "filtered",
        K::Protocol => "protocol",
        K::Transport => "transport",
        K::Other => "_OTHER",
    }
}

fn kind_of_tool_error(kind: ToolErrorKind) -> &'static str {
    match kind {
        ToolErrorKind::Failed => "tool_error",
        ToolErrorKind::InvalidArguments => "invalid_arguments",
        ToolErrorKind::Timeout => "timeout",
        ToolErrorKind::Unavailable => "unavailable",
        ToolErrorKind::Interrupted => "interrupted",
    }
}

fn kind_of_run_error(error: &RunError) -> &'static str {
    match error {
        RunError::Model(error) => kind_of_model_error(&error.kind),
        RunError::ContextFull(_) => "context_full",
        RunError::NothingToResume => "nothing_to_resume",
        RunError::HookPanicked => "hook_panicked",
    }
}

fn stop_cause(why: &StopCause) -> &'static str {
    match why {
        StopCause::Limit(_) => "limit",
        StopCause::Repeats { .. } => "repeats",
        StopCause::UnknownTools { .. } => "unknown_tools",
        StopCause::OutputLimit => "length",
        StopCause::Filtered => "content_filter",
        StopCause::NoStructuredOutput { .. } => "no_structured_output",
        StopCause::Hook(_) => "hook",
        StopCause::Approver(_) => "approver",
    }
}
