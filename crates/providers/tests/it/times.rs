//! How long a call waits, on a clock that jumps, and what it says when it waited in vain.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use haversack_agent_core::model::{Model, ModelErrorKind, TimeoutPhase};
use haversack_http::{
    Bytes, HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse, ResponseBody, StatusCode,
};
use haversack_providers::{Anthropic, OpenAiChat, Timeouts};

use crate::observe::{Outcome, call, hello};

/// Sends its first pieces at once and then one piece, again and again, after the same wait each.
#[derive(Clone, Debug)]
struct Slow {
    status: u16,
    first: &'static [&'static str],
    then: &'static str,
    every: Duration,
}

#[async_trait::async_trait]
impl HttpClient for Slow {
    async fn send(&self, _: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (then, every) = (self.then, self.every);
        let rest = stream::repeat(then).then(move |piece| async move {
            tokio::time::sleep(every).await;
            piece
        });
        let pieces = stream::iter(self.first.iter().copied()).chain(rest);
        let body = ResponseBody::from_stream(pieces.map(|piece| Ok(Bytes::from_static(piece.as_bytes()))));
        Ok(HttpResponse::new(StatusCode::from_u16(self.status).unwrap(), body))
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const PING: &str = ": still here\n\n";
const TEXT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
const NEVER: Duration = Duration::from_secs(1 << 40);

fn slow(first: &'static [&'static str], then: &'static str, every: Duration) -> Slow {
    Slow { status: 200, first, then, every }
}

async fn timed(model: &dyn Model) -> (Outcome, u64) {
    let start = tokio::time::Instant::now();
    let outcome = call(model, hello()).await;
    (outcome, start.elapsed().as_secs())
}

async fn chat(http: Slow, timeouts: Timeouts) -> (Outcome, u64) {
    let model = OpenAiChat::new(http, "http://me:pw@in.memory/v1?key=k", "m").with_timeouts(timeouts);
    timed(&model).await
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_the_first_byte_then_for_the_next_and_while_there_are_only_signs_of_life() {
    let defaults = Timeouts::default();
    for (what, http, timeouts, phase, seconds, words) in [
        ("no byte", slow(&[], PING, NEVER), defaults, TimeoutPhase::FirstByte, 300, "no answer within 300 s"),
        (
            "no next byte",
            slow(&[TEXT], PING, NEVER),
            defaults,
            TimeoutPhase::Idle,
            120,
            "nothing more for 120 s",
        ),
        (
            "only comments",
            slow(&[PING], PING, MINUTE),
            defaults,
            TimeoutPhase::Idle,
            1800,
            "signs of life for 1800 s",
        ),
        (
            "only blank lines",
            slow(&["\n"], "\n", MINUTE),
            defaults,
            TimeoutPhase::Idle,
            1800,
            "signs of life",
        ),
        (
            "comments behind a text",
            slow(&[TEXT], PING, MINUTE),
            defaults.with_quiet(10 * MINUTE),
            TimeoutPhase::Idle,
            660,
            "signs of life for 600 s",
        ),
        (
            "comments without a wait",
            slow(&[TEXT], PING, Duration::from_millis(1)),
            defaults.with_quiet(MINUTE),
            TimeoutPhase::Idle,
            60,
            "signs of life for 60 s",
        ),
    ] {
        let (outcome, took) = chat(http, timeouts).await;
        let error = outcome.error.unwrap();
        assert_eq!((&error.kind, took), (&ModelErrorKind::Timeout(phase), seconds), "{what}: {error}");
        assert!(error.message.contains(words), "{what}: {error}");
        assert!(error.message.contains("http://in.memory/v1"), "{what}: {error}");
        assert!(!error.message.contains("pw") && !error.message.contains("key="), "{what}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn pings_that_are_events_are_signs_of_life_and_no_more() {
    const EVENT: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
    let model = Anthropic::new(slow(&[EVENT], EVENT, MINUTE), "http://in.memory", "m");
    let (outcome, took) = timed(&model).await;
    let error = outcome.error.unwrap();
    assert_eq!((&error.kind, took), (&ModelErrorKind::Timeout(TimeoutPhase::Idle), 1800), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_goes_on_has_no_bound_on_its_time() {
    let http = slow(&[], TEXT, Duration::from_secs(100));
    let model = OpenAiChat::new(http, "http://in.memory/v1", "m");
    let start = tokio::time::Instant::now();
    let events = model.stream(hello()).take(100).map(Result::unwrap);
    assert_eq!(events.count().await, 100);
    assert!(start.elapsed() > Duration::from_secs(9000));
}

#[tokio::test(start_paused = true)]
async fn an_error_body_that_only_drips_is_given_one_time_and_used_as_far_as_it_came() {
    let mut http = slow(&["{\"error\":{\"message\":\"no such m"], "o", Duration::from_secs(10));
    http.status = 404;
    let (outcome, took) = chat(http, Timeouts::default()).await;
    let error = outcome.error.unwrap();
    assert_eq!((error.kind.clone(), took), (ModelErrorKind::NotFound, 120), "{error}");
    assert!(error.message.contains("no such mooo"), "{error}");
}

/// Never gets anywhere, and does not say where it was going.
#[derive(Debug)]
struct Lost;

#[async_trait::async_trait]
impl HttpClient for Lost {
    async fn send(&self, _: HttpRequest) -> Result<HttpResponse, HttpError> {
        Err(HttpError::new(HttpErrorKind::Connect, "connection refused"))
    }
}

#[tokio::test]
async fn a_connection_that_fails_names_the_address_without_what_may_be_a_key() {
    let base = "http://user:pa55@10.0.0.7:8000/v1?key=k3y#f";
    let error = call(&OpenAiChat::new(Lost, base, "m"), hello()).await.error.unwrap();
    assert_eq!(error.kind, ModelErrorKind::Transport);
    assert_eq!(error.message, "openai-compatible at http://10.0.0.7:8000/v1: connection refused");
}
