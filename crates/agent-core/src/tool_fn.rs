//! Tools from functions: typed arguments in, text or blocks out.
//!
//! ```
//! use haversack_agent_core::policy::ApprovalKey;
//! use haversack_agent_core::tool::{ToolError, ToolSpec};
//! use haversack_agent_core::tool_fn::tool_fn;
//! use serde::Deserialize;
//! use serde_json::json;
//!
//! #[derive(Deserialize)]
//! struct Grep {
//!     pattern: String,
//!     #[serde(default)]
//!     path: String,
//! }
//!
//! let spec = ToolSpec::new("grep", "Searches files for a text").read_only().with_schema(json!({
//!     "type": "object",
//!     "properties": {"pattern": {"type": "string"}, "path": {"type": "string"}},
//!     "required": ["pattern"],
//! }));
//! let grep = tool_fn(spec, async |args: Grep, context| {
//!     context.progress(format!("searching {}", args.path));
//!     if args.pattern.is_empty() {
//!         return Err(ToolError::invalid_arguments("the pattern is empty"));
//!     }
//!     Ok(format!("no match for {}", args.pattern))
//! })
//! .with_keys(|args: &Grep| vec![ApprovalKey::path(&args.path)]);
//! ```
//!
//! With the feature `schemars` the schema comes from the type: `ToolSpec::new("grep", "…").with_schema_of::<Grep>()`.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::policy::ApprovalKey;
use crate::tool::{ToolError, ToolOutput, ToolSpec};
use crate::tool_context::{Tool, ToolContext};

/// A tool from a function of typed arguments and the context of the call.
///
/// What the function gives back is anything that turns into a [`ToolOutput`]: a `String`, a `&str`, or an output.
/// Arguments that do not deserialise are an error result that says why; the function does not run.
pub fn tool_fn<A, F, Answer, Output>(spec: ToolSpec, function: F) -> ToolFn<A, F>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, ToolContext) -> Answer + Send + Sync + 'static,
    Answer: Future<Output = Result<Output, ToolError>> + Send + 'static,
    Output: Into<ToolOutput> + 'static,
{
    ToolFn { spec, function, keys: None, time_limit: None, arguments: PhantomData }
}

/// A [`Tool`] made by [`tool_fn`].
pub struct ToolFn<A, F> {
    spec: ToolSpec,
    function: F,
    keys: Option<KeysFn<A>>,
    time_limit: Option<Duration>,
    /// Arguments go through, none are kept.
    arguments: PhantomData<fn(A)>,
}

/// Typed arguments to keys.
type KeysFn<A> = Box<dyn Fn(&A) -> Vec<ApprovalKey> + Send + Sync>;

impl<A, F> ToolFn<A, F> {
    /// Sets what a call would touch, for rules and for the person who is asked.
    #[must_use]
    pub fn with_keys(mut self, keys: impl Fn(&A) -> Vec<ApprovalKey> + Send + Sync + 'static) -> Self {
        self.keys = Some(Box::new(keys));
        self
    }

    /// Sets how long one call may take, where that is not the limit of the run.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }
}

impl<A, F> fmt::Debug for ToolFn<A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolFn").field("spec", &self.spec).finish_non_exhaustive()
    }
}

#[async_trait]
impl<A, F, Answer, Output> Tool for ToolFn<A, F>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, ToolContext) -> Answer + Send + Sync + 'static,
    Answer: Future<Output = Result<Output, ToolError>> + Send + 'static,
    Output: Into<ToolOutput> + 'static,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn approval_keys(&self, arguments: &Value) -> Vec<ApprovalKey> {
        let Some(keys) = &self.keys else { return Vec::new() };
        // Arguments that do not fit have no keys, and never reach the function either.
        A::deserialize(arguments).map(|arguments| keys(&arguments)).unwrap_or_default()
    }

    fn time_limit(&self) -> Option<Duration> {
        self.time_limit
    }

    async fn call(&self, arguments: Value, context: ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments = A::deserialize(arguments)
            .map_err(|e| ToolError::invalid_arguments(format!("the arguments do not fit: {e}")))?;
        (self.function)(arguments, context).await.map(Into::into)
    }
}

/// The arguments of a tool that takes none. Whatever the model sends along is ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct NoArguments {}

#[cfg(feature = "schemars")]
#[cfg_attr(docsrs, doc(cfg(feature = "schemars")))]
impl ToolSpec {
    /// Sets the schema of the arguments to that of a type, as `schemars` derives it: documentation comments become
    /// descriptions. Types are written in place instead of referred to, since not every provider follows references;
    /// only a type that holds itself is.
    #[must_use]
    pub fn with_schema_of<A: schemars::JsonSchema>(self) -> Self {
        let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        });
        let mut schema = settings.into_generator().into_root_schema_for::<A>();
        // The name of a Rust type tells the model nothing.
        schema.remove("title");
        self.with_schema(schema.to_value())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt as _;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize)]
    #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
    struct Add {
        /// The one number.
        a: i64,
        #[serde(default)]
        b: i64,
        #[expect(dead_code, reason = "only its schema counts")]
        note: Option<Note>,
    }

    #[derive(Deserialize)]
    #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
    struct Note {
        #[expect(dead_code, reason = "only its schema counts")]
        text: String,
    }

    fn call(tool: &dyn Tool, arguments: Value) -> Result<ToolOutput, ToolError> {
        tool.call(arguments, ToolContext::detached("1")).now_or_never().unwrap()
    }

    #[test]
    fn a_function_is_a_tool_with_typed_arguments() {
        let add =
            tool_fn(ToolSpec::new("add", "Adds"), async |args: Add, _| Ok((args.a + args.b).to_string()))
                .with_keys(|args: &Add| vec![ApprovalKey::other(args.a.to_string())]);
        let add: Arc<dyn Tool> = Arc::new(add);
        assert_eq!(call(&add, json!({"a": 1, "b": 2})), Ok(ToolOutput::text("3")));
        assert_eq!(add.approval_keys(&json!({"a": 1})), [ApprovalKey::other("1")]);
        assert_eq!(add.approval_keys(&json!({})), []);
        let error = call(&add, json!({"b": 2})).unwrap_err();
        assert_eq!(error, ToolError::invalid_arguments("the arguments do not fit: missing field `a`"));
    }

    #[test]
    fn a_closure_may_capture_and_a_tool_may_take_nothing() {
        let greeting: Arc<str> = "hello".into();
        let hello = tool_fn(ToolSpec::new("hello", ""), move |_: NoArguments, _| {
            let greeting = Arc::clone(&greeting);
            async move { Ok(ToolOutput::text(&*greeting)) }
        });
        assert_eq!(call(&hello, json!({"stray": 1})), Ok(ToolOutput::text("hello")));
    }

    #[cfg(feature = "schemars")]
    #[test]
    fn a_derived_schema_is_plain_and_names_no_rust_type() {
        let spec = ToolSpec::new("add", "Adds").with_schema_of::<Add>();
        assert_eq!(
            *spec.input_schema,
            json!({
                "type": "object",
                "properties": {
                    "a": {"description": "The one number.", "type": "integer", "format": "int64"},
                    "b": {"type": "integer", "format": "int64", "default": 0},
                    "note": {
                        "type": ["object", "null"],
                        "properties": {"text": {"type": "string"}},
                        "required": ["text"],
                    },
                },
                "required": ["a"],
            })
        );
        let check = crate::arguments::ArgumentCheck::new(Arc::clone(&spec.input_schema));
        assert!(check.check(&json!({"a": 1, "note": {"text": "x"}})).is_ok());
        assert!(check.check(&json!({"note": {}})).is_err());
    }
}
