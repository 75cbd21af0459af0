//! Everything that is served, as of one look at the disk: plain data, never changed, replaced as a whole.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use haversack_agent_core::arguments::ArgumentCheck;
use haversack_agent_core::tool_context::Tool;
use haversack_skill_runtime::SkillMode;
use haversack_skill_runtime::agent::{AgentSkill, AgentSkills};
use haversack_skill_runtime::metadata::Metadata;
use haversack_skill_runtime::pipeline::{Compiled, Origin, Store};
use haversack_skill_runtime::validate::{Context, validate};
use haversack_skills::document::ParseOptions;
use haversack_skills::files::SkillFiles;
use haversack_skills::{Document, FILE_NAME, Registry, Skill};
use serde_json::{Map, Value, json};

use crate::host::Host;
use crate::name::tool_name;
use crate::served::{Action, Problem, ServedSkill, SkillTool};

/// Everything that is served.
#[derive(Debug, Default)]
pub struct Catalogue {
    skills: Vec<Arc<ServedSkill>>,
    by_tool: BTreeMap<String, Arc<ServedSkill>>,
    problems: Vec<Problem>,
}

impl Catalogue {
    /// Reads the skills of a registry. `store` keeps pipelines between looks, and those of skills that are gone are
    /// dropped from it. Reads files: not to be called where nothing may block.
    pub(crate) fn build(registry: &Registry, host: &Host, store: &mut Store) -> Self {
        let mut builder = Builder { host, store, catalogue: Self::default(), drafts: Vec::new() };
        for skill in registry.skills() {
            builder.read(skill, registry.limits().file_bytes);
        }
        for skill in registry.invalid() {
            let why = skill.problems().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            builder.problem(skill.name(), skill.file(), why);
        }
        for shadowed in registry.shadowed() {
            let by = shadowed.by.file();
            let message =
                format!("not served, for {} comes first ({})", by.display(), shadowed.reason.as_str());
            builder.problem(shadowed.skill.name(), shadowed.skill.file(), message);
        }
        builder.finish()
    }

    /// The skills, by name.
    #[must_use]
    pub fn skills(&self) -> &[Arc<ServedSkill>] {
        &self.skills
    }

    /// The skill of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<ServedSkill>> {
        let at = self.skills.binary_search_by(|skill| skill.name.as_str().cmp(name)).ok()?;
        self.skills.get(at)
    }

    /// The skill that this tool is.
    #[must_use]
    pub fn by_tool(&self, tool: &str) -> Option<&Arc<ServedSkill>> {
        self.by_tool.get(tool)
    }

    /// The skill that a person means: by name, by the name of its tool, or by its id in the capability tree.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<ServedSkill>> {
        let by_id = || self.skills.iter().find(|skill| skill.metadata.tree_id.as_deref() == Some(name));
        self.get(name).or_else(|| self.by_tool(name)).or_else(by_id)
    }

    /// The skills that have a tool, by the name of the tool.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<ServedSkill>> {
        self.by_tool.values()
    }

    /// What is not served, or not all of it, and why.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

/// A skill that was read, before it has a tool.
struct Draft {
    skill: ServedSkill,
    /// The whole text, of which a pipeline's hash is made.
    source: String,
    /// Whether it brings files along.
    has_files: bool,
    for_model: bool,
}

struct Builder<'b> {
    host: &'b Host,
    store: &'b mut Store,
    catalogue: Catalogue,
    drafts: Vec<Draft>,
}

