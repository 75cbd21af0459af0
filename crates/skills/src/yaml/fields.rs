//! Keys that come again in one mapping.

use crate::node::{Entry, Fields};
use crate::yaml::cursor::{Duplicate, Reader};

/// Mappings up to this size are searched for duplicates pair by pair; larger ones are sorted.
const SMALL_MAP: usize = 12;

impl<'a> Reader<'a> {
    /// Makes a mapping of its entries: a later value of a key takes the place of an earlier one.
    pub(crate) fn fields(&mut self, mut entries: Vec<Entry<'a>>) -> Fields<'a> {
        let again = if entries.len() <= SMALL_MAP { pairs_again(&entries) } else { sorted_again(&entries) };
        if !again.is_empty() {
            let mut lost = vec![false; entries.len()];
            for (earlier, later) in again {
                if let Some(flag) = lost.get_mut(earlier) {
                    *flag = true;
                }
                if let Some(entry) = entries.get(later) {
                    let key = entry.key.as_ref().to_owned();
                    self.duplicates.push(Duplicate { at: entry.key_start, key });
                }
            }
            let mut flags = lost.into_iter();
            entries.retain(|_| !flags.next().unwrap_or(false));
        }
        Fields::from_entries(entries)
    }
}

/// Each entry whose key comes again, and where it next does.
fn pairs_again(entries: &[Entry<'_>]) -> Vec<(usize, usize)> {
    let mut again = Vec::new();
    for (earlier, entry) in entries.iter().enumerate() {
        let next = entries.iter().enumerate().skip(earlier + 1).find(|(_, other)| other.key == entry.key);
        if let Some((later, _)) = next {
            again.push((earlier, later));
        }
    }
    again
}

/// The same for a large mapping, in n log n.
fn sorted_again(entries: &[Entry<'_>]) -> Vec<(usize, usize)> {
    let mut keys: Vec<(&str, usize)> = entries.iter().enumerate().map(|(i, e)| (e.key.as_ref(), i)).collect();
    keys.sort_unstable();
    let pairs = keys.iter().zip(keys.iter().skip(1));
    pairs.filter(|(a, b)| a.0 == b.0).map(|(a, b)| (a.1, b.1)).collect()
}
