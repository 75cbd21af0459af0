//! HTTP: what is refused, how, and that the server stays up.

use std::net::SocketAddr;
use std::time::Duration;

use haversack_skill_server::Host;
use haversack_skill_server::http::{BearerToken, HttpOptions, HttpServer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::wire::{PATIENCE, folder, serve};

struct Served {
    address: SocketAddr,
    end: Option<oneshot::Sender<()>>,
    task: tokio::task::JoinHandle<()>,
    _skills: tempfile::TempDir,
}

async fn up(options: HttpOptions) -> Served {
    let skills = folder(&[("greet", "---\nname: greet\ndescription: Greets.\n---\n\nSay hello.\n")]);
    let handler = serve(skills.path(), Host::new()).handler();
    let http =
        HttpServer::bind("127.0.0.1:0".parse().unwrap(), options, move || handler.clone()).await.unwrap();
    let address = http.address();
    let (end, ended) = oneshot::channel::<()>();
    let task = tokio::spawn(http.run(async move {
        let _ = ended.await;
    }));
    Served { address, end: Some(end), task, _skills: skills }
}

/// The answer to a request of these bytes, as text; the connection is closed after it.
async fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await;
    read.expect("an answer or the end").unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn post(extra: &str, body: &str) -> String {
    let defaults = [
        ("Host", "localhost"),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    let mut head = String::from("POST /mcp HTTP/1.1\r\nConnection: close\r\n");
    for (name, value) in defaults {
        if !extra.starts_with(&format!("{name}:")) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    format!("{head}{extra}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn initialize() -> String {
    let about = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}).to_string()
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer:?}"))
}

fn session(answer: &str) -> Option<String> {
    let line = answer.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id:"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Sends each request and checks the status, and that an error is a short one in JSON.
async fn check(served: &Served, requests: Vec<(String, u16, &str)>) {
    for (request, want, why) in requests {
        let answer = raw(served.address, &request).await;
        assert_eq!(status(&answer), want, "{why}: {answer}");
        if want >= 400 && !request.starts_with("nonsense") {
            let (_, body) = answer.split_once("\r\n\r\n").unwrap();
            let body: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{why}: {answer}"));
            assert!(body["error"]["message"].as_str().unwrap().len() < 1_100, "{why}");
        }
    }
}

fn plain(line: &str, headers: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n")
}

#[tokio::test]
async fn hosts_origins_and_paths_of_strangers_are_refused_and_the_server_stays_up() {
    let served = up(HttpOptions::default().with_allowed_origins(["https://app.example:443"])).await;
    let body = initialize();
    let with = |header: &str| post(&format!("{header}\r\n"), &body);
    let requests = vec![
        (post("", &body), 200, "as it should be"),
        (with("Host: localhost:99"), 200, "any port"),
        (with("Host: [::1]:3030"), 200, "the other address of this machine"),
        (with("Host: evil.example"), 403, "a name of somebody else's"),
        (with("Host: localhost.evil.example"), 403, "a name that begins like ours"),
        (with("Host: 127.0.0.1.evil.example"), 403, "the same"),
        (with("Origin: http://localhost:5173"), 200, "a page of this machine"),
        (with("Origin: https://app.example"), 200, "a page that was allowed"),
        (with("Origin: http://evil.example"), 403, "a page of somebody else's"),
        (with("Origin: null"), 403, "a page from nowhere"),
        (with("Origin: http://localhost.evil.example"), 403, "a page that begins like ours"),
        (plain("PUT /mcp", ""), 405, "another method"),
        (plain("GET /etc/passwd", ""), 404, "another path"),
        (plain("GET /mcp/../healthz", ""), 404, "no path is folded"),
        (plain("GET /healthz", ""), 200, "health"),
        ("nonsense\r\n\r\n".to_owned(), 400, "no HTTP"),
    ];
    check(&served, requests).await;
}

#[tokio::test]
async fn bodies_that_are_no_message_are_refused_and_the_server_stays_up() {
    let served = up(HttpOptions::default().with_max_body_bytes(10_000)).await;
    let body = initialize();
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    let large = format!("{body}{}", " ".repeat(10_001));
    let (open, close) = ("[".repeat(4_000), "]".repeat(4_000));
    let deep = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{open}1{close}}}");
    let json = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
    let chunk = format!("2328\r\n{}\r\n", "x".repeat(9_000));
    let head = plain("POST /mcp", &format!("{json}Transfer-Encoding: chunked\r\n"));
    let requests = vec![
        (post("Accept: application/json\r\n", &body), 406, "no event stream"),
        (post("Content-Type: text/plain\r\n", &body), 415, "no JSON"),
        (post("", &large), 413, "too large by its length"),
        (format!("{head}{chunk}{chunk}0\r\n\r\n"), 413, "too large as it comes"),
        (post("", "{\"jsonrpc\":"), 400, "broken JSON"),
        (post("", &deep), 400, "too deep"),
        (post("", "[]"), 400, "no message"),
        (post("", "{\"jsonrpc\":\"2.0\",\"id\":5}"), 400, "a message without a method"),
        (post("", "\u{fffd}\0"), 400, "no text"),
        (post("MCP-Protocol-Version: 1999-01-01\r\n", ping), 400, "an unknown revision"),
        (post("Mcp-Session-Id: forged\r\n", ping), 404, "an unknown session"),
        (plain("GET /mcp", "Accept: text/event-stream\r\n"), 400, "a stream without a session"),
        (post("", &body), 200, "and it goes on"),
    ];
    check(&served, requests).await;
}

