//! Which era a server was found to speak, so that it is not asked at each start.

use std::collections::VecDeque;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fingerprint::Fingerprint;
use crate::protocol::Era;

/// How many configurations are remembered; the one not used for longest goes first.
pub const MAX_REMEMBERED: usize = 256;

/// The era of servers by the fingerprint of their entry as written, so no secret is in it.
///
/// A server that is silent on the modern question costs the probe's whole timeout, and some old ones die of it. A host
/// that stores this (it can be serialised) and gives it to the next manager pays that once for a configuration. A memory
/// that turns out wrong is corrected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EraMemory {
    /// The last used one is last.
    known: VecDeque<(Fingerprint, Era)>,
}

impl EraMemory {
    /// The era of a configuration, if it is known.
    #[must_use]
    pub fn era(&self, configuration: Fingerprint) -> Option<Era> {
        self.known.iter().find(|(known, _)| *known == configuration).map(|(_, era)| *era)
    }

    /// Remembers an era.
    pub fn remember(&mut self, configuration: Fingerprint, era: Era) {
        self.known.retain(|(known, _)| *known != configuration);
        self.known.push_back((configuration, era));
        if self.known.len() > MAX_REMEMBERED {
            self.known.pop_front();
        }
    }

    /// How many configurations are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}

/// As it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    configuration: Fingerprint,
    era: String,
}

impl Serialize for EraMemory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stored = |(configuration, era): &(Fingerprint, Era)| Stored {
            configuration: *configuration,
            era: era.as_str().into(),
        };
        serializer.collect_seq(self.known.iter().map(stored))
    }
}

impl<'de> Deserialize<'de> for EraMemory {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut memory = Self::default();
        for stored in Vec::<Stored>::deserialize(deserializer)? {
            let era = [Era::Legacy, Era::Modern].into_iter().find(|era| era.as_str() == stored.era);
            let era = era.ok_or_else(|| D::Error::custom("an era is `legacy` or `modern`"))?;
            memory.remember(stored.configuration, era);
        }
        Ok(memory)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn number(number: usize) -> Fingerprint {
        Fingerprint::of_value(&number.into())
    }

    #[test]
    fn the_latest_answer_counts_and_the_oldest_is_forgotten() {
        let mut memory = EraMemory::default();
        for configuration in 0..MAX_REMEMBERED {
            memory.remember(number(configuration), Era::Legacy);
        }
        memory.remember(number(0), Era::Modern);
        memory.remember(number(MAX_REMEMBERED), Era::Legacy);
        assert_eq!(memory.len(), MAX_REMEMBERED);
        assert_eq!(memory.era(number(0)), Some(Era::Modern));
        assert_eq!(memory.era(number(1)), None);
    }

    #[test]
    fn it_reads_back_and_refuses_what_it_does_not_know() {
        let mut memory = EraMemory::default();
        memory.remember(number(1), Era::Legacy);
        memory.remember(number(2), Era::Modern);
        let stored = serde_json::to_value(&memory).unwrap();
        assert_eq!(stored[0]["era"], "legacy");
        assert_eq!(serde_json::from_value::<EraMemory>(stored).unwrap(), memory);
        let odd = json!([{"configuration": number(1), "era": "future"}]);
        assert!(serde_json::from_value::<EraMemory>(odd).is_err());
    }
}
