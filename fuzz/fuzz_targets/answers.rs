//! What the targets for the APIs of model providers share.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use futures_core::Stream as _;
use haversack_agent_core::message::Message;
use haversack_agent_core::model::{Model, ModelError, ModelEvent, ModelRequest};
use haversack_agent_core::testing::check_events;
use haversack_http::{Bytes, HttpClient, HttpError, HttpRequest, HttpResponse, ResponseBody, StatusCode};

/// Answers every request with the same bytes, in pieces.
#[derive(Debug)]
pub struct Canned {
    body: Vec<u8>,
    piece: usize,
}

#[async_trait::async_trait]
impl HttpClient for Canned {
    async fn send(&self, _: HttpRequest) -> Result<HttpResponse, HttpError> {
        let pieces: Vec<_> = self.body.chunks(self.piece).map(Bytes::copy_from_slice).collect();
        Ok(HttpResponse::new(StatusCode::OK, ResponseBody::from_chunks(pieces)))
    }
}

/// Reads an answer of any bytes: it ends, keeps the contract of its events, and reads the same in all pieces.
pub fn read(make: impl Fn(Canned) -> Box<dyn Model>, body: &[u8]) {
    let answer = |piece| events(&*make(Canned { body: body.to_vec(), piece }));
    let whole = answer(usize::MAX);
    let findings = check_events(&whole);
    assert!(findings.is_empty(), "{findings:?}\n{whole:#?}");
    for piece in [1, 7] {
        assert_eq!(answer(piece), whole, "in pieces of {piece}");
    }
}

fn events(model: &dyn Model) -> Vec<Result<ModelEvent, ModelError>> {
    let mut stream = pin!(model.stream(ModelRequest::new([Message::user("x")].into_iter().collect())));
    let mut context = Context::from_waker(Waker::noop());
    let mut events = Vec::new();
    // All is in memory, so whoever waits would wait for ever.
    loop {
        match stream.as_mut().poll_next(&mut context) {
            Poll::Ready(Some(event)) => events.push(event),
            Poll::Ready(None) => return events,
            Poll::Pending => panic!("the answer is here, and it waits"),
        }
    }
}
