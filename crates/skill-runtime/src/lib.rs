//! Skill modes.
