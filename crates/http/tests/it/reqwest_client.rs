use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use futures_core::Stream;
use haversack_http::{
    Bytes, HttpClient, HttpErrorKind, HttpRequest, Method, RequestBody, ReqwestClient, ResponseBody,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

async fn next(body: &mut ResponseBody) -> Option<Result<Bytes, haversack_http::HttpError>> {
    poll_fn(|cx| Pin::new(&mut *body).poll_next(cx)).await
}

/// Reads a request up to the end of its body by `Content-Length`.
async fn read_request(socket: &mut TcpStream) -> String {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&seen).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned))
                .map_or(0, |n| n.parse::<usize>().unwrap());
            if body.len() >= length {
                return text;
            }
        }
        let n = socket.read(&mut buffer).await.unwrap();
        assert!(n > 0, "the client hung up after {text:?}");
        seen.extend_from_slice(&buffer[..n]);
    }
}

async fn server() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/a", listener.local_addr().unwrap());
    (listener, url)
}

#[tokio::test]
async fn chunks_go_out_under_one_content_length_and_the_answer_streams_in() {
    let (listener, url) = server().await;
    let peer = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let request = read_request(&mut socket).await;
        socket
            .write_all(b"HTTP/1.1 201 Created\r\nx-a: b\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n")
            .await
            .unwrap();
        socket.flush().await.unwrap();
        socket.write_all(b"3\r\ntwo\r\n0\r\n\r\n").await.unwrap();
        request
    });
    let body = RequestBody::from_chunks((0..40).map(|n| Bytes::from(format!("[{n}]"))));
    let length = body.length().unwrap();
    let client = ReqwestClient::new().unwrap();
    let response = client.send(HttpRequest::new(Method::POST, url).with_body(body)).await.unwrap();
    assert_eq!((response.status.as_u16(), response.header("x-a")), (201, Some("b")));
    let mut text = Vec::new();
    let mut body = response.body;
    while let Some(chunk) = next(&mut body).await {
        text.extend_from_slice(&chunk.unwrap());
    }
    assert_eq!(text, b"onetwo");
    let request = peer.await.unwrap();
    assert!(request.contains(&format!("content-length: {length}")), "{request}");
    assert!(request.ends_with("[0][1][2]") || request.ends_with("[38][39]"), "{request}");
}

#[tokio::test]
async fn redirects_are_answers_and_the_key_stays_here() {
    let (listener, url) = server().await;
    let peer = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        let location = format!("http://{}/elsewhere", listener.local_addr().unwrap());
        let head =
            format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        socket.write_all(head.as_bytes()).await.unwrap();
        // Nothing else may come, on this connection or a new one, before the client is gone.
        let mut rest = Vec::new();
        socket.read_to_end(&mut rest).await.unwrap();
        rest
    });
    let client = ReqwestClient::new().unwrap();
    let request = HttpRequest::new(Method::POST, url).try_with_header("authorization", "Bearer k").unwrap();
    let response = client.send(request).await.unwrap();
    assert_eq!(response.status.as_u16(), 307);
    drop((response, client));
    assert!(peer.await.unwrap().is_empty());
}

#[tokio::test]
async fn dropping_the_body_closes_the_connection() {
    let (listener, url) = server().await;
    let peer = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        socket.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n").await.unwrap();
        let mut rest = Vec::new();
        // Ends only because the client closes.
        let _ = socket.read_to_end(&mut rest).await;
    });
    let client = ReqwestClient::new().unwrap();
    let mut response = client.send(HttpRequest::new(Method::GET, url)).await.unwrap();
    assert_eq!(next(&mut response.body).await.unwrap().unwrap(), "one");
    drop(response);
    peer.await.unwrap();
}

#[tokio::test]
async fn a_connection_that_breaks_is_told_apart_from_one_that_ends() {
    let (listener, url) = server().await;
    let peer = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\none").await.unwrap();
    });
    let client = ReqwestClient::new().unwrap();
    let mut response = client.send(HttpRequest::new(Method::GET, url + "?key=s3cret")).await.unwrap();
    let mut last = None;
    while let Some(chunk) = next(&mut response.body).await {
        last = Some(chunk);
    }
    let error = last.unwrap().unwrap_err();
    assert_eq!(error.kind, HttpErrorKind::Body);
    assert!(!format!("{error:?} {}", error.chain()).contains("s3cret"), "{error:?}");
    peer.await.unwrap();
}

#[tokio::test]
async fn a_closed_port_is_a_connect_error_that_names_the_server_and_no_query() {
    let (listener, url) = server().await;
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let client = ReqwestClient::new().unwrap();
    let error = client.send(HttpRequest::new(Method::GET, url + "?key=s3cret")).await.unwrap_err();
    assert_eq!(error.kind, HttpErrorKind::Connect);
    assert!(error.message.contains(&address), "{}", error.message);
    assert!(!format!("{error:?} {}", error.chain()).contains("s3cret"), "{error:?}");
    let error = client.send(HttpRequest::new(Method::GET, "no address")).await.unwrap_err();
    assert_eq!(error.kind, HttpErrorKind::Request);
}

#[test]
fn without_a_runtime_sending_is_an_error_and_no_panic() {
    let client = ReqwestClient::new().unwrap();
    let mut future = client.send(HttpRequest::new(Method::GET, "http://127.0.0.1:1/"));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let Poll::Ready(Err(error)) = future.as_mut().poll(&mut cx) else { panic!("it waits") };
    assert_eq!(error.kind, HttpErrorKind::Request);
}
