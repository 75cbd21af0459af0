//! Bodies: a list of chunks or a stream of them, the same in both directions.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;

use crate::error::HttpError;

type Chunks = Pin<Box<dyn Stream<Item = Result<Bytes, HttpError>> + Send>>;

enum Source {
    Chunks(VecDeque<Bytes>),
    Stream(Chunks),
}

impl Source {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, HttpError>>> {
        match self {
            Self::Chunks(chunks) => Poll::Ready(chunks.pop_front().map(Ok)),
            Self::Stream(stream) => stream.as_mut().poll_next(cx),
        }
    }

    fn waiting(&self) -> Option<u64> {
        let Self::Chunks(chunks) = self else { return None };
        Some(chunks.iter().map(|c| c.len() as u64).sum())
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Sizes only: bodies hold other people's words.
        match self {
            Self::Chunks(chunks) => {
                write!(f, "{} bytes in {} chunks", self.waiting().unwrap_or(0), chunks.len())
            }
            Self::Stream(_) => f.write_str("stream"),
        }
    }
}

fn list(chunk: Bytes) -> Source {
    Source::Chunks(if chunk.is_empty() { VecDeque::new() } else { VecDeque::from([chunk]) })
}

/// The body of a request. A [`Stream`] of its chunks, for whoever sends it.
///
/// A body made of chunks is sent chunk by chunk without being joined, with a `Content-Length`; that is how a
/// provider sends a long history of which only the end is new.
#[derive(Debug)]
pub struct RequestBody {
    source: Source,
    length: Option<u64>,
}

impl RequestBody {
    /// No body.
    pub fn empty() -> Self {
        Self::from_chunks([])
    }

    /// Bytes in pieces, sent in order. Empty pieces are left out.
    pub fn from_chunks(chunks: impl IntoIterator<Item = Bytes>) -> Self {
        let source = Source::Chunks(chunks.into_iter().filter(|c| !c.is_empty()).collect());
        Self { length: source.waiting(), source }
    }

    /// Bytes that are made while they are sent. With a `length` in bytes they go out under that `Content-Length`,
    /// else in chunked transfer coding.
    pub fn from_stream(
        stream: impl Stream<Item = Result<Bytes, HttpError>> + Send + 'static,
        length: Option<u64>,
    ) -> Self {
        Self { source: Source::Stream(Box::pin(stream)), length }
    }

    /// The length of the whole body in bytes, where it is known beforehand.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// The same body once more, for a second try; none for a body that is a stream. Copies no bytes.
    pub fn try_clone(&self) -> Option<Self> {
        let Source::Chunks(chunks) = &self.source else { return None };
        Some(Self { source: Source::Chunks(chunks.clone()), length: self.length })
    }
}

impl Default for RequestBody {
    fn default() -> Self {
        Self::empty()
    }
}

impl<B: Into<Bytes>> From<B> for RequestBody {
    fn from(bytes: B) -> Self {
        Self::from_chunks([bytes.into()])
    }
}

impl Stream for RequestBody {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.source.poll_chunk(cx)
    }
}

/// The body of an answer. A [`Stream`] of its chunks as they arrive; dropping it closes the connection, which is
/// what makes a model server stop generating.
#[derive(Debug)]
pub struct ResponseBody(Source);

impl ResponseBody {
    /// A body that arrives in pieces.
    pub fn from_stream(stream: impl Stream<Item = Result<Bytes, HttpError>> + Send + 'static) -> Self {
        Self(Source::Stream(Box::pin(stream)))
    }

    /// A body that is here already, in these pieces.
    pub fn from_chunks(chunks: impl IntoIterator<Item = Bytes>) -> Self {
        Self(Source::Chunks(chunks.into_iter().collect()))
    }
}

impl<B: Into<Bytes>> From<B> for ResponseBody {
    fn from(bytes: B) -> Self {
        Self(list(bytes.into()))
    }
}

impl Stream for ResponseBody {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_chunk(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_chunks_knows_its_length_and_can_be_sent_twice() {
        let body = RequestBody::from_chunks([Bytes::from("ab"), Bytes::new(), Bytes::from("c")]);
        assert_eq!(body.length(), Some(3));
        let mut again = body.try_clone().unwrap();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut seen = Vec::new();
        while let Poll::Ready(Some(Ok(chunk))) = Pin::new(&mut again).poll_next(&mut cx) {
            seen.push(chunk);
        }
        assert_eq!(seen, [Bytes::from("ab"), Bytes::from("c")]);
        assert_eq!(body.length(), Some(3));
    }

    #[test]
    fn debug_text_tells_sizes_and_never_contents() {
        let body = RequestBody::from("a secret");
        assert!(!format!("{body:?}").contains("secret"));
        assert!(!format!("{:?}", ResponseBody::from("a secret")).contains("secret"));
    }
}
