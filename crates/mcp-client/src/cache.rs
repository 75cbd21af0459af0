//! Lists that a modern server allows to be kept for a while (MCP 2026-07-28, caching hints).

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest that a list is kept, whatever its server says: a clock runs for as long as a host does.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The lists kept of one server, at most one for each kind of list.
#[derive(Debug, Default)]
pub(crate) struct ListCache {
    kept: Mutex<BTreeMap<&'static str, Kept>>,
}

#[derive(Debug)]
struct Kept {
    until: Instant,
    version: u64,
    list: Arc<dyn Any + Send + Sync>,
}

impl ListCache {
    /// The list, if it is fresh: its time is not up, and it has not changed since it was asked for.
    pub(crate) fn get<T: Clone + 'static>(
        &self,
        now: Instant,
        method: &'static str,
        version: u64,
    ) -> Option<T> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.get(method)?;
        if found.version != version || found.until <= now {
            kept.remove(method);
            return None;
        }
        found.list.downcast_ref::<T>().cloned()
    }

    /// Forgets a list, whatever time it has left.
    #[cfg(feature = "http")]
    pub(crate) fn forget(&self, method: &'static str) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(method);
    }

    /// Keeps a list that was asked for when its version was `version`.
    pub(crate) fn put<T: Send + Sync + 'static>(
        &self,
        now: Instant,
        method: &'static str,
        version: u64,
        time_to_live: Duration,
        list: T,
    ) {
        let Some(until) = now.checked_add(time_to_live.min(LONGEST)) else { return };
        if !time_to_live.is_zero() {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.insert(method, Kept { until, version, list: Arc::new(list) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_fresh_for_its_time_and_until_it_changes() {
        let (cache, now) = (ListCache::default(), Instant::now());
        let second = Duration::from_secs(1);
        cache.put(now, "tools/list", 3, 10 * second, vec![1]);
        assert_eq!(cache.get::<Vec<i32>>(now + 9 * second, "tools/list", 3), Some(vec![1]));
        assert_eq!(cache.get::<Vec<i32>>(now, "prompts/list", 3), None);
        assert_eq!(cache.get::<Vec<i32>>(now + 10 * second, "tools/list", 3), None, "its time is up");
        cache.put(now, "tools/list", 3, 10 * second, vec![1]);
        assert_eq!(cache.get::<Vec<i32>>(now, "tools/list", 4), None, "it has changed");
        cache.put(now, "tools/list", 3, Duration::ZERO, vec![1]);
        assert_eq!(cache.get::<Vec<i32>>(now, "tools/list", 3), None, "it must not be kept");
    }
}
