//! `tool_schema`: the pipeline of a tool-mode skill, as its author writes it.

use haversack_skills::node::Node;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::metadata::finding::FindingCode;
use crate::metadata::read::{Field, Mapping, Notes};
use crate::metadata::rules::Group;
use crate::metadata::words::{Approval, OnError, OutputFormat};

/// Steps of a pipeline at most. Ten times the longest one that people write; what needs more is a program.
pub const MAX_STEPS: usize = 100;

/// The pipeline of a tool-mode skill.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolSchema {
    /// JSON Schema of the input; an empty schema without one.
    pub input: Value,
    /// JSON Schema of the output; an empty schema without one.
    pub output: Value,
    /// The steps, in order; at least one.
    pub steps: Vec<Step>,
}

/// One step of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Step {
    /// The name of the step in reports.
    pub action: String,
    /// What it does, for people.
    pub description: String,
    /// The tool to call.
    pub tool: String,
    /// The arguments: any values, with templates in their texts.
    pub input_map: Map<String, Value>,
    /// The variable that receives the output.
    pub output_as: Option<String>,
    /// What the text of the tool is.
    pub output_format: Option<OutputFormat>,
    /// What a person agrees to; `None` is what the tool's node says.
    pub approval: Option<Approval>,
    /// What becomes of the pipeline when the step fails; `None` is to abort.
    pub on_error: Option<OnError>,
    /// Further tries under [`OnError::Retry`].
    pub retries: Option<u64>,
    /// Pause before the second try in milliseconds.
    pub retry_delay_ms: Option<u64>,
    /// How long one call may take in milliseconds.
    pub timeout_ms: Option<u64>,
    /// A template that gives the list to loop over.
    pub loop_over: Option<String>,
    /// How many elements of a loop run at a time.
    pub parallel: Option<u64>,
}

impl Step {
    /// A step that calls `tool` without arguments.
    pub fn new(action: impl Into<String>, tool: impl Into<String>) -> Self {
        Self { action: action.into(), tool: tool.into(), ..Self::default() }
    }

    /// Sets the arguments.
    #[must_use]
    pub fn with_input(mut self, input_map: Map<String, Value>) -> Self {
        self.input_map = input_map;
        self
    }

    /// Sets the variable that receives the output.
    #[must_use]
    pub fn with_output_as(mut self, name: impl Into<String>) -> Self {
        self.output_as = Some(name.into());
        self
    }

    /// Sets what becomes of the pipeline when the step fails.
    #[must_use]
    pub fn with_on_error(mut self, on_error: OnError) -> Self {
        self.on_error = Some(on_error);
        self
    }

    /// Sets the list to loop over.
    #[must_use]
    pub fn with_loop(mut self, list: impl Into<String>) -> Self {
        self.loop_over = Some(list.into());
        self
    }

    fn read(map: &Mapping<'_, '_>, notes: &mut Notes) -> Self {
        Self {
            action: map.text("action", notes),
            description: map.text("description", notes),
            tool: map.text("tool", notes).trim().to_owned(),
            input_map: map.field("input_map").map(|field| input_map(&field, notes)).unwrap_or_default(),
            output_as: map.some_text("output_as", notes).map(|name| name.trim().to_owned()),
            output_format: map.field("output_format").map(|field| field.word(notes)),
            approval: map
                .field("approval")
                .filter(|f| !f.is_blank())
                .map(|field| field.strictly().word(notes)),
            on_error: map.field("on_error").filter(|f| !f.is_blank()).map(|field| field.word(notes)),
            retries: map.field("retries").and_then(|field| field.whole(notes)),
            retry_delay_ms: map.field("retry_delay_ms").and_then(|field| field.whole(notes)),
            timeout_ms: map.field("timeout_ms").and_then(|field| field.whole(notes)),
            loop_over: map.field("loop_over").and_then(|field| loop_over(&field, notes)),
            parallel: map.field("parallel").and_then(|field| field.whole(notes)),
        }
    }
}

impl ToolSchema {
    /// A pipeline of these steps that takes and gives anything.
    pub fn new(steps: Vec<Step>) -> Self {
        Self { input: json!({}), output: json!({}), steps }
    }

    /// Sets the schema of the input.
    #[must_use]
    pub fn with_input(mut self, schema: Value) -> Self {
        self.input = schema;
        self
    }

    /// The pipeline, if it has a step that can be one.
    pub(crate) fn read(field: &Field<'_, '_>, notes: &mut Notes) -> Option<Self> {
        let map = field.mapping(Group::ToolSchema, notes)?;
        let mut schema = |key: &str| {
            let field = map.field(key).filter(|field| !field.is_blank())?;
            let value = field.json();
            if !value.is_object() {
                field.strictly().note(
                    notes,
                    FindingCode::WrongType,
                    "expected a JSON Schema, which is a mapping",
                );
                return None;
            }
            Some(value)
        };
        let (input, output) = (schema("input"), schema("output"));
        let steps = map.field("steps").map(|field| field.mappings(Group::Step, MAX_STEPS, notes));
        let steps: Vec<Step> = steps.unwrap_or_default().iter().map(|step| Step::read(step, notes)).collect();
        let empty = || json!({});
        let (input, output) = (input.unwrap_or_else(empty), output.unwrap_or_else(empty));
        (!steps.is_empty()).then_some(Self { input, output, steps })
    }
}

/// Arguments as values; what looks like a template without quotes is an error, for it would be lost otherwise.
fn input_map(field: &Field<'_, '_>, notes: &mut Notes) -> Map<String, Value> {
    let Some(map) = field.free_mapping(notes) else { return Map::new() };
    let mut arguments = Map::new();
    for (key, node) in map.iter() {
        if let Some(inner) = unquoted_template(node) {
            unquoted(&Field::new(format!("{}.{key}", map.path()), node, true), &inner, notes);
        }
        arguments.insert(key.to_owned(), node.to_json());
    }
    arguments
}

fn loop_over(field: &Field<'_, '_>, notes: &mut Notes) -> Option<String> {
    if let Some(inner) = unquoted_template(field.node()) {
        unquoted(field, &inner, notes);
        return None;
    }
    field.text(notes).filter(|text| !text.trim().is_empty())
}

fn unquoted(field: &Field<'_, '_>, inner: &str, notes: &mut Notes) {
    let message = format!("a template needs quotes, or YAML reads a mapping: write '{{{{ {inner} }}}}'");
    let field = Field::new(field.path().to_owned(), field.node(), true);
    field.note(notes, FindingCode::UnquotedTemplate, message);
}

/// The path of a `{{ path }}` that YAML has read as a mapping in a mapping, anywhere in a value.
fn unquoted_template(node: &Node<'_>) -> Option<String> {
    if let Some(items) = node.as_list() {
        return items.iter().find_map(unquoted_template);
    }
    let map = node.as_map()?;
    if let (1, Some((key, value))) = (map.len(), map.iter().next())
        && value.is_null()
        && let Some(path) = key.trim().strip_prefix('{').and_then(|key| key.strip_suffix('}'))
    {
        return Some(path.trim().to_owned());
    }
    map.iter().find_map(|(_, value)| unquoted_template(value))
}
