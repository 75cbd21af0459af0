//! A small subset of JSON Schema, checked without compiling anything.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::arguments::{MAX_MISMATCHES, Mismatch, Mismatches, below, shown};

/// How deep schemas are followed, references included: more than the JSON reader lets values nest.
pub(super) const MAX_DEPTH: usize = 160;

/// How many schemas are looked at for one call. Nested alternatives multiply; beyond this the tool itself judges.
pub(super) const MAX_VISITS: usize = 100_000;

pub(super) fn check(schema: &Value, arguments: &Value) -> Result<(), Mismatches> {
    let mut check = Check { root: schema, visits: 0, found: Vec::new() };
    check.value(schema, arguments, &Place::Root, 0);
    let more = check.found.len() > MAX_MISMATCHES;
    check.found.truncate(MAX_MISMATCHES);
    if check.found.is_empty() { Ok(()) } else { Err(Mismatches { found: check.found, more }) }
}

/// Where a value is; turned into text only when something is wrong there.
enum Place<'a> {
    Root,
    Key(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl Place<'_> {
    fn text(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Key(outer, key) => below(&outer.text(), key),
            Self::Item(outer, index) => format!("{}[{index}]", outer.text()),
        }
    }
}

struct Check<'a> {
    root: &'a Value,
    visits: usize,
    found: Vec<Mismatch>,
}

impl<'a> Check<'a> {
    fn wrong(&mut self, at: &Place<'_>, problem: String) {
        // One more than is told, to know whether there are more.
        if self.found.len() <= MAX_MISMATCHES {
            self.found.push(Mismatch { at: at.text(), problem });
        }
    }

