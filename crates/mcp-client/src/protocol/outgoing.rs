//! Writing messages: each is one line, appended whole to the bytes that wait to be sent.

use serde::Serialize;
use serde_json::Value;

use super::json::Object;
use super::message::RpcError;

/// The parameters of a request, as something that can write its own members.
///
/// Writing straight into the bytes to be sent spares the largest requests a copy, and the smallest an allocation.
pub trait RequestParams {
    /// Writes each member, except `_meta`.
    fn write_members(&self, members: &mut Members<'_>);

    /// Metadata of the caller's, to stand beside that of the protocol.
    fn meta(&self) -> Option<&Object> {
        None
    }
}

/// No parameters.
impl RequestParams for () {
    fn write_members(&self, _: &mut Members<'_>) {}
}

impl RequestParams for Object {
    fn write_members(&self, members: &mut Members<'_>) {
        for (key, value) in self {
            if key != "_meta" {
                members.member(key, value);
            }
        }
    }

    fn meta(&self) -> Option<&Object> {
        self.get("_meta").and_then(Value::as_object)
    }
}

/// The members of an object that is being written.
#[derive(Debug)]
pub struct Members<'a> {
    out: &'a mut Vec<u8>,
    is_empty: bool,
    failure: Option<serde_json::Error>,
}

impl<'a> Members<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, is_empty: true, failure: None }
    }

    /// Writes a member whose key needs no escaping: plain letters.
    pub(crate) fn plain<V: Serialize + ?Sized>(&mut self, key: &'static str, value: &V) {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.value(value);
    }

    /// Writes one member.
    pub fn member<V: Serialize + ?Sized>(&mut self, key: &str, value: &V) {
        self.key(key);
        self.value(value);
    }

    fn key(&mut self, key: &str) {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.out.push(b',');
        }
        self.value(key);
        self.out.push(b':');
    }

    fn value<V: Serialize + ?Sized>(&mut self, value: &V) {
        if let Err(error) = serde_json::to_writer(&mut *self.out, value) {
            self.failure.get_or_insert(error);
        }
    }

    fn raw(&mut self, members: &str) {
        if !members.is_empty() {
            if !std::mem::replace(&mut self.is_empty, false) {
                self.out.push(b',');
            }
            self.out.extend_from_slice(members.as_bytes());
        }
    }
}

/// The id of a request of ours.
#[derive(Clone, Copy)]
pub(crate) enum Id<'a> {
    Number(u64),
    Text(&'a str),
}

/// Appends a number in decimal, without the machinery of formatting.
fn number(out: &mut Vec<u8>, number: u64) {
    let start = out.len();
    let mut rest = number;
    loop {
        // A digit fits into a byte.
        out.push(b'0' + u8::try_from(rest % 10).unwrap_or_default());
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if let Some(digits) = out.get_mut(start..) {
        digits.reverse();
    }
}

/// Appends a request; the metadata is written as it stands, followed by the progress token if there is one.
pub(crate) fn request(
    out: &mut Vec<u8>,
    id: Id<'_>,
    method: &str,
    metadata: &str,
    progress_token: Option<u64>,
    params: &(impl RequestParams + ?Sized),
) -> Result<(), serde_json::Error> {
    let before = out.len();
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    match id {
        Id::Number(id) => number(out, id),
        Id::Text(id) => Members::new(out).value(id),
    }
    out.extend_from_slice(b",\"method\":");
    if method.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'/') {
        out.push(b'"');
        out.extend_from_slice(method.as_bytes());
        out.push(b'"');
    } else {
        Members::new(out).value(method);
    }
    out.extend_from_slice(b",\"params\":{");
    let mut members = Members::new(out);
    let meta = params.meta();
    if !metadata.is_empty() || progress_token.is_some() || meta.is_some() {
        members.raw("\"_meta\":{");
        let mut inner = Members::new(members.out);
        inner.raw(metadata);
        if let Some(token) = progress_token {
            inner.raw("\"progressToken\":");
            number(inner.out, token);
        }
        for (key, value) in meta.into_iter().flatten() {
            // What the protocol itself says cannot be overruled.
            let reserved = key == "progressToken" || key.starts_with("io.modelcontextprotocol/");
            if !reserved {
                inner.member(key, value);
            }
        }
        let failure = inner.failure;
        members.out.push(b'}');
        members.failure = failure;
    }
    params.write_members(&mut members);
    if let Some(failure) = members.failure.take() {
        out.truncate(before);
        return Err(failure);
    }
    out.extend_from_slice(b"}}\n");
    Ok(())
}

