//! What models a server has.

use serde_json::Value;

/// A model that a server offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListedModel {
    /// The name to ask for it by.
    pub id: String,
    /// A name for people.
    pub name: Option<String>,
    /// Tokens of prompt and answer together, where the server tells.
    pub context_window: Option<u64>,
    /// Tokens of one answer, where the server tells.
    pub max_output_tokens: Option<u64>,
}

/// One page of a list.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Page {
    pub(crate) models: Vec<ListedModel>,
    /// What to ask for the next one with; none after the last.
    pub(crate) next: Option<String>,
}

impl Page {
    /// The models under a key of the body, each read by a function that may skip it.
    pub(crate) fn read(body: &Value, key: &str, model: impl Fn(&Value) -> Option<ListedModel>) -> Self {
        // Some imitators send the bare list.
        let list = body.get(key).or(Some(body)).and_then(Value::as_array);
        Self { models: list.into_iter().flatten().filter_map(model).collect(), next: None }
    }
}

/// A model of the OpenAI shape. The window is an extension that goes by several names.
pub(crate) fn openai_shape(model: &Value) -> Option<ListedModel> {
    let number = |key: &str| model.get(key).and_then(Value::as_u64);
    Some(ListedModel {
        id: text(model, "id")?,
        name: text(model, "name").or_else(|| text(model, "display_name")),
        context_window: number("context_length")
            .or_else(|| number("context_window"))
            .or_else(|| number("max_context_length"))
            .or_else(|| number("max_model_len")),
        max_output_tokens: number("max_completion_tokens").or_else(|| number("max_output_tokens")),
    })
}

/// A field that is a text and not empty.
pub(crate) fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A text as part of a query.
pub(crate) fn query(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_window_is_read_under_each_of_its_names() {
        for key in ["context_length", "context_window", "max_context_length", "max_model_len"] {
            let page =
                Page::read(&json!({"data": [{"id": "m", key: 8}, {"no": "id"}]}), "data", openai_shape);
            let [model] = &page.models[..] else { panic!("{page:?}") };
            assert_eq!((model.id.as_str(), model.context_window), ("m", Some(8)), "{key}");
        }
        assert_eq!(Page::read(&json!([{"id": "m"}]), "data", openai_shape).models.len(), 1);
        assert_eq!(Page::read(&json!({"error": 1}), "data", openai_shape), Page::default());
    }

    #[test]
    fn what_a_query_cannot_hold_is_escaped() {
        assert_eq!(query("a/b=ü&c"), "a%2Fb%3D%C3%BC%26c");
    }
}
