//! Templates: `{{ path }}` in a text is replaced by a value, and a text that is nothing else becomes that value.
//!
//! ```
//! use haversack_skill_runtime::template::{Scope, Template};
//! use serde_json::json;
//!
//! let vars = json!({"input": {"n": 1, "list": ["a", {"x.y": 2}], "who": null}});
//! let vars = vars.as_object().unwrap();
//! let render = |text: &str| Template::parse(text).render(&Scope::new(vars)).unwrap();
//!
//! assert_eq!(render("{{ input.n }}"), json!(1)); // the type is kept
//! assert_eq!(render("n is {{ input.n }}"), json!("n is 1"));
//! assert_eq!(render("{{ input.list.0 }}"), json!("a"));
//! assert_eq!(render("{{ input.list[1][\"x.y\"] }}"), json!(2));
//! assert_eq!(render("{{ input.absent ?? \"none\" }}"), json!("none"));
//! assert_eq!(render("write {{ \"{{\" }} to begin one"), json!("write {{ to begin one"));
//! ```
//!
//! # Rules
//!
//! 1. A text that, trimmed, begins with `{{`, ends with `}}` and holds `{{` once is a reference: the result is the
//!    value itself, type and all.
//! 2. In any other text every shortest `{{…}}` on one line is replaced by its value as text: null is nothing, text is
//!    itself, a number is written as JavaScript does, a list or mapping is compact JSON. `{{}}` and braces that are
//!    never closed are text. One failing path fails the whole.
//! 3. A path is split at its dots, blanks around it apart; each part is a key of a mapping or, in a list, an index.
//! 4. Only where that gives nothing are the other forms tried, so that they change no template that worked without
//!    them: parts in brackets (`list[0]`, `map["a.b"]`), a default behind `??` (any JSON; also for null), and a text in
//!    quotes, which stands for itself.

mod path;
mod number;

use std::fmt;

use serde_json::{Map, Value};

use path::{Expression, lookup};

/// Bytes of one rendered text at most. A model reads a small part of that; a template that multiplies a large value
/// must not take the memory of the host.
pub const MAX_RENDERED_BYTES: usize = 4 * 1024 * 1024;

/// Levels of nesting below an argument that are looked at for templates.
const MAX_DEPTH: usize = 64;

/// The variables of a template.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'v> {
    vars: &'v Map<String, Value>,
    item: Option<&'v Value>,
}

impl<'v> Scope<'v> {
    /// These variables.
    pub fn new(vars: &'v Map<String, Value>) -> Self {
        Self { vars, item: None }
    }

    /// The same with `item`, which goes before a variable of that name.
    #[must_use]
    pub fn with_item(self, item: &'v Value) -> Self {
        Self { item: Some(item), ..self }
    }

    fn root(&self, name: &str) -> Option<&'v Value> {
        self.item.filter(|_| name == "item").or_else(|| self.vars.get(name))
    }
}

/// A text with references, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    parts: Vec<Part>,
    pure: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Reference(Expression),
}

/// Why a template gives nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateError {
    /// A mapping has not this key, or a list not this index.
    KeyNotFound {
        /// The whole path.
        path: String,
        /// The part that is not there.
        key: String,
    },
    /// Something that has no parts.
    CannotIndex {
        /// The whole path.
        path: String,
        /// The part that was asked for.
        key: String,
        /// What it is: `string`, `number`, `boolean`, `null`.
        kind: &'static str,
    },
    /// The result would be longer than [`MAX_RENDERED_BYTES`].
    TooLarge,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyNotFound { path, key } => write!(f, "path \"{path}\": key \"{key}\" not found"),
            Self::CannotIndex { path, key, kind } => {
                write!(f, "path \"{path}\": cannot index into {kind} with \"{key}\"")
            }
            Self::TooLarge => write!(f, "the result would be longer than {MAX_RENDERED_BYTES} bytes"),
        }
    }
}

impl std::error::Error for TemplateError {}

