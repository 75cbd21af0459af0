//! The protocol revisions this client speaks, and the two families they fall into.

use std::fmt;

/// A revision of the Model Context Protocol, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Revision {
    /// 2024-11-05, the first one.
    V2024_11_05,
    /// 2025-03-26, the only one with JSON-RPC batches.
    V2025_03_26,
    /// 2025-06-18, with structured results.
    V2025_06_18,
    /// 2025-11-25, the last one that opens with a handshake.
    V2025_11_25,
    /// 2026-07-28, stateless: metadata in each request, no handshake.
    V2026_07_28,
}

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The newest revision that opens with `initialize`: what the handshake asks for.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;

    /// The newest revision that carries its metadata in each request.
    pub const NEWEST_MODERN: Self = Self::V2026_07_28;

    /// The revision as it stands on the wire, a date.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of that date, if this client speaks it.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// The family it belongs to.
    pub const fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            _ => Era::Legacy,
        }
    }

    /// The best revision of a family that a peer lists, whatever the order of its list.
    ///
    /// Servers list their versions in any order (some oldest first), so the first entry means nothing.
    pub fn best_of<'a>(listed: impl IntoIterator<Item = &'a str>, era: Era) -> Option<Self> {
        listed.into_iter().filter_map(Self::parse).filter(|revision| revision.era() == era).max()
    }

    /// Every revision as one text, for messages.
    pub(crate) fn spoken() -> String {
        Self::ALL.map(Self::as_str).join(", ")
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The two families of revisions: how a connection opens and where its metadata travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Era {
    /// Up to 2025-11-25: `initialize` opens a session.
    Legacy,
    /// From 2026-07-28 on: no session; each request carries version, capabilities and client.
    Modern,
}

impl Era {
    /// `legacy` or `modern`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which family to open a connection in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EraChoice {
    /// Ask the server with `server/discover` first, and fall back to the handshake.
    #[default]
    Auto,
    /// As `Auto`, but known to have been legacy before: the handshake comes first, and the modern opening only if the
    /// server refuses it. It spares a server that is silent on the question its probe limit at each start.
    AutoLegacyFirst,
    /// The handshake only.
    Legacy,
    /// The stateless opening only.
    Modern,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_revision_reads_back_from_its_own_date() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
        assert_eq!(Revision::parse("2099-01-01"), None);
        assert_eq!(Revision::parse(""), None);
    }

    #[test]
    fn the_best_common_revision_is_chosen_and_not_the_first_listed() {
        let listed = ["2024-11-05", "2026-07-28", "2025-06-18", "2099-01-01"];
        assert_eq!(Revision::best_of(listed, Era::Modern), Some(Revision::V2026_07_28));
        assert_eq!(Revision::best_of(listed, Era::Legacy), Some(Revision::V2025_06_18));
        assert_eq!(Revision::best_of(["2099-01-01"], Era::Modern), None);
    }
}
