//! Content parts: text, images, documents, and what stands in for those that cannot be sent.

use haversack_agent_core::message::{Block, Media, MediaSource};
use serde_json::{Value, json};

use crate::media;
use crate::profile::{ImageForm, Profile};

/// A block as a content part; none for blocks that are no content.
pub(super) fn part(profile: &Profile, block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => Some(text_part(text)),
        Block::Image(image) => Some(image_part(profile, image)),
        Block::Document(document) => Some(document_part(profile, document)),
        _ => None,
    }
}

pub(super) fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image_part(profile: &Profile, image: &Media) -> Value {
    let url = match (&image.source, profile.images) {
        (MediaSource::Base64(data), ImageForm::Any | ImageForm::DataOnly) => {
            format!("data:{};base64,{data}", image.media_type)
        }
        (MediaSource::Url(url), ImageForm::Any) => url.clone(),
        _ => return text_part(&left_out(image)),
    };
    json!({"type": "image_url", "image_url": {"url": url}})
}

fn document_part(profile: &Profile, document: &Media) -> Value {
    if let Some(text) = media::text(document) {
        return text_part(&text);
    }
    match &document.source {
        MediaSource::Base64(data) if profile.documents => {
            let name = document.name.as_deref().unwrap_or("document");
            let data = format!("data:{};base64,{data}", document.media_type);
            json!({"type": "file", "file": {"filename": name, "file_data": data}})
        }
        _ => text_part(&left_out(document)),
    }
}

fn left_out(media: &Media) -> String {
    media::left_out(media, "this model's server")
}
