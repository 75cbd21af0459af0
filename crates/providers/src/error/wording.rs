//! Which kind of failure an error body means, by the words that servers use.
//!
//! There is no common vocabulary: the same status, type and code mean different things at different servers, a
//! few put a caller's mistake under 500, and the one failure that an agent can mend by itself, a prompt that does
//! not fit, has no code of its own at most of them. So the words are read first and the status last. The tables
//! below are the whole knowledge; the order of [`RULES`] is the order of judgement, first match wins.

use std::time::Duration;

use haversack_agent_core::model::ModelErrorKind;

use crate::error::overflow;

/// What a server told about a failed call. All text is compared without regard to case.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ErrorFacts<'a> {
    /// The HTTP status; 200 for an error inside a stream.
    pub(crate) status: u16,
    /// `error.type`, or Google's `error.status`.
    pub(crate) error_type: Option<&'a str>,
    /// `error.code` as text, or the `reason` of Google's `ErrorInfo`.
    pub(crate) code: Option<&'a str>,
    /// The field at fault.
    pub(crate) param: Option<&'a str>,
    /// The message, and behind it what an upstream provider said.
    pub(crate) message: &'a str,
    /// The names of the quotas that were used up, where Google gives them.
    pub(crate) quotas: &'a str,
    /// The wait that the server asks for.
    pub(crate) retry_after: Option<Duration>,
}

/// What a rule looks at.
enum Test {
    /// The type or the code is one of these words.
    Word(&'static [&'static str]),
    /// The message holds one of these texts.
    Says(&'static [&'static str]),
    /// The message holds all of these texts.
    SaysAll(&'static [&'static str]),
    /// The HTTP status is one of these.
    Status(&'static [u16]),
}

use ModelErrorKind as K;
use Test::{Says, SaysAll, Status, Word};

/// Judgement in order. Context overflow stands before all of them, in [`overflow`], since it carries numbers.
const RULES: &[(Test, ModelErrorKind)] = &[
    // The model wrote a call that its server could not read (Groq, Ollama, llama.cpp, vLLM, Gemini).
    (Word(&["tool_use_failed", "malformed_function_call", "output_parse_failed"]), K::InvalidToolCall),
    (
        Says(&[
            "tool call validation failed",
            "failed to call a function",
            "error parsing tool call",
            "failed to parse tool call",
            "failed to parse function call",
            "malformed function call",
            "did not call a tool",
        ]),
        K::InvalidToolCall,
    ),
    // The model takes no tools (Ollama, OpenRouter, llama.cpp, vLLM, Gemini, LM Studio).
    (
        Says(&[
            "does not support tools",
            "do not support tools",
            "does not support tool use",
            "does not support tool call",
            "does not support function calling",
            "no endpoints found that support tool use",
            "no endpoints found that support the provided 'tool_choice'",
            "tools param requires",
            "tool choice requires --enable-auto-tool-choice",
            "function calling is not enabled",
            "function calling is not supported",
            "tool use is not supported",
            "tool calling is not supported",
            "tools are not supported",
            "tools is not supported",
            "`tools` is not supported",
            "'tools' is not supported",
        ]),
        K::ToolsUnsupported,
    ),
    // The account is empty: waiting does not help, whatever the status says.
    (
        Word(&[
            "insufficient_quota",
            "billing_error",
            "billing_hard_limit_reached",
            "billing_not_active",
            "insufficient_balance",
            "insufficient_credits",
            "access_terminated_error",
            "quota_exhausted",
        ]),
        K::QuotaExhausted,
    ),
    (
        Says(&[
            "credit balance is too low",
            "insufficient balance",
            "insufficient credits",
            "requires more credits",
            "reached your specified api usage limits",
            "used all available credits",
            "reached its monthly spending limit",
            "billing hard limit",
            "spend limit",
            "models-per-day",
            "perday",
        ]),
        K::QuotaExhausted,
    ),
    // The key (Google and xAI answer 400 to a wrong one).
    (
        Word(&[
            "authentication_error",
            "invalid_api_key",
            "api_key_invalid",
            "api_key_expired",
            "unauthenticated",
            "invalid_authentication_error",
        ]),
        K::Auth,
    ),
    (
        Says(&[
            "incorrect api key",
            "invalid api key",
            "api key not valid",
            "api key expired",
            "invalid x-api-key",
            "no cookie auth credentials",
            "missing authentication header",
            "invalid subscription key",
        ]),
        K::Auth,
    ),
    // The provider withheld the answer or refused the prompt for what it says.
    (
        Word(&[
            "content_filter",
            "content_policy_violation",
            "responsibleaipolicyviolation",
            "data_inspection_failed",
            "prohibited_content",
            "cyber_policy_violation",
        ]),
        K::Filtered,
    ),
    (
        Says(&[
            "content management policy",
            "content filtering policy",
            "blocked by content filter",
            "violates our usage policies",
            "violating our usage policy",
            "flagged by moderation",
            "input was flagged",
        ]),
        K::Filtered,
    ),
    // The model or the address. Some answer 400.
    (
        Word(&["model_not_found", "not_found_error", "not_found", "invalid_model", "deploymentnotfound"]),
        K::NotFound,
    ),
    (SaysAll(&["model", "does not exist"]), K::NotFound),
    (SaysAll(&["model", "not found"]), K::NotFound),
    (Says(&["is not a valid model", "invalid model:", "unknown model"]), K::NotFound),
    // The caller's mistakes that llama.cpp and its relatives report as 500.
    (
        Says(&[
            "image input is not supported",
            "audio input is not supported",
            "failed to parse tools",
            "failed to parse messages",
            "cannot use both json_schema and grammar",
            "failed to parse grammar",
            "json schema conversion failed",
            "does not support thinking",
            "unable to generate parser for this template",
        ]),
        K::InvalidRequest { param: None },
    ),
    // Busy, and too many requests. 529 is Anthropic's, 498 Groq's.
    (
        Word(&["overloaded_error", "unavailable", "server_overloaded", "engine_overloaded_error"]),
        K::Overloaded,
    ),
    (
        Says(&["overloaded", "server busy", "server is busy", "loading model", "no capacity", "at capacity"]),
        K::Overloaded,
    ),
    (
        Word(&["rate_limit_error", "rate_limit_exceeded", "resource_exhausted", "rate_limited"]),
        K::RateLimited,
    ),
    (Says(&["rate limit", "rate-limited", "too many requests"]), K::RateLimited),
    (Word(&["permission_error", "permission_denied", "forbidden"]), K::Permission),
    // No words that are known: the status.
    (Status(&[401]), K::Auth),
    (Status(&[402]), K::QuotaExhausted),
    (Status(&[403]), K::Permission),
    (Status(&[404, 410]), K::NotFound),
    (Status(&[408, 409, 425]), K::Server),
    (Status(&[429]), K::RateLimited),
    (Status(&[498, 503, 529]), K::Overloaded),
    // No status that is known, as inside a stream: the type.
    (Word(&["timeout_error", "deadline_exceeded"]), K::Server),
    (Word(&["api_error", "server_error", "internal_error", "internal", "internal_server_error"]), K::Server),
    (
        Word(&["invalid_request_error", "invalid_argument", "invalid-argument", "failed_precondition"]),
        K::InvalidRequest { param: None },
    ),
];

