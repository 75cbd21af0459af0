//! Equip any agent with skills and MCP tools.
//!
//! A host brings its own interface; Haversack brings the loop, the skills of the project and of the user, and the tools
//! of MCP servers. What belongs to the repository is used only after somebody agreed to it.
//!
//! ```sh
//! cargo add haversack futures-util
//! cargo add tokio --features macros,rt-multi-thread
//! ```
//!
//! ```no_run
//! use futures_util::StreamExt as _;
//! use haversack::prelude::*;
//! use haversack::providers::presets::openai_compatible;
//! use haversack::{ConsentQuestion, Haversack, http::ReqwestClient};
//!
//! /// Asks on the terminal.
//! fn confirm(question: &str) -> bool {
//!     println!("{question} [y/n]");
//!     let mut line = String::new();
//!     std::io::stdin().read_line(&mut line).is_ok() && line.trim() == "y"
//! }
//!
//! fn decide(ask: &Ask) -> Verdict {
//!     let allowed = confirm(&format!("Run {} with {}?", ask.tool, ask.arguments));
//!     if allowed { Verdict::Allow } else { Verdict::deny("not now") }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let model = openai_compatible(ReqwestClient::new()?, "http://127.0.0.1:8080/v1", "local-model");
//!     let haversack = Haversack::builder(model)
//!         .project(".")
//!         .environment(std::env::vars_os().collect())
//!         .section("role", "You help with this project.")
//!         .consent(async |question: ConsentQuestion| Some(confirm(&question.text)))
//!         .approver(async |asks: Vec<Ask>| asks.iter().map(decide).collect::<Vec<_>>())
//!         .build()?;
//!
//!     let mut session = Session::default();
//!     let equipped = haversack.prepare().await?; // finds skills, starts servers; once for each run
//!     let mut run = equipped.start(&mut session, "Which tests fail, and why?");
//!     while let Some(event) = run.next().await {
//!         match event {
//!             Event::Text { delta, .. } => print!("{delta}"),
//!             Event::ToolStarted { name, .. } => println!("> {name}"),
//!             _ => {}
//!         }
//!     }
//!     println!("{:?}", run.outcome().await?);
//!     haversack.close().await;
//!     Ok(())
//! }
//! ```
//!
//! # What happens when
//!
//! - [`Haversack::builder`] takes what does not change: the model, the project, the host's own tools and rules.
//! - [`Haversack::prepare`] is called once for each run. It looks for skills, asks for consent where there is none,
//!   starts the servers that are wanted, and puts an [`Agent`](agent_core::agent::Agent) together. From then on the
//!   prompt and the tools stay as they are.
//! - [`Equipped::report`] says what was found, used, left out, and why, and what each section of the prompt costs.
//! - [`Haversack::close`] ends the servers in order; dropping the last clone ends them at once.
//!
//! Tools of servers are called `mcp__<server>__<tool>`, and each call of one asks for approval, unless a rule or a mode
//! of the host's says otherwise:
//!
//! ```
//! use haversack::Haversack;
//! use haversack::agent_core::limits::Limits;
//! use haversack::agent_core::policy::{Mode, Policy, Rule};
//! # fn builder(model: impl haversack::prelude::Model) -> haversack::HaversackBuilder {
//! Haversack::builder(model).configure(|agent| {
//!     let policy = Policy::new(Mode::Ask).with_rule(Rule::allow("mcp__field-notes__search_notes"));
//!     agent.policy(policy).limits(Limits::default().with_turns(Some(20)))
//! })
//! # }
//! ```
//!
//! A run pauses at a call when there is no approver, or when it answers [`Verdict::Defer`](prelude::Verdict::Defer).
//! The session is plain data: save it, and in whatever process goes on, `prepare()` again and call
//! [`Equipped::resume`]. Verdicts given with [`Session::answer`](prelude::Session::answer) before that are acted upon;
//! what is still open goes to the approver again.
//!
//! A project without skills and servers gives the same request, byte for byte, as an agent without this crate.
//!
//! # Features
//!
//! | feature | default | what it brings |
//! | --- | --- | --- |
//! | `skills` | yes | `SKILL.md` folders and the `skill` tool |
//! | `mcp` | yes | MCP servers over standard input and output |
//! | `http` | no | MCP servers with a `url`, over Streamable HTTP: [`HaversackBuilder::mcp_over_http`] |
//! | `providers` | yes | models over HTTP |
//! | `fs-tools` | no | [tools of a coding host](fs_tools): files in a root, commands; brings `mcp` |
//! | `skill-modes` | no | skills that are [pipelines or sub-agents](SkillModes) as tools of their own; brings `skills` |
//! | `full` | no | all of them |
//!
//! The clock of the agent is tokio's. For the testing kit, derived schemas of typed tools and the full JSON Schema
//! validator, also depend on `haversack-agent-core` with its features `testing`, `schemars` and `jsonschema`.

pub use haversack_agent_core as agent_core;
#[cfg(any(feature = "providers", feature = "http"))]
#[cfg_attr(docsrs, doc(cfg(any(feature = "providers", feature = "http"))))]
pub use haversack_http as http;
#[cfg(feature = "mcp")]
#[cfg_attr(docsrs, doc(cfg(feature = "mcp")))]
pub use haversack_mcp_client as mcp;
#[cfg(feature = "providers")]
#[cfg_attr(docsrs, doc(cfg(feature = "providers")))]
pub use haversack_providers as providers;
#[cfg(feature = "skill-modes")]
#[cfg_attr(docsrs, doc(cfg(feature = "skill-modes")))]
pub use haversack_skill_runtime as skill_runtime;
#[cfg(feature = "skills")]
#[cfg_attr(docsrs, doc(cfg(feature = "skills")))]
pub use haversack_skills as skills;
pub use haversack_tool_adapter as tool_adapter;

mod error;
mod consent;
mod report;
#[cfg(feature = "fs-tools")]
#[cfg_attr(docsrs, doc(cfg(feature = "fs-tools")))]
pub mod fs_tools;
#[cfg(feature = "skill-modes")]
mod skill_modes;
mod builder;
#[cfg(feature = "skills")]
mod skill_side;
#[cfg(feature = "mcp")]
mod server_side;
#[cfg(all(feature = "skills", feature = "mcp"))]
mod served_side;
mod equip;

pub use builder::HaversackBuilder;
pub use consent::{Consent, ConsentQuestion, ConsentSubject};
pub use equip::{Equipped, Haversack};
pub use error::Error;
pub use report::{Note, Report, SectionCost, ServerReport, SkillReport, SkillState};
#[cfg(feature = "skill-modes")]
#[cfg_attr(docsrs, doc(cfg(feature = "skill-modes")))]
pub use skill_modes::SkillModes;

/// What nearly every host needs, in one import: the loop's [prelude](agent_core::prelude).
pub mod prelude {
    pub use haversack_agent_core::prelude::*;
}

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
