//! Skills in tool mode as tools of the agent loop: each pipeline a tool of its own.
//!
//! ```
//! use std::sync::Arc;
//! use haversack_agent_core::prelude::*;
//! use haversack_skill_runtime::metadata::{Step, ToolSchema};
//! use haversack_skill_runtime::pipeline::{Origin, Runner, ToolNode, compile};
//! use haversack_tool_adapter::skill_pipeline::PipelineTool;
//!
//! let schema = ToolSchema::new(vec![Step::new("look", "list_files")]);
//! let tools = |name: &str| (name == "list_files").then(|| ToolNode::new("fs/list_files"));
//! let origin = Origin::new("survey", "the skill's text").with_description("Looks around.");
//! let definition = Arc::new(compile(&origin, &schema, &tools).unwrap());
//!
//! let tool = PipelineTool::new(definition, Runner::new([]));
//! assert_eq!(&*tool.spec().name, "skill_survey");
//! assert_eq!(&*tool.spec().description, "Looks around.");
//! ```

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use haversack_agent_core::prelude::*;
use haversack_skill_runtime::pipeline::{Definition, Runner};
use serde_json::{Value, json};

/// A pipeline as a tool: its name, description and input are those of the skill, its calls those that the
/// [`Runner`] allows, and its result the report of all steps.
///
/// Nothing is claimed of its effects: the loop asks about it as about any unknown tool, and the runner asks again
/// about the calls that its steps make, by its own policy.
#[derive(Clone)]
pub struct PipelineTool {
    spec: ToolSpec,
    definition: Arc<Definition>,
    runner: Runner,
}

impl PipelineTool {
    /// A tool that runs this pipeline with this runner.
    pub fn new(definition: Arc<Definition>, runner: Runner) -> Self {
        let description = match definition.description.trim() {
            "" => format!("Runs the skill {} from its first step to its last.", definition.skill_name),
            text => text.to_owned(),
        };
        let spec = ToolSpec::new(definition.name.as_str(), description)
            .with_schema(object_schema(&definition.input_schema))
            .with_origin(format!("skill:{}", definition.skill_name));
        Self { spec, definition, runner }
    }

    /// The pipeline.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }
}

/// Pipelines take objects, also where a skill's schema does not say so.
fn object_schema(schema: &Value) -> Value {
    let mut schema = schema.clone();
    match schema.as_object_mut() {
        Some(fields) => {
            fields.insert("type".to_owned(), json!("object"));
            fields.entry("properties").or_insert_with(|| json!({}));
            schema
        }
        None => json!({"type": "object", "properties": {}}),
    }
}

impl fmt::Debug for PipelineTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PipelineTool").field("name", &self.spec.name).finish_non_exhaustive()
    }
}

#[async_trait]
impl Tool for PipelineTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(self.runner.run(&self.definition, arguments, &context).await.to_output())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use haversack_agent_core::tool_fn::{NoArguments, tool_fn};
    use haversack_skill_runtime::metadata::{Step, ToolSchema};
    use haversack_skill_runtime::pipeline::{Origin, ToolNode, compile};

    use super::*;

    #[test]
    fn a_pipeline_is_called_like_any_tool_and_a_failed_one_is_an_error() {
        let schema = ToolSchema::new(vec![Step::new("look", "list_files")]);
        let tools = |_: &str| Some(ToolNode::new("fs/list_files"));
        let definition = Arc::new(compile(&Origin::new("survey", ""), &schema, &tools).unwrap());
        let list = tool_fn(ToolSpec::new("list_files", "").read_only(), async |_: NoArguments, _| Ok("a b"));
        for (runner, fails) in
            [(Runner::new([Arc::new(list) as Arc<dyn Tool>]), false), (Runner::new([]), true)]
        {
            let tool = PipelineTool::new(Arc::clone(&definition), runner);
            assert_eq!(*tool.spec().input_schema, json!({"type": "object", "properties": {}}));
            let output = tool.call(json!({}), ToolContext::detached("1")).now_or_never().unwrap().unwrap();
            assert_eq!(output.is_error, fails);
            assert_eq!(output.structured.unwrap()["name"], "skill_survey");
        }
    }
}
