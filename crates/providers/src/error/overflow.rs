//! Recognises a prompt that does not fit, and reads the two numbers out of the sentence.

use haversack_agent_core::model::ModelErrorKind;

use crate::error::wording::ErrorFacts;

/// Sentences of servers, in lower case. `{used}` and `{limit}` are numbers, `*` is anything up to the next word
/// of the template. A template may leave numbers out; the first that matches wins, so the exact ones stand first.
const SENTENCES: &[&str] = &[
    // Anthropic
    "prompt is too long: {used} tokens > {limit} maximum",
    "exceed context limit: {used} + * > {limit}",
    "prompt is too long",
    // DeepSeek, OpenRouter, vLLM, OpenAI: one sentence in several inflections
    "maximum context length is {limit} tokens* resulted in {used} tokens",
    "maximum context length is {limit} tokens* requested about {used} tokens",
    "maximum context length is {limit} tokens* requested {used} tokens",
    "maximum context length is {limit} tokens* contains at least {used} input tokens",
    "maximum context length is {limit} tokens* contains {used} input tokens",
    "maximum context length is {limit} tokens* has {used} input tokens",
    "maximum context length is {limit}",
    "maximum context length of {limit} tokens",
    "maximum model length of {limit}",
    "maximum context length",
    // OpenAI, newer
    "exceeds the context window",
    // llama.cpp
    "request ({used} tokens) exceeds the available context size ({limit} tokens)",
    "exceeds the available context size",
    "the request exceeds the available context size",
    // Gemini
    "input token count ({used}) exceeds the maximum number of tokens allowed ({limit})",
    "input token count*exceeds the maximum",
    // Groq, Together
    "reduce the length of the messages",
    // Ollama, and its cloud
    "exceeded max context length",
    "exceeds maximum context length",
    "exceeds the context length",
    // LM Studio
    "greater than the context length",
    // SGLang, xAI, Mistral, Copilot, MiniMax, Bedrock, Perplexity
    "input ({used} tokens) is longer than the model's context length ({limit} tokens)",
    "longer than the model's context length",
    "maximum prompt length is {limit} but the request contains {used} tokens",
    "prompt contains {used} tokens* maximum context length",
    "prompt token count of {used} exceeds the limit of {limit}",
    "context window exceeds limit",
    "input is too long for requested model",
    "total length of all messages is too long",
    // A single request above the tokens of a whole minute never fits, however long one waits.
    "request too large* limit {limit}, requested {used}",
];

/// Types and codes.
const WORDS: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size_error",
    "too_many_prompt_tokens",
    "model_context_window_exceeded",
    "context_window_exceeded",
    "string_above_max_length_context",
];

/// The overflow, if the facts tell of one. `message` is the message in lower case.
pub(crate) fn read(facts: &ErrorFacts<'_>, message: &str) -> Option<ModelErrorKind> {
    if let Some(found) = SENTENCES.iter().find_map(|sentence| find(sentence, message)) {
        return Some(found.into_kind());
    }
    let word = |said: &str| WORDS.iter().any(|word| said.eq_ignore_ascii_case(word));
    [facts.error_type, facts.code].into_iter().flatten().any(word).then(|| Numbers::default().into_kind())
}

#[derive(Clone, Copy, Default)]
struct Numbers {
    used: Option<u64>,
    limit: Option<u64>,
}

impl Numbers {
    fn into_kind(self) -> ModelErrorKind {
        ModelErrorKind::ContextOverflow { limit: self.limit, used: self.used }
    }
}

/// Looks for the template anywhere in the message.
fn find(template: &str, message: &str) -> Option<Numbers> {
    let first = template.split(['{', '*']).next().unwrap_or_default();
    let mut from = 0;
    while let Some(at) = message.get(from..).and_then(|rest| rest.find(first)) {
        let begin = from + at;
        if let Some(numbers) = message.get(begin..).and_then(|rest| match_here(template, rest)) {
            return Some(numbers);
        }
        from = begin + first.len().max(1);
    }
    None
}

/// Matches the template at the start of the message.
fn match_here(mut template: &str, mut message: &str) -> Option<Numbers> {
    let mut numbers = Numbers::default();
    loop {
        let (literal, rest) = match template.find(['{', '*']) {
            Some(at) => template.split_at_checked(at)?,
            None => (template, ""),
        };
        message = message.strip_prefix(literal)?;
        template = if let Some(rest) = rest.strip_prefix("{used}") {
            (numbers.used, message) = number(message)?;
            rest
        } else if let Some(rest) = rest.strip_prefix("{limit}") {
            (numbers.limit, message) = number(message)?;
            rest
        } else if let Some(rest) = rest.strip_prefix('*') {
            let word = rest.split(['{', '*']).next().unwrap_or_default();
            message = message.get(message.find(word)?..)?;
            rest
        } else {
            return Some(numbers);
        };
    }
}

/// A number, with or without commas between thousands.
fn number(text: &str) -> Option<(Option<u64>, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(text.len());
    let (digits, _) = text.split_at_checked(end)?;
    // A comma that ends the number belongs to the sentence.
    let digits = digits.trim_end_matches(',');
    let rest = text.get(digits.len()..)?;
    let value: String = digits.chars().filter(char::is_ascii_digit).collect();
    Some((Some(value.parse().ok()?), rest))
}
