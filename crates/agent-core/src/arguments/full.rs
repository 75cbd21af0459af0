//! The whole of JSON Schema, by the crate `jsonschema`.

use std::sync::Arc;

use serde_json::Value;

use crate::arguments::{MAX_MISMATCHES, Mismatch, Mismatches, below};

/// A compiled schema.
#[derive(Clone)]
pub(super) struct FullCheck(Arc<jsonschema::Validator>);

impl FullCheck {
    /// `None` when the schema is invalid or refers to another document: the crate is built without its features for
    /// fetching files and addresses, so nothing is ever fetched.
    pub(super) fn new(schema: &Value) -> Option<Self> {
        jsonschema::validator_for(schema).ok().map(|v| Self(Arc::new(v)))
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
