//! What the rehearsal model answers: a pure function of the request.
//!
//! 1. If the system prompt lists skills and a `skill` tool is offered, load the one whose line shares most words
//!    with the task.
//! 2. If the loaded text names a bundled file, read it.
//! 3. For each sentence of the task, call the other tool whose name and description share most words with it, with
//!    arguments made from the sentence (and tags from the file that was read).
//! 4. Sum up what came back.

use serde_json::{Map, Value, json};

/// What the model says and does in one answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The text, written before any call.
    pub text: String,
    /// The tool calls.
    pub calls: Vec<Call>,
}

/// One tool call of an [`Answer`].
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Unique in the conversation: counts on from the calls that are there.
    pub id: String,
    /// One of the offered names.
    pub name: String,
    /// An object.
    pub arguments: Value,
}

/// Decides the next answer; `None` when the request holds no user message.
pub fn answer(request: &Value) -> Option<Answer> {
    let scene = Scene::read(request)?;
    if scene.tools_forbidden {
        return Some(scene.summary());
    }
    let next = scene.load_skill().or_else(|| scene.read_resource()).or_else(|| scene.call_tool());
    Some(next.unwrap_or_else(|| scene.summary()))
}

/// What the rules look at.
struct Scene<'a> {
    system: String,
    task: String,
    tools: Vec<&'a Value>,
    tools_forbidden: bool,
    /// Calls since the task was given, with their results.
    past: Vec<Past>,
    /// How many calls the whole conversation holds.
    calls_before: usize,
}

struct Past {
    name: String,
    arguments: Value,
    result: String,
}

impl<'a> Scene<'a> {
    fn read(request: &'a Value) -> Option<Self> {
        let messages = request["messages"].as_array()?;
        let of_role = |role: &'static str| move |m: &&Value| m["role"] == role;
        let last_user = messages.iter().rposition(|m| m["role"] == "user")?;
        let system: Vec<String> = messages.iter().filter(of_role("system")).map(content).collect();
        let tools = request["tools"].as_array().map(|t| t.iter().map(|t| &t["function"]).collect());
        Some(Self {
            system: system.join("\n"),
            task: content(&messages[last_user]),
            tools: tools.unwrap_or_default(),
            tools_forbidden: request["tool_choice"] == "none",
            past: past(&messages[last_user..]),
            calls_before: messages.iter().map(|m| m["tool_calls"].as_array().map_or(0, Vec::len)).sum(),
        })
    }

    fn load_skill(&self) -> Option<Answer> {
        self.tool("skill")?;
        if self.past.iter().any(|p| p.name == "skill") {
            return None;
        }
        let task = words(&self.task);
        let lines = self.system.lines().filter_map(|l| l.strip_prefix("- ")?.split_once(": "));
        let scored = lines.map(|(name, text)| (shared(&task, &words(&format!("{name} {text}"))), name));
        let (score, name) = scored.rev().max_by_key(|(score, _)| *score)?;
        (score > 0).then(|| {
            self.act(
                format!("The skill `{name}` fits this task; loading it."),
                "skill",
                json!({"name": name}),
            )
        })
    }

    fn read_resource(&self) -> Option<Answer> {
        let loads: Vec<&Past> = self.past.iter().filter(|p| p.name == "skill").collect();
        let [body] = loads[..] else { return None };
        let path = linked_file(&body.result)?;
        let arguments = json!({"name": body.arguments["name"], "resource": path});
        Some(self.act(format!("The skill names `{path}`; reading it."), "skill", arguments))
    }

    fn call_tool(&self) -> Option<Answer> {
        let mut used: Vec<&str> = self.past.iter().map(|p| p.name.as_str()).collect();
        for sentence in sentences(&self.task) {
            let Some(tool) = self.fitting_tool(&sentence) else { continue };
            let name = tool["name"].as_str().unwrap_or_default();
            match used.iter().position(|u| *u == name) {
                Some(done) => _ = used.remove(done),
                None => {
                    let arguments = arguments(&tool["parameters"], &sentence, &self.tag_lines());
                    return Some(self.act(format!("Calling `{name}`."), name, arguments));
                }
            }
        }
        None
    }

