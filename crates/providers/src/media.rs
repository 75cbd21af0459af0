//! What can be done with pictures and documents that a wire does not take as they are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haversack_agent_core::message::{Media, MediaSource};

/// The text of a document that is text, when it stands here and not at an address.
pub(crate) fn text(media: &Media) -> Option<String> {
    let kind = media.media_type.split(';').next().unwrap_or_default().trim();
    let is_text = kind.starts_with("text/")
        || matches!(kind, "application/json" | "application/xml" | "application/yaml" | "application/toml")
        || kind.ends_with("+json")
        || kind.ends_with("+xml");
    let MediaSource::Base64(data) = &media.source else { return None };
    is_text.then(|| STANDARD.decode(&**data).ok()).flatten().and_then(|bytes| String::from_utf8(bytes).ok())
}

/// A sentence in place of media that cannot be sent, so that the model and the reader of a log know of it.
pub(crate) fn left_out(media: &Media, by: &str) -> String {
    let name = media.name.as_deref().map(|name| format!(" {name:?}")).unwrap_or_default();
    format!("[{}{name} left out: {by} takes no such content here]", media.media_type)
}
