//! Who may start now: agents at the same time, sessions and tokens of one day.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::metadata::AgentConfig;

/// What agents used on one day. Plain data: a host that restarts within the day keeps it and gives it back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct DayBook {
    /// The day, as the host counts days.
    pub day: u64,
    /// Sessions that were started, by skill.
    pub sessions: BTreeMap<String, u64>,
    /// Tokens that were used, by skill.
    pub tokens: BTreeMap<String, u64>,
}

#[derive(Debug, Default)]
struct Inner {
    book: DayBook,
    running: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Desk(Arc<Mutex<Inner>>);

/// A place at work, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    desk: Desk,
    skill: String,
}

impl Desk {
    pub(crate) fn with_book(book: DayBook) -> Self {
        Self(Arc::new(Mutex::new(Inner { book, running: BTreeMap::new() })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn book(&self) -> DayBook {
        self.lock().book.clone()
    }

    /// Lets one agent in, or says why not. A session that goes on is no new session of the day.
    pub(crate) fn admit(
        &self,
        skill: &str,
        config: &AgentConfig,
        day: Option<u64>,
        goes_on: bool,
    ) -> Result<Permit, String> {
        let mut inner = self.lock();
        match day {
            Some(day) if day != inner.book.day => inner.book = DayBook { day, ..DayBook::default() },
            None if config.max_sessions_per_day.is_some() || config.max_tokens_per_day.is_some() => {
                return Err("it has limits of a day, and the host has set no calendar".to_owned());
            }
            _ => {}
        }
        let reached = |map: &BTreeMap<String, u64>, max: Option<u64>| {
            max.filter(|max| map.get(skill).copied().unwrap_or(0) >= *max)
        };
        if let Some(max) = reached(&inner.running, config.max_concurrent) {
            return Err(format!("{max} of it may run at the same time"));
        }
        if let Some(max) = reached(&inner.book.sessions, config.max_sessions_per_day).filter(|_| !goes_on) {
            return Err(format!("{max} sessions a day are allowed"));
        }
        if let Some(max) = reached(&inner.book.tokens, config.max_tokens_per_day) {
            return Err(format!("{max} tokens a day are allowed"));
        }
        *inner.running.entry(skill.to_owned()).or_default() += 1;
        if !goes_on {
            *inner.book.sessions.entry(skill.to_owned()).or_default() += 1;
        }
        Ok(Permit { desk: self.clone(), skill: skill.to_owned() })
    }

    pub(crate) fn book_tokens(&self, skill: &str, tokens: u64) {
        let mut inner = self.lock();
        let sum = inner.book.tokens.entry(skill.to_owned()).or_default();
        *sum = sum.saturating_add(tokens);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut inner = self.desk.lock();
        if let Some(running) = inner.running.get_mut(&self.skill) {
            *running = running.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back_and_the_limits_of_a_day_end_with_it() {
        let desk = Desk::default();
        let mut config = AgentConfig::new("R");
        config.max_concurrent = Some(1);
        let first = desk.admit("a", &config, None, false).unwrap();
        assert!(desk.admit("a", &config, None, false).unwrap_err().contains("same time"));
        assert!(desk.admit("b", &config, None, false).is_ok(), "another skill has its own places");
        drop(first);
        config.max_sessions_per_day = Some(1);
        assert!(desk.admit("a", &config, None, false).unwrap_err().contains("calendar"));
        assert!(desk.admit("a", &config, Some(7), false).is_ok());
        assert!(desk.admit("a", &config, Some(7), false).unwrap_err().contains("sessions a day"));
        assert!(desk.admit("a", &config, Some(7), true).is_ok(), "one that goes on is not a new one");
        assert!(desk.admit("a", &config, Some(8), false).is_ok());
        config.max_sessions_per_day = None;
        config.max_tokens_per_day = Some(10);
        desk.book_tokens("a", 10);
        assert!(desk.admit("a", &config, Some(8), false).is_err());
        config.max_concurrent = Some(0);
        assert!(desk.admit("z", &config, Some(8), false).is_err(), "0 is none");
        let saved = serde_json::to_string(&desk.book()).unwrap();
        assert_eq!(serde_json::from_str::<DayBook>(&saved).unwrap(), desk.book());
    }
}
