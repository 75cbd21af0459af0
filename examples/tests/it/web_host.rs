//! The web host over HTTP, as a page and as strangers meet it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use haversack::http::{
    HttpClient as _, HttpRequest, HttpResponse, Method, ReqwestClient, ResponseBody, SseDecoder, SseItem,
    StatusCode,
};
use haversack::providers::presets::openai_compatible;
use haversack_examples::rehearsal::{MODEL, Rehearsal};
use haversack_examples::web_host::WebHost;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::stage::{Stage, workspace};

const NOTE: &str =
    "Write down a field note: two herons at the north pond, light rain. Then search the archive for heron.";

/// A host that serves, and a page that was opened with its token.
struct Page {
    base: String,
    cookie: String,
    end: Arc<Notify>,
    served: tokio::task::JoinHandle<Result<(), String>>,
    stage: Stage,
    rehearsal: Rehearsal,
}

impl Page {
    async fn open() -> Self {
        let stage = Stage::new();
        let rehearsal = Rehearsal::start(Duration::ZERO).await.unwrap();
        let model = Arc::new(openai_compatible(ReqwestClient::new().unwrap(), rehearsal.base_url(), MODEL));
        let host = WebHost::open(model, workspace(), stage.options().environment, 0).await.unwrap();
        let address = host.address();
        let base = address.split("/?").next().unwrap().to_owned();
        let end = Arc::new(Notify::new());
        let asked = Arc::clone(&end);
        let served = tokio::spawn(host.serve(async move { asked.notified().await }));
        let first = send(HttpRequest::new(Method::GET, &address)).await;
        assert_eq!(first.status, StatusCode::SEE_OTHER);
        assert_eq!(first.header("location"), Some("/"), "the token stays out of the history");
        let cookie = first.header("set-cookie").unwrap();
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap().to_owned();
        Self { base, cookie, end, served, stage, rehearsal }
    }

    fn request(&self, method: Method, path: &str) -> HttpRequest {
        let request = HttpRequest::new(method, format!("{}{path}", self.base));
        request.try_with_header("cookie", &self.cookie).unwrap()
    }

    async fn post(&self, path: &str, body: &Value) -> StatusCode {
        let request = self.request(Method::POST, path).try_with_header("origin", &self.base).unwrap();
        let request = request.try_with_header("content-type", "application/json").unwrap();
        send(request.with_body(body.to_string())).await.status
    }

    async fn events(&self, last: Option<u64>) -> Lines {
        let mut request = self.request(Method::GET, "/events");
        if let Some(last) = last {
            request = request.try_with_header("last-event-id", &last.to_string()).unwrap();
        }
        let response = send(request).await;
        assert_eq!(response.status, StatusCode::OK);
        Lines { body: response.body, decoder: SseDecoder::new(), last: 0 }
    }

    async fn close(self) {
        self.end.notify_one();
        self.served.await.unwrap().unwrap();
        drop(self.rehearsal);
        assert_eq!(self.stage.processes(), Vec::<String>::new());
    }
}

async fn send(request: HttpRequest) -> HttpResponse {
    ReqwestClient::new().unwrap().send(request).await.unwrap()
}

async fn text(response: HttpResponse) -> String {
    let pieces: Vec<_> = response.body.map(Result::unwrap).collect().await;
    String::from_utf8(pieces.concat()).unwrap()
}

/// The lines of a page.
struct Lines {
    body: ResponseBody,
    decoder: SseDecoder,
    last: u64,
}

impl Lines {
    /// Reads up to a line of this type.
    async fn until(&mut self, kind: &str) -> Value {
        loop {
            while let Some(item) = self.decoder.next() {
                let SseItem::Event(event) = item.unwrap() else { continue };
                let line: Value = serde_json::from_str(&event.data_str()).unwrap();
                self.last += 1;
                if line["type"] == kind {
                    return line;
                }
            }
            self.decoder.feed(self.body.next().await.unwrap().unwrap());
        }
    }
}

#[tokio::test]
async fn a_page_consents_decides_and_finds_everything_again_when_it_is_loaded_anew() {
    let page = Page::open().await;
    let mut lines = page.events(None).await;
    assert_eq!(page.post("/message", &json!({"text": NOTE})).await, StatusCode::ACCEPTED);
    for _ in ["servers", "skills"] {
        let consent = lines.until("consent").await;
        let answer = json!({"id": consent["id"], "yes": true});
        assert_eq!(page.post("/consent", &answer).await, StatusCode::NO_CONTENT);
        assert_eq!(page.post("/consent", &answer).await, StatusCode::GONE, "answered once");
    }
    let ask = lines.until("ask").await;
    assert_eq!(ask["tool"], "mcp__field-notes__add_note");
    assert!(ask["arguments"].as_str().unwrap().contains("two herons"), "{ask}");

    // A page that is loaded in the middle of it shows the same question, and may answer it.
    let again = page.events(None).await.until("ask").await;
    assert_eq!(again, ask);
    let verdict = json!({"digest": ask["digest"], "verdict": "allow"});
    assert_eq!(page.post("/decide", &verdict).await, StatusCode::NO_CONTENT);
    assert_eq!(page.post("/decide", &verdict).await, StatusCode::GONE, "decided once");
    assert_eq!(lines.until("decided").await["how"], "allowed");
    assert!(lines.until("result").await["text"].as_str().unwrap().contains("stored as note 1"));

    let ask = lines.until("ask").await;
    let denial = json!({"digest": ask["digest"], "verdict": "deny", "reason": "the archive is closed"});
    assert_eq!(page.post("/decide", &denial).await, StatusCode::NO_CONTENT);
    assert!(lines.until("result").await["text"].as_str().unwrap().contains("the archive is closed"));
    assert!(lines.until("tokens").await["in"].as_u64().unwrap() > 0);

    // A connection that was lost goes on behind its last line.
    let mut rest = page.events(Some(lines.last - 2)).await;
    rest.until("tokens").await;
    assert_eq!(rest.last, 1);
    assert_eq!(page.stage.notes().len(), 1);
    page.close().await;
}

