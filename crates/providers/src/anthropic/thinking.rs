//! How thinking is asked for: the API has two forms, and which one a model takes depends on its generation.

use haversack_agent_core::model::{ModelRequest, ReasoningEffort, ToolChoice};
use serde_json::{Value, json};

use crate::anthropic::DEFAULT_MAX_TOKENS;
use crate::endpoint::Endpoint;

/// The smallest budget that the API takes, in tokens.
const MIN_BUDGET: u64 = 1024;

/// The form in which thinking is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ThinkingForm {
    /// As the model's name tells: adaptive from Claude 4.6 on, a budget before.
    #[default]
    ByName,
    /// `{type: enabled, budget_tokens}`: the effort becomes a number of tokens.
    Budget,
    /// `{type: adaptive}` with `output_config.effort`: the model decides. An effort in tokens is still a budget.
    Adaptive,
}

/// What goes into the body.
#[derive(Debug, PartialEq)]
pub(super) struct Thinking {
    pub(super) max_tokens: u64,
    pub(super) field: Option<Value>,
    pub(super) effort: Option<&'static str>,
}

impl Thinking {
    pub(super) fn is_on(&self) -> bool {
        self.field.as_ref().is_some_and(|field| field.get("type") != Some(&"disabled".into()))
    }
}

impl ThinkingForm {
    /// The fields for a request. Thinking is left off where it would be refused: with a forced tool, with too small an answer,
    /// and when the thoughts of the history cannot go back.
    pub(super) fn of(self, endpoint: &Endpoint, request: &ModelRequest, without_seals: bool) -> Thinking {
        let asked = request.options.max_output_tokens.map(u64::from).or(endpoint.info.max_output_tokens);
        let max_tokens = asked.unwrap_or(DEFAULT_MAX_TOKENS);
        let mut thinking = Thinking { max_tokens, field: None, effort: None };
        let Some(effort) = request.options.reasoning else { return thinking };
        let forced = matches!(request.tool_choice, ToolChoice::Required | ToolChoice::Tool(_));
        let adaptive = match self {
            Self::ByName => is_adaptive(endpoint.model()),
            Self::Budget => false,
            Self::Adaptive => true,
        };
        if without_seals || effort == ReasoningEffort::Off || (forced && !request.tools.is_empty()) {
            // Models that do not think unasked need not be told.
            thinking.field = adaptive.then(|| json!({"type": "disabled"}));
            return thinking;
        }
        let budget = match effort {
            ReasoningEffort::Tokens(tokens) => Some(u64::from(tokens)),
            _ if adaptive => None,
            ReasoningEffort::Low => Some(2048),
            ReasoningEffort::Medium => Some(8192),
            ReasoningEffort::High => Some(16_384),
            _ => Some(MIN_BUDGET),
        };
        match budget {
            Some(budget) => thinking.set_budget(budget.max(MIN_BUDGET), asked.is_some()),
            None => {
                thinking.field = Some(json!({"type": "adaptive"}));
                thinking.effort = Some(match effort {
                    ReasoningEffort::High => "high",
                    ReasoningEffort::Medium => "medium",
                    _ => "low",
                });
            }
        }
        thinking
    }
}

impl Thinking {
    /// The budget counts toward the answer's tokens and has to be less: a limit that the host set is kept to, our own
    /// grows by the budget.
    fn set_budget(&mut self, budget: u64, is_limited: bool) {
        let budget = if is_limited {
            budget.min(self.max_tokens.saturating_sub(1))
        } else {
            self.max_tokens = self.max_tokens.saturating_add(budget);
            budget
        };
        if budget >= MIN_BUDGET {
            self.field = Some(json!({"type": "enabled", "budget_tokens": budget}));
        }
    }
}

/// Whether a model of this name decides for itself how much to think: `claude-opus-4-6`, `claude-sonnet-5` and later.
fn is_adaptive(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let Some((_, name)) = name.split_once("claude-") else { return false };
    let mut numbers = name.split(['-', '.', '@', '_']).map(str::parse::<u32>).skip_while(Result::is_err);
    let Some(Ok(major)) = numbers.next() else { return false };
    // A number of eight digits is a date.
    let minor = numbers.next().and_then(Result::ok).filter(|minor| *minor < 100).unwrap_or(0);
    (major, minor) >= (4, 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_which_form_a_model_takes() {
        for (model, adaptive) in [
            ("claude-3-5-sonnet-20241022", false),
            ("claude-sonnet-4-20250514", false),
            ("claude-sonnet-4-5", false),
            ("claude-opus-4-6", true),
            ("anthropic/claude-opus-4.7", true),
            ("claude-sonnet-5", true),
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", false),
            ("claude-instant", false),
            ("qwen3-4b", false),
        ] {
            assert_eq!(is_adaptive(model), adaptive, "{model}");
        }
    }
}
