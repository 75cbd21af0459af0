//! Connections that are cut while a call is in flight: the call ends, nothing of it is left, and the next one works.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures_core::Stream;
use haversack_http::{
    Bytes, HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse, ResponseBody, StatusCode, header,
};
use haversack_mcp_client::http::HttpOptions;
use haversack_mcp_client::{Client, ClientOptions};
use serde_json::{Map, json};

use crate::web::Web;

const URL: &str = "https://docs.example/mcp";
const EVENT: &str =
    "data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}}\n\n";

/// A server whose second and later tool calls answer on a stream that gives so many bytes, and then this.
#[derive(Clone)]
struct Cut {
    web: Web,
    bytes: usize,
    then: Then,
    open: Arc<AtomicUsize>,
    calls: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    Breaks,
    Ends,
    Hangs,
}

struct Body {
    bytes: Option<Bytes>,
    then: Then,
    open: Arc<AtomicUsize>,
}

impl Drop for Body {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Stream for Body {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match (self.bytes.take(), self.then) {
            (Some(bytes), _) => Poll::Ready(Some(Ok(bytes))),
            (None, Then::Breaks) => {
                Poll::Ready(Some(Err(HttpError::new(HttpErrorKind::Connect, "the connection was reset"))))
            }
            (None, Then::Ends) => Poll::Ready(None),
            (None, Then::Hangs) => Poll::Pending,
        }
    }
}

#[async_trait]
impl HttpClient for Cut {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let whole = request.body.try_clone();
        let response = self.web.send(request).await?;
        let is_call = self.web.seen().last().is_some_and(|seen| seen.method == "tools/call");
        if !is_call || whole.is_none() || self.calls.fetch_add(1, Ordering::SeqCst) > 0 {
            return Ok(response);
        }
        self.open.fetch_add(1, Ordering::SeqCst);
        let bytes = Bytes::copy_from_slice(&EVENT.as_bytes()[..self.bytes]);
        let body = Body { bytes: Some(bytes), then: self.then, open: Arc::clone(&self.open) };
        Ok(HttpResponse::new(StatusCode::OK, ResponseBody::from_stream(body))
            .with_header(header::CONTENT_TYPE, "text/event-stream".parse().unwrap()))
    }
}

async fn connected(bytes: usize, then: Then) -> (Client, Cut) {
    let web = Web::default().with_echo(URL);
    let cut = Cut { web, bytes, then, open: Arc::default(), calls: Arc::default() };
    let http = HttpOptions::new(URL, Arc::new(cut.clone())).with_listening(false);
    let client = Client::connect_http(http, ClientOptions::new("test", "0")).await.unwrap();
    (client, cut)
}

async fn call(client: &Client) -> Result<String, haversack_mcp_client::Error> {
    let arguments = Map::from_iter([("text".to_owned(), json!("hi"))]);
    client.call_tool("echo", arguments).await.map(|result| result.text())
}

#[tokio::test]
async fn a_call_whose_connection_is_cut_ends_with_an_error_and_the_next_one_works() {
    for then in [Then::Breaks, Then::Ends] {
        for bytes in (0..EVENT.len() - 3).step_by(7) {
            let (client, cut) = connected(bytes, then).await;
            let ended = tokio::time::timeout(Duration::from_secs(20), call(&client)).await;
            let Ok(ended) = ended else { panic!("{then:?} after {bytes} bytes: it hangs") };
            assert!(ended.is_err(), "{then:?} after {bytes} bytes: {ended:?}");
            assert_eq!(
                (client.in_flight(), cut.open.load(Ordering::SeqCst)),
                (0, 0),
                "{then:?} after {bytes}"
            );
            assert_eq!(call(&client).await.unwrap(), "hi", "{then:?} after {bytes} bytes");
            client.close().await;
        }
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_and_a_client_that_is_closed_let_go_of_their_streams() {
    for closes in [false, true] {
        let (client, cut) = connected(11, Then::Hangs).await;
        let waiting = tokio::time::timeout(Duration::from_millis(200), call(&client)).await;
        assert!(waiting.is_err() && client.in_flight() == 0, "the dropped call is not pending any more");
        if closes {
            client.close().await;
        }
        let let_go = async {
            while cut.open.load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), let_go).await.unwrap();
        if !closes {
            assert_eq!(call(&client).await.unwrap(), "hi");
            client.close().await;
        }
    }
}
