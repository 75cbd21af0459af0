//! SHA-256 over what a set of servers would run.
//!
//! The hash is taken over a canonical form: compact JSON of a version mark and, per server sorted by name, its name,
//! command, arguments in order, variables sorted by name, working folder, and the names of passed variables; or, over
//! HTTP, its URL and its headers sorted by name. The text
//! counts *as written*, before variables are put in: that is what a repository controls, a secret that is renewed asks
//! nobody again, and no secret enters the hash. The order of the file's members and its blanks do not count.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::config::entry::{ConfiguredServer, TransportConfig};

/// Begins the canonical form; a change of the form gets a new one, so that old answers do not count for it.
const FORM: &str = "haversack-mcp/1";

/// The identity of a set of servers as written: 32 bytes, shown as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

/// A text that is no fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is 64 hex digits")]
pub struct FingerprintParseError;

impl Fingerprint {
    /// The fingerprint of a set of servers, whatever order they come in.
    #[must_use]
    pub fn of<'a>(servers: impl IntoIterator<Item = &'a ConfiguredServer>) -> Self {
        let mut servers: Vec<_> = servers.into_iter().collect();
        servers.sort_by_key(|server| server.name());
        let servers = servers.into_iter().map(canonical).collect();
        Self::of_value(&json!([FORM, Value::Array(servers)]))
    }

    /// The fingerprint of a JSON value, for keys inside this crate.
    pub(crate) fn of_value(value: &Value) -> Self {
        Self(Sha256::digest(value.to_string().as_bytes()).into())
    }
}

fn canonical(server: &ConfiguredServer) -> Value {
    let transport = match &server.config().transport {
        TransportConfig::Stdio(stdio) => json!([
            "stdio",
            stdio.command,
            stdio.args,
            stdio.env.iter().collect::<Vec<_>>(),
            stdio.cwd,
            stdio.pass_env,
        ]),
        TransportConfig::Http(http) => json!(["http", http.url, http.headers.iter().collect::<Vec<_>>()]),
        TransportConfig::Unsupported(kind) => json!(["unsupported", kind]),
    };
    json!([server.name(), transport])
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = FingerprintParseError;

    fn from_str(text: &str) -> Result<Self, FingerprintParseError> {
        let mut bytes = [0; 32];
        let mut digits = text.bytes().map(|digit| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            _ => Err(FingerprintParseError),
        });
        for byte in &mut bytes {
            let high = digits.next().ok_or(FingerprintParseError)??;
            let low = digits.next().ok_or(FingerprintParseError)??;
            *byte = high << 4 | low;
        }
        if digits.next().is_some() { Err(FingerprintParseError) } else { Ok(Self(bytes)) }
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
