//! The agent loop as a value, and one polled driver around it.
//!
//! A loop that calls a model, runs the tools that the model asks for, and goes on until the model is done. What makes
//! this one worth embedding is what it does when things do not go well: it can be dropped, cancelled or crash at any
//! point, and the history that it leaves is one that every provider takes.
//!
//! - **[`Agent`](agent::Agent)**: a model, tools and rules, put together once. Immutable, cheap to clone.
//! - **[`Session`](session::Session)**: the conversation, as data that the host owns and stores as it likes.
//! - **[`Run`](run::Run)**: a [`Stream`](futures_core::Stream) of [`Event`](event::Event)s with an
//!   [`Outcome`](outcome::Outcome). Polled by the host; no task, no channel, no runtime behind it. Dropping it is a
//!   cancel.
//! - **[`RunHandle`](handle::RunHandle)**: cancel, steer and decide from elsewhere.
//!
//! A host implements [`Model`](model::Model) (or takes one from a provider crate), [`Tool`](tool_context::Tool), and
//! where it wants to be asked, [`Approver`](approval::Approver) and [`Hooks`](hooks::Hooks).
//!
//! # A host in twenty lines
//!
//! ```
//! use futures_util::StreamExt;
//! use haversack_agent_core::prelude::*;
//!
//! async fn host(model: impl Model, mcp: Vec<std::sync::Arc<dyn Tool>>) -> Result<(), Box<dyn std::error::Error>> {
//!     let agent = Agent::builder(model)
//!         .section("role", "You fix failing tests.")
//!         .tools(mcp)
//!         .approver(|asks: Vec<Ask>| async move {
//!             asks.iter().map(|ask| if confirm(ask) { Verdict::Allow } else { Verdict::deny("not now") }).collect()
//!         })
//!         .build()?;
//!     let mut session = Session::default();
//!     let mut run = agent.start(&mut session, "Fix the failing test");
//!     let stop = run.handle(); // give it to Ctrl-C or to a button
//!     while let Some(event) = run.next().await {
//!         match event {
//!             Event::Text { delta, .. } => print!("{delta}"),
//!             Event::ToolStarted { name, .. } => println!("> {name}"),
//!             _ => {}
//!         }
//!     }
//!     println!("{:?}", run.outcome().await?);
//!     # let _ = stop;
//!     Ok(())
//! }
//! # fn confirm(_: &Ask) -> bool { true }
//! # let model = haversack_agent_core::doc::says("done");
//! # futures_util::FutureExt::now_or_never(host(model, vec![])).unwrap().unwrap();
//! ```
//!
//! # A host that pauses to disk
//!
//! Without an approver a run pauses at the first question. Everything that is needed to go on is in the session: it can
//! be answered by another process, next week, one question at a time. An answer is bound to what was asked: should the
//! tool or the arguments have changed by then, the question is asked again.
//!
//! ```
//! # use haversack_agent_core::prelude::*;
//! # use serde_json::json;
//! async fn serve(agent: &Agent, file: &std::path::Path, message: &str) -> Result<(), Box<dyn std::error::Error>> {
//!     let mut session = Session::default();
//!     if agent.start(&mut session, message).outcome().await? == Outcome::Paused {
//!         std::fs::write(file, serde_json::to_vec(&session)?)?;
//!     }
//!     Ok(())
//! }
//!
//! async fn answered(agent: &Agent, file: &std::path::Path) -> Result<Outcome, Box<dyn std::error::Error>> {
//!     let mut session: Session = serde_json::from_slice(&std::fs::read(file)?)?;
//!     for ask in session.pending_asks() {
//!         session.answer(&ask.digest, Verdict::Allow)?;
//!     }
//!     Ok(agent.resume(&mut session).outcome().await?)
//! }
//! # let folder = std::env::temp_dir().join(format!("haversack-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder).unwrap();
//! # let file = folder.join("session.json");
//! # let agent = Agent::builder(haversack_agent_core::doc::calls_then_says("write", json!({}), "written"))
//! #     .tool(haversack_agent_core::doc::tool("write"))
//! #     .build()
//! #     .unwrap();
//! # use futures_util::FutureExt;
//! # serve(&agent, &file, "go").now_or_never().unwrap().unwrap();
//! # let outcome = answered(&agent, &file).now_or_never().unwrap().unwrap();
//! # assert!(matches!(outcome, Outcome::Done { .. }));
//! # std::fs::remove_dir_all(&folder).unwrap();
//! ```
//!
//! # A host that makes the steps by hand
//!
//! For workflow engines, browsers and tests: [`RunState`](state::RunState) does no input or output and knows no time.
//! The same inputs give the same steps, events and bytes.
//!
//! ```
//! # use haversack_agent_core::prelude::*;
//! # use haversack_agent_core::state::{Input, Step};
//! # use haversack_agent_core::tool_context::ToolContext;
//! # use futures_util::StreamExt;
//! async fn by_hand(agent: &Agent, model: &impl Model, session: &mut Session) -> Result<Outcome, RunError> {
//!     let mut state = agent.start_by_hand(session, "go");
//!     loop {
//!         while let Some(event) = state.poll_event() {
//!             println!("{event:?}");
//!         }
//!         let input = match state.poll_step(session) {
//!             Some(Step::CallModel(call)) => {
//!                 // Collected first: the stream holds the request, which shares the history that grows.
//!                 let events: Vec<_> = model.stream(call.request).collect().await;
//!                 for event in events {
//!                     let _ = state.feed(session, Input::Model(event));
//!                 }
//!                 Input::ModelEnded
//!             }
//!             Some(Step::RunTool(ready)) => {
//!                 let context = ToolContext::detached(ready.id.clone());
//!                 let result = ready.tool.call(ready.arguments, context).await;
//!                 Input::ToolDone { call: ready.id, result, kept: None }
//!             }
//!             Some(Step::Finished(outcome)) => return outcome,
//!             // Gates, questions and the end are for agents with hooks and approvers.
//!             Some(_) | None => continue,
//!         };
//!         let _ = state.feed(session, input);
//!     }
//! }
//! # use futures_util::FutureExt;
//! # let model = std::sync::Arc::new(haversack_agent_core::doc::says("done"));
//! # let agent = Agent::builder(std::sync::Arc::clone(&model)).build().unwrap();
//! # let mut session = Session::default();
//! # let outcome = by_hand(&agent, &model, &mut session).now_or_never().unwrap().unwrap();
//! # assert_eq!(outcome, Outcome::Done { text: "done".into(), structured: None });
//! ```
//!
//! # What always holds
//!
//! 1. Every tool call in the history has exactly one truthful result: ok, error, denied, not started or interrupted,
//!    whatever happened.
//! 2. What runs is what was approved, and an answer is used once.
//! 3. Nothing runs from an answer that was cut off.
//! 4. Nothing is lost silently: events, messages of the host, the usage of attempts that failed or were cut.
//! 5. The request prefix changes only when the model, the host or compaction changed it.
//!
//! # Order
//!
//! One turn: request, stream, answer stored, calls validated, hard denials, hooks, validated again, policy on the final
//! arguments, questions, calls run in waves, results stored in the order of the calls; then steering, limits, room in
//! the context, and the next turn. Calls that only read run together, every other call is a barrier.
//!
//! # Crashes
//!
//! Events are delivered before what they announce proceeds. A host that stores [`Run::session`](run::Run::session) at
//! each [`ToolStarted`](event::Event::ToolStarted) and [`ToolEnded`](event::Event::ToolEnded) can be killed at any
//! moment: a call that was running is known to have been, is answered as interrupted, and is never run a second time.
//! Panics of host code are caught at the seam and become results; with `panic = "abort"` they cannot be.
//!
//! # Features
//!
//! - `tokio`: a run on a task of its own ([`spawn`]) and a clock ([`TokioClock`](clock::TokioClock)).
//! - `jsonschema`: the whole of JSON Schema for arguments, instead of the built-in subset.
//! - `schemars`: schemas of typed tools, derived.
//! - `tracing`: spans with the attribute names of the OpenTelemetry conventions for generative AI (`invoke_agent`, `chat`,
//!   `execute_tool`); what was said and done stands in them only where the host asks for it.
//! - `testing`: a scripted model and tool, validators of histories for four wires, for the tests of hosts.
//!
//! Without features the crate needs no runtime. It reads no file, no environment and no clock.
//!
//! Modules are listed from the ground up: a file imports only from modules listed before it.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod usage;
pub mod message;
pub mod history;
pub mod tool;
pub mod model;
pub mod text_tools;
pub mod digest;
pub mod policy;
pub mod approval;
pub mod arguments;
pub mod output;
pub mod cancel;
pub mod clock;
pub mod retry;
pub mod limits;
pub mod ledger;
pub mod outcome;
mod closing;
pub mod session;
pub mod event;
pub mod hooks;
pub mod inbox;
pub mod tool_context;
pub mod tool_fn;
mod prompt;
pub mod toolset;
mod wave;
pub mod structured;
pub mod deferred;
pub mod compaction;
mod setup;
mod trace;
pub mod state;
pub mod handle;
pub mod run;
pub mod agent;
pub mod subagent;
#[cfg(feature = "tokio")]
#[cfg_attr(docsrs, doc(cfg(feature = "tokio")))]
pub mod spawn;
pub mod prelude;
// Public because the examples of this page are compiled as crates of their own, and hidden because it is for nobody else:
// models for tests of hosts are in `testing`, which the examples cannot use, since it is behind a feature.
#[doc(hidden)]
pub mod doc;

#[cfg(any(test, feature = "testing"))]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;
