//! Why a model stopped, from the words of every server that was ever seen.

use haversack_agent_core::usage::StopReason;

/// The reason behind a provider's word. An answer with tool calls that simply ended is a tool turn, whatever word was
/// used for it; an empty word is none.
pub(crate) fn reason(raw: Option<&str>, has_calls: bool) -> StopReason {
    match raw.unwrap_or_default() {
        "length" | "max_tokens" | "MAX_TOKENS" | "max_output_tokens" => StopReason::MaxTokens,
        "content_filter" | "refusal" | "SAFETY" | "RECITATION" | "PROHIBITED_CONTENT" => StopReason::Filtered,
        "stop_sequence" => StopReason::StopSequence,
        "pause_turn" => StopReason::Pause,
        "model_context_window_exceeded" => StopReason::ContextWindow,
        "error" => StopReason::Other("error".into()),
        _ if has_calls => StopReason::ToolUse,
        // A tool turn without a call: the server took it back, or the model thought better of it.
        "" | "stop" | "end_turn" | "STOP" | "completed" | "tool_calls" | "tool_use" | "function_call" => {
            StopReason::EndTurn
        }
        other => StopReason::Other(other.into()),
    }
}
