//! From JSON to entries: each field checked, each fault a [`Problem`] with the place and the way out.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::Deserializer as _;
use serde_json::{Map, Value};

use crate::config::entry::{
    HttpConfig, MAX_TIMEOUT, Origin, ServerConfig, StdioConfig, ToolFilter, TransportConfig,
};
use crate::config::file::{File, FileVisitor};
use crate::config::problem::{Problem, ProblemKind};
use crate::protocol::EraChoice;
use crate::visible::short;

/// The most bytes that a configuration file may have. Real ones have a few kilobytes; the bound keeps a hostile
/// repository from filling memory.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// The most servers that one source may define; what follows is reported and left out. Nobody runs more, and each
/// is a process.
pub const MAX_SERVERS: usize = 128;

/// The most bytes that a server's name may have: it is shown, logged, and made into tool names.
const MAX_NAME_BYTES: usize = 256;

/// What one source says.
pub(crate) struct Parsed {
    pub(crate) origin: Origin,
    /// In the order of the source. `None`: the entry cannot be used, but its name is taken.
    pub(crate) entries: Vec<(String, Option<ServerConfig>)>,
    pub(crate) problems: Vec<Problem>,
}

impl Parsed {
    fn nothing(origin: &Origin) -> Self {
        Self { origin: origin.clone(), entries: Vec::new(), problems: Vec::new() }
    }

    pub(crate) fn of_one(origin: Origin, name: String, server: ServerConfig) -> Self {
        Self { origin, entries: vec![(name, Some(server))], problems: Vec::new() }
    }

    fn malformed(mut self, message: String) -> Self {
        self.problems.push(Problem::of_source(self.origin.clone(), ProblemKind::Malformed, message));
        self
    }

    /// Takes the members of an `mcpServers` object.
    fn with_servers(mut self, servers: impl IntoIterator<Item = (String, Value)>) -> Self {
        for (position, (name, value)) in servers.into_iter().enumerate() {
            if position == MAX_SERVERS {
                let message =
                    format!("more than {MAX_SERVERS} servers; this one and all after it are left out");
                self.problem(&name, ProblemKind::TooMany, message);
                break;
            }
            if self.entries.iter().any(|(earlier, _)| *earlier == name) {
                self.problem(
                    &name,
                    ProblemKind::Duplicate,
                    "defined twice in one source; the last one counts".into(),
                );
                self.entries.retain(|(earlier, _)| *earlier != name);
            }
            let server = self.entry(&name, &value);
            self.entries.push((name, server));
        }
        self
    }

    fn entry(&mut self, name: &str, value: &Value) -> Option<ServerConfig> {
        let read = check_name(name).and_then(|()| {
            let Value::Object(fields) = value else {
                return Err(format!("must be an object, not {}", kind_of(value)));
            };
            EntryReader { fields, ignored: Vec::new() }.read()
        });
        match read {
            Ok((server, ignored)) => {
                for message in ignored {
                    self.problem(name, ProblemKind::BadSetting, message);
                }
                if let Some(message) = unsupported(&server.transport)
                    && !server.disabled
                {
                    self.problem(name, ProblemKind::Unsupported, message);
                }
                Some(server)
            }
            Err(message) => {
                self.problem(name, ProblemKind::BadEntry, message);
                None
            }
        }
    }

    fn problem(&mut self, server: &str, kind: ProblemKind, message: String) {
        self.problems.push(Problem::of_server(&self.origin, server, kind, message));
    }
}

