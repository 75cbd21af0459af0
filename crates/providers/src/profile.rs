//! How the servers that speak OpenAI's Chat Completions differ from one another.
//!
//! Each field of [`Profile`] stands for a difference that broke somebody's client; the presets say which server
//! wants what, and every field can be set.

use haversack_http::without_secrets;

use crate::names::ToolIdFormat;

/// What one server wants, where servers differ. Made by [`Profile::default`] for an unknown server,
/// [`Profile::for_base_url`] by the host's name in an address, or one of the presets; then changed field by field:
///
/// ```
/// use haversack_providers::{Profile, ReasoningParam};
///
/// let mut profile = Profile::for_base_url("https://api.groq.com/openai/v1");
/// assert_eq!(&*profile.provider, "groq");
/// profile.reasoning_param = ReasoningParam::Nothing;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// The provider's name in reports, messages and seals.
    pub provider: String,
    /// The name of the output limit.
    pub max_tokens_field: MaxTokensField,
    /// The role of the system prompt.
    pub system_role: SystemRole,
    /// Whether to ask for usage in streams (`stream_options.include_usage`). Servers that refuse unknown fields refuse
    /// this one too.
    pub send_stream_usage: bool,
    /// Whether to mark tools and response formats as `strict`, where their schema can be brought into the strict
    /// subset. Off unless set: many servers do not have it.
    pub send_strict: bool,
    /// Whether `parallel_tool_calls` is sent when the request asks for it.
    pub send_parallel_tool_calls: bool,
    /// How one particular tool is asked for.
    pub tool_choice: ToolChoiceForm,
    /// How reasoning is asked for.
    pub reasoning_param: ReasoningParam,
    /// Whether reasoning is sent back.
    pub replay_reasoning: ReplayReasoning,
    /// Whether `<think>…</think>` at the start of the text is taken out of it as reasoning. For servers that do not
    /// do it themselves.
    pub think_tags: bool,
    /// Whether a tool call that a model printed as text is taken for one, if the answer has no other call, the tool is
    /// on offer, and nothing stands behind it. Off unless set: what a user or a tool result made the model quote
    /// must not become a call.
    pub text_tool_rescue: bool,
    /// The form of tool call ids.
    pub tool_id_format: ToolIdFormat,
    /// What stands for the text of an assistant message that has only tool calls.
    pub empty_content: EmptyContent,
    /// Which images can be sent.
    pub images: ImageForm,
    /// Where images go that a tool gave back.
    pub tool_images: ToolImages,
    /// Whether documents can be sent as `file` parts.
    pub documents: bool,
    /// Whether cache markers become `cache_control` on content parts (gateways in front of Anthropic models).
    pub cache_control_parts: bool,
    /// Whether consecutive user messages are merged into one.
    pub merge_user_messages: bool,
    /// Whether a short assistant message is put between tool results and a user message.
    pub bridge_after_tools: bool,
}

/// The name of the output limit. A refusal that names the other one is followed, and remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MaxTokensField {
    /// `max_tokens`, which nearly all know.
    MaxTokens,
    /// `max_completion_tokens`, which OpenAI's reasoning models demand.
    MaxCompletionTokens,
}

/// The role of the system prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SystemRole {
    /// `system`, which all know.
    System,
    /// `developer`.
    Developer,
}

/// How one particular tool is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolChoiceForm {
    /// `{"type": "function", "function": {"name": …}}`.
    Object,
    /// `"required"` with no other tool on offer, for servers that refuse or ignore the object.
    RequiredAlone,
}

/// How reasoning is asked for. Nothing is sent unless the request asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReasoningParam {
    /// Not at all: the wish is dropped.
    Nothing,
    /// `reasoning_effort: "low"`.
    Effort,
    /// `reasoning: {"effort": "low"}` (OpenRouter).
    Object,
    /// `thinking: {"type": "enabled"}` (DeepSeek, Z.ai, Moonshot).
    Thinking,
    /// `enable_thinking: true` (Qwen's own API).
    EnableThinking,
    /// `chat_template_kwargs: {"enable_thinking": true}` (vLLM, llama.cpp).
    ChatTemplate,
}

