//! Spans with the attribute names of the OpenTelemetry conventions for generative AI, behind the feature `tracing`.
//!
//! A run is a span `invoke_agent`, an attempt at an answer or a summary a span `chat` in it, a call that runs a span
//! `execute_tool` in it; a sub-agent's run lies in the span of its call. They are entered while the run is polled, so
//! that what host code records lands in the right one. Without the feature everything here is empty.
//!
//! Source: OpenTelemetry semantic conventions, `gen_ai` spans and agent spans.

#[cfg(feature = "tracing")]
mod spans;
#[cfg(not(feature = "tracing"))]
mod silence;

#[cfg(not(feature = "tracing"))]
pub(crate) use silence::Trace;
#[cfg(feature = "tracing")]
pub(crate) use spans::Trace;