/// Reads the text of a file: `{"mcpServers": {name: entry}}`.
pub(crate) fn parse_file(origin: &Origin, text: &[u8]) -> Parsed {
    let parsed = Parsed::nothing(origin);
    if text.len() > MAX_FILE_BYTES {
        return parsed.malformed(format!("has more than {MAX_FILE_BYTES} bytes"));
    }
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    if text.iter().all(u8::is_ascii_whitespace) {
        return parsed;
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    let file = reader.deserialize_map(FileVisitor).and_then(|file| reader.end().map(|()| file));
    match file {
        // The error names line and column, at its end, and may quote what it found.
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            let reason = error.to_string();
            let reason = reason.rsplit_once(" at line ").map_or(reason.as_str(), |(reason, _)| reason);
            let reason = short(reason, 200);
            parsed.malformed(format!("is not a valid configuration: {reason} at line {line} column {column}"))
        }
        Ok(File { servers: Some(servers), .. }) => parsed.with_servers(servers),
        Ok(File { servers: None, other: Some(other) }) => {
            parsed.malformed(format!("has no `mcpServers` (found `{}`)", short(&other, 40)))
        }
        Ok(File { servers: None, other: None }) => parsed,
    }
}

/// Reads a host's map: `{name: entry}`.
pub(crate) fn parse_servers(origin: &Origin, servers: &Value) -> Parsed {
    let parsed = Parsed::nothing(origin);
    match servers {
        Value::Null => parsed,
        Value::Object(map) => {
            parsed.with_servers(map.iter().map(|(name, value)| (name.clone(), value.clone())))
        }
        other => parsed.malformed(format!("must be an object of servers, not {}", kind_of(other))),
    }
}

fn check_name(name: &str) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err("a server needs a name that is not blank".into());
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(format!("the name is longer than {MAX_NAME_BYTES} bytes"));
    }
    Ok(())
}

/// What is wrong with a server over HTTP where there is no HTTP.
pub(crate) const NO_HTTP: &str = "this host does not connect to servers over HTTP; it is left out";

fn unsupported(transport: &TransportConfig) -> Option<String> {
    match transport {
        TransportConfig::Stdio(_) => None,
        TransportConfig::Http(_) if transport.is_supported() => None,
        TransportConfig::Http(_) => Some(NO_HTTP.into()),
        TransportConfig::Unsupported(kind) => {
            Some(format!("type `{}` is not supported; it is not started", short(kind, 40)))
        }
    }
}

/// Reads the fields of one entry. What decides *what runs* must be right; what only tunes falls back to the default
/// and is noted in `ignored`.
struct EntryReader<'a> {
    fields: &'a Map<String, Value>,
    ignored: Vec<String>,
}

