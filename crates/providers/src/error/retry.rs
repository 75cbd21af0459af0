//! When to try again, from everything that servers say about it.
//!
//! `x-should-retry` is the server's verdict (OpenAI, Anthropic). `retry-after-ms` is milliseconds, `retry-after`
//! seconds, whole or not, or an HTTP date (RFC 9110, section 10.2.3). Google has no header: the wait stands in the
//! body, in the detail whose type ends in `RetryInfo`. The longest wait given counts, and at least 100 ms: one server
//! was seen to send `retry-after: 1` beside `retry-after-ms: 0`, and zero would mean to hammer it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haversack_http::HeaderMap;
use serde_json::{Map, Value};

/// The shortest wait that is reported.
const MIN_WAIT: Duration = Duration::from_millis(100);

/// The longest wait that is reported: a day. What is longer is a mistake or a closed account.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// What a server said about another try.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Hints {
    /// How long to wait.
    pub(crate) wait: Option<Duration>,
    /// Whether to try at all.
    pub(crate) retryable: Option<bool>,
}

pub(crate) fn hints(headers: &HeaderMap, details: &[&Map<String, Value>], now: SystemTime) -> Hints {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let retryable = match header("x-should-retry") {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    };
    let waits = [
        header("retry-after-ms").and_then(number).map(|ms| ms / 1000.0),
        header("retry-after")
            .and_then(|text| number(text).or_else(|| seconds_until(text, header("date"), now))),
        details.iter().find_map(|detail| retry_info(detail)),
    ];
    let wait = waits.into_iter().flatten().reduce(f64::max);
    let wait = wait.map(|s| Duration::from_secs_f64(s.clamp(0.0, MAX_WAIT.as_secs_f64())).max(MIN_WAIT));
    Hints { wait, retryable }
}

fn number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0)
}

/// `{"@type": "…RetryInfo", "retryDelay": "34.4s"}`
fn retry_info(detail: &Map<String, Value>) -> Option<f64> {
    detail.get("@type")?.as_str()?.ends_with("RetryInfo").then_some(())?;
    number(detail.get("retryDelay")?.as_str()?.strip_suffix('s')?)
}

/// Seconds until an HTTP date: by the server's own clock if it gave one, else by ours.
fn seconds_until(date: &str, servers_now: Option<&str>, now: SystemTime) -> Option<f64> {
    let then = unix_seconds(date)?;
    let now = servers_now.and_then(unix_seconds).or_else(|| {
        let since = now.duration_since(UNIX_EPOCH).ok()?;
        i64::try_from(since.as_secs()).ok()
    })?;
    let wait = u32::try_from(then.saturating_sub(now).max(0)).unwrap_or(u32::MAX);
    Some(f64::from(wait))
}

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT`, the one form that may be sent today (RFC 9110, section 5.6.7).
fn unix_seconds(date: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = date.split_once(", ")?.1.split_ascii_whitespace();
    let day: i64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = i64::try_from(MONTHS.iter().position(|name| *name == month)? + 1).ok()?;
    let year: i64 = words.next()?.parse().ok()?;
    let mut clock = words.next()?.split(':').map(|part| part.parse::<i64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    (words.next()? == "GMT" && (1970..10_000).contains(&year) && (1..=31).contains(&day)).then_some(())?;
    // Days since 1970 in the proleptic Gregorian calendar, with years that begin in March so that leap days come last.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use haversack_http::{HeaderName, HeaderValue};
    use serde_json::json;

    fn of(headers: &[(&'static str, &str)], details: &Value) -> (Option<u64>, Option<bool>) {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect();
        let details: Vec<_> = details.as_array().unwrap().iter().filter_map(Value::as_object).collect();
        // Tue, 10 Nov 2026 00:00:00 GMT
        let now = UNIX_EPOCH + Duration::from_secs(1_794_268_800);
        let hints = hints(&headers, &details, now);
        (hints.wait.map(|w| u64::try_from(w.as_millis()).unwrap()), hints.retryable)
    }

    #[test]
    fn waits_are_read_from_every_place() {
        let none = json!([]);
        for (headers, wait) in [
            (&[][..], None),
            (&[("retry-after", "2")], Some(2000)),
            (&[("retry-after", "0.5")], Some(500)),
            (&[("retry-after", "0")], Some(100)),
            (&[("retry-after", "-3")], None),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "1e300")], Some(86_400_000)),
            (&[("retry-after-ms", "250")], Some(250)),
            (&[("retry-after-ms", "0"), ("retry-after", "1")], Some(1000)),
            (&[("retry-after", "Tue, 10 Nov 2026 00:00:30 GMT")], Some(30_000)),
            (&[("retry-after", "Mon, 09 Nov 2026 00:00:30 GMT")], Some(100)),
            (
                &[
                    ("retry-after", "Tue, 10 Nov 2026 00:00:30 GMT"),
                    ("date", "Tue, 10 Nov 2026 00:00:20 GMT"),
                ],
                Some(10_000),
            ),
            (&[("retry-after", "Tuesday, 10-Nov-26 00:00:30 GMT")], None),
        ] {
            assert_eq!(of(headers, &none).0, wait, "{headers:?}");
        }
        let details = json!([
            {"@type": "type.googleapis.com/google.rpc.Help"},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"},
        ]);
        assert_eq!(of(&[], &details).0, Some(34_400));
    }

    #[test]
    fn the_servers_verdict_is_kept() {
        for (value, verdict) in [("true", Some(true)), ("false", Some(false)), ("maybe", None)] {
            assert_eq!(of(&[("x-should-retry", value)], &json!([])).1, verdict);
        }
    }

    #[test]
    fn dates_are_counted_over_leap_years() {
        for (date, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 29 Feb 2024 12:00:00 GMT", Some(1_709_208_000)),
            ("Fri, 01 Mar 2024 00:00:00 GMT", Some(1_709_251_200)),
            ("nonsense", None),
            ("Thu, 01 Foo 1970 00:00:00 GMT", None),
            ("Thu, 01 Jan 1970 00:00:00 PST", None),
        ] {
            assert_eq!(unix_seconds(date), seconds, "{date}");
        }
    }
}
