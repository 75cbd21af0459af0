//! The top level of a configuration file: `{"mcpServers": {name: entry}}`, and whatever else stands there.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// The top level of a file, read so that a name that is written twice is seen twice.
pub(crate) struct File {
    pub(crate) servers: Option<Vec<(String, Value)>>,
    pub(crate) other: Option<String>,
}

pub(crate) struct FileVisitor;

impl<'de> Visitor<'de> for FileVisitor {
    type Value = File;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the member `mcpServers`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<File, A::Error> {
        let mut file = File { servers: None, other: None };
        while let Some(key) = map.next_key::<String>()? {
            if key == "mcpServers" {
                let Pairs(more) = map.next_value()?;
                file.servers.get_or_insert_default().extend(more);
            } else {
                map.next_value::<IgnoredAny>()?;
                file.other.get_or_insert(key);
            }
        }
        Ok(file)
    }
}

/// The members of an object in their order, doubled names included.
struct Pairs(Vec<(String, Value)>);

impl<'de> serde::Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object from server names to entries")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }

            fn visit_unit<E>(self) -> Result<Pairs, E> {
                Ok(Pairs(Vec::new()))
            }
        }
        deserializer.deserialize_any(PairsVisitor)
    }
}
