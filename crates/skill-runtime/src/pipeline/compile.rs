//! From what a skill says to a pipeline that can run, or to everything that is wrong with it.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::metadata::{Approval, MAX_STEPS, OnError, OutputFormat, Step, ToolSchema};
use crate::pipeline::definition::{
    DEFAULT_RETRIES, DEFAULT_RETRY_DELAY, Definition, DefinitionStep, MAX_PARALLEL, MAX_RETRIES,
    MAX_RETRY_DELAY,
};
use crate::pipeline::name::{hex_digest, tool_name};
use crate::template::{Template, variables_of};

/// Names that no output may take: the caller's input, and the element of a loop.
const RESERVED: [&str; 2] = ["input", "item"];

/// How the names of tools begin that need not be known before the pipeline runs.
const DYNAMIC: [&str; 2] = ["mcp_", "remote_"];

/// The skill that a pipeline comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// The skill's name; its tree id for skills of the capability tree.
    pub name: String,
    /// The whole text of the skill, of which the hash is made.
    pub source: String,
    /// The skill's folder, for reports.
    pub folder: String,
    /// The skill's description.
    pub description: String,
    /// The time, for the record.
    pub compiled_at: String,
}

impl Origin {
    /// A skill of this name and text.
    pub fn new(name: impl Into<String>, source: impl Into<String>) -> Self {
        Self { name: name.into(), source: source.into(), ..Self::default() }
    }

    /// Sets the folder.
    #[must_use]
    pub fn with_folder(mut self, folder: impl Into<String>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Sets the time of compilation, in the host's writing.
    #[must_use]
    pub fn with_compiled_at(mut self, time: impl Into<String>) -> Self {
        self.compiled_at = time.into();
        self
    }

    /// The SHA-256 of the skill's text, in hex digits: whether a stored definition is still that of the skill.
    pub fn hash(&self) -> String {
        hex_digest(self.source.as_bytes())
    }
}

/// What the host knows of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolNode {
    /// Its node in the capability tree, or any other name for it.
    pub id: String,
    /// What a person agrees to before it runs, unless a step says otherwise.
    pub approval: Approval,
}

impl ToolNode {
    /// A tool that needs no approval of its own.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), approval: Approval::None }
    }

    /// Sets what a person agrees to.
    #[must_use]
    pub fn with_approval(mut self, approval: Approval) -> Self {
        self.approval = approval;
        self
    }
}

/// One thing that keeps a pipeline from being compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompileFault {
    /// The skill.
    pub skill: String,
    /// The step, from 1; `None` for the pipeline as a whole.
    pub step: Option<usize>,
    /// What is wrong and what to do.
    pub message: String,
}

impl CompileFault {
    /// A fault of the pipeline as a whole.
    pub(super) fn of(origin: &Origin, message: String) -> Self {
        Self { skill: origin.name.clone(), step: None, message }
    }
}

impl fmt::Display for CompileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            Some(step) => write!(f, "skill `{}`, step {step}: {}", self.skill, self.message),
            None => write!(f, "skill `{}`: {}", self.skill, self.message),
        }
    }
}

impl std::error::Error for CompileFault {}

/// Compiles the pipeline of a skill. `tools` says what the host knows of a tool by its name; a tool that it does not
/// know is a fault, unless its name begins with `mcp_` or `remote_`.
///
/// # Errors
///
/// All faults, in the order of the steps.
pub fn compile(
    origin: &Origin,
    schema: &ToolSchema,
    tools: &dyn Fn(&str) -> Option<ToolNode>,
) -> Result<Definition, Vec<CompileFault>> {
    let mut compiler =
        Compiler { skill: &origin.name, faults: Vec::new(), known: BTreeSet::from(["input".into()]) };
    compiler.whole(schema);
    let steps: Vec<DefinitionStep> =
        (1..).zip(&schema.steps).map(|(number, step)| compiler.step(number, step, tools)).collect();
    if !compiler.faults.is_empty() {
        return Err(compiler.faults);
    }
    Ok(Definition {
        name: tool_name(&origin.name),
        skill_name: origin.name.clone(),
        skill_path: origin.folder.clone(),
        description: origin.description.clone(),
        input_schema: schema.input.clone(),
        output_schema: schema.output.clone(),
        max_approval: steps.iter().map(|step| step.approval).max().unwrap_or(Approval::None),
        steps,
        tree_node_id: format!("composed/{}", origin.name),
        compiled_at: origin.compiled_at.clone(),
        skill_hash: origin.hash(),
    })
}

