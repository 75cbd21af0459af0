//! The answer to a request, still as the line it came in: whoever asked decodes it, straight into the type that was
//! asked for and in one pass.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::json::{Key, KeyOf, Object, repair};
use super::message::RpcError;
use super::schema::{Item, Page, read_page};

/// The line that answers a request.
#[derive(Clone, Debug)]
pub struct Answer {
    line: Vec<u8>,
    /// Where the result is, if nothing but the envelope stands around it.
    result: Option<Range<usize>>,
}

/// Why an answer holds no result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AnswerError {
    /// The server answered with an error.
    Rpc(RpcError),
    /// The answer is not valid, and why.
    Invalid(String),
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rpc(error) => error.fmt(f),
            Self::Invalid(reason) => f.write_str(reason),
        }
    }
}

impl Answer {
    pub(crate) fn new(line: Vec<u8>, result: Option<Range<usize>>) -> Self {
        Self { line, result }
    }

    /// The line as it came.
    pub fn as_bytes(&self) -> &[u8] {
        &self.line
    }

    /// The result as an object.
    ///
    /// # Errors
    /// The server's error, or why the answer is not valid.
    pub fn result(&self) -> Result<Object, AnswerError> {
        match self.read(|| ValueSeed)? {
            Value::Object(object) => Ok(object),
            other => Err(AnswerError::Invalid(format!("the result is no object but {}", cut_value(&other)))),
        }
    }

    /// Reads the result with a seed; made twice if the line has to be repaired first.
    pub(crate) fn read<S, T>(&self, seed: impl Fn() -> S) -> Result<T, AnswerError>
    where
        S: for<'de> DeserializeSeed<'de, Value = T>,
    {
        if let Some(result) = self.read_in_place(seed()) {
            return Ok(result);
        }
        let read = match read_line(&self.line, seed()) {
            Ok(read) => read,
            // Broken text costs a few characters and not the answer.
            Err(error) => match repair(&self.line) {
                Some(line) => read_line(&line, seed()).map_err(invalid)?,
                None => return Err(invalid(error)),
            },
        };
        match read {
            (Some(result), None) => Ok(result),
            (_, Some(error)) => Err(AnswerError::Rpc(RpcError::from_value(error))),
            (None, None) => Err(AnswerError::Invalid("it has neither a result nor an error".to_owned())),
        }
    }

    /// Reads the result where it is known to stand. `None` if it does not stand there alone: then the whole line wants
    /// reading, and gives the reason if there is one.
    fn read_in_place<'de, S: DeserializeSeed<'de>>(&'de self, seed: S) -> Option<S::Value> {
        let text = std::str::from_utf8(self.line.get(self.result.clone()?)?).ok()?;
        if !self.line.ends_with(b"}") {
            return None;
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let result = seed.deserialize(&mut deserializer).ok()?;
        deserializer.end().ok()?;
        Some(result)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "used as a function of `map_err`")]
fn invalid(error: serde_json::Error) -> AnswerError {
    AnswerError::Invalid(error.to_string())
}

/// A value for a message: short.
fn cut_value(value: &Value) -> String {
    value.to_string().chars().take(80).collect()
}

fn read_line<'de, S: DeserializeSeed<'de>>(
    line: &'de [u8],
    seed: S,
) -> Result<(Option<S::Value>, Option<Value>), serde_json::Error> {
    fn read<'de, R: serde_json::de::Read<'de>, S: DeserializeSeed<'de>>(
        mut deserializer: serde_json::Deserializer<R>,
        seed: S,
    ) -> Result<(Option<S::Value>, Option<Value>), serde_json::Error> {
        let read = deserializer.deserialize_map(AnswerVisitor(seed))?;
        deserializer.end()?;
        Ok(read)
    }
    // Text checked as a whole costs less than text checked string by string.
    match std::str::from_utf8(line) {
        Ok(text) => read(serde_json::Deserializer::from_str(text), seed),
        Err(_) => read(serde_json::Deserializer::from_slice(line), seed),
    }
}

struct AnswerVisitor<S>(S);

const MEMBERS: &[&str] = &["result", "error"];

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for AnswerVisitor<S> {
    type Value = (Option<S::Value>, Option<Value>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an answer")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut seed, mut result, mut error) = (Some(self.0), None, None);
        while let Some(key) = map.next_key_seed(KeyOf(MEMBERS))? {
            match (key, seed.take()) {
                (Key::Known(0), Some(seed)) => result = Some(map.next_value_seed(seed)?),
                (Key::Known(1), unused) => {
                    error = Some(map.next_value::<Value>()?).filter(|error| !error.is_null());
                    seed = unused;
                }
                // A second result, or anything else: the first one counts.
                (_, unused) => {
                    map.next_value::<IgnoredAny>()?;
                    seed = unused;
                }
            }
        }
        Ok((result, error))
    }
}

/// Reads any value.
struct ValueSeed;

