//! Streamable HTTP: the endpoint `/mcp`, and `/healthz`, on a listener of its own with bounds on everything that a client
//! can make it hold.
//!
//! ```
//! use haversack_skill_server::http::{HttpOptions, HttpServer};
//! use haversack_skill_server::{Host, SkillServer};
//! use haversack_skills::Roots;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = SkillServer::new(&Roots::new(), Host::new())?;
//! let handler = server.handler();
//! let http = HttpServer::bind("127.0.0.1:0".parse()?, HttpOptions::default(), move || handler.clone()).await?;
//! assert_ne!(http.address().port(), 0);
//! // Until the future that is handed in is ready: a signal, as a rule.
//! http.run(async {}).await;
//! # Ok(())
//! # }
//! ```

mod options;
mod front;
mod reply;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use front::Front;

pub use options::{BearerToken, HttpOptions, WeakToken};

/// Where MCP is spoken.
pub const PATH: &str = "/mcp";
/// How long what is under way may take when the server ends.
const END_LIMIT: Duration = Duration::from_secs(5);
/// Connections beyond those that requests and sessions account for: health checks, and what is just coming.
const SPARE_CONNECTIONS: usize = 64;

/// A listener that is bound and not yet served.
pub struct HttpServer<H> {
    listener: TcpListener,
    address: SocketAddr,
    front: Arc<Front<H>>,
    options: HttpOptions,
    stop: CancellationToken,
}

impl<H: ServerHandler + Send + 'static> HttpServer<H> {
    /// Binds an address; port 0 for a free one. `handler` makes what speaks with one session, or answers one request of a
    /// client without one.
    ///
    /// # Errors
    ///
    /// When the address cannot be bound.
    pub async fn bind(
        address: SocketAddr,
        options: HttpOptions,
        handler: impl Fn() -> H + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let mut sessions = LocalSessionManager::default();
        sessions.session_config.keep_alive = Some(options.session_idle);
        let sessions = Arc::new(sessions);
        let config = StreamableHttpServerConfig::default()
            .with_cancellation_token(stop.child_token())
            .with_max_request_body_bytes(options.max_body_bytes)
            .with_allowed_origins(options.origins())
            .enforce_origin_validation();
        let config = match options.hosts(address.ip()) {
            Some(hosts) => config.with_allowed_hosts(hosts),
            None => config.disable_allowed_hosts(),
        };
        let service = StreamableHttpService::new(move || Ok(handler()), Arc::clone(&sessions), config);
        let front = Arc::new(Front::new(service, sessions, &options));
        Ok(Self { listener, address, front, options, stop })
    }

    /// The address that is listened on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `end` is ready. Then nothing new is taken, sessions are closed, and what is under way has five
    /// seconds. Dropping the future ends everything at once.
    pub async fn run(self, end: impl Future<Output = ()>) {
        let mut end = pin!(end);
        let mut connections = JoinSet::new();
        let room = self.options.max_requests + self.options.max_sessions + SPARE_CONNECTIONS;
        let room = Arc::new(Semaphore::new(room.min(Semaphore::MAX_PERMITS)));
        loop {
            let accepted = async {
                let permit = Arc::clone(&room).acquire_owned().await.ok()?;
                Some((self.listener.accept().await, permit))
            };
            tokio::select! {
                () = &mut end => break,
                Some(accepted) = accepted => match accepted {
                    (Ok((stream, _)), permit) => {
                        let (front, stop, limit) =
                            (Arc::clone(&self.front), self.stop.clone(), self.options.header_limit);
                        connections.spawn(async move {
                            serve(stream, front, limit, stop).await;
                            drop(permit);
                        });
                    }
                    (Err(error), _) => {
                        // Out of descriptors, or the client is gone already: others may be served.
                        tracing::warn!(%error, "a connection was not accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
        drop(self.listener);
        self.stop.cancel();
        let ended = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(END_LIMIT, ended).await.is_err() {
            tracing::warn!("requests that were still under way are cut off");
        }
    }
}

impl<H> std::fmt::Debug for HttpServer<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpServer").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Serves one connection, until its client leaves or the server ends.
async fn serve<H: ServerHandler + Send + 'static>(
    stream: TcpStream,
    front: Arc<Front<H>>,
    header_limit: Duration,
    stop: CancellationToken,
) {
    // Answers are small and somebody waits for each.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let front = Arc::clone(&front);
        async move { Ok::<_, Infallible>(front.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_limit)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}