    fn fitting_tool(&self, sentence: &str) -> Option<&'a Value> {
        let wanted = words(sentence);
        let others = self.tools.iter().filter(|tool| tool["name"] != "skill");
        let scored = others.map(|tool| {
            let own = tool["name"].as_str().and_then(|n| n.rsplit("__").next()).unwrap_or_default();
            let text = tool["description"].as_str().unwrap_or_default();
            (2 * shared(&wanted, &words(&own.replace('_', " "))) + shared(&wanted, &words(text)), *tool)
        });
        scored.rev().max_by_key(|(score, _)| *score).filter(|(score, _)| *score > 1).map(|(_, tool)| tool)
    }

    fn summary(&self) -> Answer {
        let results = self.past.iter().filter(|p| p.name != "skill");
        let lines: Vec<String> =
            results.map(|p| format!("- {}: {}", short(&p.name), said(&p.result))).collect();
        let text = if lines.is_empty() {
            format!("I have no tool for this task: {}", self.task.trim())
        } else {
            format!("This is what came of it:\n{}", lines.join("\n"))
        };
        Answer { text: format!("(rehearsal) {text}\n"), calls: Vec::new() }
    }

    fn act(&self, text: String, name: &str, arguments: Value) -> Answer {
        let id = format!("call_{}", self.calls_before + 1);
        let call = Call { id, name: name.to_owned(), arguments };
        Answer { text: format!("(rehearsal) {text}\n"), calls: vec![call] }
    }

    fn tool(&self, name: &str) -> Option<&'a Value> {
        self.tools.iter().copied().find(|t| t["name"] == name)
    }

    /// Lines of the read files in the form ``- `tag`: word, word``.
    fn tag_lines(&self) -> Vec<(String, Vec<String>)> {
        let files = self.past.iter().filter(|p| p.arguments.get("resource").is_some());
        let lines = files.flat_map(|p| p.result.lines());
        lines
            .filter_map(|line| {
                let (tag, rest) = line.trim().strip_prefix("- `")?.split_once("`:")?;
                Some((tag.to_owned(), words(rest)))
            })
            .collect()
    }
}

/// The text of a message, whether its content is a string or a list of parts.
fn content(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|p| p["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

fn past(messages: &[Value]) -> Vec<Past> {
    let result =
        |id: &Value| messages.iter().find(|m| m["role"] == "tool" && m["tool_call_id"] == *id).map(content);
    let calls = messages.iter().filter_map(|m| m["tool_calls"].as_array()).flatten();
    calls
        .filter_map(|call| {
            Some(Past {
                name: call["function"]["name"].as_str()?.to_owned(),
                arguments: serde_json::from_str(call["function"]["arguments"].as_str()?)
                    .unwrap_or(Value::Null),
                result: result(&call["id"])?,
            })
        })
        .collect()
}

/// Arguments for a tool: those that are required, and the others that the rules know how to fill.
fn arguments(schema: &Value, sentence: &str, tags: &[(String, Vec<String>)]) -> Value {
    let said = sentence.split_once(": ").map_or(sentence, |(_, said)| said);
    let required = |name: &str| schema["required"].as_array().is_some_and(|r| r.iter().any(|v| v == name));
    let mut filled = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let value = match name.as_str() {
            "title" => json!(title(said)),
            "path" | "file" if file(sentence).is_some() => json!(file(sentence)),
            "edits" => json!([{"oldText": quoted(sentence, 0), "newText": quoted(sentence, 1)}]),
            "old" | "old_text" | "old_string" => json!(quoted(sentence, 0)),
            "new" | "new_text" | "new_string" => json!(quoted(sentence, 1)),
            "content" if !quoted(sentence, 0).is_empty() => json!(quoted(sentence, 0)),
            "command" if !quoted(sentence, 0).is_empty() => json!(quoted(sentence, 0)),
            "text" | "body" | "content" | "note" => json!(said),
            "query" | "search" | "word" => json!(topic(sentence)),
            "tags" => json!(fitting_tags(said, tags)),
            _ if required(name) => plain_value(property, said),
            _ => continue,
        };
        filled.insert(name.clone(), value);
    }
    Value::Object(filled)
}

/// The first word with a dot or a slash in it, outside of quotes.
fn file(sentence: &str) -> Option<&str> {
    let outside = sentence.split('`').step_by(2).flat_map(str::split_whitespace);
    let words = outside.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && !"./_-".contains(c)));
    words.into_iter().find(|word| word.trim_matches('.').contains(['.', '/']))
}

