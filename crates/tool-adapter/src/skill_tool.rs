//! The `skill` tool: levels 2 and 3 of disclosure, for the model to call.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use haversack_agent_core::prelude::*;
use haversack_skills::{LoadError, Reader};
use serde_json::{Value, json};

#[cfg(feature = "mcp")]
use crate::served_skills::ServedSkills;

/// The name of the tool.
pub const SKILL_TOOL: &str = "skill";

/// Hands skills to the model: a body, a bundled file, or a search over all of them. Reads only, so it never asks.
///
/// | argument | type | what it does |
/// | --- | --- | --- |
/// | `name` | string | the skill; alone, it loads the body |
/// | `resource` | string | a bundled file, relative to the skill's folder; `.` lists the files |
/// | `page` | integer from 1 | which page of a long text |
/// | `search` | string | words to find a skill by, instead of a name |
///
/// One tool belongs to one run: its [`Reader`] remembers what the model has seen. It is made only where there is a
/// skill to load ([`SkillTool::for_reader`] gives `None` otherwise), so that a host without skills sends the same
/// bytes as one without this crate.
#[derive(Clone)]
pub struct SkillTool {
    spec: ToolSpec,
    reader: Arc<Reader>,
    #[cfg(feature = "mcp")]
    served: Option<Arc<ServedSkills>>,
}

impl SkillTool {
    /// A tool over what this reader may hand out; `None` when that is nothing.
    pub fn for_reader(reader: Arc<Reader>) -> Option<Self> {
        let usable = reader.snapshot().skills().any(|skill| skill.is_for_model());
        usable.then(|| Self::new(reader))
    }

    /// A tool over what this reader may hand out and what servers offer; `None` when that is nothing. A local skill
    /// comes before a served one of its name.
    #[cfg(feature = "mcp")]
    #[cfg_attr(docsrs, doc(cfg(feature = "mcp")))]
    pub fn with_served(reader: Arc<Reader>, served: Arc<ServedSkills>) -> Option<Self> {
        if served.is_empty() {
            return Self::for_reader(reader);
        }
        Some(Self { served: Some(served), ..Self::new(reader) })
    }

    fn new(reader: Arc<Reader>) -> Self {
        Self {
            spec: ToolSpec::new(SKILL_TOOL, DESCRIPTION).with_schema(schema()).read_only(),
            reader,
            #[cfg(feature = "mcp")]
            served: None,
        }
    }

    /// What was offered and loaded so far.
    pub fn reader(&self) -> &Arc<Reader> {
        &self.reader
    }

    /// The answer of a server's skill, or of a search that looks at them too; `None` when it is none of theirs.
    #[cfg(feature = "mcp")]
    async fn served(&self, asked: &Asked<'_>) -> Option<Result<String, ToolError>> {
        let served = self.served.as_ref()?;
        if let Some(query) = asked.search {
            let found = self.reader.search(query);
            let mut lines: Vec<_> =
                (!found.hits.is_empty()).then_some(found.text.clone()).into_iter().collect();
            lines.extend(served.search(query));
            return Some(Ok(if lines.is_empty() { found.text } else { lines.join("\n") }));
        }
        let name =
            asked.name.filter(|name| self.reader.snapshot().get(name).is_none() && served.contains(name))?;
        Some(match asked.resource {
            None => served.load(name, asked.page).await,
            Some("." | "./" | "") => served.files(name),
            Some(path) => served.resource(name, path, asked.page).await,
        })
    }

    fn answer(&self, asked: &Asked<'_>) -> Result<ToolOutput, ToolError> {
        let text = match *asked {
            Asked { search: Some(query), .. } => return Ok(self.reader.search(query).text.into()),
            Asked { name: None, .. } => {
                return Err(ToolError::invalid_arguments(
                    "give the `name` of a skill, or words to `search` for",
                ));
            }
            Asked { name: Some(name), resource: Some("." | "./" | ""), .. } => {
                self.reader.files(name).map(|files| files.text)
            }
            Asked { name: Some(name), resource: Some(path), page, .. } => {
                self.reader.resource(name, path, page).map(|reply| reply.text)
            }
            Asked { name: Some(name), page, .. } => self.reader.load(name, page).map(|reply| reply.text),
        };
        text.map(ToolOutput::text).map_err(|error| tool_error(&error))
    }
}

impl fmt::Debug for SkillTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillTool").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

#[async_trait]
impl Tool for SkillTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, _context: ToolContext) -> Result<ToolOutput, ToolError> {
        let asked = Asked::read(&arguments)?;
        #[cfg(feature = "mcp")]
        if let Some(answer) = self.served(&asked).await {
            return answer.map(ToolOutput::text);
        }
        self.answer(&asked)
    }
}

/// For [`Compaction::with_protected`](haversack_agent_core::compaction::Compaction::with_protected): the bodies and
/// files of skills among the messages that go, each once and the latest page first, so that the budget goes to what
/// was loaded last. The reader forgets that they were in context, so that what does not fit can be loaded again.
pub fn protected_skills(
    reader: Arc<Reader>,
) -> impl Fn(&[Arc<Message>]) -> Vec<String> + Send + Sync + 'static {
    move |going| {
        let results = going.iter().rev().flat_map(|message| message.tool_results());
        let loaded = results.filter(|result| &*result.name == SKILL_TOOL && !result.status.is_error());
        let mut texts: Vec<String> = Vec::new();
        for text in loaded.map(|result| result.text()).filter(|text| text.starts_with("<skill")) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        reader.forget_all();
        texts
    }
}

/// The arguments of a call.
struct Asked<'a> {
    name: Option<&'a str>,
    resource: Option<&'a str>,
    page: usize,
    search: Option<&'a str>,
}

impl<'a> Asked<'a> {
    fn read(arguments: &'a Value) -> Result<Self, ToolError> {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str);
        let page = match arguments.get("page") {
            None | Some(Value::Null) => Some(1),
            Some(page) => page.as_u64().and_then(|p| usize::try_from(p).ok()).filter(|p| *p > 0),
        };
        let page =
            page.ok_or_else(|| ToolError::invalid_arguments("`page` must be a whole number from 1"))?;
        let name = text("name").map(str::trim).filter(|n| !n.is_empty());
        let search = text("search").map(str::trim).filter(|s| !s.is_empty() && name.is_none());
        Ok(Self { name, resource: text("resource"), page, search })
    }
}

const DESCRIPTION: &str = "Loads the full instructions of a skill by its name: once per conversation, and before you do \
    the work that it covers. With `resource`, reads a file that the skill refers to, only when you need it. With \
    `search` instead of a name, finds skills that are not in the list. Long texts come in pages.";

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "The name of the skill, as listed."},
            "resource": {
                "type": "string",
                "description": "A file of the skill, relative to its folder; `.` lists the files."
            },
            "page": {"type": "integer", "minimum": 1, "description": "Which page of a long text. Default 1."},
            "search": {"type": "string", "description": "Words to find a skill by, instead of a name."}
        }
    })
}

fn tool_error(error: &LoadError) -> ToolError {
    let kind = match error {
        LoadError::Io { .. } => ToolErrorKind::Failed,
        _ => ToolErrorKind::InvalidArguments,
    };
    let cause = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    ToolError::new(kind, format!("{error}{cause}"))
}

#[cfg(test)]
mod tests;
