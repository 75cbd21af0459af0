//! Puts a request's body together from kept and fresh pieces.

use bytes::Bytes;
use haversack_agent_core::model::{ModelError, ModelRequest};
use serde_json::{Map, Value};

use crate::api::{Api, Form};
use crate::call::{Kept, messages};
use crate::encode::EncodeMessage as _;
use crate::endpoint::Endpoint;
use crate::error;

/// The body in chunks, which joined are one JSON object.
pub(crate) fn encode<A: Api>(
    api: &A,
    endpoint: &Endpoint,
    kept: &Kept,
    request: &ModelRequest,
    form: Form,
) -> Result<Vec<Bytes>, Box<ModelError>> {
    let mut fields = api.fields(endpoint, request, form)?;
    for extra in [&endpoint.extra_body, &request.options.extra] {
        fields.extend(extra.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
    let mut head = json(&fields)?;
    head.pop();
    let separate = |head: &mut Vec<u8>| {
        if head.len() > 1 {
            head.push(b',');
        }
    };
    let mut chunks = Vec::new();
    if !request.tools.is_empty() && !fields.contains_key("tools") {
        separate(&mut head);
        head.extend_from_slice(b"\"tools\":");
        chunks.push(std::mem::take(&mut head).into());
        let marked = request.cache.prefix;
        let [plain, with_mark] = &kept.tools;
        let pinned = if marked { with_mark } else { plain };
        chunks.push(pinned.get(&request.tools, || api.tools(&request.tools, marked)));
        head.push(b',');
    } else {
        separate(&mut head);
    }
    if fields.contains_key(A::LIST) {
        head.pop();
        head.push(b'}');
        chunks.push(head.into());
        return Ok(chunks);
    }
    head.extend_from_slice(format!("\"{}\":[", A::LIST).as_bytes());
    chunks.push(head.into());
    list(api, endpoint, kept, request, form, &mut chunks);
    let mut tail = Vec::new();
    api.closing(endpoint, request, form, &mut tail);
    tail.extend_from_slice(b"]}");
    chunks.push(tail.into());
    Ok(chunks)
}

/// The conversation's items.
fn list<A: Api>(
    api: &A,
    endpoint: &Endpoint,
    kept: &Kept,
    request: &ModelRequest,
    form: Form,
    chunks: &mut Vec<Bytes>,
) {
    let first = chunks.len();
    if !request.system.is_empty() {
        chunks.push(kept.opening.get(&request.system, || api.opening(&request.system)));
    }
    let encoder = api.encoder(endpoint, form);
    let messages = messages(request);
    if form.without_seals {
        // A form for one call: keeping it would push out what the next call needs.
        let mut out = Vec::new();
        for index in 0..messages.len() {
            encoder.encode(messages, index, api.marks(request).contains(&index), &mut out);
        }
        chunks.push(out.into());
    } else {
        chunks.extend(kept.history.encode(&encoder, messages, api.marks(request)));
    }
    // The comma before the first item of all.
    if let Some(chunk) = chunks.iter_mut().skip(first).find(|chunk| !chunk.is_empty())
        && chunk.starts_with(b",")
    {
        *chunk = chunk.slice(1..);
    }
}

fn json(value: &Map<String, Value>) -> Result<Vec<u8>, Box<ModelError>> {
    serde_json::to_vec(value)
        .map_err(|e| error::invalid(format!("the request cannot be written as JSON: {e}")))
}
