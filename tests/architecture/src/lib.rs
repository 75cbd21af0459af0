//! Rules of the house, read off `cargo metadata` and the sources.
