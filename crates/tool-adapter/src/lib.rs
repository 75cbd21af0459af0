//! Tool adapter.
