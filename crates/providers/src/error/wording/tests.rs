use super::*;

fn of(status: u16, error_type: &str, code: &str, message: &str) -> ModelErrorKind {
    let some = |text| Some(text).filter(|t: &&str| !t.is_empty());
    let (error_type, code) = (some(error_type), some(code));
    kind(&ErrorFacts { status, error_type, code, param: None, message, ..Default::default() })
}

fn overflow(used: impl Into<Option<u64>>, limit: impl Into<Option<u64>>) -> ModelErrorKind {
    K::ContextOverflow { limit: limit.into(), used: used.into() }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn a_prompt_that_does_not_fit_is_told_apart_at_every_server() {
    for (status, error_type, code, message, kind) in [
        (
            400,
            "invalid_request_error",
            "",
            "prompt is too long: 3333404 tokens > 200000 maximum",
            overflow(3_333_404, 200_000),
        ),
        (
            400,
            "invalid_request_error",
            "",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
            overflow(190_000, 200_000),
        ),
        (
            400,
            "invalid_request_error",
            "context_length_exceeded",
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9,001 tokens.",
            overflow(9001, 8192),
        ),
        (
            400,
            "invalid_request_error",
            "context_length_exceeded",
            "Your input exceeds the context window of this model.",
            overflow(None, None),
        ),
        (
            400,
            "invalid_request_error",
            "invalid_request_error",
            "This model's maximum context length is 1048565 tokens. However, you requested 1250025 tokens (1250025 in the messages, 0 in the completion). Please reduce the length of the messages or completion.",
            overflow(1_250_025, 1_048_565),
        ),
        (
            400,
            "",
            "400",
            "This endpoint's maximum context length is 200000 tokens. However, you requested about 2500021 tokens (2500021 of text input).",
            overflow(2_500_021, 200_000),
        ),
        (
            400,
            "BadRequestError",
            "400",
            "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please reduce the length of the input messages.",
            overflow(5000, 4096),
        ),
        (
            400,
            "exceed_context_size_error",
            "400",
            "request (2009 tokens) exceeds the available context size (512 tokens), try increasing it",
            overflow(2009, 512),
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "400",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            overflow(1_200_000, 1_048_576),
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "400",
            "The input token count exceeds the maximum number of tokens allowed 1048576.",
            overflow(None, None),
        ),
        (
            400,
            "invalid_request_error",
            "",
            "Please reduce the length of the messages or completion.",
            overflow(None, None),
        ),
        (
            400,
            "api_error",
            "",
            "prompt too long; exceeded max context length by 12 tokens",
            overflow(None, None),
        ),
        (400, "", "", "the input length exceeds the context length", overflow(None, None)),
        (
            400,
            "",
            "",
            "The number of tokens to keep from the initial prompt is greater than the context length",
            overflow(None, None),
        ),
        (
            400,
            "too_many_prompt_tokens",
            "400",
            "The total length of all messages is too long.",
            overflow(None, None),
        ),
        (
            400,
            "",
            "invalid-argument",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            overflow(537_812, 131_072),
        ),
        (
            400,
            "BadRequestError",
            "",
            "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
            overflow(9000, 8192),
        ),
        (
            429,
            "tokens",
            "rate_limit_exceeded",
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000. The input or output tokens must be reduced.",
            overflow(45_000, 30_000),
        ),
        (
            413,
            "tokens",
            "rate_limit_exceeded",
            "Request too large for model `x` on tokens per minute (TPM): Limit 6,000, Requested 7,500, please reduce your message size and try again.",
            overflow(7500, 6000),
        ),
        (200, "", "model_context_window_exceeded", "", overflow(None, None)),
    ] {
        assert_eq!(of(status, error_type, code, message), kind, "{message}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn words_decide_before_the_status() {
    let invalid = || K::InvalidRequest { param: None };
    for (status, error_type, code, message, kind) in [
        // Tools
        (400, "", "", "registry.ollama.ai/library/gemma:2b does not support tools", K::ToolsUnsupported),
        (404, "", "404", "No endpoints found that support tool use. To learn more…", K::ToolsUnsupported),
        (500, "server_error", "500", "tools param requires --jinja flag", K::ToolsUnsupported),
        (
            400,
            "BadRequestError",
            "400",
            "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
            K::ToolsUnsupported,
        ),
        (
            400,
            "invalid_request_error",
            "tool_use_failed",
            "Tool choice is required, but model did not call a tool",
            K::InvalidToolCall,
        ),
        (
            200,
            "invalid_request_error",
            "tool_use_failed",
            "Tool call validation failed: …",
            K::InvalidToolCall,
        ),
        (
            500,
            "api_error",
            "",
            "error parsing tool call: raw='{\"a\"', err=unexpected end of JSON input",
            K::InvalidToolCall,
        ),
        // Money
        (
            429,
            "insufficient_quota",
            "insufficient_quota",
            "You exceeded your current quota, please check your plan and billing details.",
            K::QuotaExhausted,
        ),
        (
            400,
            "invalid_request_error",
            "",
            "Your credit balance is too low to access the Anthropic API.",
            K::QuotaExhausted,
        ),
        (402, "", "", "Insufficient Balance", K::QuotaExhausted),
        (402, "billing_error", "", "", K::QuotaExhausted),
        (
            429,
            "RESOURCE_EXHAUSTED",
            "429",
            "You exceeded your current quota, please check your plan and billing details.",
            K::RateLimited,
        ),
        (429, "RESOURCE_EXHAUSTED", "429", "Resource exhausted. Please try again later.", K::RateLimited),
        (
            429,
            "RESOURCE_EXHAUSTED",
            "429",
            "Quota exceeded: GenerateRequestsPerDayPerProjectPerModel-FreeTier",
            K::QuotaExhausted,
        ),
        // Keys
        (
            400,
            "INVALID_ARGUMENT",
            "API_KEY_INVALID",
            "API key not valid. Please pass a valid API key.",
            K::Auth,
        ),
        (
            400,
            "",
            "invalid-argument",
            "Incorrect API key provided. You can obtain an API key from https://console.x.ai.",
            K::Auth,
        ),
        (401, "authentication_error", "", "invalid x-api-key", K::Auth),
        (401, "", "401", "No cookie auth credentials found", K::Auth),
        (403, "invalid_request_error", "forbidden", "Forbidden", K::Permission),
        // Models
        (404, "not_found_error", "", "model: this-model-does-not-exist-12345", K::NotFound),
        (
            400,
            "invalid_request_error",
            "model_not_found",
            "The requested model 'x' does not exist.",
            K::NotFound,
        ),
        (400, "invalid_model", "1500", "Invalid model: definitely-not-a-model", K::NotFound),
        (400, "", "400", "openai/gpt-nonexistent-routed-model is not a valid model ID", K::NotFound),
        (400, "", "invalid-argument", "Model not found: grok-nonexistent", K::NotFound),
        (404, "", "", "model \"x\" not found, try pulling it first", K::NotFound),
        // A caller's mistake under 500
        (
            500,
            "server_error",
            "500",
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            invalid(),
        ),
        (500, "server_error", "500", "Failed to parse tools: unexpected end", invalid()),
        (500, "server_error", "500", "Cannot use both json_schema and grammar", invalid()),
        (400, "", "", "\"llama3\" does not support thinking", invalid()),
        (400, "invalid_request_error", "", "messages.0: all messages must have non-empty content", invalid()),
        (422, "", "", "", invalid()),
        // Busy
        (529, "overloaded_error", "", "Overloaded", K::Overloaded),
        (200, "overloaded_error", "", "Overloaded", K::Overloaded),
        (503, "UNAVAILABLE", "503", "The model is overloaded. Please try again later.", K::Overloaded),
        (503, "unavailable_error", "503", "Loading model", K::Overloaded),
        (503, "", "", "server busy, please try again.  maximum pending requests exceeded", K::Overloaded),
        (
            429,
            "rate_limit_error",
            "",
            "This request would exceed your organization's rate limit",
            K::RateLimited,
        ),
        (429, "", "429", "google/gemini is temporarily rate-limited upstream.", K::RateLimited),
        (429, "", "", "", K::RateLimited),
        // Withheld
        (400, "", "content_filter", "The response was filtered", K::Filtered),
        (400, "invalid_request_error", "", "Output blocked by content filtering policy", K::Filtered),
        // Nothing but a status, nothing but a type, nothing at all
        (500, "", "", "boom", K::Server),
        (502, "", "", "<html>bad gateway</html>", K::Server),
        (504, "timeout_error", "", "", K::Server),
        (200, "api_error", "", "Internal server error", K::Server),
        (200, "", "", "boom", K::Other),
    ] {
        assert_eq!(of(status, error_type, code, message), kind, "{status} {error_type} {code} {message}");
    }
}

#[test]
fn a_refused_request_names_its_field() {
    let facts = ErrorFacts {
        status: 400,
        param: Some("stop"),
        message: "Unsupported parameter",
        ..Default::default()
    };
    assert_eq!(kind(&facts), K::InvalidRequest { param: Some("stop".into()) });
}

#[test]
fn a_quota_with_a_wait_is_a_rate_limit() {
    let message = "You exceeded your current quota";
    let facts = ErrorFacts { status: 429, message, ..Default::default() };
    assert_eq!(kind(&facts), K::QuotaExhausted);
    assert_eq!(kind(&ErrorFacts { retry_after: Some(Duration::from_secs(3)), ..facts }), K::RateLimited);
}
