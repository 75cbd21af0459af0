//! The whole of JSON Schema, by the crate `jsonschema`.

use std::sync::Arc;

use jsonschema::PatternOptions;
use serde_json::Value;

use crate::arguments::cost::is_shallow;
use crate::arguments::{MAX_MISMATCHES, Mismatch, Mismatches, below};

/// Bytes of a compiled pattern at most.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// A compiled schema.
#[derive(Clone)]
pub(super) struct FullCheck(Arc<jsonschema::Validator>);

impl FullCheck {
    /// `None` when the schema is invalid or refers to another document: the crate is built without its features for
    /// fetching files and addresses, so nothing is ever fetched. The same for one that nests too deep, or has a pattern
    /// that cannot be matched in linear time: patterns are the server's, and what they are matched with the model's.
    pub(super) fn new(schema: &Value) -> Option<Self> {
        if !is_shallow(schema) {
            return None;
        }
        let patterns = PatternOptions::regex().size_limit(MAX_PATTERN_BYTES);
        let validator = jsonschema::options().with_pattern_options(patterns).build(schema);
        validator.ok().map(|v| Self(Arc::new(v)))
    }

    pub(super) fn check(&self, arguments: &Value) -> Result<(), Mismatches> {
        let mut errors = self.0.iter_errors(arguments);
        let found: Vec<_> = errors
            .by_ref()
            .take(MAX_MISMATCHES)
            .map(|error| {
                let at =
                    error.instance_path().as_str().split('/').skip(1).fold(String::new(), |at, segment| {
                        let key = segment.replace("~1", "/").replace("~0", "~");
                        if key.parse::<usize>().is_ok() { format!("{at}[{key}]") } else { below(&at, &key) }
                    });
                Mismatch { at, problem: cut(&error.to_string()) }
            })
            .collect();
        if found.is_empty() { Ok(()) } else { Err(Mismatches { found, more: errors.next().is_some() }) }
    }
}

/// The crate's texts quote the wrong value whole, which may be as large as the arguments.
fn cut(text: &str) -> String {
    /// Characters of one text.
    const LONGEST: usize = 400;

    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
