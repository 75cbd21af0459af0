//! Digests: what ties a verdict to the very call that was shown, and a grant to the very tool that was granted.
//!
//! A digest is SHA-256 over a canonical form of JSON. The form is made for one property: two values have the same
//! form exactly when they mean the same.
//!
//! - Keys of objects are sorted by their bytes, so that the order in which a model or a store writes them does not
//!   matter. There is no white space.
//! - Numbers of equal value are written alike, whatever their spelling: `1`, `1.0` and `1e0` are `1`. A store that
//!   reads and writes a session with JavaScript or with a database's JSON type changes spellings, never values.
//!   Integers keep all their digits; forms that go through a double (RFC 8785 among them) do not, and let two
//!   different arguments share one digest.
//! - Strings are compared by code points. No Unicode normalisation: two spellings of a file name are two files.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value};
use sha2::{Digest as _, Sha256};

use crate::message::CallId;
use crate::tool::ToolSpec;

/// A SHA-256 digest. Shown, stored and read as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of a JSON value's canonical form.
    pub fn of_json(value: &Value) -> Self {
        let mut sink = Hasher::default();
        sink.json(value);
        sink.finish()
    }

    /// The digest of bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Owned, since text with escapes cannot be borrowed.
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let digits: &[u8; 64] = text.as_bytes().try_into().or(Err(InvalidDigest))?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            for digit in pair {
                // Upper case is refused: one digest has one spelling.
                let value = match digit {
                    b'0'..=b'9' => digit - b'0',
                    b'a'..=b'f' => digit - b'a' + 10,
                    _ => return Err(InvalidDigest),
                };
                *byte = *byte << 4 | value;
            }
        }
        Ok(Self(bytes))
    }
}

/// The text is no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidDigest;

impl fmt::Display for InvalidDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a digest is 64 lower-case hex digits")
    }
}

impl std::error::Error for InvalidDigest {}

/// What a tool claims to be: a digest over its origin, name, description and schema.
///
/// A grant and an open ask hold it. When a server changes what a tool says of itself, the fingerprint changes, and
/// the person is asked again. Effects are left out on purpose: they only order the work, and a host that learns
/// more about a tool must not invalidate every grant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(Digest);

impl Fingerprint {
    /// The fingerprint of a tool.
    pub fn of(spec: &ToolSpec) -> Self {
        let mut sink = Hasher::default();
        sink.text("haversack tool 1");
        sink.text(&spec.origin);
        sink.text(&spec.name);
        sink.text(&spec.description);
        sink.json(&spec.input_schema);
        Self(sink.finish())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({})", self.0)
    }
}

/// The digest of one ask: which call, of which tool, with which arguments, in which generation of which run.
///
/// `path` leads from the top run to a sub-agent's run, outermost first, and is empty for the top run itself: calls of
/// two children may share an id, so the path has to tell the children apart.
pub fn ask_digest(
    path: &[Arc<str>],
    call: &CallId,
    tool: Fingerprint,
    arguments: &Value,
    generation: u64,
) -> Digest {
    let mut sink = Hasher::default();
    sink.text("haversack ask 1");
    sink.0.update((path.len() as u64).to_be_bytes());
    path.iter().for_each(|outer| sink.text(outer));
    sink.text(call.as_str());
    sink.0.update(tool.0.as_bytes());
    sink.0.update(generation.to_be_bytes());
    sink.json(arguments);
    sink.finish()
}

/// The canonical form of a JSON value as text, for keys of maps and for tests. Prefer [`Digest::of_json`], which
/// does not build the text.
pub fn canonical_json(value: &Value) -> String {
    let mut bytes = Vec::new();
    // Neither a vector nor the values of a `Value` can fail to be written.
    let written = write_canonical(&mut bytes, value);
    debug_assert!(written.is_ok(), "writing to memory failed");
    String::from_utf8(bytes).unwrap_or_default()
}

/// Hashes parts so that no two lists of parts are the same bytes: each text is preceded by its length.
#[derive(Default)]
struct Hasher(Sha256);

impl Hasher {
    fn text(&mut self, text: &str) {
        self.0.update((text.len() as u64).to_be_bytes());
        self.0.update(text.as_bytes());
    }

    /// Canonical JSON ends where it ends: no length is needed.
    fn json(&mut self, value: &Value) {
        let written = write_canonical(self, value);
        debug_assert!(written.is_ok(), "hashing cannot fail");
    }

    fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Recurses as deep as the value is nested, which the JSON reader limits to 128 levels.
fn write_canonical(out: &mut impl io::Write, value: &Value) -> io::Result<()> {
    match value {
        Value::Null => out.write_all(b"null"),
        Value::Bool(true) => out.write_all(b"true"),
        Value::Bool(false) => out.write_all(b"false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => Ok(serde_json::to_writer(out, text)?),
        Value::Array(items) => {
            out.write_all(b"[")?;
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.write_all(b",")?;
                }
                write_canonical(out, item)?;
            }
            out.write_all(b"]")
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| key.as_bytes());
            out.write_all(b"{")?;
            for (index, (key, item)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.write_all(b",")?;
                }
                serde_json::to_writer(&mut *out, key)?;
                out.write_all(b":")?;
                write_canonical(out, item)?;
            }
            out.write_all(b"}")
        }
    }
}

fn write_number(out: &mut impl io::Write, number: &Number) -> io::Result<()> {
    /// Two to the power of 64: from here on no double fits an integer type.
    const TWO_64: f64 = 18_446_744_073_709_551_616.0;

    if let Some(n) = number.as_u64() {
        return write!(out, "{n}");
    }
    if let Some(n) = number.as_i64() {
        return write!(out, "{n}");
    }
    match number.as_f64() {
        // Should another crate of the program switch on arbitrary precision, a number may hold more digits than a
        // double: the second test keeps those apart by their spelling.
        Some(x) if x.is_finite() && Number::from_f64(x).as_ref() == Some(number) => {
            if x.fract() == 0.0 && x.abs() < TWO_64 {
                write!(out, "{}", exact_integer(x))
            } else {
                // The shortest digits that read back as this double; the standard library keeps this stable.
                write!(out, "{x:e}")
            }
        }
        _ => write!(out, "{number}"),
    }
}

/// The integer that a double without a fraction, of less than 2^64, is. Negative zero is zero.
#[expect(clippy::cast_possible_truncation, reason = "the caller has checked that nothing is cut off")]
fn exact_integer(x: f64) -> i128 {
    x as i128
}

#[cfg(test)]
pub(crate) mod tests;