/// The kind of failure that these facts mean.
pub(crate) fn kind(facts: &ErrorFacts<'_>) -> ModelErrorKind {
    let message = facts.message.to_ascii_lowercase();
    if let Some(overflow) = overflow::read(facts, &message) {
        return overflow;
    }
    // A quota of a day is back tomorrow, and one of nothing never: no run waits for either, although Google calls both
    // a rate and names a wait of seconds.
    let quotas = facts.quotas.to_ascii_lowercase();
    let has_none = message.contains("quota exceeded for metric") && message.contains("limit: 0");
    if quotas.contains("perday") || has_none {
        return K::QuotaExhausted;
    }
    // Google and OpenAI share the sentence "exceeded your current quota"; Google means a minute by it and says
    // how long to wait, OpenAI means the account.
    if facts.retry_after.is_none()
        && facts.error_type.is_none_or(|t| !t.eq_ignore_ascii_case("resource_exhausted"))
        && message.contains("exceeded your current quota")
    {
        return K::QuotaExhausted;
    }
    let rule = RULES.iter().find(|(test, _)| test.matches(facts, &message)).map(|(_, kind)| kind.clone());
    match rule {
        Some(K::InvalidRequest { .. }) => K::InvalidRequest { param: facts.param.map(str::to_owned) },
        Some(kind) => kind,
        None if facts.status >= 500 => K::Server,
        None if facts.status >= 400 => K::InvalidRequest { param: facts.param.map(str::to_owned) },
        None => K::Other,
    }
}

impl Test {
    fn matches(&self, facts: &ErrorFacts<'_>, message: &str) -> bool {
        match self {
            Word(words) => [facts.error_type, facts.code]
                .into_iter()
                .flatten()
                .any(|said| words.iter().any(|word| said.eq_ignore_ascii_case(word))),
            Says(texts) => texts.iter().any(|text| message.contains(text)),
            SaysAll(texts) => texts.iter().all(|text| message.contains(text)),
            Status(codes) => codes.contains(&facts.status),
        }
    }
}

#[cfg(test)]
mod tests;