/// What stands in backquotes, counted from 0, with `\n` for a new line; empty where there is no such quote.
fn quoted(sentence: &str, place: usize) -> String {
    sentence.split('`').nth(2 * place + 1).unwrap_or_default().replace("\\n", "\n")
}

fn plain_value(property: &Value, said: &str) -> Value {
    if let Some(first) = property["enum"].as_array().and_then(|e| e.first()) {
        return first.clone();
    }
    let number = said.split(|c: char| !c.is_ascii_digit()).find_map(|d| d.parse::<u32>().ok());
    match property["type"].as_str() {
        Some("integer" | "number") => json!(number.unwrap_or(1)),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!(said),
    }
}

fn fitting_tags(said: &str, tags: &[(String, Vec<String>)]) -> Vec<String> {
    let said = words(said);
    tags.iter().filter(|(_, words)| shared(&said, words) > 0).map(|(tag, _)| tag.clone()).collect()
}

/// At most eight words of the first clause, with a capital at the start.
fn title(said: &str) -> String {
    let clause = said.split(',').next().unwrap_or(said);
    let text = clause.split_whitespace().take(8).collect::<Vec<_>>().join(" ");
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// What a sentence asks for: the last word after its last "for" or "about", or its longest word.
fn topic(sentence: &str) -> String {
    let plain = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let all: Vec<String> = sentence.split_whitespace().map(plain).filter(|w| !w.is_empty()).collect();
    let marker = all.iter().rposition(|w| w == "for" || w == "about");
    let after = marker.and_then(|m| all.get(m + 1..)).and_then(|rest| rest.last());
    after.or_else(|| all.iter().rev().max_by_key(|w| w.chars().count())).cloned().unwrap_or_default()
}

fn sentences(task: &str) -> Vec<String> {
    let parts = task.split(['\n', ';']).flat_map(|line| line.split(". "));
    parts.map(|p| p.trim().trim_end_matches('.').to_owned()).filter(|p| !p.is_empty()).collect()
}

/// The first relative link of a Markdown text.
fn linked_file(text: &str) -> Option<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.into_iter().find(|t| !t.is_empty() && !t.contains("://") && !t.starts_with(['#', '/']))
}

/// A result without the tags that mark it as data.
fn said(result: &str) -> String {
    let is_tag = |line: &&str| line.starts_with("<mcp_result") || line.starts_with("</mcp_result");
    result.trim().lines().filter(|line| !is_tag(line)).collect::<Vec<_>>().join("\n  ")
}

fn short(name: &str) -> &str {
    name.rsplit("__").next().unwrap_or(name)
}

/// Words of at least three letters, in small letters, without a plural s, without the commonest ones.
fn words(text: &str) -> Vec<String> {
    const COMMON: &[&str] = &[
        "the", "and", "for", "that", "with", "then", "this", "what", "was", "were", "are", "how", "many",
        "not",
    ];
    let lower = text.to_lowercase();
    let parts =
        lower.split(|c: char| !c.is_alphanumeric()).filter(|w| w.chars().count() >= 3 && !COMMON.contains(w));
    parts.map(|w| w.strip_suffix('s').filter(|w| w.len() > 2).unwrap_or(w).to_owned()).collect()
}

