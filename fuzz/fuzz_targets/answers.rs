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

/// What a broken server can do to previews: where an API says everything twice, the second time counts and the first was
/// shown; where blocks may overlap, the previews of two texts mix.
#[allow(dead_code, reason = "only for the APIs that allow it")]
pub const PREVIEWS: &str = "preview";

/// Reads an answer of any bytes: it ends, keeps the contract of its events but the rules that hold this word, and reads the
/// same in all pieces.
pub fn read_but(excused: &str, make: impl Fn(Canned) -> Box<dyn Model>, body: &[u8]) {
    let answer = |piece| events(&*make(Canned { body: body.to_vec(), piece }));
    let whole = answer(usize::MAX);
    let mut findings = check_events(&whole);
    findings.retain(|finding| excused.is_empty() || !finding.rule.contains(excused));
    assert!(findings.is_empty(), "{findings:?}\n{whole:#?}");
    for piece in [1, 7] {
        assert_eq!(answer(piece), whole, "in pieces of {piece}");
    }
}

/// As [`read_but`], with nothing excused.
#[allow(dead_code, reason = "as above")]
pub fn read(make: impl Fn(Canned) -> Box<dyn Model>, body: &[u8]) {
    read_but("", make, body);
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
