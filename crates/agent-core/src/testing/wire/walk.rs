//! Looking into JSON bodies and blocks, shared by the four rule books.

use serde_json::{Map, Value, json};

use crate::message::{Block, Media, MediaSource, ToolCall, ToolResult};
use crate::testing::wire::Violation;

/// Collects violations under the path of what is looked at.
#[derive(Default)]
pub(super) struct Findings(Vec<Violation>);

impl Findings {
    pub(super) fn add(&mut self, at: impl Into<String>, problem: impl Into<String>) {
        self.0.push(Violation::new(at, problem));
    }

    pub(super) fn check(&mut self, holds: bool, at: &str, problem: &str) {
        if !holds {
            self.add(at, problem);
        }
    }

    pub(super) fn into_violations(self) -> Vec<Violation> {
        self.0
    }
}

/// The items of an array field; nothing when it is absent or something else.
pub(super) fn items<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// 1 to `length` of `[A-Za-z0-9_-]` and of `also`.
pub(super) fn is_name(name: &str, length: usize, also: &[char]) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' || also.contains(&c);
    !name.is_empty() && name.len() <= length && name.chars().all(fits)
}

/// A call that waits for its result.
pub(super) struct Open {
    pub(super) id: String,
    pub(super) at: String,
    pub(super) answered: bool,
}

/// Marks the call of this id as answered; says what is wrong otherwise.
pub(super) fn settle(open: &mut [Open], id: &str) -> Result<(), &'static str> {
    match open.iter_mut().find(|call| call.id == id) {
        None => Err("a result without its call right before it"),
        Some(call) if call.answered => Err("a second result for one call"),
        Some(call) => {
            call.answered = true;
            Ok(())
        }
    }
}

/// Reports the calls that were never answered.
pub(super) fn report_open(open: &mut Vec<Open>, findings: &mut Findings) {
    for call in open.drain(..).filter(|call| !call.answered) {
        findings.add(call.at, format!("call {} has no result right after it", call.id));
    }
}

/// The id that goes over the wire.
pub(super) fn wire_id(call: &ToolCall) -> &str {
    call.id.as_str()
}

/// The text of a result, with a word for blocks that are no text, so that a result with only an image is not empty.
pub(super) fn result_text(result: &ToolResult) -> String {
    let part = |block: &Block| match block {
        Block::Text { text } => text.clone(),
        Block::Image(media) | Block::Document(media) => format!("[{}]", media.media_type),
        _ => String::new(),
    };
    result.content.iter().map(part).collect::<Vec<_>>().join("\n")
}

/// Where the bytes of a medium are, in one shape for all rule books.
pub(super) fn media(media: &Media) -> Value {
    match &media.source {
        MediaSource::Base64(data) => json!({"media_type": media.media_type, "data": &**data}),
        MediaSource::Url(url) => json!({"media_type": media.media_type, "url": url}),
    }
}

/// The object of a value, or an empty one.
pub(super) fn object(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}
