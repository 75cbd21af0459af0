//! Tool mode: a pipeline of tool calls, the same every time.
//!
//! [`compile()`] makes a [`Definition`] of what a skill says, or tells everything that is wrong with it. A [`Machine`] runs
//! a definition apart from any I/O: it says what to ask, what to call and when to look again, and is told what came of
//! it. A [`Runner`] drives a machine over the tools and the approver of the agent loop.
//!
//! ```
//! use std::sync::Arc;
//! use haversack_agent_core::prelude::*;
//! use haversack_agent_core::tool_fn::tool_fn;
//! use haversack_skill_runtime::metadata::{Step, ToolSchema};
//! use haversack_skill_runtime::pipeline::{Origin, Runner, Status, ToolNode, compile};
//! use serde_json::{Value, json};
//! # use futures_util::FutureExt as _;
//!
//! // A tool of the host. It only reads, in the host's word, so that nobody has to be asked.
//! let upper = tool_fn(ToolSpec::new("upper", "Writes in capitals").read_only(), async |args: Value, _| {
//!     Ok(args["text"].as_str().unwrap_or_default().to_uppercase())
//! });
//!
//! let step = Step::new("shout", "upper").with_input(json!({"text": "{{ input.word }}"}).as_object().unwrap().clone());
//! let schema = ToolSchema::new(vec![step.with_output_as("shouted")])
//!     .with_input(json!({"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}));
//! let tools = |name: &str| (name == "upper").then(|| ToolNode::new("tools/upper"));
//! let definition = Arc::new(compile(&Origin::new("shout", "the text of the skill"), &schema, &tools).unwrap());
//! assert_eq!(definition.name, "skill_shout");
//!
//! let runner = Runner::new([Arc::new(upper) as Arc<dyn Tool>]);
//! # async fn run(runner: &Runner, definition: &Arc<haversack_skill_runtime::pipeline::Definition>) {
//! let report = runner.run(definition, json!({"word": "yo"}), &ToolContext::detached("1")).await;
//! assert_eq!(report.status, Status::Done);
//! assert_eq!(report.output, json!("YO"));
//!
//! let report = runner.run(definition, json!({}), &ToolContext::detached("2")).await;
//! assert_eq!(report.status, Status::Refused);
//! # }
//! # run(&runner, &definition).now_or_never().unwrap();
//! ```
//!
//! # What holds
//!
//! - **Nothing runs unapproved.** A call is asked about when its step wants an approval, or when the host does not vouch
//!   that the tool only reads; without an approver, and without an answer, it is denied. [`Runner::with_policy`] takes
//!   the policy of the agent that the pipelines belong to.
//! - **Nothing that was done is lost.** A pipeline that stops reports the steps before, with their outputs.
//! - **No secret comes out.** Outputs and errors pass through the [`Redactor`](crate::redact::Redactor) before they
//!   become variables or a report.
//! - **Everything is bounded**: steps, elements of a loop, tries, pauses, sizes.

mod name;
mod definition;
mod compile;
mod report;
mod machine;
mod runner;
mod store;

pub use compile::{CompileFault, Origin, ToolNode, compile};
pub use definition::{
    DEFAULT_RETRIES, DEFAULT_RETRY_DELAY, Definition, DefinitionStep, MAX_PARALLEL, MAX_RETRIES,
    MAX_RETRY_DELAY,
};
pub use machine::{Action, Call, CallNumber, MAX_ELEMENTS, MAX_OUTPUT_BYTES, Machine, Reply};
pub use name::{MAX_NAME, sanitise, tool_name};
pub use report::{Element, Failure, Report, SHOWN_UNITS, Status, StepReport, StepStatus};
pub use runner::Runner;
pub use store::{Compiled, STORE_FILE, Store};