/// Appends a notification.
pub(crate) fn notification(out: &mut Vec<u8>, method: &str, params: Option<&Value>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    let mut members = Members::new(out);
    members.value(method);
    members.is_empty = false;
    if let Some(params) = params {
        members.member("params", params);
    }
    out.extend_from_slice(b"}\n");
}

/// Appends an answer to a request of the peer's, whose id is given as JSON.
pub(crate) fn answer(out: &mut Vec<u8>, id: &str, result: Result<&Value, &RpcError>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_bytes());
    let mut members = Members::new(out);
    members.is_empty = false;
    match result {
        Ok(result) => members.member("result", result),
        Err(error) => members.member("error", &error.to_value()),
    }
    out.extend_from_slice(b"}\n");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(metadata: &str, token: Option<u64>, params: &Value) -> String {
        let mut out = Vec::new();
        request(&mut out, Id::Number(7), "a/b", metadata, token, params.as_object().unwrap()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_request_is_one_line_with_metadata_first() {
        let table = [
            ("", None, json!({}), r#"{"jsonrpc":"2.0","id":7,"method":"a/b","params":{}}"#),
            (
                "",
                None,
                json!({"x": "l1\nl2"}),
                r#"{"jsonrpc":"2.0","id":7,"method":"a/b","params":{"x":"l1\nl2"}}"#,
            ),
            (
                "\"k\":1",
                Some(7),
                json!({"x": 1}),
                r#"{"jsonrpc":"2.0","id":7,"method":"a/b","params":{"_meta":{"k":1,"progressToken":7},"x":1}}"#,
            ),
            (
                "",
                Some(7),
                json!({"_meta": {"progressToken": "mine", "io.modelcontextprotocol/x": 1, "own": 2}}),
                r#"{"jsonrpc":"2.0","id":7,"method":"a/b","params":{"_meta":{"progressToken":7,"own":2}}}"#,
            ),
        ];
        for (metadata, token, params, wanted) in table {
            assert_eq!(written(metadata, token, &params), format!("{wanted}\n"));
        }
    }

    #[test]
    fn numbers_and_methods_are_written_as_json_writes_them() {
        for value in [0, 7, 10, 1234567890, u64::MAX] {
            let mut out = Vec::new();
            number(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
        let mut out = Vec::new();
        request(&mut out, Id::Text("d\"1"), "x/\"y", "", None, &()).unwrap();
        let wanted = "{\"jsonrpc\":\"2.0\",\"id\":\"d\\\"1\",\"method\":\"x/\\\"y\",\"params\":{}}\n";
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }

    #[test]
    fn a_notification_is_one_line() {
        let mut out = Vec::new();
        notification(&mut out, "a/b", None);
        notification(&mut out, "a/b", Some(&json!({"x": 1})));
        let wanted = "{\"jsonrpc\":\"2.0\",\"method\":\"a/b\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"a/b\",\"params\":{\"x\":1}}\n";
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }

    #[test]
    fn an_answer_echoes_the_id_as_it_was_written() {
        let mut out = Vec::new();
        answer(&mut out, "\"w\\u00e9\"", Ok(&json!({})));
        answer(&mut out, "0", Err(&RpcError::new(-32601, "no")));
        let wanted = "{\"jsonrpc\":\"2.0\",\"id\":\"w\\u00e9\",\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n";
        assert_eq!(String::from_utf8(out).unwrap(), wanted);
    }
}
