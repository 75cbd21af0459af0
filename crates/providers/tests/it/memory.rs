//! An HTTP client that answers from memory and keeps what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::{StreamExt as _, stream};
use haversack_http::{
    Bytes, HeaderMap, HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse, ResponseBody,
    StatusCode,
};

/// A request as it was sent.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }
}

/// An answer to give.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    /// The size of the pieces that it comes in.
    pub(crate) piece: usize,
    /// Breaks the connection after the body instead of ending it.
    pub(crate) breaks: bool,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), piece: usize::MAX, breaks: false }
    }
}

/// Answers requests in order with what it was given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    replies: Mutex<VecDeque<Reply>>,
    seen: Mutex<Vec<Seen>>,
}

impl Memory {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let inner = Inner { replies: Mutex::new(replies.into_iter().collect()), seen: Mutex::default() };
        Self(Arc::new(inner))
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.0.seen.lock().unwrap().clone()
    }

    /// The only request there was.
    pub(crate) fn only(&self) -> Seen {
        let [seen] = &self.seen()[..] else { panic!("{} requests", self.seen().len()) };
        seen.clone()
    }
}

#[async_trait::async_trait]
impl HttpClient for Memory {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let HttpRequest { url, headers, mut body, .. } = request;
        let mut bytes = Vec::new();
        while let Some(chunk) = body.next().await {
            bytes.extend_from_slice(&chunk?);
        }
        self.0.seen.lock().unwrap().push(Seen { url, headers, body: bytes });
        let Some(reply) = self.0.replies.lock().unwrap().pop_front() else {
            return Err(HttpError::new(HttpErrorKind::Connect, "nothing more to answer"));
        };
        let mut chunks: Vec<Result<Bytes, HttpError>> =
            reply.body.chunks(reply.piece.max(1)).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        if reply.breaks {
            chunks.push(Err(HttpError::new(HttpErrorKind::Body, "the connection was reset")));
        }
        let body = ResponseBody::from_stream(stream::iter(chunks));
        let mut response = HttpResponse::new(StatusCode::from_u16(reply.status).unwrap(), body);
        for (name, value) in reply.headers {
            response.headers.insert(name, value.parse().unwrap());
        }
        Ok(response)
    }
}
