//! The wave rule: which calls of an answer may run at the same time.
//!
//! Consecutive calls that only read run together, up to a width. Every other call is a barrier: it starts when all
//! calls before it have ended, and nothing behind it starts before it has ended. The rule looks at the order of
//! the calls, never at what happens to be running, so a read that is listed behind a write always sees the write.

/// What the rule has to know of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has its result.
    Done,
    /// It runs; `parallel` as when it was started.
    Running {
        /// Whether others may run beside it.
        parallel: bool,
    },
    /// It may run as soon as its turn comes.
    Ready {
        /// Whether others may run beside it.
        parallel: bool,
    },
    /// Somebody has yet to decide about it. Nothing behind it starts.
    Undecided,
}

/// The next call that may start now, by its place in the order of calls.
pub(crate) fn next_to_start(calls: impl Iterator<Item = Standing>, width: usize) -> Option<usize> {
    let mut running = 0;
    for (place, standing) in calls.enumerate() {
        match standing {
            Standing::Done => {}
            Standing::Running { parallel: true } => running += 1,
            Standing::Ready { parallel: true } => {
                return (running < width.max(1)).then_some(place);
            }
            Standing::Ready { parallel: false } => return (running == 0).then_some(place),
            Standing::Running { parallel: false } | Standing::Undecided => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Standing::{Done, Ready, Running, Undecided};
    use super::*;

    const READ: Standing = Ready { parallel: true };
    const WRITE: Standing = Ready { parallel: false };
    const READING: Standing = Running { parallel: true };
    const WRITING: Standing = Running { parallel: false };

    #[test]
    fn reads_run_together_up_to_the_width_and_writes_are_barriers() {
        for (calls, width, next) in [
            (&[READ, READ][..], 8, Some(0)),
            (&[READING, READ], 8, Some(1)),
            (&[READING, READ], 1, None),
            (&[READING, READ], 0, None),
            (&[READ], 0, Some(0)),
            (&[READING, WRITE, READ], 8, None),
            (&[Done, WRITE, READ], 8, Some(1)),
            (&[Done, WRITING, READ], 8, None),
            (&[Done, Done, READ], 8, Some(2)),
            (&[WRITE, WRITE], 8, Some(0)),
            (&[WRITING, WRITE], 8, None),
            (&[Undecided, READ], 8, None),
            (&[READING, Done, READ, Undecided], 8, Some(2)),
            (&[Done, Done], 8, None),
        ] {
            assert_eq!(next_to_start(calls.iter().copied(), width), next, "{calls:?} width {width}");
        }
    }
}
