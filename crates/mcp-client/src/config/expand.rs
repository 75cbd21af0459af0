//! `${VAR}` and `${VAR:-default}`, and the entry that comes of them.
//!
//! - A name is an ASCII letter or `_`, then letters, digits and `_`. Everything else stays as it is written: `$VAR`,
//!   `${a-b}`, `${}`, and a `${` without its end.
//! - One pass: what a variable or a default holds is not looked through again.
//! - The default counts when the variable is *not set*; one that is set and empty stays empty.
//! - Braces in a default come in pairs: `${A:-{"x":1}}` ends at the second `}`.
//! - A variable that is not set and has no default stays as written, and its name is reported. So does one whose
//!   value is not Unicode.
//!
//! Expansion comes after consent and looks only at what the host passes in.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::config::entry::{HttpConfig, StdioConfig};
use crate::environment::Environment;

/// The most bytes that one expanded text may have: what Linux takes as one argument. Without a bound, a file of a
/// megabyte could ask for a thousand copies of a large variable.
pub const MAX_EXPANDED_BYTES: usize = 128 * 1024;

/// A text with its variables put in.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expanded {
    /// The text.
    pub text: String,
    /// The names that are not set and have no default.
    pub unset: BTreeSet<String>,
}

impl fmt::Debug for Expanded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expanded").field("unset", &self.unset).finish_non_exhaustive()
    }
}

/// Why an entry could not be expanded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpandError {
    /// The text grew over [`MAX_EXPANDED_BYTES`].
    #[error("`{field}` has more than {MAX_EXPANDED_BYTES} bytes once its variables are put in")]
    TooLong {
        /// The field of the entry.
        field: String,
    },
    /// Nothing is left of the command, the working folder or the URL.
    #[error("`{field}` is blank once its variables are put in")]
    Blank {
        /// The field of the entry.
        field: String,
    },
}

/// Puts the variables of `environment` into `text`.
///
/// ```
/// use haversack_mcp_client::config::expand::expand;
/// use haversack_mcp_client::environment::Environment;
///
/// let host: Environment = [("HOST", "db"), ("EMPTY", "")].into();
/// let text = |written| expand(written, &host).unwrap().text;
///
/// assert_eq!(text("${HOST}:${PORT:-5432}"), "db:5432");
/// assert_eq!(text("${EMPTY:-unused}"), "");
/// assert_eq!(text("${MISSING} $HOST"), "${MISSING} $HOST");
/// ```
///
/// # Errors
///
/// [`ExpandError::TooLong`] when the result grows over [`MAX_EXPANDED_BYTES`].
pub fn expand(text: &str, environment: &Environment) -> Result<Expanded, ExpandError> {
    expand_field("text", text, environment)
}

fn expand_field(field: &str, text: &str, environment: &Environment) -> Result<Expanded, ExpandError> {
    let mut expanded = Expanded { text: String::with_capacity(text.len()), unset: BTreeSet::new() };
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from_dollar) = rest.split_at(start);
        expanded.text.push_str(before);
        rest = match Reference::parse(from_dollar) {
            Some((reference, after)) => {
                match (environment.text(reference.name), reference.default) {
                    (Some(value), _) => expanded.text.push_str(value),
                    (None, Some(default)) => expanded.text.push_str(default),
                    (None, None) => {
                        expanded.unset.insert(reference.name.to_owned());
                        expanded.text.push_str(reference.written);
                    }
                }
                after
            }
            None => {
                expanded.text.push_str("${");
                from_dollar.strip_prefix("${").unwrap_or_default()
            }
        };
        check_length(field, &expanded.text)?;
    }
    expanded.text.push_str(rest);
    check_length(field, &expanded.text)?;
    Ok(expanded)
}

fn check_length(field: &str, text: &str) -> Result<(), ExpandError> {
    if text.len() > MAX_EXPANDED_BYTES {
        return Err(ExpandError::TooLong { field: field.into() });
    }
    Ok(())
}

/// One `${…}`.
struct Reference<'a> {
    written: &'a str,
    name: &'a str,
    default: Option<&'a str>,
}

impl<'a> Reference<'a> {
    /// Reads the reference at the start of `text`, and gives what follows it.
    fn parse(text: &'a str) -> Option<(Self, &'a str)> {
        let inner = text.strip_prefix("${")?;
        let name_bytes =
            inner.bytes().take_while(|&byte| byte.is_ascii_alphanumeric() || byte == b'_').count();
        let (name, after_name) = inner.split_at(name_bytes);
        if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            return None;
        }
        let (default, after) = if let Some(after) = after_name.strip_prefix('}') {
            (None, after)
        } else {
            let (default, after) = split_at_closing_brace(after_name.strip_prefix(":-")?)?;
            (Some(default), after)
        };
        let written = text.get(..text.len() - after.len())?;
        Some((Self { written, name, default }, after))
    }
}