impl Builder<'_> {
    fn problem(&mut self, skill: &str, file: PathBuf, message: impl Into<String>) {
        self.catalogue.problems.push(Problem { skill: skill.to_owned(), file, message: message.into() });
    }

    fn read(&mut self, skill: &Skill, limit: u64) {
        let files = SkillFiles::open(skill.folder());
        let read = files.map_err(|error| error.to_string()).and_then(|files| {
            let bytes = files.read(FILE_NAME, limit).map_err(|error| error.to_string())?;
            let others = files.list(2).map_err(|error| error.to_string())?;
            Ok((bytes, others.files.iter().any(|file| file.path != FILE_NAME)))
        });
        let (bytes, has_files) = match read {
            Ok(read) => read,
            Err(error) => return self.problem(skill.name(), skill.file(), error),
        };
        let source = String::from_utf8_lossy(&bytes).into_owned();
        let document = Document::parse(source.as_bytes(), &ParseOptions::new().with_max_bytes(usize::MAX));
        let Some(fields) = document.fields() else {
            return self.problem(skill.name(), skill.file(), "it has no front matter that can be read");
        };
        let reading = Metadata::read(fields);
        let faults = validate(&reading, &Context::default().with_source(&source));
        for fault in &faults {
            self.problem(skill.name(), skill.file(), fault.to_string());
        }
        let front_matter = fields.to_json();
        let named = front_matter.get("name").and_then(Value::as_str) == Some(skill.name());
        let described = front_matter.get("description").is_some_and(Value::is_string);
        let is_listed = named && described && document.is_strict() && is_extension_name(skill.name());
        let is_prompt =
            faults.is_empty() && reading.metadata.mode == SkillMode::Prompt && skill.is_for_user();
        let served = ServedSkill {
            name: skill.name().to_owned(),
            description: skill.description().to_owned(),
            folder: skill.folder().to_owned(),
            front_matter,
            body: document.body().into(),
            metadata: reading.metadata,
            tool: None,
            is_prompt,
            is_listed,
        };
        let for_model = skill.is_for_model() && faults.is_empty();
        self.drafts.push(Draft { skill: served, source, has_files, for_model });
    }

    fn finish(mut self) -> Catalogue {
        let agents = self.agents();
        let drafts = std::mem::take(&mut self.drafts);
        let mut kept = Store::new();
        for mut draft in drafts {
            let tool = draft.for_model.then(|| self.tool(&draft, &agents, &mut kept)).transpose();
            match tool {
                Ok(tool) => draft.skill.tool = tool,
                Err(problems) => {
                    let (name, file) = (draft.skill.name.clone(), draft.skill.folder.join(FILE_NAME));
                    for problem in problems {
                        self.problem(&name, file.clone(), problem);
                    }
                }
            }
            self.catalogue.skills.push(Arc::new(draft.skill));
        }
        *self.store = kept;
        self.catalogue.skills.sort_by(|a, b| a.name.cmp(&b.name));
        for skill in self.catalogue.skills.clone() {
            let Some(name) = skill.tool_name().map(str::to_owned) else { continue };
            if let Some(other) = self.catalogue.by_tool.get(&name) {
                let message =
                    format!("its tool would be called `{name}`, as that of `{}`; rename one", other.name);
                self.problem(&skill.name, skill.folder.join(FILE_NAME), message);
            } else {
                self.catalogue.by_tool.insert(name, skill);
            }
        }
        self.catalogue
    }

    /// The agents of all skills together, since one may start another.
    fn agents(&self) -> BTreeMap<String, Arc<dyn Tool>> {
        let Some(mut agents) = self.host.agents() else { return BTreeMap::new() };
        for draft in self.drafts.iter().filter(|draft| draft.for_model) {
            agents = add_agent(agents, &draft.skill);
        }
        agents.tools().into_iter().map(|tool| (tool.spec().name.to_string(), tool)).collect()
    }

    fn tool(
        &mut self,
        draft: &Draft,
        agents: &BTreeMap<String, Arc<dyn Tool>>,
        kept: &mut Store,
    ) -> Result<SkillTool, Vec<String>> {
        let skill = &draft.skill;
        let name = tool_name(&skill.name);
        let (schema, action) = match skill.metadata.mode {
            SkillMode::Prompt => (prompt_schema(draft.has_files), Action::Prompt),
            SkillMode::Tool => {
                let definition = self.pipeline(draft, kept)?;
                (object_schema(&definition.input_schema), Action::Pipeline(definition))
            }
            SkillMode::Agent => {
                let tool = agents.get(&name).cloned().ok_or_else(|| {
                    vec!["it is an agent, and there is no model to run it; give the server one".to_owned()]
                })?;
                (object_schema(&tool.spec().input_schema), Action::Agent(tool))
            }
            _ => return Err(vec!["its mode is not known".to_owned()]),
        };
        let check = ArgumentCheck::new(Value::Object(schema.clone()));
        Ok(SkillTool { name, schema: Arc::new(schema), check, action })
    }

    fn pipeline(
        &mut self,
        draft: &Draft,
        kept: &mut Store,
    ) -> Result<Arc<haversack_skill_runtime::pipeline::Definition>, Vec<String>> {
        let skill = &draft.skill;
        let Some(schema) = &skill.metadata.tool_schema else {
            return Err(vec!["it has no steps".to_owned()]);
        };
        let origin = Origin::new(skill.id(), draft.source.as_str())
            .with_description(skill.description.as_str())
            .with_folder(skill.folder.to_string_lossy());
        // What was compiled against other tools than today's does not count: a tool may be gone.
        let is_runnable = |known: &haversack_skill_runtime::pipeline::Definition| {
            known
                .steps
                .iter()
                .all(|step| step.tool_node_id.is_empty() || self.host.node(&step.tool).is_some())
        };
        let stored = haversack_skill_runtime::pipeline::tool_name(skill.id());
        if self.store.get(&stored).is_some_and(|known| !is_runnable(known)) {
            self.store.remove(&stored);
        }
        let compiled = self.store.compile(&origin, schema, &|tool| self.host.node(tool));
        let compiled =
            compiled.map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let (Compiled::New(definition) | Compiled::Unchanged(definition)) = compiled else {
            return Err(vec!["it could not be compiled".to_owned()]);
        };
        if let Some(missing) = definition
            .steps
            .iter()
            .find(|step| step.tool_node_id.is_empty() && self.host.node(&step.tool).is_none())
        {
            return Err(vec![format!(
                "step `{}` needs the tool `{}`, and no server that was given offers it",
                missing.action, missing.tool
            )]);
        }
        kept.insert(definition.as_ref().clone());
        Ok(definition)
    }
}

fn add_agent(agents: AgentSkills, skill: &ServedSkill) -> AgentSkills {
    match AgentSkill::from_metadata(skill.name.as_str(), skill.description.as_str(), &skill.metadata) {
        Some(agent) => {
            agents.with_skill(agent.with_body(&*skill.body).with_tool_name(tool_name(&skill.name)))
        }
        None => agents,
    }
}

fn prompt_schema(has_files: bool) -> Map<String, Value> {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What it is needed for; it is put before the text."},
            "page": {"type": "integer", "minimum": 1, "description": "The page of a long text, from 1."},
        },
        "additionalProperties": false,
    });
    if has_files && let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        let file =
            "A file that the skill names, by its path within the skill, in place of the skill's own text.";
        properties.insert("file".to_owned(), json!({"type": "string", "description": file}));
    }
    schema.as_object().cloned().unwrap_or_default()
}

/// Tools take objects, also where a skill's schema does not say so.
fn object_schema(schema: &Value) -> Map<String, Value> {
    let mut schema = schema.as_object().cloned().unwrap_or_default();
    schema.insert("type".to_owned(), json!("object"));
    schema.entry("properties").or_insert_with(|| json!({}));
    schema
}

/// Whether the skills extension takes a name: lower-case letters and digits, joined by single hyphens.
fn is_extension_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.split('-').all(|part| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        })
}
