//! What a message that is to be sent says of itself, for its headers.

use haversack_http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::http::marks::ToolMarks;
use crate::http::value::header_of_text;

pub(crate) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The parts of a message that its transport needs to know.
#[derive(Deserialize)]
pub(crate) struct Head {
    #[serde(default)]
    pub(crate) id: Option<Value>,
    #[serde(default)]
    pub(crate) method: Option<String>,
    #[serde(default)]
    params: Option<Params>,
}

#[derive(Default, Deserialize)]
struct Params {
    #[serde(default, rename = "_meta")]
    meta: Option<Meta>,
    #[serde(default)]
    name: Option<Value>,
    #[serde(default)]
    uri: Option<Value>,
    #[serde(default, rename = "requestId")]
    request_id: Option<Value>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(default, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
}

#[derive(Deserialize)]
struct Call {
    params: Arguments,
}

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    arguments: Map<String, Value>,
}

impl Head {
    /// Reads a message of ours.
    pub(crate) fn read(message: &[u8]) -> Option<Self> {
        serde_json::from_slice(message).ok()
    }

    /// The revision in the message itself: only modern ones have it there.
    pub(crate) fn modern_version(&self) -> Option<&str> {
        self.params.as_ref()?.meta.as_ref()?.version.as_deref()
    }

    /// The request that a `notifications/cancelled` is about.
    pub(crate) fn cancelled(&self) -> Option<&Value> {
        self.params.as_ref()?.request_id.as_ref()
    }

    /// The headers that a modern server compares with the message.
    pub(crate) fn modern_headers(&self, message: &[u8], marks: &ToolMarks) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let (Some(version), Some(method)) = (self.modern_version(), &self.method) else { return headers };
        let mut set = |name, value: Option<HeaderValue>| {
            if let Some(value) = value {
                headers.insert(name, value);
            }
        };
        set(VERSION, header_of_text(version));
        set(METHOD, header_of_text(method));
        let params = self.params.as_ref();
        let name = match method.as_str() {
            "tools/call" | "prompts/get" => params.and_then(|params| params.name.as_ref()),
            "resources/read" => params.and_then(|params| params.uri.as_ref()),
            _ => None,
        };
        set(NAME, name.and_then(Value::as_str).and_then(header_of_text));
        let tool = name.and_then(Value::as_str).filter(|_| method == "tools/call");
        if let Some(marks) = tool.and_then(|tool| marks.get(tool))
            && let Ok(call) = serde_json::from_slice::<Call>(message)
        {
            headers.extend(marks.headers(&call.params.arguments));
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::marks::Marks;

    #[test]
    fn the_headers_of_a_modern_message_say_what_the_message_says() {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        let schema =
            json!({"type": "object", "properties": {"r": {"type": "string", "x-mcp-header": "Region"}}});
        let marks = ToolMarks::from([("t\u{fc}".to_owned(), Marks::of_schema(&schema).unwrap())]);
        let table = [
            (
                json!({"id": "d", "method": "server/discover", "params": {"_meta": meta}}),
                vec![("mcp-method", "server/discover")],
            ),
            (
                json!({"id": 1, "method": "tools/call",
                    "params": {"_meta": meta, "name": "t\u{fc}", "arguments": {"r": "a\nb"}}}),
                vec![
                    ("mcp-method", "tools/call"),
                    ("mcp-name", "=?base64?dMO8?="),
                    ("mcp-param-region", "=?base64?YQpi?="),
                ],
            ),
            (
                json!({"id": 1, "method": "resources/read", "params": {"_meta": meta, "uri": "a://b"}}),
                vec![("mcp-method", "resources/read"), ("mcp-name", "a://b")],
            ),
            (
                json!({"id": 1, "method": "tools/list", "params": {"_meta": meta, "name": "x"}}),
                vec![("mcp-method", "tools/list")],
            ),
        ];
        for (message, mut wanted) in table {
            let bytes = message.to_string().into_bytes();
            let headers = Head::read(&bytes).unwrap().modern_headers(&bytes, &marks);
            wanted.push(("mcp-protocol-version", "2026-07-28"));
            wanted.sort_unstable();
            let mut got: Vec<_> =
                headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
            got.sort_unstable();
            assert_eq!(got, wanted);
        }
        let legacy = br#"{"id":1,"method":"tools/call","params":{"name":"x"}}"#;
        assert!(Head::read(legacy).unwrap().modern_headers(legacy, &marks).is_empty());
    }
}
