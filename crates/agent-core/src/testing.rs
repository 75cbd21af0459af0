//! Doubles and checks for programs that test their own wiring (feature `testing`).
//!
//! - [`ScriptedModel`] answers by a script; a [`Gate`] lets the test decide when each event comes.
//! - [`ScriptedTool`] does what it is told and writes down what happened to it.
//! - [`FakeClock`] stands still until the test moves it.
//! - [`Recorder`] writes down a run, [`Replay`] plays it again, to the same bytes.
//! - [`check_model`] and [`check_tool`] are for those who write models and tools: do they keep their contract?
//! - [`Wire`] checks a history, or the body of a request, by the rules of each provider's API.
//!
//! ```
//! use haversack_agent_core::model::{Model, ModelRequest};
//! use haversack_agent_core::testing::{Answer, ScriptedModel};
//! use futures_util::StreamExt;
//! # use futures_util::FutureExt;
//!
//! # async fn run() {
//! let model = ScriptedModel::new([Answer::text("Hello.")]);
//! let events: Vec<_> = model.stream(ModelRequest::default()).collect().await;
//! assert!(events.iter().all(Result::is_ok));
//! assert_eq!(model.requests().len(), 1);
//! # }
//! # run().now_or_never().unwrap();
//! ```

mod gate;
mod clock;
mod model;
mod tool;
mod record;
mod conformance;
mod wire;

pub use clock::FakeClock;
pub use conformance::{Finding, check_events, check_model, check_tool};
pub use gate::{Gate, Wait};
pub use model::{Answer, ScriptedModel};
pub use record::{
    RECORDING_SCHEMA, RecordedAnswer, RecordedOutput, Recorder, Recording, Replay, RequestPrint,
};
pub use tool::{Fate, ScriptedTool, ToolLog};
pub use wire::{Violation, Wire, assert_valid};

#[cfg(test)]
mod tests;
