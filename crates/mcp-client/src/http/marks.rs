//! Parameters of tools that travel in headers as well (MCP 2026-07-28, `x-mcp-header`): which they are, and whether the
//! marks are ones that the revision allows.

use std::collections::BTreeMap;

use haversack_http::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

use crate::http::value::header_of_parameter;
use crate::protocol::is_token_byte;

/// The mark in a schema.
const MARK: &str = "x-mcp-header";

/// How deep a schema is searched. The client reads no deeper JSON than this anyway.
const MAX_DEPTH: usize = 128;

/// How many marks one tool may have: all headers of a request must fit into what servers take, 8 KiB or so.
const MAX_MARKS: usize = 64;

/// Members of a schema that hold data and no schemas.
const DATA: [&str; 5] = ["default", "const", "enum", "examples", "required"];

/// One parameter that travels in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mark {
    header: HeaderName,
    /// Where it is in the arguments.
    path: Vec<String>,
}

/// All marked parameters of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(Vec<Mark>);

impl Marks {
    /// Reads the marks of a tool's input schema. The error says why the tool cannot be used over HTTP.
    pub(crate) fn of_schema(schema: &Value) -> Result<Self, String> {
        let mut marks = Self::default();
        marks.search(schema, &mut Vec::new(), true, 0)?;
        Ok(marks)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The headers for a call with these arguments.
    pub(crate) fn headers<'a>(
        &'a self,
        arguments: &'a Map<String, Value>,
    ) -> impl Iterator<Item = (HeaderName, HeaderValue)> + 'a {
        self.0.iter().filter_map(|mark| {
            let (first, rest) = mark.path.split_first()?;
            let value = rest.iter().try_fold(arguments.get(first)?, |value, key| value.get(key))?;
            Some((mark.header.clone(), header_of_parameter(value)?))
        })
    }

    fn search(
        &mut self,
        schema: &Value,
        path: &mut Vec<String>,
        reachable: bool,
        depth: usize,
    ) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("its schema is over {MAX_DEPTH} levels deep"));
        }
        match schema {
            Value::Object(members) => {
                if let Some(mark) = members.get(MARK) {
                    self.add(mark, members, path, reachable)?;
                }
                for (key, member) in members {
                    match member {
                        Value::Object(properties) if key == "properties" => {
                            for (name, property) in properties {
                                path.push(name.clone());
                                self.search(property, path, reachable, depth + 1)?;
                                path.pop();
                            }
                        }
                        _ if DATA.contains(&key.as_str()) || key == MARK => {}
                        // What is named here is only there in some cases, or many times.
                        Value::Object(_)
                            if matches!(key.as_str(), "patternProperties" | "$defs" | "definitions") =>
                        {
                            for schema in member.as_object().into_iter().flat_map(Map::values) {
                                self.search(schema, path, false, depth + 1)?;
                            }
                        }
                        _ => self.search(member, path, false, depth + 1)?,
                    }
                }
                Ok(())
            }
            Value::Array(schemas) => {
                schemas.iter().try_for_each(|schema| self.search(schema, path, false, depth + 1))
            }
            _ => Ok(()),
        }
    }

    fn add(
        &mut self,
        mark: &Value,
        schema: &Map<String, Value>,
        path: &[String],
        reachable: bool,
    ) -> Result<(), String> {
        let Value::String(name) = mark else {
            return Err(format!("its {MARK} is no text"));
        };
        let place = path.join(".");
        if name.is_empty() || !name.bytes().all(is_token_byte) {
            return Err(format!("its {MARK} of `{place}` cannot be part of a header's name"));
        }
        if !reachable || path.is_empty() {
            return Err(format!("its {MARK} `{name}` stands where no single parameter is"));
        }
        if !matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            return Err(format!(
                "its {MARK} of `{place}` is on something that is no string, integer or boolean"
            ));
        }
        let header = HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes())
            .map_err(|_| format!("its {MARK} of `{place}` is too long"))?;
        if self.0.iter().any(|other| other.header == header) {
            return Err(format!("its {MARK} `{name}` is there twice"));
        }
        if self.0.len() >= MAX_MARKS {
            return Err(format!("it has over {MAX_MARKS} parameters in headers"));
        }
        self.0.push(Mark { header, path: path.to_vec() });
        Ok(())
    }
}

/// The marks of all tools of a server, by the tool's name.
pub(crate) type ToolMarks = BTreeMap<String, Marks>;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(schema: &Value, arguments: &Value) -> Vec<(String, String)> {
        let marks = Marks::of_schema(schema).unwrap();
        let headers = marks.headers(arguments.as_object().unwrap());
        headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect()
    }

    #[test]
    fn marked_parameters_become_headers_wherever_properties_alone_lead_to_them() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "place": {"type": "object", "properties": {"row": {"type": "integer", "x-mcp-header": "Row"}}},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
            "x-mcp-header": {"type": "string", "default": {"x-mcp-header": ""}},
        }});
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let arguments = json!({"region": "us", "place": {"row": 3}, "dry": false, "x-mcp-header": "no"});
        let wanted =
            [pair("mcp-param-region", "us"), pair("mcp-param-row", "3"), pair("mcp-param-dry", "false")];
        assert_eq!(headers(&schema, &arguments), wanted);
        assert!(headers(&schema, &json!({"region": null, "place": 7})).is_empty());
    }

    #[test]
    fn marks_that_the_revision_forbids_condemn_their_tool() {
        let of = |property: Value| json!({"type": "object", "properties": {"a": property}});
        let good = json!({"type": "string", "x-mcp-header": "Same"});
        let table = [
            of(json!({"type": "string", "x-mcp-header": ""})),
            of(json!({"type": "string", "x-mcp-header": "a b"})),
            of(json!({"type": "string", "x-mcp-header": "a:b"})),
            of(json!({"type": "string", "x-mcp-header": "a\r\nb"})),
            of(json!({"type": "string", "x-mcp-header": "ü"})),
            of(json!({"type": "string", "x-mcp-header": 1})),
            of(json!({"type": "number", "x-mcp-header": "N"})),
            of(json!({"type": "object", "x-mcp-header": "N"})),
            of(json!({"type": "array", "items": good})),
            of(json!({"anyOf": [good]})),
            of(json!({"x-mcp-header": "N"})),
            json!({"type": "object", "properties": {"a": good, "b": {"type": "string", "x-mcp-header": "sAME"}}}),
            json!({"type": "object", "$defs": {"a": good}}),
            json!({"type": "object", "additionalProperties": good}),
            json!({"type": "object", "x-mcp-header": "Root"}),
        ];
        for schema in table {
            assert!(Marks::of_schema(&schema).is_err(), "{schema}");
        }
    }
}
