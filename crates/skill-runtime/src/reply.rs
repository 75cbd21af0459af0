//! What a call of a management tool gives back.

use serde_json::{Map, Value};

/// The result of one call of a tool whose arguments and result are JSON, whatever protocol brings it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reply {
    /// Whether it did what it was asked; otherwise the protocol should say that the call failed.
    pub ok: bool,
    /// The result, for programs; as text it is for a model.
    pub value: Value,
}

impl Reply {
    /// A call that did what it was asked.
    pub fn done(value: Value) -> Self {
        Self { ok: true, value }
    }

    /// A call that did not.
    pub fn failed(value: Value) -> Self {
        Self { ok: false, value }
    }

    /// The result as text, with an indent of two blanks.
    pub fn text(&self) -> String {
        format!("{:#}", self.value)
    }

    /// `{action, success, data | error}`, as the tools with a `payload` answer.
    pub(crate) fn of_action(action: &str, result: Result<Value, String>) -> Self {
        let ok = result.is_ok();
        let mut value = Map::new();
        value.insert("action".to_owned(), action.into());
        value.insert("success".to_owned(), ok.into());
        match result {
            Ok(Value::Null) => None,
            Ok(data) => value.insert("data".to_owned(), data),
            Err(error) => value.insert("error".to_owned(), error.into()),
        };
        Self { ok, value: value.into() }
    }
}

/// The arguments of a call, by names in `camelCase` or `snake_case`.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a>(&'a Map<String, Value>);

impl<'a> Arguments<'a> {
    pub(crate) fn of(value: &'a Value) -> Option<Self> {
        value.as_object().map(Self)
    }

    /// The value of this name, written in `camelCase` here.
    pub(crate) fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).or_else(|| self.0.get(&snake(name))).filter(|value| !value.is_null())
    }

    /// A text, if there is one that is not blank.
    ///
    /// # Errors
    ///
    /// When it is there and no text.
    pub(crate) fn text(self, name: &str) -> Result<Option<&'a str>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.trim().is_empty())),
            Some(_) => Err(format!("`{name}` has to be a text")),
        }
    }

    pub(crate) fn required(self, name: &str) -> Result<&'a str, String> {
        self.text(name)?.ok_or_else(|| format!("`{name}` is required"))
    }

    pub(crate) fn flag(self, name: &str) -> Result<bool, String> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(format!("`{name}` has to be true or false")),
        }
    }

    pub(crate) fn number(self, name: &str) -> Result<Option<u64>, String> {
        self.get(name)
            .map(|value| value.as_u64().ok_or_else(|| format!("`{name}` has to be a whole number from 0")))
            .transpose()
    }

    pub(crate) fn object(self, name: &str) -> Result<Option<&'a Map<String, Value>>, String> {
        let wrong = || format!("`{name}` has to be an object");
        self.get(name).map(|value| value.as_object().ok_or_else(wrong)).transpose()
    }

    pub(crate) fn texts(self, name: &str) -> Result<Vec<&'a str>, String> {
        let wrong = || format!("`{name}` has to be a list of texts");
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let items = value.as_array().ok_or_else(wrong)?;
        items.iter().map(|item| item.as_str().ok_or_else(wrong)).collect()
    }
}

fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// The payload of a call: JSON text, as the classic tools take it, or the object itself.
///
/// # Errors
///
/// What is wrong with it.
pub(crate) fn payload(given: &Value) -> Result<Value, String> {
    let inner = match given.get("payload") {
        Some(payload) if given.get("action").is_none() => payload,
        _ => given,
    };
    let value = match inner {
        Value::String(text) => {
            serde_json::from_str(text).map_err(|error| format!("the payload is not JSON: {error}"))?
        }
        other => other.clone(),
    };
    if value.is_object() { Ok(value) } else { Err("the payload has to be a JSON object".to_owned()) }
}
