//! The system prompt: ordered named sections, frozen for a run.

use std::sync::Arc;

use crate::digest::Digest;
use crate::history::History;
use crate::model::{CacheMarkers, PromptSection};

/// Sections in the order in which they were added. A section with a name that is already there replaces the text
/// in its place, so that the order is the order of first mention. Blank sections leave no trace.
pub(crate) fn ordered(sections: Vec<PromptSection>) -> Arc<[PromptSection]> {
    let mut ordered: Vec<PromptSection> = Vec::with_capacity(sections.len());
    for section in sections {
        match ordered.iter_mut().find(|s| s.name == section.name) {
            Some(earlier) => earlier.text = section.text,
            None => ordered.push(section),
        }
    }
    ordered.retain(|s| !s.text.trim().is_empty());
    ordered.into()
}

/// A digest over names and texts, for the event that tells the host which prompt a run was frozen with.
pub(crate) fn digest(sections: &[PromptSection]) -> Digest {
    let mut bytes = Vec::new();
    for part in sections.iter().flat_map(|s| [&s.name, &s.text]) {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part.as_bytes());
    }
    Digest::of_bytes(&bytes)
}

/// Marks the borders that stay where they are: the end of the tools and the system prompt, the end of what the
/// request before this one held (so that its cache entry is read), and the end of this one (so that it is written).
pub(crate) fn markers(messages: &History, earlier: usize) -> CacheMarkers {
    let last = messages.len().checked_sub(1);
    let before = earlier.checked_sub(1).filter(|b| Some(*b) != last && *b < messages.len());
    CacheMarkers { prefix: true, messages: before.into_iter().chain(last).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;

    #[test]
    fn a_section_added_again_keeps_its_place_and_takes_the_new_text() {
        let sections = ordered(vec![
            PromptSection::new("a", "1"),
            PromptSection::new("b", "2"),
            PromptSection::new("a", "3"),
            PromptSection::new("c", " \n"),
        ]);
        let shown: Vec<_> = sections.iter().map(|s| (&*s.name, &*s.text)).collect();
        assert_eq!(shown, [("a", "3"), ("b", "2")]);
    }

    #[test]
    fn markers_stand_at_the_end_of_the_earlier_request_and_of_this_one() {
        let messages: History = ["a", "b", "c"].into_iter().map(Message::user).collect();
        for (earlier, marked) in [(0, vec![2]), (1, vec![0, 2]), (3, vec![2]), (9, vec![2])] {
            assert_eq!(markers(&messages, earlier).messages, marked, "earlier {earlier}");
        }
        assert_eq!(markers(&History::new(), 0).messages, Vec::<usize>::new());
    }
}