#[tokio::test]
async fn always_keeps_the_rule_that_the_page_has_shown() {
    let page = Page::open().await;
    let mut lines = page.events(None).await;
    page.post("/message", &json!({"text": "Add a note: fog. Add a note: snow."})).await;
    for yes in [true, false] {
        let consent = lines.until("consent").await;
        page.post("/consent", &json!({"id": consent["id"], "yes": yes})).await;
    }
    let ask = lines.until("ask").await;
    assert!(ask["always"].as_str().unwrap().contains("add_note"), "{ask}");
    page.post("/decide", &json!({"digest": ask["digest"], "verdict": "always"})).await;
    lines.until("tokens").await;
    assert_eq!(page.stage.notes().len(), 2, "the second call was not asked about");
    page.close().await;
}

#[tokio::test]
async fn stop_ends_a_run_that_waits_for_a_decision_and_the_next_message_begins_another() {
    let page = Page::open().await;
    let mut lines = page.events(None).await;
    page.post("/message", &json!({"text": NOTE})).await;
    for _ in 0..2 {
        let consent = lines.until("consent").await;
        page.post("/consent", &json!({"id": consent["id"], "yes": true})).await;
    }
    let ask = lines.until("ask").await;
    assert_eq!(page.post("/cancel", &json!({})).await, StatusCode::NO_CONTENT);
    assert_eq!(lines.until("decided").await["how"], "withdrawn");
    assert!(lines.until("note").await["text"].as_str().unwrap().contains("stopped by the user"));
    let late = json!({"digest": ask["digest"], "verdict": "allow"});
    assert_eq!(page.post("/decide", &late).await, StatusCode::GONE);
    page.post("/message", &json!({"text": "Say hello."})).await;
    assert_eq!(lines.until("user").await["text"], "Say hello.");
    lines.until("tokens").await;
    assert!(page.stage.notes().is_empty());
    page.close().await;
}

#[tokio::test]
async fn stop_before_there_is_a_run_takes_the_question_away() {
    let page = Page::open().await;
    let mut lines = page.events(None).await;
    page.post("/message", &json!({"text": NOTE})).await;
    lines.until("consent").await;
    page.post("/cancel", &json!({})).await;
    lines.until("consented").await;
    assert_eq!(lines.until("note").await["text"], "stopped before it began");
    page.close().await;
}

#[tokio::test]
async fn the_page_may_run_its_own_script_and_nothing_else() {
    let page = Page::open().await;
    let response = send(page.request(Method::GET, "/")).await;
    assert_eq!(response.status, StatusCode::OK);
    let policy = response.header("content-security-policy").unwrap().to_owned();
    let html = text(response).await;
    let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert!(
        policy.starts_with("default-src 'none'") && html.contains(&format!("<script nonce=\"{nonce}\">"))
    );
    for unsafe_word in
        ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " onclick="]
    {
        assert!(!html.contains(unsafe_word), "{unsafe_word} in the page");
    }
    let other = send(page.request(Method::GET, "/")).await;
    assert_ne!(other.header("content-security-policy"), Some(&*policy), "a nonce is used once");
    page.close().await;
}

#[tokio::test]
async fn strangers_are_turned_away() {
    let page = Page::open().await;
    let origin = |request: HttpRequest, origin: &str| request.try_with_header("origin", origin).unwrap();
    let bare = |method: Method, path: &str| HttpRequest::new(method, format!("{}{path}", page.base));
    let json = |request: HttpRequest| {
        let request = request.try_with_header("content-type", "application/json").unwrap();
        request.with_body(json!({"text": "hello"}).to_string())
    };
    let wrong = page.cookie.replace('=', "=0");
    let rebound = page.request(Method::GET, "/").try_with_header("host", "evil.example:80").unwrap();
    for (who, request) in [
        ("no cookie on the page", bare(Method::GET, "/")),
        ("a wrong token", bare(Method::GET, "/?token=0000")),
        ("no cookie on the events", bare(Method::GET, "/events")),
        ("a wrong cookie", bare(Method::GET, "/events").try_with_header("cookie", &wrong).unwrap()),
        ("a name bound to this machine", rebound),
        ("a message without an origin", json(page.request(Method::POST, "/message"))),
        ("another page", json(origin(page.request(Method::POST, "/message"), "http://evil.example"))),
        ("another port", json(origin(page.request(Method::POST, "/message"), "http://127.0.0.1:1"))),
        ("a sandboxed page", json(origin(page.request(Method::POST, "/message"), "null"))),
        ("another page that reads", origin(page.request(Method::GET, "/events"), "http://evil.example")),
    ] {
        assert_eq!(send(request).await.status, StatusCode::FORBIDDEN, "{who}");
    }
    for (body, status) in [
        (json!({"text": " "}), StatusCode::BAD_REQUEST),
        (json!({"words": "x"}), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({"text": "x".repeat(70_000)}), StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        assert_eq!(page.post("/message", &body).await, status);
    }
    assert!(page.rehearsal.requests().is_empty(), "nothing of it reached the model");
    page.close().await;
}
