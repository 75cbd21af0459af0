//! What to do about each server, decided from what is wanted, what there is, and the time. Pure.

use std::time::Duration;

use crate::fingerprint::Fingerprint;

/// How long to wait before a server that keeps exiting is started again.
///
/// The first restart is immediate: most servers that exit do so once. Exits in quick succession double the pause up to a
/// maximum, so that a server that crashes at each call cannot make the host spend its time on starting it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backoff {
    /// The pause before the second restart; it doubles from there. Default one second.
    pub first: Duration,
    /// The longest pause. Default five minutes.
    pub longest: Duration,
    /// A server that ran at least this long has not crashed at its start, and counting begins anew. Default one minute.
    pub steady_after: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(300),
            steady_after: Duration::from_secs(60),
        }
    }
}

impl Backoff {
    /// The pause after so many exits in a row.
    #[must_use]
    pub fn pause(&self, exits: u32) -> Duration {
        match exits {
            0 | 1 => Duration::ZERO,
            more => {
                let doublings = 1_u32.checked_shl(more - 2).unwrap_or(u32::MAX);
                self.first.saturating_mul(doublings).min(self.longest)
            }
        }
    }

    /// How many exits in a row it is now that a server has ended that ran for `ran`.
    pub(crate) fn count(&self, exits_before: u32, ran: Duration) -> u32 {
        if ran >= self.steady_after { 1 } else { exits_before.saturating_add(1) }
    }
}

/// What there is of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It is being started.
    Starting,
    /// It runs.
    Running,
    /// Its start failed.
    Failed,
    /// It ran and has exited: so many times in a row, last at this time.
    Exited { exits: u32, at: Duration },
}

/// What to do about a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Start it. Nothing of it runs.
    Start,
    /// End what runs, then start it with its new configuration.
    Restart,
    /// End it and forget it.
    Stop,
    /// Leave it as it is.
    Keep,
    /// Leave it: the pause after its exits lasts until this time.
    Wait { until: Duration },
}

/// Decides about one server: the key of its wanted configuration, if it is wanted, and what there is, with the key of the
/// configuration that it was started with.
pub(crate) fn decide(
    wanted: Option<Fingerprint>,
    present: Option<(Fingerprint, Condition)>,
    backoff: &Backoff,
    now: Duration,
) -> Action {
    match (wanted, present) {
        (None, None) => Action::Keep,
        (None, Some(_)) => Action::Stop,
        (Some(_), None) => Action::Start,
        (Some(wanted), Some((key, condition))) if wanted != key => match condition {
            Condition::Starting | Condition::Running => Action::Restart,
            Condition::Failed | Condition::Exited { .. } => Action::Start,
        },
        (Some(_), Some((_, condition))) => match condition {
            // A start that failed would fail again.
            Condition::Starting | Condition::Running | Condition::Failed => Action::Keep,
            Condition::Exited { exits, at } => {
                let until = at.saturating_add(backoff.pause(exits));
                if now >= until { Action::Start } else { Action::Wait { until } }
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(number: u8) -> Fingerprint {
        Fingerprint::of_value(&number.into())
    }

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_plan_table_holds() {
        use Action::{Keep, Restart, Start, Stop, Wait};
        use Condition::{Exited, Failed, Running, Starting};
        let exited = |exits, at| Exited { exits, at: s(at) };
        let cases = [
            // wanted, present, action at 100 s
            (None, None, Keep),
            (None, Some((1, Starting)), Stop),
            (None, Some((1, Running)), Stop),
            (None, Some((1, Failed)), Stop),
            (None, Some((1, exited(9, 99))), Stop),
            (Some(1), None, Start),
            (Some(1), Some((1, Starting)), Keep),
            (Some(1), Some((1, Running)), Keep),
            (Some(1), Some((1, Failed)), Keep),
            (Some(1), Some((1, exited(1, 100))), Start),
            (Some(1), Some((1, exited(2, 99))), Start),
            (Some(1), Some((1, exited(2, 100))), Wait { until: s(101) }),
            (Some(1), Some((1, exited(5, 99))), Wait { until: s(107) }),
            (Some(1), Some((1, exited(60, 99))), Wait { until: s(399) }),
            (Some(2), Some((1, Starting)), Restart),
            (Some(2), Some((1, Running)), Restart),
            (Some(2), Some((1, Failed)), Start),
            (Some(2), Some((1, exited(60, 99))), Start),
        ];
        for (wanted, present, action) in cases {
            let present = present.map(|(number, condition)| (key(number), condition));
            assert_eq!(
                decide(wanted.map(key), present, &Backoff::default(), s(100)),
                action,
                "{wanted:?} {present:?}"
            );
        }
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_a_steady_run_resets_them() {
        let backoff = Backoff::default();
        let pauses: Vec<_> = (0..13).map(|exits| backoff.pause(exits).as_secs()).collect();
        assert_eq!(pauses, [0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(backoff.pause(u32::MAX), s(300));
        assert_eq!(backoff.count(7, s(59)), 8);
        assert_eq!(backoff.count(7, s(60)), 1);
        assert_eq!(backoff.count(u32::MAX, s(0)), u32::MAX);
    }

    fn condition() -> impl Strategy<Value = Condition> {
        prop_oneof![
            Just(Condition::Starting),
            Just(Condition::Running),
            Just(Condition::Failed),
            (any::<u32>(), 0..1000_u64).prop_map(|(exits, at)| Condition::Exited { exits, at: s(at) }),
        ]
    }

    proptest! {
        #[test]
        fn the_plan_never_does_what_it_must_not(
            wanted in proptest::option::of(0..3_u8),
            present in proptest::option::of((0..3_u8, condition())),
            now in 0..2000_u64,
        ) {
            let backoff = Backoff::default();
            let action = decide(wanted.map(key), present.map(|(k, c)| (key(k), c)), &backoff, s(now));
            match action {
                // Never two processes of one server.
                Action::Start => {
                    prop_assert!(wanted.is_some());
                    prop_assert!(!matches!(present, Some((_, Condition::Starting | Condition::Running))));
                }
                Action::Restart => {
                    prop_assert!(wanted.is_some() && present.is_some_and(|(k, _)| Some(k) != wanted));
                    prop_assert!(matches!(present, Some((_, Condition::Starting | Condition::Running))));
                }
                Action::Stop => prop_assert!(wanted.is_none() && present.is_some()),
                Action::Wait { until } => prop_assert!(until > s(now) && until <= s(now.max(1000)) + backoff.longest),
                Action::Keep => prop_assert!(wanted.is_none() || present.is_some()),
            }
        }
    }
}
