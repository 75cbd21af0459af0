//! Skill server.