struct Compiler<'o> {
    skill: &'o str,
    faults: Vec<CompileFault>,
    /// The variables that are bound so far.
    known: BTreeSet<String>,
}

impl Compiler<'_> {
    fn fault(&mut self, step: Option<usize>, message: impl Into<String>) {
        self.faults.push(CompileFault { skill: self.skill.to_owned(), step, message: message.into() });
    }

    fn whole(&mut self, schema: &ToolSchema) {
        for (name, value) in [("input", &schema.input), ("output", &schema.output)] {
            if !value.is_object() {
                self.fault(None, format!("the {name} schema is no mapping"));
            }
        }
        if schema.steps.is_empty() {
            self.fault(None, "there are no steps");
        }
        if schema.steps.len() > MAX_STEPS {
            self.fault(None, format!("{} steps are more than {MAX_STEPS}", schema.steps.len()));
        }
    }

    fn step(
        &mut self,
        number: usize,
        step: &Step,
        tools: &dyn Fn(&str) -> Option<ToolNode>,
    ) -> DefinitionStep {
        let node = tools(&step.tool);
        let dynamic = DYNAMIC.iter().any(|prefix| step.tool.starts_with(prefix));
        if step.tool.is_empty() {
            self.fault(Some(number), "it has no `tool`");
        } else if node.is_none() && !dynamic {
            self.fault(Some(number), format!("the tool `{}` is not known", step.tool));
        }
        self.references(number, step);
        let on_error = step.on_error.unwrap_or(OnError::Abort);
        let retries = self.bounded(number, "retries", step.retries, DEFAULT_RETRIES, MAX_RETRIES);
        let most = millis(MAX_RETRY_DELAY);
        let delay = step.retry_delay_ms.unwrap_or(millis(DEFAULT_RETRY_DELAY));
        if delay > most {
            self.fault(Some(number), format!("`retry_delay_ms` is more than {most}"));
        }
        let parallel = self.bounded(number, "parallel", step.parallel, 1, MAX_PARALLEL);
        if step.timeout_ms == Some(0) || step.parallel == Some(0) {
            self.fault(Some(number), "`timeout_ms` and `parallel` begin at 1");
        }
        DefinitionStep {
            action: if step.action.trim().is_empty() { step.tool.clone() } else { step.action.clone() },
            description: step.description.clone(),
            tool: step.tool.clone(),
            input_map: step.input_map.clone(),
            output_as: step.output_as.clone(),
            output_format: step.output_format.unwrap_or(OutputFormat::Text),
            approval: step.approval.or(node.as_ref().map(|node| node.approval)).unwrap_or(Approval::None),
            tool_node_id: node.map(|node| node.id).unwrap_or_default(),
            on_error,
            retries,
            retry_delay_ms: delay,
            timeout_ms: step.timeout_ms,
            loop_over: step.loop_over.clone(),
            parallel,
        }
    }

    fn bounded(&mut self, number: usize, key: &str, value: Option<u64>, default: u32, most: u32) -> u32 {
        let Some(value) = value else { return default };
        u32::try_from(value).ok().filter(|value| *value <= most).unwrap_or_else(|| {
            self.fault(Some(number), format!("`{key}` is {value}, more than {most}"));
            most
        })
    }

    /// Every variable that a step uses has to be bound by a step before it.
    fn references(&mut self, number: usize, step: &Step) {
        if let Some(list) = &step.loop_over {
            let template = Template::parse(list);
            if !template.is_reference() {
                self.fault(Some(number), "`loop_over` is no `{{ path }}`, so it cannot be a list");
            }
            let unknown = template.variables().find(|name| !self.known.contains(*name)).map(str::to_owned);
            if let Some(name) = unknown {
                self.fault(Some(number), format!("`loop_over` uses `{name}`, which no earlier step gives"));
            }
        }
        for (key, value) in &step.input_map {
            for name in variables_of(value) {
                let item = name == "item" && step.loop_over.is_some();
                if !item && !self.known.contains(&name) {
                    let shown = Value::from(name);
                    self.fault(
                        Some(number),
                        format!("`input_map.{key}` uses {shown}, which no earlier step gives"),
                    );
                }
            }
        }
        if let Some(name) = &step.output_as {
            if RESERVED.contains(&name.as_str()) {
                self.fault(Some(number), format!("`output_as: {name}` would hide what `{name}` stands for"));
            }
            if name.contains('.') {
                self.fault(
                    Some(number),
                    format!("`output_as: {name}` could not be referred to, for its dot"),
                );
            }
            self.known.insert(name.clone());
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
