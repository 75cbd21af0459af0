//! What a call promises whatever the API: headers, errors, bounds, nothing left open.

use haversack_agent_core::model::{Model, ModelErrorKind};
use haversack_providers::{
    Anthropic, CacheTtl, Gemini, Limits, ListedModel, Ollama, OpenAiChat, OpenAiResponses,
};
use serde_json::{Value, json};

use crate::memory::{Memory, Reply};
use crate::observe::{call, hello};

const KEY: &str = "k3y-that-nobody-may-see";

/// One model of each API, with a key and a header that holds another secret.
fn everybody(http: &Memory) -> Vec<Box<dyn Model>> {
    let (name, value) = ("x-gateway-token", "s3cond-secret");
    let base = "http://in.memory";
    vec![
        Box::new(Anthropic::new(http.clone(), base, "m").with_key(KEY).with_header(name, value)),
        Box::new(Gemini::new(http.clone(), base, "m").with_key(KEY).with_header(name, value)),
        Box::new(Ollama::new(http.clone(), base, "m").with_key(KEY).with_header(name, value)),
        Box::new(OpenAiChat::new(http.clone(), base, "m").with_key(KEY).with_header(name, value)),
        Box::new(OpenAiResponses::new(http.clone(), base, "m").with_key(KEY).with_header(name, value)),
    ]
}

/// Bodies in which a server quotes what it was sent.
fn telltales() -> Vec<Reply> {
    let quote = format!("{KEY} and s3cond-secret");
    let bodies = [
        json!({"error": {"message": quote, "type": quote, "code": quote, "param": quote}}).to_string(),
        json!({"error": quote}).to_string(),
        json!([{"error": {"message": quote, "status": quote, "details": [{"reason": quote}]}}]).to_string(),
        json!({"detail": [quote]}).to_string(),
        format!("<html>{quote}"),
        // Where a body and a message are cut, half a key may be left.
        format!("{}{quote}", "x".repeat(490)),
        json!({"error": {"message": format!("{}{quote}", "x".repeat(8150))}}).to_string(),
    ];
    let mut replies = Vec::new();
    for status in [200, 301, 400, 401, 404, 429, 500, 529] {
        for body in &bodies {
            let mut reply = Reply::new(status, body.as_bytes());
            reply.headers =
                vec![("x-request-id", quote.clone()), ("location", format!("http://{KEY}@x/?k={KEY}"))];
            replies.push(reply);
        }
    }
    // Inside a stream, for each framing, and broken in the middle.
    for body in &bodies {
        for framed in
            [format!("event: error\ndata: {body}\n\n"), format!("{body}\n"), format!("error: {body}\n\n")]
        {
            let mut reply = Reply::new(200, framed.into_bytes());
            replies.push(reply.clone());
            reply.breaks = true;
            replies.push(reply);
        }
    }
    replies
}

#[tokio::test]
async fn no_secret_is_in_any_error_or_debug_text() {
    let mut count = 0;
    for reply in telltales() {
        // A model is asked at most twice.
        let http = Memory::new(vec![reply.clone(); 8]);
        for model in everybody(&http) {
            let outcome = call(&*model, hello()).await;
            let Some(error) = &outcome.error else { continue };
            let mut texts = vec![format!("{error}"), format!("{error:?}"), format!("{error:#?}")];
            let mut source = std::error::Error::source(error);
            while let Some(cause) = source {
                texts.push(format!("{cause} {cause:?}"));
                source = cause.source();
            }
            for text in texts {
                count += 1;
                for secret in ["k3y-", "s3cond-"] {
                    assert!(
                        !text.contains(secret),
                        "{:?} to {}: {text}",
                        model.info().provider,
                        String::from_utf8_lossy(&reply.body)
                    );
                }
            }
        }
    }
    assert!(count > 500, "only {count} texts");
}

/// The start of a gzip member, with a line end in it.
const GZIP: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\x0a\x0a\xed\x0a";

