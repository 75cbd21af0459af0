//! An HTTP client of the host's own under a model of ours: one method, bodies streamed both ways.
//!
//! This one speaks HTTP/1.0 over a plain socket: enough for a server on this machine, and small enough to see what the
//! contract asks. A host with a stack of its own (proxies, certificates, metrics) wraps it in the same way.
//!
//! ```sh
//! cargo run --bin own_http_client                                            # against the rehearsal
//! cargo run --bin own_http_client -- http://127.0.0.1:8080/v1 my-model "Hello."
//! ```

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use haversack::http::{
    Bytes, HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse, ResponseBody, StatusCode,
};
use haversack::prelude::*;
use haversack::providers::presets::openai_compatible;
use haversack_examples::rehearsal::{MODEL, Rehearsal};
use haversack_examples::terminal::plain;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// Bytes of an answer's head that are read; servers refuse requests of this size, so clients may too.
const MAX_HEAD_BYTES: u64 = 64 * 1024;
/// Bytes of a piece of the body.
const PIECE_BYTES: usize = 16 * 1024;

/// HTTP/1.0: one request, one connection, an answer that ends with it.
struct PlainSocket;

#[async_trait::async_trait]
impl HttpClient for PlainSocket {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let asked = format!("{request:?}"); // without keys: no header values, no query
        let refuse = move |what: &str| HttpError::new(HttpErrorKind::Request, format!("{what}: {asked}"));
        // No TLS here, and a key must not travel without: an address with another scheme is refused, not guessed at.
        let rest = request.url.strip_prefix("http://").ok_or_else(|| refuse("only http:// is spoken"))?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let mut head = format!("{} {} HTTP/1.0\r\nhost: {host}\r\n", request.method, path);
        for (name, value) in &request.headers {
            // A `HeaderValue` holds no line break, so nobody can smuggle in a header.
            head.push_str(&format!(
                "{name}: {}\r\n",
                value.to_str().map_err(|_| refuse("a header is no text"))?
            ));
        }
        let connect = HttpErrorKind::Connect;
        let socket = TcpStream::connect(host).await.map_err(|e| failed(connect, host, e))?;
        // The body comes in chunks; its length is needed before it, and HTTP/1.0 knows no other way to end it.
        let body: Vec<Bytes> = request.body.try_collect().await?;
        head.push_str(&format!("content-length: {}\r\n\r\n", body.iter().map(Bytes::len).sum::<usize>()));
        let mut socket = BufReader::new(socket);
        for piece in std::iter::once(Bytes::from(head)).chain(body) {
            socket.write_all(&piece).await.map_err(|e| failed(HttpErrorKind::Send, host, e))?;
        }
        read_head(socket, host).await
    }
}

/// Reads the head; the body goes on as a stream that owns the socket: dropping it closes the connection.
async fn read_head(mut socket: BufReader<TcpStream>, host: &str) -> Result<HttpResponse, HttpError> {
    let mut lines = Vec::new();
    let mut head = (&mut socket).take(MAX_HEAD_BYTES);
    loop {
        let mut line = String::new();
        let read = head.read_line(&mut line).await.map_err(|e| failed(HttpErrorKind::Send, host, e))?;
        if read == 0 {
            return Err(HttpError::new(HttpErrorKind::Send, format!("{host} ended before its answer began")));
        }
        if line.trim_end().is_empty() {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let status = lines.first().and_then(|line| line.split(' ').nth(1)?.parse::<StatusCode>().ok());
    let status =
        status.ok_or_else(|| HttpError::new(HttpErrorKind::Send, format!("{host} speaks no HTTP")))?;
    let host = host.to_owned();
    let body = stream::try_unfold((socket, host), |(mut socket, host)| async move {
        let mut piece = vec![0; PIECE_BYTES];
        match socket.read(&mut piece).await {
            Ok(0) => Ok(None),
            Ok(length) => {
                piece.truncate(length);
                Ok(Some((Bytes::from(piece), (socket, host))))
            }
            Err(error) => Err(failed(HttpErrorKind::Body, &host, error)),
        }
    });
    let mut response = HttpResponse::new(status, ResponseBody::from_stream(body));
    for (name, value) in lines.iter().skip(1).filter_map(|line| line.split_once(':')) {
        if let (Ok(name), Ok(value)) = (name.parse::<haversack::http::HeaderName>(), value.trim().parse()) {
            response = response.with_header(name, value);
        }
    }
    Ok(response)
}

fn failed(kind: HttpErrorKind, host: &str, source: std::io::Error) -> HttpError {
    HttpError::new(kind, format!("no answer from {host}")).with_source(source)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let rehearsal = Rehearsal::start(Duration::ZERO).await?;
    let base_url = arguments.next().unwrap_or_else(|| rehearsal.base_url());
    let name = arguments.next().unwrap_or_else(|| MODEL.to_owned());
    let task = arguments.next().unwrap_or_else(|| "Say what you can do.".to_owned());

    let agent = Agent::builder(openai_compatible(PlainSocket, base_url, name)).build()?;
    let mut session = Session::default();
    let mut run = agent.start(&mut session, task);
    while let Some(event) = run.next().await {
        if let Event::Text { delta, .. } = event {
            print!("{}", plain(&delta));
        }
    }
    println!("{:?}", run.outcome().await?);
    Ok(())
}