fn split_at_closing_brace(text: &str) -> Option<(&str, &str)> {
    let mut open = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => open += 1,
            b'}' if open == 0 => return Some((text.get(..at)?, text.get(at + 1..)?)),
            b'}' => open -= 1,
            _ => {}
        }
    }
    None
}

/// A stdio entry with its variables put in and its paths resolved. `Debug` shows no value of a variable, and so neither
/// the command nor the arguments.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpandedStdio {
    /// The program: a bare name, or a path that does not depend on the working folder of the host.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The variables that are set for it.
    pub env: BTreeMap<String, String>,
    /// Its working folder.
    pub cwd: PathBuf,
    /// The names that are not set and have no default.
    pub unset: BTreeSet<String>,
}

impl fmt::Debug for ExpandedStdio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpandedStdio")
            .field("args", &self.args.len())
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("unset", &self.unset)
            .finish_non_exhaustive()
    }
}

/// Expands an entry: variables from `environment`, the working folder and a relative program from `root`.
///
/// # Errors
///
/// A field that is blank or too long once its variables are put in.
pub fn expand_stdio(
    entry: &StdioConfig,
    environment: &Environment,
    root: &Path,
) -> Result<ExpandedStdio, ExpandError> {
    let mut unset = BTreeSet::new();
    let mut put_in = |field: &str, text: &str| {
        expand_field(field, text, environment).map(|expanded| {
            unset.extend(expanded.unset);
            expanded.text
        })
    };
    let command = put_in("command", &entry.command)?;
    let args = entry
        .args
        .iter()
        .enumerate()
        .map(|(at, arg)| put_in(&format!("args[{at}]"), arg))
        .collect::<Result<_, _>>()?;
    let env = entry
        .env
        .iter()
        .map(|(name, value)| Ok((name.clone(), put_in(&format!("env.{name}"), value)?)))
        .collect::<Result<_, _>>()?;
    let cwd = entry.cwd.as_ref().map(|cwd| put_in("cwd", cwd)).transpose()?;
    for (field, text) in [("command", Some(&command)), ("cwd", cwd.as_ref())] {
        if text.is_some_and(|text| text.trim().is_empty()) {
            return Err(ExpandError::Blank { field: field.into() });
        }
    }
    let cwd = cwd.map_or_else(|| root.to_path_buf(), |cwd| root.join(cwd));
    Ok(ExpandedStdio { program: anchored(command, &cwd), args, env, cwd, unset })
}

/// An entry of a server over HTTP with its variables put in. `Debug` shows no value, since each may hold a secret.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpandedHttp {
    /// The endpoint. Whether it is an address at all, and one that the host allows, is judged when connecting.
    pub url: String,
    /// Headers that each request carries.
    pub headers: BTreeMap<String, String>,
    /// The names that are not set and have no default.
    pub unset: BTreeSet<String>,
}

impl fmt::Debug for ExpandedHttp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpandedHttp")
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("unset", &self.unset)
            .finish_non_exhaustive()
    }
}

/// Expands an entry of a server over HTTP. Blanks around the URL are taken off.
///
/// # Errors
///
/// A field that is blank or too long once its variables are put in.
pub fn expand_http(entry: &HttpConfig, environment: &Environment) -> Result<ExpandedHttp, ExpandError> {
    let mut unset = BTreeSet::new();
    let mut put_in = |field: &str, text: &str| {
        expand_field(field, text, environment).map(|expanded| {
            unset.extend(expanded.unset);
            expanded.text
        })
    };
    let url = put_in("url", &entry.url)?.trim().to_owned();
    let headers = entry
        .headers
        .iter()
        .map(|(name, value)| Ok((name.clone(), put_in(&format!("headers.{name}"), value)?)))
        .collect::<Result<_, _>>()?;
    if url.is_empty() {
        return Err(ExpandError::Blank { field: "url".into() });
    }
    Ok(ExpandedHttp { url, headers, unset })
}

/// The names of the variables that a text refers to, set or not, with a default or without.
pub(crate) fn variables(text: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    let mut rest = text;
    while let Some((_, from_dollar)) = rest.find("${").map(|start| rest.split_at(start)) {
        rest = match Reference::parse(from_dollar) {
            Some((reference, after)) => {
                names.insert(reference.name);
                after
            }
            None => from_dollar.strip_prefix("${").unwrap_or_default(),
        };
    }
    names
}

/// A program that is a relative path is taken from the working folder of the server, on every system. (Left to the
/// systems, it would be taken from there on some, and from the host's folder on others.)
fn anchored(program: String, cwd: &Path) -> String {
    let is_path = program.contains('/') || (cfg!(windows) && program.contains('\\'));
    if !is_path || Path::new(&program).is_absolute() {
        return program;
    }
    // A folder whose name is no Unicode cannot be part of a `String`; the path then stays relative to it.
    cwd.join(&program).into_os_string().into_string().unwrap_or(program)
}
