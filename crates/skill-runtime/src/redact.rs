//! Keeping secrets out of what leaves: known shapes of tokens, and every value that was ever resolved.
//!
//! ```
//! use haversack_skill_runtime::redact::Redactor;
//!
//! let redactor = Redactor::new();
//! redactor.learn("hunter2-and-more");
//! let text = "Authorization: Bearer abc, and the password is hunter2-and-more";
//! assert_eq!(redactor.text(text), "Authorization: Bearer ***, and the password is ***");
//! assert_eq!(redactor.text("price: $1234.56"), "price: $1234.56");
//! ```

mod needle;
mod shapes;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Map, Value};

use needle::{Needle, needles};
pub use shapes::{TokenShape, find_token};

/// What stands in the place of a secret.
pub const MASK: &str = "***";

/// Bytes of the shortest value that is learnt. Shorter ones occur in any text; masking them would destroy it, so a
/// secret that short is refused where it is resolved.
pub const MIN_SECRET_BYTES: usize = 4;

/// Masks secrets in texts and values. Cheap to clone; all clones know the same values.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Arc<RwLock<Known>>,
}

#[derive(Default)]
struct Known {
    values: usize,
    /// In order, each once.
    needles: Vec<Needle>,
}

impl Redactor {
    /// One that knows the shapes of tokens, and no values yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Remembers a value: from now on it is masked, in whatever writing it comes: as it is, with escapes of JSON,
    /// percent-encoded in part or whole, in base64 of either alphabet, padded or not, also inside something longer that
    /// was encoded as a whole. Values shorter than [`MIN_SECRET_BYTES`] are not learnt, and the answer is then `false`.
    pub fn learn(&self, value: &str) -> bool {
        if value.len() < MIN_SECRET_BYTES {
            return false;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let before = known.needles.len();
        known.needles.extend(needles(value));
        known.needles.sort();
        known.needles.dedup();
        known.values += usize::from(known.needles.len() > before);
        true
    }

    /// The text with every secret masked; the text itself where there is none.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut spans = shapes::spans(text);
        spans.extend(self.known.read().unwrap_or_else(PoisonError::into_inner).spans(text.as_bytes()));
        if spans.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(masked(text, spans)) }
    }

    /// The value with every secret masked in its texts, keys and numbers.
    pub fn json(&self, value: Value) -> Value {
        match value {
            Value::String(text) => match self.text(&text) {
                Cow::Borrowed(_) => Value::String(text),
                Cow::Owned(masked) => Value::String(masked),
            },
            Value::Number(number) => match self.text(&number.to_string()) {
                Cow::Borrowed(_) => Value::Number(number),
                Cow::Owned(masked) => Value::String(masked),
            },
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.json(item)).collect()),
            Value::Object(map) => {
                let pairs =
                    map.into_iter().map(|(key, value)| (self.text(&key).into_owned(), self.json(value)));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
            Value::Null | Value::Bool(_) => value,
        }
    }
}

impl Known {
    fn spans(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut begins = [false; 256];
        for byte in 0..=u8::MAX {
            let any = self.needles.iter().any(|needle| needle.may_begin_with(byte));
            if let Some(place) = begins.get_mut(usize::from(byte)) {
                *place = any;
            }
        }
        let mut spans = Vec::new();
        for (at, byte) in text.iter().enumerate() {
            if begins.get(usize::from(*byte)) == Some(&true) {
                let here = self.needles.iter().filter(|needle| needle.may_begin_with(*byte));
                spans.extend(here.filter_map(|needle| needle.at(text, at)));
            }
        }
        spans
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).values;
        f.debug_struct("Redactor").field("known_values", &known).finish()
    }
}

/// The text with these spans masked; spans that touch or overlap become one mask.
fn masked(text: &str, mut spans: Vec<Range<usize>>) -> String {
    spans.sort_by_key(|span| (span.start, span.end));
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    let mut spans = spans.into_iter().peekable();
    while let Some(mut span) = spans.next() {
        while let Some(next) = spans.next_if(|next| next.start <= span.end) {
            span.end = span.end.max(next.end);
        }
        out.push_str(text.get(done..span.start).unwrap_or_default());
        out.push_str(MASK);
        done = span.end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests;
