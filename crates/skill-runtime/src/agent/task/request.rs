//! What a call of an agent's tool asks for.

use haversack_agent_core::tool::ToolError;
use serde_json::{Value, json};

use crate::agent::contract::{MAX_CRITERIA_CHARS, MAX_SCOPE, MAX_TASK_CHARS, ScopeEntry};

/// The arguments of a call.
pub(super) struct Request {
    pub(super) task: String,
    pub(super) timeout_ms: Option<u64>,
    pub(super) success_criteria: String,
    pub(super) scope: Vec<ScopeEntry>,
    pub(super) resume: Option<String>,
    pub(super) handoff_reason: Option<String>,
    pub(super) handoff_context: Option<Value>,
}

impl Request {
    pub(super) fn read(arguments: &Value) -> Result<Self, ToolError> {
        let text = |name| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        let task = text("task").filter(|task| !task.trim().is_empty());
        let timeout_ms = arguments.get("timeout_ms").map(|v| v.as_u64().filter(|ms| *ms > 0));
        if timeout_ms == Some(None) {
            return Err(ToolError::invalid_arguments("`timeout_ms` has to be a whole number above 0"));
        }
        let scope = arguments.get("scope").map(|scope| serde_json::from_value(scope.clone())).transpose();
        let scope: Option<Vec<ScopeEntry>> = scope.map_err(|error| {
            ToolError::invalid_arguments(format!("`scope` is no list of paths with permissions: {error}"))
        })?;
        Ok(Self {
            task: task.ok_or_else(|| ToolError::invalid_arguments("`task` is required"))?,
            timeout_ms: timeout_ms.flatten(),
            success_criteria: text("success_criteria").unwrap_or_default(),
            scope: scope.unwrap_or_default(),
            resume: text("resume"),
            handoff_reason: text("handoff_reason").filter(|reason| !reason.trim().is_empty()),
            handoff_context: arguments.get("handoff_context").cloned(),
        })
    }
}

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "task": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_TASK_CHARS,
                "description": "The whole task. The agent sees nothing else of this conversation.",
            },
            "success_criteria": {
                "type": "string",
                "maxLength": MAX_CRITERIA_CHARS,
                "description": "When the task is done.",
            },
            "scope": {
                "type": "array",
                "maxItems": MAX_SCOPE,
                "items": {
                    "type": "object",
                    "properties": {
                        "path": {"type": "string"},
                        "permissions": {"type": "array", "items": {"enum": ["read", "write", "execute"]}},
                    },
                    "required": ["path", "permissions"],
                },
                "description": "The only folders it may work in. Not more than you may yourself.",
            },
            "timeout_ms": {"type": "integer", "minimum": 1, "description": "60000 by default."},
            "resume": {
                "type": "string",
                "description": "The id of a suspended contract to go on with; `task` is then the answer to it.",
            },
            "handoff_reason": {
                "type": "string",
                "description": "Hands the task to an agent of this kind that runs already, if there is one.",
            },
            "handoff_context": {"description": "Anything that goes with a handoff."},
        },
        "required": ["task"],
        "additionalProperties": false,
    })
}
