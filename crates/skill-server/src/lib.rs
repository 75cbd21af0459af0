//! A folder of skills as an MCP server.
//!
//! Every skill that can run is a tool of its own: a prompt skill gives its text, a tool skill runs its pipeline, an agent
//! skill works on a task. Prompt skills are prompts too, and all files of skills are resources, with the manifests of the
//! skills extension (SEP-2640). Both eras of the protocol are spoken, by the official SDK [`rmcp`].
//!
//! The crate is a library, and the program `haversack-skill-server` on top of it:
//!
//! ```sh
//! haversack-skill-server --skills-dir ~/skills                          # as a client starts it, on standard input and output
//! haversack-skill-server --skills-dir ./skills --transport http         # at http://127.0.0.1:3030/mcp
//! haversack-skill-server validate ./skills                              # what is wrong with a folder of skills
//! ```
//!
//! # A server in a program of one's own
//!
//! ```
//! use haversack_skill_server::{Host, SkillServer};
//! use haversack_skills::{LinkPolicy, Root, Roots};
//! use rmcp::ServiceExt as _;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # std::fs::create_dir(folder.path().join("tidy"))?;
//! # std::fs::write(folder.path().join("tidy/SKILL.md"), "---\nname: tidy\ndescription: Tidies up.\n---\nTidy up.\n")?;
//! let roots = Roots::new().with_root(Root::user(folder.path()).with_links(LinkPolicy::Inside));
//! // What pipelines and agents may use: `with_tools`, `with_model`. Prompt skills need nothing.
//! let server = SkillServer::new(&roots, Host::new())?;
//!
//! // Any transport of rmcp; here a pipe in memory, `rmcp::transport::stdio()` in a program that a client starts.
//! let (near, far) = tokio::io::duplex(1024);
//! let handler = server.handler();
//! let served = tokio::spawn(async move { handler.serve(far).await.map(|service| service.waiting()) });
//! // Beside it, `server.watch()` tells clients of changes on the disk.
//! # drop(near);
//! # let _ = served.await;
//!
//! // Or without any client: what the tool of a skill gives back.
//! let result = server.call("tidy", serde_json::json!({}), |_progress| {}).await?;
//! assert_eq!(result.content[0].as_text().unwrap().text, "Tidy up.\n");
//! # Ok(())
//! # }
//! ```
//!
//! # What it holds to
//!
//! - **A failure is an error.** What goes wrong in a call is a result with `isError`, with structured content beside the
//!   text; what is wrong with the request itself is an error of the protocol.
//! - **Nothing runs that somebody should have agreed to.** A step of a pipeline that wants an approval is asked about, with
//!   the arguments that will run, where the client can ask a person (elicitation; with the revision of 2026-07-28, by an
//!   answer after which the client comes again). Where it cannot, the call ends with the reason.
//! - **No path leads out.** Files are opened inside the skill's own folder; `..`, links that lead out and hidden files are
//!   not served, and an address has one spelling.
//! - **Secrets are masked** in what pipelines and agents give back. Files of skills are given byte for byte, as their digests
//!   promise.
//! - **Everything has a bound:** requests, sessions, bodies, times, pages of lists.
//!
//! # Features
//!
//! | feature | adds |
//! | --- | --- |
//! | `cli` | the program |
//! | `http` | [`http`](mod@http), Streamable HTTP |
//! | `watch` | changes on the disk are seen at once; without it, every two seconds |
//! | `agents` | the program runs agent skills on a model that its flags name |
//! | `servers` | the program gives pipelines and agents the tools of MCP servers |
//!
//! All are on by default; a library needs none of them.

pub mod name;
mod uri;
mod served;
mod host;
mod catalogue;
mod manifest;
mod render;
mod desk;
mod call;
mod parked;
mod server;
mod handler;
#[cfg(feature = "http")]
pub mod http;

pub use catalogue::Catalogue;
pub use handler::Handler;
pub use host::{DEFAULT_PIPELINE_LIMIT, Host};
pub use name::tool_name;
pub use parked::NoRandomness;
pub use served::{Problem, ServedSkill};
pub use server::{LOOK_EVERY, NoTool, SkillServer};
