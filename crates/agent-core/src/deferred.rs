//! Deferred tools: names and one line each in the prompt, the schema only when the model asks for it.
//!
//! Many tools cost twice: in tokens, and in the model's attention. A deferred tool has the three levels that a skill
//! has: its line in the prompt, its schema by `tool_search`, its result by a call. What was loaded is appended to the
//! tools on offer and stays for the session, so that the cached part of a request grows and never shuffles.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::model::PromptSection;
use crate::tool::ToolSpec;

/// The tool that loads deferred tools.
pub const TOOL_SEARCH: &str = "tool_search";

/// Tools that one search loads at most.
pub const MAX_LOADED_AT_ONCE: usize = 8;

/// Lines in the prompt at most; the tools beyond are counted there, and found by a search all the same.
pub const MAX_LISTED: usize = 200;

/// Characters of a description in the prompt at most.
const LINE_CHARS: usize = 120;

/// The spec of `tool_search`.
pub(crate) fn search_spec() -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Words that describe what you need, or tool names."},
        },
        "required": ["query"],
    });
    ToolSpec::new(
        TOOL_SEARCH,
        "Loads tools that are listed by name only, so that they can be called. Loaded tools stay available.",
    )
    .with_schema(schema)
    .read_only()
}

/// The section of the prompt that lists deferred tools.
pub(crate) fn section(deferred: &[Arc<ToolSpec>]) -> Option<PromptSection> {
    if deferred.is_empty() {
        return None;
    }
    let mut text = format!("More tools can be loaded with `{TOOL_SEARCH}`:\n");
    for spec in deferred.iter().take(MAX_LISTED) {
        let line = spec.description.lines().next().unwrap_or_default().trim();
        let short: String = line.chars().take(LINE_CHARS).collect();
        let more = if short.len() < line.len() { "…" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- {}: {short}{more}", spec.name);
    }
    if deferred.len() > MAX_LISTED {
        let _ = writeln!(text, "… and {} more, found by a search.", deferred.len() - MAX_LISTED);
    }
    Some(PromptSection::new("deferred_tools", text.trim_end()))
}

/// The tools that answer a search, best first: those named in it, then those whose name or description hold most of
/// its words.
pub(crate) fn search(deferred: &[Arc<ToolSpec>], arguments: &Value) -> Vec<Arc<ToolSpec>> {
    let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let words: Vec<&str> = query
        .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-'))
        .filter(|w| !w.is_empty())
        .collect();
    let mut hits: Vec<(u32, &Arc<ToolSpec>)> = deferred
        .iter()
        .filter_map(|spec| {
            let score = score(spec, &words);
            (score > 0).then_some((score, spec))
        })
        .collect();
    // A stable sort: among equals the order of names decides.
    hits.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    hits.into_iter().take(MAX_LOADED_AT_ONCE).map(|(_, spec)| Arc::clone(spec)).collect()
}

fn score(spec: &ToolSpec, words: &[&str]) -> u32 {
    let name = spec.name.to_lowercase();
    let description = spec.description.to_lowercase();
    words
        .iter()
        .map(|word| {
            if *word == name {
                1000
            } else if word.len() < 3 {
                // Short words are everywhere.
                0
            } else if name.contains(word) {
                10
            } else {
                u32::from(description.contains(word))
            }
        })
        .sum()
}

/// What the model is told about loaded tools: the schemas are in the tools of the next request.
pub(crate) fn report(found: &[Arc<ToolSpec>], known: &[Arc<ToolSpec>]) -> String {
    if found.is_empty() && known.is_empty() {
        return "No tool fits. Try other words, or a name from the list.".to_owned();
    }
    let mut text = String::new();
    for (specs, what) in [(found, "Loaded; can be called from now on"), (known, "Was loaded before")] {
        if !specs.is_empty() {
            let _ = writeln!(text, "{what}:");
        }
        for spec in specs {
            let _ = writeln!(text, "- {}: {}", spec.name, spec.description.trim());
        }
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specs() -> Vec<Arc<ToolSpec>> {
        [
            ("mail_read", "Reads mail"),
            ("mail_send", "Sends mail to people"),
            ("map", "Shows a map of a place"),
        ]
        .map(|(name, text)| Arc::new(ToolSpec::new(name, text)))
        .to_vec()
    }

    #[test]
    fn a_search_finds_by_name_before_words_and_nothing_by_nothing() {
        let names = |query: &str| -> Vec<String> {
            search(&specs(), &json!({ "query": query })).iter().map(|s| s.name.to_string()).collect()
        };
        assert_eq!(names("mail_send"), ["mail_send"]);
        assert_eq!(names("send some mail"), ["mail_send", "mail_read"]);
        assert_eq!(names("where is this place, a map?"), ["map"]);
        assert!(names("").is_empty());
        assert!(names("quux").is_empty());
    }

    #[test]
    fn the_list_in_the_prompt_is_bounded_and_says_what_it_leaves_out() {
        let many: Vec<_> =
            (0..MAX_LISTED + 3).map(|i| Arc::new(ToolSpec::new(format!("t{i}"), "ä".repeat(500)))).collect();
        let text = section(&many).unwrap().text;
        assert_eq!(text.lines().count(), MAX_LISTED + 2);
        assert!(text.ends_with("… and 3 more, found by a search."), "{text}");
        assert_eq!(section(&[]), None);
    }
}
