//! The browser step for programs on the user's own machine ([RFC 8252](https://www.rfc-editor.org/rfc/rfc8252), section 7.3).

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::oauth::browser::{AuthorizationRequest, Browser};

/// The path that the browser comes back to.
const PATH: &str = "/callback";
/// The most bytes of a request that are read: its first line holds all that matters.
const MAX_REQUEST_BYTES: usize = 16 << 10;
/// How long one connection may take to say what it wants. Browsers open some that say nothing.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

/// Listens on this machine's loopback address for the browser to come back, and leaves opening it to the host.
///
/// ```no_run
/// use haversack_mcp_client::oauth::LoopbackBrowser;
///
/// # async fn run() -> std::io::Result<()> {
/// let browser = LoopbackBrowser::bind(|request| {
///     println!("{} wants you to agree: open {}", request.issuer, request.url);
///     Ok(())
/// })
/// .await?;
/// # Ok(())
/// # }
/// ```
pub struct LoopbackBrowser {
    listener: TcpListener,
    redirect_uri: String,
    open: Box<Open>,
}

type Open = dyn Fn(&AuthorizationRequest) -> Result<(), Box<dyn Error + Send + Sync>> + Send + Sync;

impl LoopbackBrowser {
    /// Listens on a free port of 127.0.0.1. `open` shows the user the address, or opens a browser with it; it must not
    /// block for long.
    ///
    /// # Errors
    ///
    /// When the port cannot be had.
    pub async fn bind(
        open: impl Fn(&AuthorizationRequest) -> Result<(), Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let redirect_uri = format!("http://127.0.0.1:{}{PATH}", listener.local_addr()?.port());
        Ok(Self { listener, redirect_uri, open: Box::new(open) })
    }
}

impl fmt::Debug for LoopbackBrowser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopbackBrowser").field("redirect_uri", &self.redirect_uri).finish_non_exhaustive()
    }
}

#[async_trait]
impl Browser for LoopbackBrowser {
    fn redirect_uri(&self) -> String {
        self.redirect_uri.clone()
    }

    async fn visit(&self, request: &AuthorizationRequest) -> Result<String, Box<dyn Error + Send + Sync>> {
        (self.open)(request)?;
        loop {
            let (stream, _) = self.listener.accept().await?;
            // Whoever connects and says nothing, or asks for an icon, is not who is waited for.
            let came = tokio::time::timeout(CONNECTION_TIMEOUT, came_back(stream)).await;
            if let Ok(Ok(Some(target))) = came {
                return Ok(target);
            }
        }
    }
}

/// What the browser was sent back with, if this connection is it coming back.
async fn came_back(mut stream: TcpStream) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut piece = [0; 2048];
    while !head.contains(&b'\n') && head.len() < MAX_REQUEST_BYTES {
        let read = stream.read(&mut piece).await?;
        if read == 0 {
            break;
        }
        head.extend_from_slice(piece.get(..read).unwrap_or_default());
    }
    let target = target(&head);
    let (status, text) = match &target {
        Some(_) => ("200 OK", "Thank you. You can close this window and go back to the program."),
        None => ("404 Not Found", "Nothing is here."),
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(target)
}

/// The target of a request for the redirect address with a query.
fn target(head: &[u8]) -> Option<String> {
    let line = head.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let (method, target) = (words.next()?, words.next()?);
    let (path, query) = target.split_once('?')?;
    (method == "GET" && path == PATH && !query.is_empty()).then(|| target.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_get_of_the_redirect_address_with_a_query_is_the_browser_coming_back() {
        let cases = [
            ("GET /callback?code=1 HTTP/1.1\r\nHost: x\r\n\r\n", Some("/callback?code=1")),
            ("GET /callback?code=1", Some("/callback?code=1")),
            ("POST /callback?code=1 HTTP/1.1\r\n", None),
            ("GET /callback HTTP/1.1\r\n", None),
            ("GET /callback? HTTP/1.1\r\n", None),
            ("GET /favicon.ico HTTP/1.1\r\n", None),
            ("GET /callback/../x?code=1 HTTP/1.1\r\n", None),
            ("\r\n", None),
            ("", None),
        ];
        for (head, expected) in cases {
            assert_eq!(target(head.as_bytes()).as_deref(), expected, "{head:?}");
        }
        assert_eq!(target(b"GET /callback?\xff HTTP/1.1\r\n"), None);
    }

    #[tokio::test]
    async fn the_browser_is_waited_for_past_others_that_connect() {
        let browser = LoopbackBrowser::bind(|_| Ok(())).await.unwrap();
        let address = browser.listener.local_addr().unwrap();
        let request = AuthorizationRequest {
            url: "https://auth.example/authorize".to_owned(),
            server: "https://mcp.example".to_owned(),
            issuer: "https://auth.example".to_owned(),
            scopes: Vec::new(),
        };
        let others = async {
            // One hangs up at once, one asks for something else, one splits its request.
            drop(TcpStream::connect(address).await.unwrap());
            for pieces in [
                &["GET /favicon.ico HTTP/1.1\r\n\r\n"][..],
                &["GET /call", "back?code=1&state=2 HTTP/1.1\r\n\r\n"],
            ] {
                let mut stream = TcpStream::connect(address).await.unwrap();
                for piece in pieces {
                    stream.write_all(piece.as_bytes()).await.unwrap();
                    tokio::task::yield_now().await;
                }
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await.unwrap();
                assert!(answer.starts_with("HTTP/1.1 "), "{answer}");
            }
        };
        let (came, ()) = tokio::join!(browser.visit(&request), others);
        assert_eq!(came.unwrap(), "/callback?code=1&state=2");
    }
}
