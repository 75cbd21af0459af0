//! What stands between the braces.

use serde_json::Value;

use crate::template::TemplateError;

/// What stands between the braces, without the blanks around it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expression {
    /// As written: tried first, split at its dots and nothing else.
    plain: String,
    /// With brackets, default and quotes, where there are any.
    rich: Option<Rich>,
}

#[derive(Clone, Debug, PartialEq)]
enum Rich {
    Literal(Value),
    Path { parts: Vec<String>, default: Option<Value> },
}

impl Expression {
    pub(super) fn parse(inside: &str) -> Self {
        let plain = inside.trim();
        Self { plain: plain.to_owned(), rich: rich(plain) }
    }

    /// The variable it cannot do without.
    pub(super) fn variable(&self) -> Option<&str> {
        match &self.rich {
            Some(Rich::Literal(_) | Rich::Path { default: Some(_), .. }) => None,
            Some(Rich::Path { parts, .. }) => parts.first().map(String::as_str),
            None => self.plain.split('.').next(),
        }
    }
}

/// The value of an expression among variables.
pub(super) fn lookup<'v>(
    expression: &Expression,
    root: impl Fn(&str) -> Option<&'v Value>,
) -> Result<Value, TemplateError> {
    let path = &*expression.plain;
    let plain = walk(path, path.split('.'), &root);
    match (&expression.rich, plain) {
        (_, Ok(value)) => Ok(value.clone()),
        (None, Err(error)) => Err(error),
        (Some(Rich::Literal(value)), Err(_)) => Ok(value.clone()),
        (Some(Rich::Path { parts, default }), Err(_)) => {
            let found = walk(path, parts.iter().map(String::as_str), &root);
            match (found, default) {
                (Ok(Value::Null) | Err(_), Some(default)) => Ok(default.clone()),
                (found, _) => found.cloned(),
            }
        }
    }
}

fn walk<'p, 'v>(
    path: &str,
    mut parts: impl Iterator<Item = &'p str>,
    root: &impl Fn(&str) -> Option<&'v Value>,
) -> Result<&'v Value, TemplateError> {
    let missing = |key: &str| TemplateError::KeyNotFound { path: path.to_owned(), key: key.to_owned() };
    let first = parts.next().unwrap_or_default();
    let mut value = root(first).ok_or_else(|| missing(first))?;
    for key in parts {
        value = match value {
            Value::Object(map) => map.get(key).ok_or_else(|| missing(key))?,
            Value::Array(items) => index(key).and_then(|at| items.get(at)).ok_or_else(|| missing(key))?,
            other => {
                let (path, key, kind) = (path.to_owned(), key.to_owned(), kind(other));
                return Err(TemplateError::CannotIndex { path, key, kind });
            }
        };
    }
    Ok(value)
}

/// Digits without a needless zero in front.
fn index(key: &str) -> Option<usize> {
    let tidy = key == "0" || !key.starts_with('0');
    (tidy && key.bytes().all(|b| b.is_ascii_digit())).then(|| key.parse().ok()).flatten()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn rich(text: &str) -> Option<Rich> {
    if text.starts_with('"') {
        return serde_json::from_str(text).ok().map(Rich::Literal);
    }
    let (path, default) = match text.split_once("??") {
        Some((path, default)) => (path.trim_end(), Some(serde_json::from_str(default.trim()).ok()?)),
        None => (text, None),
    };
    if default.is_none() && !path.contains('[') {
        return None;
    }
    Some(Rich::Path { parts: bracketed(path)?, default })
}

/// `a.b[0]["c.d"]` as its parts.
fn bracketed(path: &str) -> Option<Vec<String>> {
    let (head, mut rest) = path.split_at(path.find('[').unwrap_or(path.len()));
    let mut parts: Vec<String> = head.split('.').map(str::to_owned).collect();
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (part, tail) = one_bracket(inner)?;
            parts.push(part);
            rest = tail;
        } else {
            let dotted = rest.strip_prefix('.')?;
            let (names, tail) = dotted.split_at(dotted.find('[').unwrap_or(dotted.len()));
            parts.extend(names.split('.').map(str::to_owned));
            rest = tail;
        }
    }
    Some(parts)
}

fn one_bracket(inner: &str) -> Option<(String, &str)> {
    if !inner.starts_with('"') {
        let (digits, tail) = inner.split_once(']')?;
        return index(digits.trim()).map(|at| (at.to_string(), tail));
    }
    // The quotes are JSON's, so JSON says where they end.
    let mut values = serde_json::Deserializer::from_str(inner).into_iter::<String>();
    let key = values.next()?.ok()?;
    let tail = inner.get(values.byte_offset()..)?.strip_prefix(']')?;
    Some((key, tail))
}
