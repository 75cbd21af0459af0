//! `parse --jsonl`: one file a line in, what its reading gives a line out.

use std::io::{BufRead as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use haversack_skills::diagnostic::Diagnostic;
use haversack_skills::document::{Document, ParseOptions, Reason};
use haversack_skills::node::Fields;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// The arguments of `parse`.
#[derive(Debug, Args)]
pub struct ParseArguments {
    /// Lines of `{"id", "text" | "text_b64"}` on standard input (the only form there is).
    #[arg(long, required = true)]
    jsonl: bool,
    /// Bytes that a file may have.
    #[arg(long, value_name = "BYTES", default_value_t = ParseOptions::new().max_bytes)]
    max_bytes: usize,
}

/// Answers every line of standard input.
///
/// # Errors
///
/// A line that is no JSON object with `id` and `text` or `text_b64`, or standard output that cannot be written.
pub fn run(arguments: &ParseArguments) -> Result<(), Box<dyn std::error::Error>> {
    debug_assert!(arguments.jsonl, "the command line demands it");
    let options = ParseOptions::new().with_max_bytes(arguments.max_bytes);
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let answer = answer(&line, &options).map_err(|fault| format!("line {}: {fault}", number + 1))?;
        serde_json::to_writer(&mut out, &answer)?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}

fn answer(line: &str, options: &ParseOptions) -> Result<Value, Box<dyn std::error::Error>> {
    let record: Value = serde_json::from_str(line)?;
    let id = record.get("id").ok_or("no `id`")?;
    let bytes =
        match (record.get("text").and_then(Value::as_str), record.get("text_b64").and_then(Value::as_str)) {
            (Some(text), _) => text.as_bytes().to_vec(),
            (None, Some(text)) => STANDARD.decode(text)?,
            (None, None) => return Err("neither `text` nor `text_b64`".into()),
        };
    Ok(describe(id, &Document::parse(&bytes, options)))
}

/// The answer for one file.
pub fn describe(id: &Value, document: &Document<'_>) -> Value {
    let fields = || document.fields().map(Fields::to_json);
    let has_body = !matches!(document.reason(), Some(Reason::NotUtf8 | Reason::TooLarge));
    let body = document.body().as_bytes();
    json!({
        "id": id,
        "status": if document.is_strict() { "ok" } else { "invalid" },
        "reason": document.reason().map(Reason::as_str),
        "name": document.name(),
        "description": document.description(),
        "fields": if document.is_strict() { fields() } else { None },
        "as_text": document.fields().map(as_text),
        "duplicate_keys": document.duplicate_keys(),
        "lenient": document.rung().map(|rung| json!({"rung": rung.as_str(), "fields": fields()})),
        "diagnostics": document.diagnostics().iter().map(diagnostic).collect::<Vec<_>>(),
        "body_sha256": has_body.then(|| hex(&Sha256::digest(body))),
        "body_bytes": has_body.then_some(body.len()),
    })
}

/// The fields whose plain scalars read otherwise as text.
fn as_text(fields: &Fields<'_>) -> Map<String, Value> {
    let pairs = fields.iter().map(|(key, node)| (key.to_owned(), node.to_json(), node.to_json_as_written()));
    pairs.filter(|(_, typed, text)| typed != text).map(|(key, _, text)| (key, text)).collect()
}

/// A finding as JSON.
pub fn diagnostic(found: &Diagnostic) -> Value {
    json!({
        "code": found.code.as_str(),
        "severity": found.severity.as_str(),
        "line": found.line,
        "column": found.column,
        "message": found.message,
        "fix": found.fix.as_ref().map(|edit| json!({"start": edit.start, "end": edit.end, "text": edit.text})),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
