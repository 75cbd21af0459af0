//! Level 1½: finding a skill that the catalogue had no room for.
//!
//! A small index over names, descriptions and headings. Words are compared without case and without a plural `s`; a word
//! of the query also finds longer words that begin with it. A rare word counts more than a common one, a word of a name
//! more than one of a description, that more than one of a heading.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

/// Skills that a search returns at most.
pub(crate) const HITS: usize = 10;
/// Words of a query that are looked at.
const QUERY_WORDS: usize = 32;
/// Bytes of a word that are looked at.
const WORD_BYTES: usize = 48;
/// Words of one skill's headings that are kept.
const HEADING_WORDS: usize = 256;

const NAME: f32 = 8.0;
const DESCRIPTION: f32 = 3.0;
const HEADING: f32 = 1.0;
/// What a word counts that only begins like one of the query.
const PREFIX: f32 = 0.5;

/// What the index knows of one skill.
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a str,
    pub(crate) description: &'a str,
    /// The text of its headings, one a line.
    pub(crate) headings: String,
}

/// Words and the skills they occur in.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// For each word the skills by number, and the best weight it has there.
    words: BTreeMap<Box<str>, Vec<(u32, f32)>>,
    skills: u32,
}

impl Index {
    pub(crate) fn new<'a>(entries: impl Iterator<Item = Entry<'a>>) -> Self {
        let mut index = Self::default();
        for entry in entries {
            let number = index.skills;
            index.skills = index.skills.saturating_add(1);
            let mut weights: HashMap<String, f32> = HashMap::new();
            let headings: Vec<_> = words(&entry.headings).take(HEADING_WORDS).collect();
            let fields = words(entry.name).map(|word| (word, NAME));
            let fields = fields.chain(words(entry.description).map(|word| (word, DESCRIPTION)));
            for (word, weight) in fields.chain(headings.into_iter().map(|word| (word, HEADING))) {
                let best = weights.entry(word).or_default();
                *best = best.max(weight);
            }
            for (word, weight) in weights {
                index.words.entry(word.into()).or_default().push((number, weight));
            }
        }
        index
    }

    /// The best skills for a query, by number, with their scores; of equal ones the first.
    pub(crate) fn search(&self, query: &str) -> Vec<(usize, f32)> {
        let mut scores: HashMap<u32, f32> = HashMap::new();
        for word in words(query).take(QUERY_WORDS) {
            // What one word of the query finds counts once a skill, at its best.
            let mut best: HashMap<u32, f32> = HashMap::new();
            let alike = self
                .words
                .range::<str, _>((Bound::Included(word.as_str()), Bound::Unbounded))
                .take_while(|(known, _)| known.starts_with(&word));
            for (known, skills) in alike {
                let exact = **known == *word;
                if !exact && word.chars().count() < 3 {
                    continue;
                }
                let rarity = (1.0 + self.skills as f32 / skills.len() as f32).ln();
                for (number, weight) in skills {
                    let score = weight * rarity * if exact { 1.0 } else { PREFIX };
                    let entry = best.entry(*number).or_default();
                    *entry = entry.max(score);
                }
            }
            for (number, score) in best {
                *scores.entry(number).or_default() += score;
            }
        }
        let mut hits: Vec<_> = scores.into_iter().collect();
        hits.sort_by(|(a, score_a), (b, score_b)| score_b.total_cmp(score_a).then(a.cmp(b)));
        hits.truncate(HITS);
        hits.into_iter().filter_map(|(number, score)| Some((usize::try_from(number).ok()?, score))).collect()
    }
}

/// The words of a text: runs of letters and digits, lower-cased; each sign of a script without blanks is a word.
fn words(text: &str) -> impl Iterator<Item = String> {
    let lower = text.to_lowercase();
    let mut words = Vec::new();
    let mut word = String::new();
    for c in lower.chars() {
        let whole = ('\u{2E80}'..'\u{AC00}').contains(&c)
            || ('\u{F900}'..'\u{FB00}').contains(&c)
            || c >= '\u{20000}';
        if c.is_alphanumeric() && !whole {
            if word.len() < WORD_BYTES {
                word.push(c);
            }
            continue;
        }
        if !word.is_empty() {
            words.push(singular(std::mem::take(&mut word)));
        }
        if c.is_alphanumeric() {
            words.push(c.to_string());
        }
    }
    if !word.is_empty() {
        words.push(singular(word));
    }
    words.into_iter()
}

fn singular(mut word: String) -> String {
    if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
        word.pop();
    }
    word
}

/// The headings of a Markdown text, one a line; lines in code fences are none.
pub(crate) fn headings(body: &str) -> String {
    let mut headings = String::new();
    let mut fence = None;
    for line in body.lines() {
        let text = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| text.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) if text.starts_with('#') => {
                headings.push_str(text.trim_start_matches('#').trim());
                headings.push('\n');
            }
            _ => {}
        }
    }
    headings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(skills: &[(&str, &str, &str)]) -> Index {
        Index::new(skills.iter().map(|(name, description, body)| {
            let headings = headings(body);
            Entry { name, description, headings }
        }))
    }

    #[test]
    fn a_name_counts_more_than_a_description_and_that_more_than_a_heading() {
        let skills = [
            ("a", "Nothing.", "# Forms\n"),
            ("b", "Fills in forms.", ""),
            ("form", "Nothing.", ""),
            ("c", "Nothing.", "```\n# forms\n```\n"),
        ];
        let found: Vec<_> = index(&skills).search("FORMS").into_iter().map(|(number, _)| number).collect();
        assert_eq!(found, [2, 1, 0]);
    }

    #[test]
    fn every_word_counts_and_rare_ones_more() {
        let skills =
            [("a", "common rare", ""), ("b", "common", ""), ("c", "common", ""), ("d", "rare other", "")];
        let found: Vec<_> =
            index(&skills).search("common rare").into_iter().map(|(number, _)| number).collect();
        assert_eq!(found[0], 0);
        assert_eq!(found[1], 3);
    }

    #[test]
    fn words_are_found_by_their_beginning_and_in_any_script() {
        let skills =
            [("deploy-kubernetes", "Rolls out.", ""), ("b", "填写表格", ""), ("c", "Größe ändern", "")];
        let index = index(&skills);
        for (query, want) in [
            ("kube", Some(0)),
            ("表格", Some(1)),
            ("GRÖSSE größe", Some(2)),
            ("ku", None),
            ("", None),
            ("?!", None),
        ] {
            assert_eq!(index.search(query).first().map(|(number, _)| *number), want, "{query}");
        }
    }

    #[test]
    fn equal_hits_come_in_the_order_of_the_skills_and_are_bounded() {
        let skills: Vec<_> = (0..50).map(|number| (format!("skill-{number:02}"), "same")).collect();
        let skills: Vec<_> = skills.iter().map(|(name, text)| (name.as_str(), *text, "")).collect();
        let found: Vec<_> = index(&skills).search("same").into_iter().map(|(number, _)| number).collect();
        assert_eq!(found, (0..HITS).collect::<Vec<_>>());
    }
}