#[tokio::test]
async fn two_clients_have_two_sessions_and_an_ended_one_is_gone() {
    let served = up(HttpOptions::default()).await;
    let (one, two) = (
        raw(served.address, &post("", &initialize())).await,
        raw(served.address, &post("", &initialize())).await,
    );
    let (one, two) = (session(&one).unwrap(), session(&two).unwrap());
    assert_ne!(one, two);
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}";
    let note = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}";
    let with = |body| post(&format!("Mcp-Session-Id: {one}\r\n"), body);
    assert_eq!(status(&raw(served.address, &with(note)).await), 202);
    assert_eq!(status(&raw(served.address, &with(ping)).await), 200);
    let delete = format!(
        "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nMcp-Session-Id: {one}\r\n\r\n"
    );
    assert!(status(&raw(served.address, &delete).await) < 300);
    assert_eq!(status(&raw(served.address, &with(ping)).await), 404);
    assert_eq!(status(&raw(served.address, &post(&format!("Mcp-Session-Id: {two}\r\n"), ping)).await), 200);
}

#[tokio::test]
async fn without_the_token_nothing_is_spoken() {
    let token = BearerToken::new("0123456789abcdef").unwrap();
    let served = up(HttpOptions::default().with_bearer(token)).await;
    for (header, want) in [
        ("", 401),
        ("Authorization: Bearer 0123456789abcdeX\r\n", 401),
        ("Authorization: Basic 0123456789abcdef\r\n", 401),
        ("Authorization: Bearer 0123456789abcdef\r\n", 200),
    ] {
        let answer = raw(served.address, &post(header, &initialize())).await;
        assert_eq!(status(&answer), want, "{header}");
        assert_eq!(answer.to_lowercase().contains("www-authenticate: bearer"), want == 401);
    }
    let health = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_eq!(status(&raw(served.address, health).await), 200);
}

#[tokio::test]
async fn a_slow_head_or_body_is_cut_off_and_holds_up_nobody() {
    let limit = Duration::from_millis(300);
    let served = up(HttpOptions::default().with_time_limits(limit, limit)).await;
    let body = post("", &initialize());
    let (head, _) = body.split_once("\r\n\r\n").unwrap();
    let begun = format!("{head}\r\n\r\n{{");
    let slow_body = raw(served.address, &begun);
    let slow_head = raw(served.address, "POST /mcp HTTP/1.1\r\nHost: loc");
    let quick = raw(served.address, &body);
    let (slow_body, slow_head, quick) = tokio::join!(slow_body, slow_head, quick);
    assert_eq!(status(&slow_body), 408, "{slow_body}");
    assert!(slow_head.is_empty() || status(&slow_head) == 408, "{slow_head}");
    assert_eq!(status(&quick), 200);
}

#[tokio::test]
async fn beyond_the_caps_requests_are_told_to_come_later() {
    let served = up(HttpOptions::default().with_caps(100, 1)).await;
    let first = session(&raw(served.address, &post("", &initialize())).await).unwrap();
    let second = raw(served.address, &post("", &initialize())).await;
    assert_eq!(status(&second), 503, "{second}");
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}";
    let known = raw(served.address, &post(&format!("Mcp-Session-Id: {first}\r\n"), ping)).await;
    assert_eq!(status(&known), 200, "an open session goes on");

    let served = up(HttpOptions::default().with_caps(0, 10)).await;
    let refused = raw(served.address, &post("", &initialize())).await;
    assert!(status(&refused) == 503 && refused.to_lowercase().contains("retry-after"), "{refused}");
}

#[tokio::test]
async fn at_the_end_standing_streams_are_closed_and_the_server_ends() {
    let mut served = up(HttpOptions::default()).await;
    let id = session(&raw(served.address, &post("", &initialize())).await).unwrap();
    let stream = format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: {id}\r\n\r\n"
    );
    let mut standing = TcpStream::connect(served.address).await.unwrap();
    standing.write_all(stream.as_bytes()).await.unwrap();
    let mut some = [0; 12];
    standing.read_exact(&mut some).await.unwrap();
    assert_eq!(&some, b"HTTP/1.1 200");
    let _ = served.end.take().unwrap().send(());
    tokio::time::timeout(PATIENCE, served.task).await.expect("the server ends").unwrap();
    assert!(TcpStream::connect(served.address).await.is_err(), "nobody listens any more");
}
