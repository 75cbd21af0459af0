//! What a program needs that is measured beside peers: its flags, samples of times, what the process used, and the one
//! line of JSON that it prints last.
//!
//! A contestant is a program of its own, built alone, so that no crate's features leak into another's. It takes
//! `--key value` flags, checks what it did (a wrong answer is a panic, never a figure), and prints its report:
//!
//! ```no_run
//! use haversack_benches::contest::{Flags, Report, Resources, Sample};
//!
//! let flags = Flags::of_process();
//! let mut sample = Sample::default();
//! let before = Resources::now();
//! for _ in 0..flags.number("iters", 1_000) {
//!     sample.time(|| { /* one unit of work */ });
//! }
//! Report::new("suite", "ours", flags.text("case", "plain")).sample(&sample).used_since(before).print();
//! ```
//!
//! Two runs are compared by ratios to a floor that ran in the same minutes, never by absolute times.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

/// The `--key value` flags of a contestant. A key without a value has the value `1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags(BTreeMap<String, String>);

impl Flags {
    /// The flags that this process was started with.
    pub fn of_process() -> Self {
        Self::read(std::env::args().skip(1))
    }

    /// Reads flags. The last one of a name counts; words that belong to no flag are passed over.
    pub fn read(words: impl IntoIterator<Item = String>) -> Self {
        let mut flags = BTreeMap::new();
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            if let Some(key) = word.strip_prefix("--") {
                let value = words.next_if(|next| !next.starts_with("--")).unwrap_or_else(|| "1".to_owned());
                flags.insert(key.to_owned(), value);
            }
        }
        Self(flags)
    }

    /// The value of a flag, where it was given.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// The value of a flag, or this.
    pub fn text<'a>(&'a self, key: &str, or: &'a str) -> &'a str {
        self.get(key).unwrap_or(or)
    }

    /// The number that a flag holds, or this.
    ///
    /// # Panics
    ///
    /// When the value is no such number.
    pub fn number<N: FromStr>(&self, key: &str, or: N) -> N {
        self.get(key).map_or(or, |text| {
            text.parse().unwrap_or_else(|_| panic!("--{key} wants a number, not `{text}`"))
        })
    }

    /// The value of a flag that has to be there.
    ///
    /// # Panics
    ///
    /// When it is not.
    pub fn required(&self, key: &str) -> &str {
        self.get(key).unwrap_or_else(|| panic!("--{key} is missing"))
    }
}

/// Durations of one kind of work.
#[derive(Clone, Debug, Default)]
pub struct Sample(Vec<Duration>);

impl Sample {
    /// Adds one.
    pub fn push(&mut self, took: Duration) {
        self.0.push(took);
    }

    /// Does the work and adds how long it took.
    pub fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let made = work();
        self.push(start.elapsed());
        made
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The duration that this share of the sample does not exceed (nearest rank), in microseconds; 0 for an empty one.
    pub fn percentile_us(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len().saturating_sub(1) as f64 * share).round() as usize;
        sorted.get(rank).copied().map_or(0.0, micros)
    }

    /// The mean in microseconds; 0 for an empty sample.
    pub fn mean_us(&self) -> f64 {
        micros(self.0.iter().sum()) / self.len().max(1) as f64
    }

    /// The median of each tenth of the sample, in the order in which it was taken: does the cost grow?
    pub fn tenths_us(&self) -> Vec<f64> {
        let tenth = (self.len() / 10).max(1);
        self.0.chunks(tenth).take(10).map(|part| Self(part.to_vec()).percentile_us(0.5)).collect()
    }
}

impl FromIterator<Duration> for Sample {
    fn from_iter<I: IntoIterator<Item = Duration>>(durations: I) -> Self {
        Self(durations.into_iter().collect())
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// Moments that are marked by what is being measured, such as a scripted model at the start of each turn: the time
/// between two marks is all that was spent on one step.
#[derive(Clone, Debug, Default)]
pub struct Marks(Arc<Mutex<Vec<Instant>>>);

impl Marks {
    /// Marks this moment. Returns how many were marked before.
    pub fn mark(&self) -> usize {
        let mut marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        marks.push(Instant::now());
        marks.len() - 1
    }

    /// The times between the marks.
    pub fn steps(&self) -> Sample {
        let marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        marks.iter().zip(marks.iter().skip(1)).map(|(from, to)| *to - *from).collect()
    }
}

/// The processor time that this process has used, all its threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// In its own code.
    pub user: Duration,
    /// In the kernel on its behalf.
    pub system: Duration,
}

impl Resources {
    /// What has been used up to now. Nothing where the system does not say (only Unix does).
    pub fn now() -> Self {
        #[cfg(unix)]
        {
            use nix::sys::resource::{UsageWho, getrusage};
            use nix::sys::time::TimeVal;
            let duration = |time: TimeVal| {
                Duration::new(time.tv_sec().unsigned_abs(), time.tv_usec().unsigned_abs() as u32 * 1_000)
            };
            let used = getrusage(UsageWho::RUSAGE_SELF).expect("a process may ask about itself");
            Self { user: duration(used.user_time()), system: duration(used.system_time()) }
        }
        #[cfg(not(unix))]
        Self::default()
    }

    /// What was used between an earlier moment and this one.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
        }
    }

    /// Both together.
    pub fn cpu(self) -> Duration {
        self.user + self.system
    }
}

