//! A folder of skills as an MCP server, in the making.
//!
//! It will offer each usable skill as a tool of its own, and each prompt skill as a prompt, to any MCP client, on the
//! official server SDK; what runs a skill is `haversack-skill-runtime`. Until then this crate holds no code, so that
//! its place in the workspace, and the arrow to the crate below it, are settled and tested.
