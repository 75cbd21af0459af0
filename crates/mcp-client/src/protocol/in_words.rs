//! Times as people write them.

use std::time::Duration;

/// A time in the unit that a person would have set it in: `700 ms`, `30 s`, `1.5 s`, `10 min`.
pub(crate) fn in_words(time: Duration) -> String {
    const MINUTE: u64 = 60;
    let (seconds, milliseconds) = (time.as_secs(), time.subsec_millis());
    match (seconds, milliseconds) {
        (0, 0) if !time.is_zero() => format!("{} \u{b5}s", time.subsec_micros()),
        (0, _) => format!("{milliseconds} ms"),
        (_, 0) if seconds > MINUTE && seconds.is_multiple_of(MINUTE) => format!("{} min", seconds / MINUTE),
        (_, 0) => format!("{seconds} s"),
        _ => {
            let text = format!("{seconds}.{milliseconds:03}");
            format!("{} s", text.trim_end_matches('0'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_the_way_it_was_set() {
        let table = [
            (0, "0 ms"),
            (250, "250 \u{b5}s"),
            (700_000, "700 ms"),
            (1_000_000, "1 s"),
            (1_500_000, "1.5 s"),
            (30_001_653, "30.001 s"),
            (30_000_000, "30 s"),
            (60_000_000, "60 s"),
            (90_000_000, "90 s"),
            (600_000_000, "10 min"),
        ];
        for (microseconds, words) in table {
            assert_eq!(in_words(Duration::from_micros(microseconds)), words);
        }
    }
}
