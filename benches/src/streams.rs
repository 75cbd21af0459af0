//! Streamed answers made to measure, and a client that gives them from memory: what decoding costs without a socket.

use futures_util::stream;
use haversack_http::{Bytes, HttpClient, HttpError, HttpRequest, HttpResponse, ResponseBody, StatusCode};

/// Bytes of a piece, as they come from a socket.
const PIECE: usize = 16 << 10;

/// An HTTP client whose every answer is the same body, in pieces of 16 KiB.
#[derive(Clone, Debug)]
pub struct Canned(Vec<Bytes>);

impl Canned {
    /// A client that answers with this body.
    pub fn new(body: &str) -> Self {
        Self(body.as_bytes().chunks(PIECE).map(Bytes::copy_from_slice).collect())
    }

    /// The pieces in which the body comes.
    pub fn pieces(&self) -> &[Bytes] {
        &self.0
    }
}

#[async_trait::async_trait]
impl HttpClient for Canned {
    async fn send(&self, _: HttpRequest) -> Result<HttpResponse, HttpError> {
        let body = ResponseBody::from_stream(stream::iter(self.0.clone().into_iter().map(Ok)));
        Ok(HttpResponse::new(StatusCode::OK, body))
    }
}

/// An OpenAI stream of text, about 300 bytes an event.
pub fn openai(events: usize) -> String {
    let head = "data: {\"id\":\"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT\",\"object\":\"chat.completion.chunk\",\"created\":1741569952,\"model\":\"gpt-5.4-mini-2026-03-17\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_06737a9306\",\"choices\":[{\"index\":0,\"delta\":{";
    let tail = "},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
    let mut body = format!("{head}\"role\":\"assistant\",\"content\":\"\"{tail}");
    push_prose(&mut body, events, |text| format!("{head}\"content\":\"{text}\"{tail}"));
    body.push_str(&format!("{head}{}", tail.replace("null}]", "\"stop\"}]")));
    body + "data: [DONE]\n\n"
}

/// One OpenAI tool call whose arguments come in pieces of six bytes.
pub fn openai_arguments(bytes: usize) -> String {
    let head = "data: {\"id\":\"chatcmpl-B9\",\"object\":\"chat.completion.chunk\",\"created\":1741569952,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,";
    let tail = "}]},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
    let piece = |text: &str| format!("{head}\"function\":{{\"arguments\":\"{text}\"}}{tail}");
    let mut body = format!(
        "{head}\"id\":\"c\",\"type\":\"function\",\"function\":{{\"name\":\"t\",\"arguments\":\"\"}}{tail}"
    );
    body.push_str(&piece("{\\\"a\\\":\\\""));
    for _ in 0..bytes / 6 {
        body.push_str(&piece("abcdef"));
    }
    body.push_str(&piece("\\\"}"));
    body.push_str("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n");
    body + "data: [DONE]\n\n"
}

/// An Anthropic stream of text, about 120 bytes an event.
pub fn anthropic(events: usize) -> String {
    let mut body = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\",\"model\":\"claude\",\"content\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\nevent: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n".to_owned();
    push_prose(&mut body, events, |text| {
        format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
        )
    });
    body.push_str("event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    body
}

/// Adds so many events. One in forty has an escape, as prose has line ends. They are copied and not made one by one, so
/// that a counter of instructions counts the reading.
fn push_prose(body: &mut String, events: usize, event: impl Fn(&str) -> String) {
    let (escape, plain) = (event("\\n"), event(" word"));
    let forty = escape.clone() + &plain.repeat(39);
    body.push_str(&forty.repeat(events / 40));
    let rest = events % 40;
    if rest > 0 {
        body.push_str(&escape);
        body.push_str(&plain.repeat(rest - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_as_many_events_as_asked_for() {
        for (events, escapes) in [(0, 0), (1, 1), (39, 1), (40, 1), (41, 2), (100, 3)] {
            for body in [openai(events), anthropic(events)] {
                let found = (body.matches(r#"":" word"}"#).count(), body.matches(r#"":"\n"}"#).count());
                assert_eq!(found, (events - escapes, escapes), "{events}");
            }
        }
    }
}
