//! Arguments of calls, checked before anything else happens with them, and near names for tools that do not exist.
//!
//! What is wrong is said in words for the model, with the place and what was expected, so that its next try can be
//! right. Without features a small subset of JSON Schema is checked, the part that models get wrong: types, required
//! and unknown keys, `enum` and `const`, sizes and ranges, through `properties`, `items`, `anyOf`, `oneOf`, `allOf`
//! and references within the schema. What the subset does not know, it lets pass: the tool has the last word. With
//! the feature `jsonschema` the whole schema is checked by the crate of that name, offline: a schema that refers to
//! another document is not compiled, and the subset is used for that tool.
//!
//! ```
//! use haversack_agent_core::arguments::ArgumentCheck;
//! use serde_json::json;
//!
//! let check = ArgumentCheck::new(json!({
//!     "type": "object",
//!     "properties": {"path": {"type": "string"}, "lines": {"type": "array", "items": {"type": "integer"}}},
//!     "required": ["path"],
//! }));
//! assert!(check.check(&json!({"path": "a", "lines": [1, 2]})).is_ok());
//! let wrong = check.check(&json!({"lines": [1, "2"]})).unwrap_err();
//! assert!(wrong.to_string().contains("`path`"));
//! assert!(wrong.to_string().contains("lines[1]: expected integer, got the string \"2\""));
//! ```

use std::fmt;
use std::sync::Arc;
#[cfg(feature = "jsonschema")]
use std::sync::OnceLock;

use serde_json::Value;

mod subset;
mod near;
#[cfg(feature = "jsonschema")]
mod cost;
#[cfg(feature = "jsonschema")]
mod full;

pub use near::{near_names, unknown_tool};

/// How many mismatches are told: enough to mend a call in one go, and no flood.
pub const MAX_MISMATCHES: usize = 8;

/// The longest piece of a wrong value that is shown, in characters.
const MAX_SHOWN: usize = 60;

/// A schema, ready to check arguments. Made once for each tool; clones share what was made.
#[derive(Clone)]
pub struct ArgumentCheck {
    schema: Arc<Value>,
    /// Compiled at the first check: of many tools a run calls few.
    #[cfg(feature = "jsonschema")]
    full: Arc<OnceLock<Option<full::FullCheck>>>,
}

impl ArgumentCheck {
    /// A check for this schema. A schema that cannot be used as a whole is used as far as it goes.
    pub fn new(schema: impl Into<Arc<Value>>) -> Self {
        Self {
            schema: schema.into(),
            #[cfg(feature = "jsonschema")]
            full: Arc::default(),
        }
    }

    /// Checks the arguments of a call.
    ///
    /// # Errors
    ///
    /// What is wrong, up to [`MAX_MISMATCHES`] places.
    pub fn check(&self, arguments: &Value) -> Result<(), Mismatches> {
        // Before any schema: a wire needs an object, whatever the schema says.
        if !arguments.is_object() {
            let problem = format!("expected an object, got {}", shown(arguments));
            return Err(Mismatches { found: vec![Mismatch { at: String::new(), problem }], more: false });
        }
        #[cfg(feature = "jsonschema")]
        if let Some(full) = self.full.get_or_init(|| full::FullCheck::new(&self.schema))
            && cost::is_bounded(&self.schema, arguments)
        {
            // The full validator decides; the subset has the better words for what it knows.
            return full
                .check(arguments)
                .map_err(|wrong| subset::check(&self.schema, arguments).err().unwrap_or(wrong));
        }
        subset::check(&self.schema, arguments)
    }
}

impl fmt::Debug for ArgumentCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArgumentCheck").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// One place where arguments are not what the schema says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// Where, for example `lines[1]`; empty for the arguments as a whole.
    pub at: String,
    /// What was expected, and what is there.
    pub problem: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.at.is_empty() { "the arguments" } else { &self.at };
        write!(f, "{at}: {}", self.problem)
    }
}

/// What is wrong with arguments, in words for the model: one place a line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatches {
    /// The places, in the order of the arguments; never empty.
    pub found: Vec<Mismatch>,
    /// Whether there are more than are listed.
    pub more: bool,
}

impl fmt::Display for Mismatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mismatch) in self.found.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{mismatch}")?;
        }
        if self.more { f.write_str("\n(and more)") } else { Ok(()) }
    }
}

impl std::error::Error for Mismatches {}

/// A value for an error text: its kind, and itself when it is small.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => format!("the number {n}"),
        Value::String(text) => format!("the string {}", cut_quoted(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn cut_quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

/// The place of a key below another place. Keys come from the model and may be anything.
fn below(at: &str, key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    match (plain, at.is_empty()) {
        (true, true) => key.to_owned(),
        (true, false) => format!("{at}.{key}"),
        (false, _) => format!("{at}[{}]", cut_quoted(key)),
    }
}

#[cfg(test)]
mod tests;
