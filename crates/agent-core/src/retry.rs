//! When a failed model call is tried again, and how long the run waits before it.

use std::time::Duration;

use crate::model::{ModelError, ModelErrorKind};

/// How often and how patiently failed model calls are tried again. Waiting needs a clock: without one, a failure
/// that asks for a wait is returned.
///
/// The wait before retry *n* is drawn between nothing and `base` doubled *n*-1 times, at most `max_delay` (full
/// jitter), when the host gives randomness; else it is that upper bound. A server that says when to come back is
/// obeyed, up to a cap; above the cap the error is returned with what the server said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Attempts at one answer with one model, the first included. 4 by default.
    pub attempts: u32,
    /// The upper bound of the first wait. 1 s by default.
    pub base: Duration,
    /// No wait of our own choice is longer. 30 s by default.
    pub max_delay: Duration,
    /// The longest wait that a server may ask for. 2 min by default.
    pub max_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 4,
            base: Duration::from_secs(1),
            max_delay: Duration::from_secs(30),
            max_retry_after: Duration::from_secs(120),
        }
    }
}

impl RetryPolicy {
    /// No retries.
    pub fn never() -> Self {
        Self { attempts: 1, ..Self::default() }
    }

    /// Sets the attempts at one answer with one model, the first included.
    #[must_use]
    pub fn with_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets the bounds of our own waits.
    #[must_use]
    pub fn with_delays(mut self, base: Duration, max_delay: Duration) -> Self {
        self.base = base;
        self.max_delay = max_delay;
        self
    }

    /// Sets the longest wait that a server may ask for.
    #[must_use]
    pub fn with_max_retry_after(mut self, max: Duration) -> Self {
        self.max_retry_after = max;
        self
    }

    /// How long to wait before the attempt after the `failed`-th one, or `None` when there is none.
    /// `random` is drawn from 0 to 1, if the host gives randomness.
    pub fn delay(&self, failed: u32, error: &ModelError, random: Option<f64>) -> Option<Duration> {
        // A call that the server could not read is the model's slip: asking again at once often helps.
        let again_at_once = error.kind == ModelErrorKind::InvalidToolCall;
        if failed >= self.attempts || !(error.is_transient() || again_at_once) {
            return None;
        }
        if let Some(asked) = error.retry_after {
            return (asked <= self.max_retry_after).then_some(asked);
        }
        if again_at_once {
            return Some(Duration::ZERO);
        }
        let doublings = failed.saturating_sub(1).min(31);
        let bound = self.base.saturating_mul(1 << doublings).min(self.max_delay);
        Some(match random {
            Some(random) => bound.mul_f64(random.clamp(0.0, 1.0)),
            None => bound,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: ModelErrorKind, retry_after: Option<u64>) -> ModelError {
        let mut error = ModelError::new(kind, "x");
        error.retry_after = retry_after.map(Duration::from_secs);
        error
    }

    #[test]
    fn waits_double_up_to_a_bound_and_a_server_is_obeyed_up_to_a_cap() {
        use ModelErrorKind as K;
        let policy = RetryPolicy::default().with_attempts(40);
        let seconds = |s: u64| Some(Duration::from_secs(s));
        for (failed, error, wait) in [
            (1, error(K::Overloaded, None), seconds(1)),
            (2, error(K::Overloaded, None), seconds(2)),
            (3, error(K::Transport, None), seconds(4)),
            (39, error(K::Server, None), seconds(30)),
            (40, error(K::Server, None), None),
            (1, error(K::RateLimited, Some(120)), seconds(120)),
            (1, error(K::RateLimited, Some(0)), seconds(0)),
            (1, error(K::RateLimited, Some(121)), None),
            (1, error(K::RateLimited, Some(u64::MAX)), None),
            (1, error(K::InvalidToolCall, None), seconds(0)),
            (1, error(K::Auth, None), None),
            (1, error(K::QuotaExhausted, None), None),
        ] {
            assert_eq!(policy.delay(failed, &error, None), wait, "{failed} {error:?}");
        }
    }

    #[test]
    fn jitter_is_drawn_from_nothing_to_the_bound_and_bad_randomness_stays_inside() {
        let policy = RetryPolicy::default();
        let error = error(ModelErrorKind::Overloaded, None);
        for (random, millis) in [(0.0, 0), (0.5, 1000), (1.0, 2000), (-3.0, 0), (9.0, 2000)] {
            let wait = policy.delay(2, &error, Some(random));
            assert_eq!(wait, Some(Duration::from_millis(millis)), "{random}");
        }
    }
}