impl<'de> DeserializeSeed<'de> for ValueSeed {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        serde::Deserialize::deserialize(deserializer)
    }
}

/// Reads one page of a list, and the members beside it.
pub(crate) struct PageSeed<T> {
    /// The key of the entries, and of the cursor.
    members: &'static [&'static str],
    /// How many entries came before.
    first: usize,
    item: PhantomData<T>,
}

impl<T> PageSeed<T> {
    /// A page whose entries stand under the first of `members`; the second is `nextCursor`.
    pub(crate) fn new(members: &'static [&'static str], first: usize) -> Self {
        Self { members, first, item: PhantomData }
    }
}

impl<'de, T: Item> DeserializeSeed<'de> for PageSeed<T> {
    type Value = (Page<T>, Object);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Item> Visitor<'de> for PageSeed<T> {
    type Value = (Page<T>, Object);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a page of {}s", T::KIND)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut entries, mut cursor, mut extra) = (None, None, Object::new());
        while let Some(key) = map.next_key_seed(KeyOf(self.members))? {
            match key {
                Key::Known(0) => entries = Some(map.next_value::<&'de RawValue>()?),
                Key::Known(_) => cursor = Some(map.next_value()?),
                Key::Other(key) => {
                    extra.insert(key, map.next_value()?);
                }
            }
        }
        Ok((read_page(entries, cursor, self.first), extra))
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::{Content, ToolInfo, ToolResult, ToolResultSeed};
    use super::*;

    fn answer(line: &[u8]) -> Answer {
        let result = super::super::message::answered_id(line).and_then(|(_, result)| result);
        Answer::new(line.to_vec(), result)
    }

    #[test]
    fn what_stands_beside_a_result_does_not_matter() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":"x"},"more":[1]}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":"x"},"error":null}"#,
            r#"{"result":{"content":"x"},"jsonrpc":"2.0","id":1}"#,
            r#"{"result":{"content":"x"},"more":{},"jsonrpc":"2.0","id":1}"#,
            r#"{"id":1,"result":{"content":"x"}}"#,
        ] {
            assert_eq!(call(line).unwrap().text(), "x", "{line}");
        }
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":"x"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":"x"}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":"x"},}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}]"#,
        ] {
            assert!(matches!(call(line), Err(AnswerError::Invalid(_))), "{line}");
        }
    }

    fn call(line: &str) -> Result<ToolResult, AnswerError> {
        answer(line.as_bytes()).read(|| ToolResultSeed)
    }

    fn call_result(result: &str) -> ToolResult {
        call(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)).unwrap()
    }

    #[test]
    fn every_shape_of_a_result_becomes_something() {
        let table = [
            (r#"{"content":[{"type":"text","text":"a"}]}"#, 1, 0),
            (r#"{"content":[]}"#, 0, 0),
            ("{}", 0, 0),
            (r#"{"content":null}"#, 0, 1),
            (r#"{"content":"plain"}"#, 1, 1),
            (r#"{"content":{"type":"text","text":"x"}}"#, 1, 1),
            (r#"{"content":5}"#, 1, 1),
            (r#"{"content":[null,5,"x",[1],true,1.5]}"#, 6, 0),
            (r#"{"content":[],"isError":"true"}"#, 0, 1),
            (r#"{"toolResult":"from 2024-10-07"}"#, 0, 0),
            ("[1,2]", 1, 1),
            ("7", 1, 1),
            ("null", 0, 1),
            (r#""text""#, 1, 1),
        ];
        for (json, parts, problems) in table {
            let result = call_result(json);
            assert_eq!((result.content.len(), result.problems.len()), (parts, problems), "{json}");
        }
        assert!(call_result(r#"{"content":[],"isError":"true"}"#).is_error);
        assert_eq!(call_result(r#"{"toolResult":"old"}"#).extra["toolResult"], "old");
    }

    #[test]
    fn every_kind_of_content_is_read_and_unknown_members_are_kept() {
        let result = call_result(
            r#"{"content":[
                {"annotations":{"priority":1},"text":"late type","type":"text"},
                {"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png","x":1},
                {"type":"audio","data":"UklGRg=="},
                {"type":"resource","resource":{"uri":"file:///a","text":"body"}},
                {"type":"resource_link","uri":"file:///a","name":"a"},
                {"type":"hologram","data":1},
                {"text":"typeless"},
                {"type":"text","text":5},
                {"type":"image"},
                {"type":7}
            ],"structuredContent":[1],"_meta":{"k":1}}"#,
        );
        let [text, image, audio, resource, link, rest @ ..] = result.content.as_slice() else {
            panic!("ten parts")
        };
        assert!(
            matches!(text, Content::Text(t) if t.text == "late type" && t.extra.contains_key("annotations"))
        );
        assert!(
            matches!(image, Content::Image(m) if m.decoded_len() == 8 && m.mime_type.as_deref() == Some("image/png") && m.extra["x"] == 1)
        );
        assert!(matches!(audio, Content::Audio(m) if m.decoded_len() == 4 && m.mime_type.is_none()));
        assert!(matches!(resource, Content::Resource(r) if r.resource.text.as_deref() == Some("body")));
        assert!(matches!(link, Content::ResourceLink(l) if l.uri == "file:///a"));
        assert!(rest.iter().all(|part| matches!(part, Content::Unknown(_))), "{rest:?}");
        assert_eq!(rest[1], Content::Unknown(serde_json::json!({"text": "typeless"})));
        assert_eq!(rest[2], Content::Unknown(serde_json::json!({"text": 5, "type": "text"})));
        assert_eq!(result.structured, Some(serde_json::json!([1])));
        assert_eq!(result.extra["_meta"]["k"], 1);
    }

    #[test]
    fn an_answer_without_a_result_says_why() {
        let table = [
            (r#"{"id":1}"#, "it has neither a result nor an error"),
            (r#"{"id":1,"error":null}"#, "it has neither a result nor an error"),
            (r#"{"id":1,"error":{"code":-32601,"message":"no"}}"#, "no (code -32601)"),
            (r#"{"id":1,"error":"just a string"}"#, "just a string"),
            (r#"{"id":1,"result":{},"error":{"code":1,"message":"both"}}"#, "both (code 1)"),
        ];
        for (line, wanted) in table {
            assert_eq!(call(line).unwrap_err().to_string(), wanted, "{line}");
        }
        assert!(call(r#"{"id":1,"result":{},"error":null}"#).is_ok());
        for broken in
            [r#"{"id":1,"result":{"a":NaN}}"#, r#"{"id":1,"result":{"a":1e400}}"#, r#"{"id":1,"result":{}"#]
        {
            assert!(matches!(call(broken), Err(AnswerError::Invalid(_))), "{broken}");
        }
        let deep =
            format!(r#"{{"id":1,"result":{{"structuredContent":{}{}}}}}"#, "[".repeat(200), "]".repeat(200));
        assert!(matches!(call(&deep), Err(AnswerError::Invalid(_))));
    }

    #[test]
    fn broken_text_costs_characters_and_not_the_answer() {
        let result =
            call(r#"{"id":1,"result":{"content":[{"type":"text","text":"\ud800 \u0000 end"}]}}"#).unwrap();
        assert_eq!(result.text(), "\u{fffd} \u{0} end");
        let line = b"{\"id\":1,\"result\":{\"content\":\"a\xffb\"}}".to_vec();
        let result = answer(&line).read(|| ToolResultSeed).unwrap();
        assert_eq!(result.text(), "a\u{fffd}b");
    }

    #[test]
    fn of_a_key_that_stands_there_twice_the_last_one_counts() {
        let result = call_result(
            r#"{"content":[{"type":"text","text":"one"}],"content":[{"type":"text","text":"two"}]}"#,
        );
        assert_eq!(result.text(), "two");
    }

    fn page(result: &str) -> Result<(Page<ToolInfo>, Object), AnswerError> {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        answer(line.as_bytes()).read(|| PageSeed::new(&["tools", "nextCursor"], 0))
    }

    #[test]
    fn a_bad_entry_costs_itself_only() {
        let deep = format!("{}{}", r#"{"x":"#.repeat(200), "1".to_owned() + &"}".repeat(200));
        let list = format!(
            r#"[null,"text",5,[],{{}},{{"name":7}},{{"description":"no name"}},{{"name":"good","annotations":"x","inputSchema":null}},
               {{"name":"deep","inputSchema":{deep}}},{{"name":"also","title":5,"extra":{{"k":[1]}},"annotations":{{"readOnlyHint":true}}}}]"#
        );
        let (page, _) = page(&format!(r#"{{"tools":{list},"nextCursor":null}}"#)).unwrap();
        let names: Vec<&str> = page.items.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["good", "also"]);
        assert_eq!(page.problems.len(), 8);
        assert!(
            page.problems[7].message.starts_with("tool 9 was left out: \"deep\": "),
            "{:?}",
            page.problems[7]
        );
        assert_eq!(page.items[1].annotations.read_only, Some(true));
        assert_eq!(page.items[1].extra["title"], 5);
    }

    #[test]
    fn a_cursor_is_any_text_and_null_ends_the_list() {
        assert_eq!(page(r#"{"tools":[],"nextCursor":""}"#).unwrap().0.next_cursor.as_deref(), Some(""));
        assert_eq!(page(r#"{"tools":[],"nextCursor":null}"#).unwrap().0.next_cursor, None);
        let (odd, _) = page(r#"{"tools":[],"nextCursor":7}"#).unwrap();
        assert_eq!((odd.next_cursor, odd.problems.len()), (None, 1));
        assert_eq!(page("{}").unwrap().0.problems.len(), 1);
        assert_eq!(page(r#"{"tools":{}}"#).unwrap().0.problems.len(), 1);
        assert!(page("[]").is_err());
    }
}