/// Whether reasoning is sent back. It only ever goes to the issuer of its seal, under the name it came by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReplayReasoning {
    /// Never.
    Never,
    /// Always.
    SameProvider,
    /// With assistant messages that have tool calls, and only those.
    WithTools,
}

/// What stands for the text of an assistant message that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EmptyContent {
    /// `""`.
    Empty,
    /// `null`.
    Null,
    /// The field is left out.
    Absent,
}

/// Which images can be sent. For others a line of text stands in their place, so that the model knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImageForm {
    /// Inline ones and addresses.
    Any,
    /// Inline ones.
    DataOnly,
    /// None.
    Nothing,
}

/// Where images go that a tool gave back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolImages {
    /// Into the tool message.
    Inline,
    /// Into a user message behind the tool messages, since most servers take only text in those.
    UserMessage,
}

impl Default for Profile {
    /// A server about which nothing is known: what all of them take.
    fn default() -> Self {
        Self {
            provider: "openai-compatible".into(),
            max_tokens_field: MaxTokensField::MaxTokens,
            system_role: SystemRole::System,
            send_stream_usage: true,
            send_strict: false,
            send_parallel_tool_calls: true,
            tool_choice: ToolChoiceForm::Object,
            reasoning_param: ReasoningParam::Effort,
            replay_reasoning: ReplayReasoning::SameProvider,
            think_tags: false,
            text_tool_rescue: false,
            tool_id_format: ToolIdFormat::Any,
            empty_content: EmptyContent::Empty,
            images: ImageForm::Any,
            tool_images: ToolImages::UserMessage,
            documents: false,
            cache_control_parts: false,
            merge_user_messages: false,
            bridge_after_tools: false,
        }
    }
}