/// A field of `/proc/self/status` (`VmRSS`, `VmHWM`, …) or `/proc/self/smaps_rollup` (`Pss`, `Private_Dirty`) in KiB.
/// `None` where there is no such file or field.
pub fn memory_kib(field: &str) -> Option<u64> {
    ["/proc/self/status", "/proc/self/smaps_rollup"].into_iter().find_map(|file| {
        let text = std::fs::read_to_string(file).ok()?;
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
        value.trim().trim_end_matches("kB").trim().parse().ok()
    })
}

/// How many threads this process has. `None` where `/proc` does not say.
pub fn threads() -> Option<u64> {
    Some(std::fs::read_dir("/proc/self/task").ok()?.count() as u64)
}

/// What a contestant found out, as one line of JSON.
#[derive(Clone, Debug)]
pub struct Report(Map<String, Value>);

impl Report {
    /// A report of one case.
    pub fn new(suite: &str, contestant: &str, case: &str) -> Self {
        Self(Map::new()).with("suite", suite).with("impl", contestant).with("case", case)
    }

    /// Adds a figure.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// Adds the size, median, 99th percentile, minimum and mean of a sample.
    #[must_use]
    pub fn sample(self, sample: &Sample) -> Self {
        self.with("n", sample.len())
            .with("p50_us", sample.percentile_us(0.5))
            .with("p99_us", sample.percentile_us(0.99))
            .with("min_us", sample.percentile_us(0.0))
            .with("mean_us", sample.mean_us())
    }

    /// Adds the processor time since a moment, and the peak of the process's memory. (The peak is `VmHWM`: that of
    /// `getrusage` starts at the size of the process that forked this one.)
    #[must_use]
    pub fn used_since(self, before: Resources) -> Self {
        let used = Resources::now().since(before);
        self.with("user_us", used.user.as_micros() as u64)
            .with("sys_us", used.system.as_micros() as u64)
            .with("maxrss_kib", memory_kib("VmHWM"))
    }

    /// The line.
    pub fn line(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }

    /// Prints the line. The last thing that a contestant does.
    pub fn print(&self) {
        println!("{}", self.line());
    }
}

/// A server that a contestant talks to: a program that prints `PORT n` as its first line and ends with its input.
#[derive(Debug)]
pub struct StubServer {
    child: Child,
    port: u16,
}

impl StubServer {
    /// Starts it and waits for its port.
    ///
    /// # Errors
    ///
    /// The program cannot be started, or its first line is another one.
    pub fn start(program: &str, arguments: &[&str]) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let Some(port) = line.trim().strip_prefix("PORT ").and_then(|port| port.parse().ok()) else {
            let _ = (child.kill(), child.wait());
            return Err(io::Error::other(format!("{program} wrote {line:?} and not its port")));
        };
        Ok(Self { child, port })
    }

    /// Where it listens, on the loopback address.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for StubServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(line: &str) -> Flags {
        Flags::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn flags_have_values_defaults_and_a_one_where_nothing_follows() {
        let flags = flags("word --case seq --quick --iters 7 --iters 9");
        assert_eq!((flags.text("case", "x"), flags.text("size", "x")), ("seq", "x"));
        assert_eq!(
            (flags.number("quick", 0), flags.number("iters", 0), flags.number("warmup", 3)),
            (1, 9, 3)
        );
        assert_eq!((flags.required("case"), flags.get("word")), ("seq", None));
    }

    #[test]
    #[should_panic(expected = "--iters wants a number, not `many`")]
    fn a_flag_that_is_no_number_is_named() {
        flags("--iters many").number::<u64>("iters", 0);
    }

    #[test]
    fn percentiles_are_nearest_ranks_and_an_empty_sample_has_none() {
        let sample: Sample = (1..=101).rev().map(Duration::from_micros).collect();
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|share| sample.percentile_us(share)), [1.0, 51.0, 100.0, 101.0]);
        assert_eq!(sample.mean_us(), 51.0);
        let empty = Sample::default();
        assert_eq!((empty.percentile_us(0.5), empty.mean_us(), empty.tenths_us()), (0.0, 0.0, vec![]));
    }

    #[test]
    fn tenths_keep_the_order_in_which_the_sample_was_taken() {
        let sample: Sample = (0..100).map(|n| Duration::from_micros(n / 10)).collect();
        assert_eq!(sample.tenths_us(), (0..10).map(f64::from).collect::<Vec<_>>());
    }

    #[test]
    fn a_report_is_one_line_of_json_whatever_its_texts_hold() {
        let before = Resources::now();
        let report =
            Report::new("agent", "ours", "a \"case\"\n").sample(&Sample::default()).used_since(before);
        let line = report.line();
        assert!(!line.contains('\n'));
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (&read["impl"], &read["case"], &read["n"]),
            (&"ours".into(), &"a \"case\"\n".into(), &0.into())
        );
        assert!(read["user_us"].is_u64() && read["sys_us"].is_u64());
    }

    #[test]
    fn work_shows_in_the_processor_time() {
        let before = Resources::now();
        let mut sum = 0_u64;
        while Resources::now().since(before).cpu() < Duration::from_millis(1) {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(1));
        }
        assert!(Resources::now().since(before).cpu() >= Duration::from_millis(1));
    }
}