/// How many different words of `a` occur in `b`.
fn shared(a: &[String], b: &[String]) -> usize {
    let mut seen: Vec<&String> = a.iter().filter(|w| b.contains(w)).collect();
    seen.sort_unstable();
    seen.dedup();
    seen.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: &str = "You help.\n\n# Skills\n\nLoad.\n\n- season-summary: Sum up a season.\n\
        - field-note: Write a field note about animals seen at the pond.\n";
    const TASK: &str = "Write down a field note: two herons at the north pond, light rain. Then search the archive for heron.";

    fn tool(name: &str, description: &str, parameters: Value) -> Value {
        json!({"type": "function", "function": {"name": name, "description": description, "parameters": parameters}})
    }

    fn request(past: &[Value]) -> Value {
        let mut messages =
            vec![json!({"role": "system", "content": SYSTEM}), json!({"role": "user", "content": TASK})];
        messages.extend_from_slice(past);
        let string = json!({"type": "string"});
        json!({"messages": messages, "tools": [
            tool("mcp__n__add_note", "Add a note: store or write down.", json!({"required": ["title", "text"],
                "properties": {"title": string, "text": string, "tags": {"type": "array"}}})),
            tool("mcp__n__search_notes", "Search the archive.", json!({"properties": {"query": string}})),
            tool("skill", "Load a skill.", json!({"properties": {"name": string}})),
        ]})
    }

    fn did(id: u32, name: &str, arguments: &Value, result: &str) -> [Value; 2] {
        let id = format!("call_{id}");
        [
            json!({"role": "assistant", "content": "", "tool_calls": [{"id": id, "type": "function",
                "function": {"name": name, "arguments": arguments.to_string()}}]}),
            json!({"role": "tool", "tool_call_id": id, "content": result}),
        ]
    }

    #[test]
    fn the_rehearsal_loads_reads_calls_and_sums_up_in_that_order() {
        let mut past = Vec::new();
        for (number, (name, arguments, result)) in [
            (
                "skill",
                json!({"name": "field-note"}),
                "Read [tags](references/tags.md) and [more](https://example.org).",
            ),
            (
                "skill",
                json!({"name": "field-note", "resource": "references/tags.md"}),
                "- `birds`: heron, duck\n- `ice`: frost\n- `weather`: rain",
            ),
            (
                "mcp__n__add_note",
                json!({"title": "Two herons at the north pond",
                "text": "two herons at the north pond, light rain", "tags": ["birds", "weather"]}),
                "stored as note 1",
            ),
            ("mcp__n__search_notes", json!({"query": "heron"}), "1 note found"),
        ]
        .into_iter()
        .enumerate()
        {
            let answer = answer(&request(&past)).unwrap();
            let [call] = &answer.calls[..] else { panic!("{answer:?}") };
            assert_eq!((call.name.as_str(), &call.arguments), (name, &arguments));
            past.extend(did(u32::try_from(number).unwrap() + 1, name, &arguments, result));
        }
        let last = answer(&request(&past)).unwrap();
        assert!(last.calls.is_empty() && last.text.contains("1 note found"), "{last:?}");
    }

    #[test]
    fn files_and_quotes_of_a_sentence_become_the_arguments_of_an_edit() {
        let string = json!({"type": "string"});
        for (properties, arguments) in [
            (
                json!({"path": string, "edits": {"type": "array"}}),
                json!({"path": "docs/a.md", "edits": [{"oldText": "b c.d", "newText": "e\nf"}]}),
            ),
            (
                json!({"path": string, "old_text": string, "new_text": string}),
                json!({"path": "docs/a.md", "old_text": "b c.d", "new_text": "e\nf"}),
            ),
            (json!({"path": string, "content": string}), json!({"path": "docs/a.md", "content": "b c.d"})),
        ] {
            let tools = [tool("edit_file", "Edit a file: replace text.", json!({"properties": properties}))];
            let task = "Edit the file docs/a.md: replace `b c.d` by `e\\nf`.";
            let request = json!({"messages": [{"role": "user", "content": task}], "tools": tools});
            assert_eq!(answer(&request).unwrap().calls[0].arguments, arguments);
        }
    }

    #[test]
    fn without_tools_or_with_tools_forbidden_it_only_speaks() {
        let mut forbidden = request(&[]);
        forbidden["tool_choice"] = json!("none");
        for request in [json!({"messages": [{"role": "user", "content": TASK}]}), forbidden] {
            assert!(answer(&request).unwrap().calls.is_empty());
        }
        assert_eq!(answer(&json!({"messages": []})), None);
    }
}