    fn value(&mut self, schema: &'a Value, value: &Value, at: &Place<'_>, depth: usize) {
        self.visits += 1;
        if depth > MAX_DEPTH || self.visits > MAX_VISITS || self.found.len() > MAX_MISMATCHES {
            return;
        }
        let Value::Object(schema) = schema else {
            if *schema == Value::Bool(false) {
                self.wrong(at, "nothing is expected here".to_owned());
            }
            return;
        };
        if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|r| self.resolve(r)) {
            self.value(target, value, at, depth + 1);
        }
        if *value == Value::Null && schema.get("nullable") == Some(&Value::Bool(true)) {
            return;
        }
        if !self.kind(schema, value, at) {
            return;
        }
        self.fixed(schema, value, at);
        match value {
            Value::Object(object) => self.object(schema, object, at, depth),
            Value::Array(items) => self.array(schema, items, at, depth),
            Value::String(text) => self.text(schema, text, at),
            Value::Number(_) => self.number(schema, value, at),
            _ => {}
        }
        self.alternatives(schema, value, at, depth);
    }

    /// A reference within the schema; anything else is not followed.
    fn resolve(&self, reference: &str) -> Option<&'a Value> {
        self.root.pointer(reference.strip_prefix('#')?)
    }

    /// Whether the type fits; if not, nothing else of the value is worth telling.
    fn kind(&mut self, schema: &Map<String, Value>, value: &Value, at: &Place<'_>) -> bool {
        let wanted: Vec<&str> = match schema.get("type") {
            Some(Value::String(kind)) => vec![kind],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => return true,
        };
        if wanted.is_empty() || wanted.iter().any(|kind| is_of_kind(value, kind)) {
            return true;
        }
        self.wrong(at, format!("expected {}, got {}", wanted.join(" or "), shown(value)));
        false
    }

    fn fixed(&mut self, schema: &Map<String, Value>, value: &Value, at: &Place<'_>) {
        let list = |values: &[Value]| {
            let some: Vec<_> = values.iter().take(20).map(Value::to_string).collect();
            let rest = if values.len() > 20 { ", …" } else { "" };
            format!("{}{rest}", some.join(", "))
        };
        if let Some(Value::Array(values)) = schema.get("enum")
            && !values.iter().any(|v| same(v, value))
        {
            self.wrong(at, format!("expected one of {}, got {}", list(values), shown(value)));
        }
        if let Some(only) = schema.get("const")
            && !same(only, value)
        {
            self.wrong(at, format!("expected {only}, got {}", shown(value)));
        }
    }

    fn object(
        &mut self,
        schema: &'a Map<String, Value>,
        object: &Map<String, Value>,
        at: &Place<'_>,
        depth: usize,
    ) {
        if let Some(Value::Array(required)) = schema.get("required") {
            for key in required.iter().filter_map(Value::as_str).filter(|key| !object.contains_key(*key)) {
                self.wrong(at, format!("the required key `{key}` is missing"));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let patterned = schema.contains_key("patternProperties");
        for (key, value) in object {
            let at = Place::Key(at, key);
            if let Some(property) = properties.and_then(|p| p.get(key)) {
                self.value(property, value, &at, depth + 1);
                continue;
            }
            match schema.get("additionalProperties") {
                // Which keys a pattern means is for a full validator to say.
                Some(_) if patterned => {}
                Some(Value::Bool(false)) => {
                    let known: BTreeSet<_> =
                        properties.into_iter().flatten().map(|(k, _)| k.as_str()).collect();
                    let known: Vec<_> = known.iter().take(20).map(|k| format!("`{k}`")).collect();
                    self.wrong(&at, format!("unknown key; the keys are {}", known.join(", ")));
                }
                Some(other) => self.value(other, value, &at, depth + 1),
                None => {}
            }
        }
        self.size(schema, "minProperties", "maxProperties", object.len(), "keys", at);
    }

    fn array(&mut self, schema: &'a Map<String, Value>, items: &[Value], at: &Place<'_>, depth: usize) {
        let prefix = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let rest = schema.get("items").filter(|items| !items.is_array());
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = prefix.get(index).or(rest) {
                self.value(schema, item, &Place::Item(at, index), depth + 1);
            }
        }
        self.size(schema, "minItems", "maxItems", items.len(), "items", at);
    }

    fn text(&mut self, schema: &Map<String, Value>, text: &str, at: &Place<'_>) {
        if schema.contains_key("minLength") || schema.contains_key("maxLength") {
            self.size(schema, "minLength", "maxLength", text.chars().count(), "characters", at);
        }
    }

    fn size(
        &mut self,
        schema: &Map<String, Value>,
        least: &str,
        most: &str,
        size: usize,
        unit: &str,
        at: &Place<'_>,
    ) {
        let size = size as u64;
        let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
        if let Some(least) = bound(least).filter(|least| size < *least) {
            self.wrong(at, format!("expected at least {least} {unit}, got {size}"));
        }
        if let Some(most) = bound(most).filter(|most| size > *most) {
            self.wrong(at, format!("expected at most {most} {unit}, got {size}"));
        }
    }

    fn number(&mut self, schema: &Map<String, Value>, value: &Value, at: &Place<'_>) {
        type Holds = fn(f64, f64) -> bool;
        let bounds: [(&str, &str, Holds); 4] = [
            ("minimum", "at least", |n, bound| n >= bound),
            ("maximum", "at most", |n, bound| n <= bound),
            ("exclusiveMinimum", "more than", |n, bound| n > bound),
            ("exclusiveMaximum", "less than", |n, bound| n < bound),
        ];
        let Some(number) = value.as_f64() else { return };
        for (name, words, holds) in bounds {
            if let Some(bound) = schema.get(name)
                && let Some(limit) = bound.as_f64()
                && !holds(number, limit)
            {
                self.wrong(at, format!("expected {words} {bound}, got {value}"));
            }
        }
    }

    fn alternatives(&mut self, schema: &'a Map<String, Value>, value: &Value, at: &Place<'_>, depth: usize) {
        for part in array(schema, "allOf") {
            self.value(part, value, at, depth + 1);
        }
        for name in ["anyOf", "oneOf"] {
            let options = array(schema, name);
            if options.is_empty() {
                continue;
            }
            let mut closest: Option<Vec<Mismatch>> = None;
            let mut fitting = 0;
            for option in options {
                let found = self.apart(option, value, at, depth);
                fitting += usize::from(found.is_empty());
                // The alternative that gets deepest is the one that was meant.
                let depth_of = |found: &[Mismatch]| found.iter().map(|m| m.at.len()).max().unwrap_or(0);
                if closest.as_ref().is_none_or(|c| depth_of(&found) > depth_of(c)) {
                    closest = Some(found);
                }
            }
            if fitting == 0 {
                let count = options.len();
                self.wrong(at, format!("fits none of the {count} alternatives; the closest one says:"));
                for mismatch in closest.into_iter().flatten().take(2) {
                    self.found.push(mismatch);
                }
            } else if name == "oneOf" && fitting > 1 {
                self.wrong(at, format!("fits {fitting} of the alternatives, expected exactly one"));
            }
        }
    }

    /// What is wrong with the value under another schema, without counting it here.
    fn apart(&mut self, schema: &'a Value, value: &Value, at: &Place<'_>, depth: usize) -> Vec<Mismatch> {
        let before = std::mem::take(&mut self.found);
        self.value(schema, value, at, depth + 1);
        std::mem::replace(&mut self.found, before)
    }
}

fn array<'a>(schema: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    schema.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// An unknown kind fits: the schema knows more than this subset.
fn is_of_kind(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

/// Equal as JSON Schema has it: numbers by value.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            x == y || (x.is_f64() || y.is_f64()) && x.as_f64() == y.as_f64()
        }
        _ => a == b,
    }
}
