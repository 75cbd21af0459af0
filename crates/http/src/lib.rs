//! HTTP for providers and MCP.
