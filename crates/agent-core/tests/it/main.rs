//! The loop from outside: each module is named after what always holds.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::result_large_err,
    reason = "a test that fails may panic, and model errors are as large as they are"
)]

mod play;
mod one_result_per_call;
mod repair_gives_the_same_bytes;
mod order_and_waves;
mod nothing_runs_from_a_cut_answer;
mod what_runs_is_what_was_approved;
#[cfg(feature = "testing")]
mod answers_in_any_order;
#[cfg(feature = "testing")]
mod any_script_any_cut;
#[cfg(feature = "testing")]
mod hostile_surroundings;
mod control;
mod hooks_may_only_tighten;
#[cfg(feature = "testing")]
mod time_and_retries;
#[cfg(all(feature = "testing", feature = "tracing"))]
mod traces;
mod loops_and_limits;
mod children;
mod context_and_cache;
mod golden_sessions;
mod no_runtime_without_a_feature;