/// The end of a host's name, or a port, and the profile of what is behind it.
type Known = (&'static str, fn() -> Profile);

/// Host names, by their ends, and what is behind them.
const HOSTS: &[Known] = &[
    ("api.openai.com", Profile::openai),
    ("openai.azure.com", Profile::azure),
    ("services.ai.azure.com", Profile::azure),
    ("openrouter.ai", Profile::openrouter),
    ("api.groq.com", Profile::groq),
    ("api.deepseek.com", Profile::deepseek),
    ("api.mistral.ai", Profile::mistral),
    ("generativelanguage.googleapis.com", Profile::gemini_compatible),
    ("api.x.ai", || Profile::named("xai")),
    ("api.z.ai", || Profile::thinking("zai")),
    ("api.moonshot.ai", || Profile::thinking("moonshot")),
    ("api.moonshot.cn", || Profile::thinking("moonshot")),
    ("aliyuncs.com", Profile::alibaba),
    ("api.cerebras.ai", || Profile::named("cerebras")),
    ("api.together.xyz", || Profile::named("together")),
    ("api.fireworks.ai", || Profile::named("fireworks")),
    ("api.perplexity.ai", || Profile::named("perplexity")),
    ("api.venice.ai", || Profile::named("venice")),
    ("router.huggingface.co", || Profile::named("huggingface")),
    ("ollama.com", Profile::ollama),
];

/// Ports on which local servers listen unless told otherwise.
const LOCAL_PORTS: &[Known] = &[
    ("11434", Profile::ollama),
    ("1234", Profile::lm_studio),
    ("8000", Profile::vllm),
    ("8080", Profile::llama_cpp),
];

impl Profile {
    /// The profile of the server behind an address, by the name of its host; for this machine by the port that a
    /// server usually has. An unknown one gets [`Profile::default`].
    pub fn for_base_url(base_url: &str) -> Self {
        let url = without_secrets(base_url);
        let authority = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
        let authority = authority.split('/').next().unwrap_or_default().to_ascii_lowercase();
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (host, port),
            _ => (authority.as_str(), ""),
        };
        let is_under =
            |name: &str| host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
        let local = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
        let by_host = HOSTS.iter().find(|(name, _)| is_under(name));
        let by_port = LOCAL_PORTS.iter().find(|(known, _)| local && *known == port);
        by_host.or(by_port).map_or_else(Self::default, |(_, make)| make())
    }

    fn named(provider: &str) -> Self {
        Self { provider: provider.into(), ..Self::default() }
    }

    /// OpenAI itself.
    pub fn openai() -> Self {
        Self {
            max_tokens_field: MaxTokensField::MaxCompletionTokens,
            empty_content: EmptyContent::Absent,
            documents: true,
            ..Self::named("openai")
        }
    }

    /// OpenAI's models at Azure.
    pub fn azure() -> Self {
        Self { provider: "azure".into(), ..Self::openai() }
    }

    /// OpenRouter.
    pub fn openrouter() -> Self {
        Self {
            reasoning_param: ReasoningParam::Object,
            cache_control_parts: true,
            documents: true,
            ..Self::named("openrouter")
        }
    }

    /// Groq.
    pub fn groq() -> Self {
        Self { max_tokens_field: MaxTokensField::MaxCompletionTokens, ..Self::named("groq") }
    }

    fn thinking(provider: &str) -> Self {
        Self { reasoning_param: ReasoningParam::Thinking, ..Self::named(provider) }
    }

    /// DeepSeek. With tools its thinking mode refuses a history without the reasoning; older models refuse one with it.
    pub fn deepseek() -> Self {
        Self {
            replay_reasoning: ReplayReasoning::WithTools,
            send_parallel_tool_calls: false,
            images: ImageForm::Nothing,
            ..Self::thinking("deepseek")
        }
    }

    /// Mistral: ids of nine letters, and no user message right behind tool results.
    pub fn mistral() -> Self {
        Self {
            reasoning_param: ReasoningParam::Nothing,
            tool_id_format: ToolIdFormat::NineAlphanumeric,
            bridge_after_tools: true,
            send_stream_usage: false,
            ..Self::named("mistral")
        }
    }

    /// Gemini's imitation of OpenAI.
    pub fn gemini_compatible() -> Self {
        Self { images: ImageForm::DataOnly, send_parallel_tool_calls: false, ..Self::named("gemini") }
    }

    /// Qwen's own API.
    pub fn alibaba() -> Self {
        Self { reasoning_param: ReasoningParam::EnableThinking, ..Self::named("alibaba") }
    }

    /// llama.cpp's own server, which ignores the object form of a tool choice.
    pub fn llama_cpp() -> Self {
        Self {
            reasoning_param: ReasoningParam::ChatTemplate,
            tool_choice: ToolChoiceForm::RequiredAlone,
            ..Self::named("llama.cpp")
        }
    }

    /// LM Studio, which refuses the object form of a tool choice.
    pub fn lm_studio() -> Self {
        Self {
            tool_choice: ToolChoiceForm::RequiredAlone,
            images: ImageForm::DataOnly,
            reasoning_param: ReasoningParam::Nothing,
            ..Self::named("lm-studio")
        }
    }

    /// vLLM.
    pub fn vllm() -> Self {
        Self { reasoning_param: ReasoningParam::ChatTemplate, ..Self::named("vllm") }
    }

    /// Ollama's imitation of OpenAI, which drops in silence what it does not know. Its own API can more: see `Ollama`.
    pub fn ollama() -> Self {
        Self { images: ImageForm::DataOnly, send_parallel_tool_calls: false, ..Self::named("ollama") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_found_by_host_or_local_port() {
        for (url, provider) in [
            ("https://api.openai.com/v1", "openai"),
            ("https://API.OpenAI.com:443/v1/", "openai"),
            ("https://me.openai.azure.com/openai/v1", "azure"),
            ("https://evilapi.openai.com.example.org/v1", "openai-compatible"),
            ("https://notopenrouter.ai/v1", "openai-compatible"),
            ("https://openrouter.ai/api/v1", "openrouter"),
            ("https://api.deepseek.com", "deepseek"),
            ("http://localhost:11434/v1", "ollama"),
            ("http://127.0.0.1:8080/v1", "llama.cpp"),
            ("http://[::1]:1234/v1", "lm-studio"),
            ("http://example.org:8080/v1", "openai-compatible"),
            ("", "openai-compatible"),
            ("::::", "openai-compatible"),
        ] {
            assert_eq!(Profile::for_base_url(url).provider, provider, "{url}");
        }
    }
}