impl Template {
    /// Takes a text apart. Every text is a template: what is no reference is text.
    pub fn parse(text: &str) -> Self {
        let trimmed = text.trim();
        let inside = trimmed.strip_prefix("{{").and_then(|t| t.strip_suffix("}}"));
        if let Some(inside) = inside.filter(|inside| !inside.contains("{{")) {
            // The two prefixes of `{{}` overlap, and a lone brace inside makes three in a row.
            if trimmed.len() >= 4 && trimmed.matches("{{").count() == 1 {
                return Self { parts: vec![Part::Reference(Expression::parse(inside))], pure: true };
            }
        }
        Self { parts: mixed(text), pure: false }
    }

    /// The value of the template.
    ///
    /// # Errors
    ///
    /// When a path leads nowhere and has no default; of several failures the last one.
    pub fn render(&self, scope: &Scope<'_>) -> Result<Value, TemplateError> {
        if let (true, [Part::Reference(expression)]) = (self.pure, &*self.parts) {
            return lookup(expression, |name| scope.root(name));
        }
        let (mut out, mut failed) = (String::new(), None);
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Reference(expression) => match lookup(expression, |name| scope.root(name)) {
                    Ok(value) => push_text(&mut out, &value),
                    Err(error) => failed = Some(error),
                },
            }
            if out.len() > MAX_RENDERED_BYTES {
                return Err(TemplateError::TooLarge);
            }
        }
        failed.map_or(Ok(Value::String(out)), Err)
    }

    /// Whether the whole text is one reference, so that its type is kept.
    pub fn is_reference(&self) -> bool {
        self.pure
    }

    /// The variables that the template cannot do without: the first parts of its paths, apart from those with a default
    /// and from texts in quotes.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Reference(expression) => expression.variable(),
        })
    }
}

/// The value with every text in it rendered; keys stay.
///
/// # Errors
///
/// As [`Template::render`], for the first text that fails.
pub fn render_value(value: &Value, scope: &Scope<'_>) -> Result<Value, TemplateError> {
    render_below(value, scope, MAX_DEPTH)
}

fn render_below(value: &Value, scope: &Scope<'_>, depth: usize) -> Result<Value, TemplateError> {
    let Some(below) = depth.checked_sub(1) else { return Ok(value.clone()) };
    match value {
        Value::String(text) if text.contains("{{") => Template::parse(text).render(scope),
        Value::Array(items) => items.iter().map(|item| render_below(item, scope, below)).collect(),
        Value::Object(map) => {
            let pairs = map.iter().map(|(key, value)| Ok((key.clone(), render_below(value, scope, below)?)));
            pairs.collect::<Result<Map<_, _>, _>>().map(Value::Object)
        }
        other => Ok(other.clone()),
    }
}

/// The variables that the texts in a value cannot do without.
pub fn variables_of(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => {
                found.extend(Template::parse(text).variables().map(str::to_owned));
            }
            Value::Array(items) => open.extend(items),
            Value::Object(map) => open.extend(map.values()),
            _ => {}
        }
    }
    found.sort();
    found.dedup();
    found
}

fn mixed(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        plain.push_str(before);
        // At least one character, so that `{{}}` and more braces are text.
        let skip = after.chars().next().map_or(0, char::len_utf8);
        let end = after.get(skip..).and_then(|tail| tail.find("}}")).map(|end| end + skip);
        match end.and_then(|end| Some((after.get(..end)?, after.get(end + 2..)?))) {
            Some((inside, tail)) if !inside.contains(['\n', '\r']) => {
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(Part::Reference(Expression::parse(inside)));
                rest = tail;
            }
            // One brace on: `{{\n{{a}}` holds a reference further in.
            _ => {
                plain.push('{');
                rest = rest.get(before.len() + 1..).unwrap_or_default();
            }
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() || parts.is_empty() {
        parts.push(Part::Text(plain));
    }
    parts
}

fn push_text(out: &mut String, value: &Value) {
    match value {
        Value::Null => {}
        Value::String(text) => out.push_str(text),
        Value::Number(number) => out.push_str(&number::as_javascript(number)),
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests;
