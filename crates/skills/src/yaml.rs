//! A reader for the YAML that front matter is written in: one document, one pass, no event layer.
//!
//! It reads YAML 1.2 (2021, revision 1.2.2) with the core schema, in all five scalar styles, with flow and block
//! collections, comments, anchors, aliases and tags, within fixed bounds. Where the widely used readers are more
//! lenient than the text of the specification and agree, it sides with them: brackets and quotes may continue in any
//! column. Every function moves forward only, but for one look past blank lines, so time grows with the text alone.

pub(crate) mod character;
pub(crate) mod cursor;
pub(crate) mod scalar;
pub(crate) mod plain;
pub(crate) mod quoted;
pub(crate) mod block_scalar;
pub(crate) mod property;
pub(crate) mod fields;
pub(crate) mod flow;
pub(crate) mod block;
pub(crate) mod stream;

use std::ops::Range;

use crate::node::{Content, Fields};
use crate::yaml::cursor::{Fault, Limits, Reader};

/// What one front matter holds.
#[derive(Debug)]
pub(crate) struct Parsed<'a> {
    pub(crate) fields: Fields<'a>,
    /// Byte, line, column and text of every key that had been there before, in the order of the file.
    pub(crate) duplicates: Vec<cursor::Duplicate>,
}

/// Reads the lines `range` of `file` as one mapping. `line` is the number of the first of them, from 1.
pub(crate) fn parse(file: &str, range: Range<usize>, line: u32, limits: Limits) -> Result<Parsed<'_>, Fault> {
    let mut reader = Reader::new(file, range, line, limits)?;
    let fields = match reader.document()? {
        None => Fields::default(),
        Some(root) => {
            let at = root.position();
            match root.into_content() {
                Content::Map(fields) => fields,
                content if is_null(&content) => Fields::default(),
                _ => return Err(reader.not_a_mapping(at)),
            }
        }
    };
    Ok(Parsed { fields, duplicates: reader.into_duplicates() })
}

const fn is_null(content: &Content<'_>) -> bool {
    matches!(content, Content::Scalar(_, crate::node::Type::Null))
}