#[tokio::test]
async fn a_compressed_body_is_named_as_such_and_not_asked_for_again() {
    for piece in [1, usize::MAX] {
        let mut reply = Reply::new(200, GZIP);
        reply.piece = piece;
        reply.headers =
            vec![("content-type", "text/event-stream".into()), ("content-encoding", "gzip".into())];
        let http = Memory::new(vec![reply; 8]);
        for model in everybody(&http) {
            let error = call(&*model, hello()).await.error.unwrap();
            assert_eq!(error.kind, ModelErrorKind::Protocol, "{error}");
            assert!(error.to_string().contains("compressed (gzip)"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_compressed_error_keeps_its_status_and_is_named_as_compressed() {
    for (status, kind) in [(401, ModelErrorKind::Auth), (429, ModelErrorKind::RateLimited)] {
        let mut reply = Reply::new(status, GZIP);
        reply.headers = vec![("content-encoding", "gzip".into())];
        for model in everybody(&Memory::new(vec![reply; 8])) {
            let error = call(&*model, hello()).await.error.unwrap();
            assert_eq!((&error.kind, error.status), (&kind, Some(status)), "{error}");
            assert!(error.message.contains("compressed (gzip)"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_text_that_is_no_answer_is_named_as_such_in_all_pieces() {
    for piece in [1, usize::MAX] {
        let mut reply = Reply::new(200, "\n  \n     native: \"x\"\n<p>busy</p>");
        reply.piece = piece;
        let error =
            call(&OpenAiChat::new(Memory::new([reply]), "http://a", "m"), hello()).await.error.unwrap();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{error}");
        assert!(error.message.contains("no answer of this API"), "{error}");
    }
}

#[tokio::test]
async fn what_a_model_writes_is_kept_as_it_is_even_if_it_is_the_key() {
    let body = json!({"choices": [{"message": {"content": KEY}, "finish_reason": "stop"}]}).to_string();
    let model = OpenAiChat::new(Memory::new([Reply::new(200, body)]), "http://a", "m").with_key(KEY);
    let outcome = call(&model, hello()).await;
    assert_eq!(outcome.blocks().next().unwrap().as_text(), Some(KEY));
}

#[tokio::test]
async fn a_block_that_begins_again_keeps_what_it_showed_and_loses_a_half_call() {
    let start = |block: Value| json!({"type": "content_block_start", "index": 0, "content_block": block});
    let delta = |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    let stream =
        |events: &[Value]| events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>();
    let text = |text: &str| delta(json!({"type": "text_delta", "text": text}));
    let (begin, stop) = (start(json!({"type": "text", "text": ""})), json!({"type": "message_stop"}));
    let body = stream(&[begin.clone(), text("a"), begin, text("b"), stop.clone()]);
    let outcome = call(&Anthropic::new(Memory::new([Reply::new(200, body)]), "http://a", "m"), hello()).await;
    let texts: Vec<_> = outcome.blocks().map(|block| block.as_text().unwrap()).collect();
    assert_eq!(texts, ["a", "b"]);

    let begin = start(json!({"type": "tool_use", "id": "1", "name": "t", "input": {}}));
    let half = delta(json!({"type": "input_json_delta", "partial_json": "{\"a\""}));
    let body = stream(&[begin.clone(), half, begin, stop]);
    let outcome = call(&Anthropic::new(Memory::new([Reply::new(200, body)]), "http://a", "m"), hello()).await;
    assert_eq!(outcome.error.as_ref().unwrap().kind, ModelErrorKind::Protocol);
    assert_eq!(outcome.blocks().count(), 0);
}

#[tokio::test]
async fn a_client_that_unpacks_a_body_may_leave_the_header_that_says_it_was_packed() {
    let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"é\"},\"finish_reason\":\"stop\"}]}\n\n\
                data: [DONE]\n\n";
    let mut reply = Reply::new(200, body);
    reply.piece = 1;
    reply.headers = vec![("content-encoding", "gzip".into())];
    let http = Memory::new(vec![reply]);
    let outcome = call(&OpenAiChat::new(http, "http://in.memory", "m"), hello()).await;
    assert!(outcome.error.is_none(), "{:?}", outcome.error);
}

#[test]
fn debug_texts_of_models_hold_no_secret() {
    let base = format!("http://user:{KEY}@in.memory/?key={KEY}");
    let http = Memory::default();
    let texts = [
        format!(
            "{:?}",
            Anthropic::new(http.clone(), &base, "m")
                .with_key(KEY)
                .with_header("x", KEY)
                .with_body_field("k", KEY)
        ),
        format!("{:?}", Gemini::new(http.clone(), &base, "m").with_key(KEY).with_header("x", KEY)),
        format!("{:?}", Ollama::new(http.clone(), &base, "m").with_key(KEY).with_header("x", KEY)),
        format!("{:?}", OpenAiChat::new(http.clone(), &base, "m").with_key(KEY).with_header("x", KEY)),
        format!("{:?}", OpenAiResponses::new(http, &base, "m").with_key(KEY).with_header("x", KEY)),
    ];
    for text in texts {
        assert!(!text.contains(KEY), "{text}");
    }
}

#[tokio::test]
async fn each_api_has_its_address_and_its_headers() {
    for (at, url, auth, extra) in [
        (0, "http://in.memory/v1/messages", "x-api-key", Some(("anthropic-version", "2023-06-01"))),
        (1, "http://in.memory/v1beta/models/m:streamGenerateContent?alt=sse", "x-goog-api-key", None),
        (2, "http://in.memory/api/chat", "authorization", None),
    ] {
        let http = Memory::default();
        let model = &everybody(&http)[at];
        let error = call(&**model, hello()).await.error.unwrap();
        assert_eq!(error.kind, ModelErrorKind::Transport);
        let seen = http.only();
        assert_eq!(seen.url, url);
        assert!(seen.headers[auth].to_str().unwrap().contains(KEY), "{:?}", seen.headers);
        assert_eq!(seen.headers["x-gateway-token"], "s3cond-secret");
        assert!(!seen.headers.contains_key("accept-encoding"));
        assert!(!seen.url.contains(KEY));
        if let Some((name, value)) = extra {
            assert_eq!(seen.headers[name], value);
        }
    }
    for (base, url) in
        [("http://a/v1", "http://a/v1/messages"), ("http://a/anthropic/", "http://a/anthropic/v1/messages")]
    {
        let http = Memory::default();
        call(
            &Anthropic::new(http.clone(), base, "m").with_bearer_key(KEY).with_version("2026-10-21"),
            hello(),
        )
        .await;
        let seen = http.only();
        assert_eq!(seen.url, url);
        assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
        assert_eq!(seen.headers["anthropic-version"], "2026-10-21");
    }
    for (base, model, url) in [
        ("http://a", "models/g", "http://a/v1beta/models/g:generateContent"),
        ("http://a/v1beta", "g", "http://a/v1beta/models/g:generateContent"),
        (
            "http://a/v1/projects/p/locations/l/publishers/google",
            "g",
            "http://a/v1/projects/p/locations/l/publishers/google/models/g:generateContent",
        ),
    ] {
        let http = Memory::default();
        call(&Gemini::new(http.clone(), base, model).without_streaming(), hello()).await;
        assert_eq!(http.only().url, url);
    }
}

#[tokio::test]
async fn an_answer_over_a_bound_is_a_protocol_error() {
    let limits =
        Limits::default().with_max_answer_bytes(100).with_max_event_bytes(300).with_max_body_bytes(400);
    let long = "x".repeat(1000);
    let text = |text: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    let start =
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let many = format!("data: {start}\n\n{}", format!("data: {}\n\n", text("0123456789")).repeat(11));
    let part = json!({"candidates": [{"content": {"parts": [{"text": "0123456789"}]}}]});
    type Make<'a> = &'a dyn Fn(Memory) -> Box<dyn Model>;
    let cases: [(Make<'_>, String); 6] = [
        (&|http| Box::new(Anthropic::new(http, "http://a", "m").with_limits(limits)), many),
        (
            &|http| Box::new(Anthropic::new(http, "http://a", "m").with_limits(limits)),
            format!("data: {}\n\n", text(&long)),
        ),
        (
            &|http| Box::new(Anthropic::new(http, "http://a", "m").with_limits(limits).without_streaming()),
            format!("{{\"a\":{long:?}}}"),
        ),
        (
            &|http| Box::new(Gemini::new(http, "http://a", "m").with_limits(limits)),
            format!("data: {part}\n\n").repeat(11),
        ),
        (
            &|http| Box::new(Ollama::new(http, "http://a", "m").with_limits(limits)),
            "{\"message\":{\"content\":\"0123456789\"}}\n".repeat(11),
        ),
        (&|http| Box::new(Ollama::new(http, "http://a", "m").with_limits(limits)), long.clone()),
    ];
    for (model, body) in cases {
        let model = model(Memory::new([Reply::new(200, body.as_bytes())]));
        let error = call(&*model, hello()).await.error.unwrap_or_else(|| panic!("{body} was read"));
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{error}");
        assert!(error.message.contains("bytes"), "{error}");
    }
}

#[tokio::test]
async fn models_are_listed_over_all_pages() {
    let page = |body: Value| Reply::new(200, body.to_string());
    let http = Memory::new([
        page(json!({"data": [{"id": "a", "display_name": "A"}], "has_more": true, "last_id": "a/1"})),
        page(json!({"data": [{"id": "b"}], "has_more": false, "last_id": "b"})),
    ]);
    let models = Anthropic::new(http.clone(), "http://a", "m").with_key(KEY).list_models().await.unwrap();
    let ids = |models: &[ListedModel]| models.iter().map(|m| m.id.clone()).collect::<Vec<_>>();
    assert_eq!((ids(&models), models[0].name.as_deref()), (vec!["a".to_owned(), "b".to_owned()], Some("A")));
    let urls: Vec<_> = http.seen().into_iter().map(|seen| seen.url).collect();
    assert_eq!(urls, ["http://a/v1/models?limit=1000", "http://a/v1/models?limit=1000&after_id=a%2F1"]);

    let http = Memory::new([
        page(json!({"models": [
            {"name": "models/g", "inputTokenLimit": 5, "outputTokenLimit": 3, "supportedGenerationMethods": ["generateContent"]},
            {"name": "models/e", "supportedGenerationMethods": ["embedContent"]},
        ], "nextPageToken": "2"})),
        page(json!({"models": [{"name": "models/h"}]})),
    ]);
    let models = Gemini::new(http.clone(), "http://a", "m").list_models().await.unwrap();
    assert_eq!((ids(&models), models[0].context_window), (vec!["g".to_owned(), "h".to_owned()], Some(5)));
    assert_eq!(http.seen()[1].url, "http://a/v1beta/models?pageSize=1000&pageToken=2");

    let http = Memory::new([page(json!({"models": [{"name": "q:8b", "model": "q:8b"}]}))]);
    let models = Ollama::new(http, "http://a", "m").list_models().await.unwrap();
    assert_eq!(ids(&models), ["q:8b"]);
}

#[tokio::test]
async fn a_list_that_turns_in_circles_ends_and_a_refusal_is_an_error() {
    let same = Reply::new(200, json!({"data": [{"id": "a"}], "has_more": true, "last_id": "a"}).to_string());
    let http = Memory::new(vec![same; 50]);
    let models = Anthropic::new(http.clone(), "http://a", "m").list_models().await.unwrap();
    assert_eq!((models.len(), http.seen().len()), (2, 2));
    let refusal = Reply::new(
        401,
        json!({"type": "error", "error": {"type": "authentication_error", "message": KEY}}).to_string(),
    );
    let error = Anthropic::new(Memory::new([refusal]), "http://a", "m")
        .with_key(KEY)
        .list_models()
        .await
        .unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Auth);
    assert!(!format!("{error:?}").contains(KEY));
}

#[tokio::test]
async fn ollama_tells_what_a_model_can_do() {
    let answer =
        json!({"capabilities": ["completion", "tools"], "model_info": {"qwen3.context_length": 40960}});
    let http = Memory::new([
        Reply::new(200, answer.to_string()),
        Reply::new(404, r#"{"error":"model 'm' not found"}"#),
    ]);
    let model = Ollama::new(http.clone(), "http://a/api", "m");
    let details = model.details().await.unwrap();
    assert!(details.can("tools") && !details.can("vision"));
    assert_eq!(details.context_length, Some(40960));
    assert_eq!((http.only().url.as_str(), http.only().json()), ("http://a/api/show", json!({"model": "m"})));
    assert_eq!(model.details().await.unwrap_err().kind, ModelErrorKind::NotFound);
}

#[tokio::test]
async fn a_signature_that_is_refused_is_left_out_once() {
    let refusal = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "messages.1.content.0: Invalid `signature` in `thinking` block"}});
    let http = Memory::new([Reply::new(400, refusal.to_string()), Reply::new(400, refusal.to_string())]);
    let model = Anthropic::new(http.clone(), "http://a", "m").with_cache_ttl(CacheTtl::OneHour);
    let error = call(&model, hello()).await.error.unwrap();
    assert_eq!((http.seen().len(), error.status), (2, Some(400)));
}
