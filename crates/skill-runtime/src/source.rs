//! A `SKILL.md` read for its mode: the fields and the body at once.

use haversack_skills::document::{Document, ParseOptions};

use crate::metadata::{Metadata, Reading};

/// What the text of a skill says of its mode, and its body.
///
/// ```
/// use haversack_skill_runtime::{SkillMode, source::SkillSource};
///
/// let read = SkillSource::read("---\nname: a\ndescription: b\nskill_mode: prompt\n---\nThe body.\n").unwrap();
/// assert_eq!(read.reading.metadata.mode, SkillMode::Prompt);
/// assert_eq!(read.body, "The body.\n");
/// assert!(SkillSource::read("no front matter").is_none());
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SkillSource {
    /// The fields, and what is wrong with them.
    pub reading: Reading,
    /// The text behind the front matter.
    pub body: String,
}

impl SkillSource {
    /// Reads a text; `None` where it has no front matter that can be read. Its size is bounded by whoever has read it.
    pub fn read(text: &str) -> Option<Self> {
        let document = Document::parse(text.as_bytes(), &ParseOptions::new().with_max_bytes(text.len()));
        let reading = Metadata::read(document.fields()?);
        Some(Self { reading, body: document.body().to_owned() })
    }
}