impl EntryReader<'_> {
    fn read(mut self) -> Result<(ServerConfig, Vec<String>), String> {
        let mut server = ServerConfig::new(self.transport()?);
        server.disabled = self.switch("disabled")?;
        server.tools = ToolFilter {
            allow: self.strings("allowTools")?,
            deny: self.strings("denyTools")?.unwrap_or_default(),
        };
        server.required = self
            .tuning("required", |value| value.as_bool().ok_or("must be true or false"))
            .unwrap_or_default();
        server.start_timeout = self.tuning("startTimeout", milliseconds);
        server.call_timeout = self.tuning("timeout", milliseconds);
        server.max_call_time = self.tuning("maxTimeout", milliseconds);
        server.era = self.tuning("era", era).unwrap_or_default();
        Ok((server, self.ignored))
    }

    fn transport(&self) -> Result<TransportConfig, String> {
        let kind = match self.fields.get("type") {
            None | Some(Value::Null) => None,
            Some(Value::String(kind)) => Some(kind.as_str()),
            Some(other) => return Err(format!("`type` must be a string, not {}", kind_of(other))),
        };
        let has = |field: &str| self.fields.get(field).is_some_and(|value| !value.is_null());
        match kind {
            Some("stdio") => self.stdio(),
            None if has("command") => self.stdio(),
            Some("http" | "streamable-http" | "streamableHttp" | "streamable_http") => self.http(),
            None if has("url") => self.http(),
            Some(other) => Ok(TransportConfig::Unsupported(other.into())),
            None => Err("`command` is missing".into()),
        }
    }

    fn stdio(&self) -> Result<TransportConfig, String> {
        let command = self.string("command")?.ok_or("`command` is missing")?;
        if command.trim().is_empty() {
            return Err("`command` must not be blank".into());
        }
        let cwd = self.string("cwd")?;
        if cwd.as_ref().is_some_and(|cwd| cwd.trim().is_empty()) {
            return Err("`cwd` must not be blank; leave it out for the project's folder".into());
        }
        let stdio = StdioConfig {
            command,
            args: self.strings("args")?.unwrap_or_default(),
            env: self.string_map("env")?,
            cwd,
            pass_env: self.strings("passEnv")?.unwrap_or_default(),
        };
        for name in stdio.env.keys().chain(&stdio.pass_env) {
            if name.is_empty() || name.contains('=') {
                return Err(format!("`{}` cannot be the name of a variable", short(name, 40)));
            }
        }
        Ok(stdio.into())
    }

    fn http(&self) -> Result<TransportConfig, String> {
        let url = self.string("url")?.ok_or("`url` is missing")?;
        if url.trim().is_empty() {
            return Err("`url` must not be blank".into());
        }
        Ok(HttpConfig { url, headers: self.string_map("headers")? }.into())
    }

    fn string(&self, field: &str) -> Result<Option<String>, String> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => text(value).map(Some).map_err(|fault| format!("`{field}` {fault}")),
        }
    }

    fn strings(&self, field: &str) -> Result<Option<Vec<String>>, String> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(items)) => items
                .iter()
                .enumerate()
                .map(|(at, item)| text(item).map_err(|fault| format!("`{field}[{at}]` {fault}")))
                .collect::<Result<_, _>>()
                .map(Some),
            Some(other) => Err(format!("`{field}` must be an array of strings, not {}", kind_of(other))),
        }
    }

    fn string_map(&self, field: &str) -> Result<BTreeMap<String, String>, String> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(BTreeMap::new()),
            Some(Value::Object(members)) => members
                .iter()
                .map(|(name, value)| {
                    if name.contains('\0') {
                        return Err(format!("`{field}` has a name with a NUL character"));
                    }
                    let value =
                        text(value).map_err(|fault| format!("`{field}.{}` {fault}", short(name, 40)))?;
                    Ok((name.clone(), value))
                })
                .collect(),
            Some(other) => Err(format!("`{field}` must be an object of strings, not {}", kind_of(other))),
        }
    }

    /// A switch that decides whether something runs: a wrong type is no guess.
    fn switch(&self, field: &str) -> Result<bool, String> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(other) => Err(format!("`{field}` must be true or false, not {}", kind_of(other))),
        }
    }

    fn tuning<T>(&mut self, field: &str, read: impl Fn(&Value) -> Result<T, &'static str>) -> Option<T> {
        let value = self.fields.get(field).filter(|value| !value.is_null())?;
        match read(value) {
            Ok(setting) => Some(setting),
            Err(fault) => {
                self.ignored.push(format!("`{field}` {fault}; the default is used"));
                None
            }
        }
    }
}

fn text(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) if text.contains('\0') => Err("must not hold a NUL character".into()),
        Value::String(text) => Ok(text.clone()),
        Value::Number(_) | Value::Bool(_) => {
            Err(format!("must be a string, not {} (put it in quotes)", kind_of(value)))
        }
        other => Err(format!("must be a string, not {}", kind_of(other))),
    }
}

fn milliseconds(value: &Value) -> Result<Duration, &'static str> {
    let limit = value
        .as_u64()
        .map(Duration::from_millis)
        .or_else(|| value.as_f64().and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok()))
        .ok_or("must be a number of milliseconds")?;
    if limit < Duration::from_millis(1) || limit > MAX_TIMEOUT {
        return Err("must be between 1 and 86,400,000 milliseconds");
    }
    Ok(limit)
}

fn era(value: &Value) -> Result<EraChoice, &'static str> {
    match value.as_str() {
        Some("auto") => Ok(EraChoice::Auto),
        Some("legacy") => Ok(EraChoice::Legacy),
        Some("modern") => Ok(EraChoice::Modern),
        _ => Err("must be \"auto\", \"legacy\" or \"modern\""),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
