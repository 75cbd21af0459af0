//! What a run may spend, and how it ends when it has spent it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The limits of a run. Each is checked before spending: what would go over does not start.
///
/// `None` means no limit. When a limit is reached, the model gets one last request with its tools switched off, so
/// that it can say what is done and what is left (the soft landing); then the run ends as
/// `Stopped`, and raising the limit and resuming goes on where it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Model answers. 60 by default: enough for long work, an end for a model that walks in circles.
    pub turns: Option<u32>,
    /// Tool calls that are started.
    pub tool_calls: Option<u32>,
    /// Input tokens of all model calls together.
    pub input_tokens: Option<u64>,
    /// Output tokens of all model calls together.
    pub output_tokens: Option<u64>,
    /// Time spent working: models, tools and waits between retries; not waiting for people. Needs a clock.
    pub wall_time: Option<Duration>,
    /// Millionths of the host's currency, by its price function.
    pub cost_micros: Option<u64>,
    /// Whether a reached limit allows one last request without tools. On by default.
    pub soft_landing: bool,
    /// The share of tokens, time and cost that is kept for the landing, in percent. 10 by default. Turns and tool
    /// calls need no reserve: the landing is one request beyond the turn limit.
    pub landing_reserve_percent: u8,
    /// Read-only calls that run at the same time. 8 by default.
    pub parallel_calls: usize,
    /// How long one call may take, unless its tool has a
    /// [limit of its own](crate::tool_context::Tool::time_limit) or is a sub-agent. None by default; needs a clock.
    pub tool_timeout: Option<Duration>,
    /// How long running tools may wind down after a cancel. 2 s by default; without a clock there is no grace.
    pub grace: Duration,
    /// Tool calls of one answer that are looked at; those beyond are answered as not started. 1,000 by default:
    /// far above any honest answer, and an end for a stream that repeats itself.
    pub calls_per_turn: usize,
    /// Times that a run asks an answer which was cut at the output limit to go on, in a row. 2 by default.
    pub continuations: u32,
    /// How deep sub-agents may start sub-agents. 3 by default.
    pub agent_depth: usize,
    /// Sub-agents that run at the same time. 4 by default; more wait for their turn.
    pub agents_at_once: usize,
    /// Sub-agents that one run may start. 12 by default.
    pub agents: u32,
    /// How often the same call may have the same result before the model is told. 3 by default.
    pub repeat_nudge: u32,
    /// How often the same call may have the same result before the run stops, also within one answer; and how many
    /// answers in a row may call only tools that do not exist. 5 by default.
    pub repeat_stop: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turns: Some(60),
            tool_calls: None,
            input_tokens: None,
            output_tokens: None,
            wall_time: None,
            cost_micros: None,
            soft_landing: true,
            landing_reserve_percent: 10,
            parallel_calls: 8,
            tool_timeout: None,
            grace: Duration::from_secs(2),
            calls_per_turn: 1000,
            continuations: 2,
            agent_depth: 3,
            agents_at_once: 4,
            agents: 12,
            repeat_nudge: 3,
            repeat_stop: 5,
        }
    }
}

macro_rules! with {
    ($($(#[$doc:meta])* $name:ident, $field:ident: $type:ty;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $field: $type) -> Self {
            self.$field = $field;
            self
        }
    )*};
}

impl Limits {
    with! {
        /// Sets the limit of model answers.
        with_turns, turns: Option<u32>;
        /// Sets the limit of tool calls.
        with_tool_calls, tool_calls: Option<u32>;
        /// Sets the limit of input tokens.
        with_input_tokens, input_tokens: Option<u64>;
        /// Sets the limit of output tokens.
        with_output_tokens, output_tokens: Option<u64>;
        /// Sets the limit of working time.
        with_wall_time, wall_time: Option<Duration>;
        /// Sets the limit of cost, in millionths of the host's currency.
        with_cost_micros, cost_micros: Option<u64>;
        /// Switches the landing.
        with_soft_landing, soft_landing: bool;
        /// Sets the share kept for the landing, in percent.
        with_landing_reserve_percent, landing_reserve_percent: u8;
        /// Sets how many read-only calls run at the same time; 0 counts as 1.
        with_parallel_calls, parallel_calls: usize;
        /// Sets how long one call may take.
        with_tool_timeout, tool_timeout: Option<Duration>;
        /// Sets how long tools may wind down after a cancel.
        with_grace, grace: Duration;
        /// Sets how many calls of one answer are looked at.
        with_calls_per_turn, calls_per_turn: usize;
        /// Sets how often a cut answer is continued in a row.
        with_continuations, continuations: u32;
        /// Sets how deep sub-agents may start sub-agents.
        with_agent_depth, agent_depth: usize;
        /// Sets how many sub-agents run at the same time; 0 counts as 1.
        with_agents_at_once, agents_at_once: usize;
        /// Sets how many sub-agents one run may start.
        with_agents, agents: u32;
        /// Sets how often the same call may have the same result before the model is told.
        with_repeat_nudge, repeat_nudge: u32;
        /// Sets how often the same call may have the same result before the run stops.
        with_repeat_stop, repeat_stop: u32;
    }

    /// The first limit that is reached.
    pub(crate) fn reached(&self, spent: &Spent) -> Option<Limit> {
        // What needs a reserve counts as reached when only the reserve is left.
        let nearly = |limit: u64| {
            let reserve =
                if self.soft_landing { u64::from(self.landing_reserve_percent.min(100)) } else { 0 };
            limit - limit / 100 * reserve - limit % 100 * reserve / 100
        };
        let over = |spent: u64, limit: Option<u64>| limit.is_some_and(|l| spent >= nearly(l));
        let wall = self.wall_time.map(millis);
        if self.turns.is_some_and(|l| spent.turns >= l) {
            Some(Limit::Turns)
        } else if self.tool_calls.is_some_and(|l| spent.tool_calls >= l) {
            Some(Limit::ToolCalls)
        } else if over(spent.input_tokens, self.input_tokens) {
            Some(Limit::InputTokens)
        } else if over(spent.output_tokens, self.output_tokens) {
            Some(Limit::OutputTokens)
        } else if over(spent.wall_millis, wall) {
            Some(Limit::WallTime)
        } else if over(spent.cost_micros, self.cost_micros) {
            Some(Limit::Cost)
        } else {
            None
        }
    }

    /// These limits, and beyond them at most a share of what is left under the limits of the run above.
    pub(crate) fn within(mut self, left: &Left, percent: u8) -> Self {
        let percent = u64::from(percent.min(100));
        let share = |own: Option<u64>, left: Option<u64>| {
            let left = left.map(|left| left / 100 * percent + left % 100 * percent / 100);
            match (own, left) {
                (Some(own), Some(left)) => Some(own.min(left)),
                (own, left) => own.or(left),
            }
        };
        self.input_tokens = share(self.input_tokens, left.input_tokens);
        self.output_tokens = share(self.output_tokens, left.output_tokens);
        self.cost_micros = share(self.cost_micros, left.cost_micros);
        let calls = share(self.tool_calls.map(u64::from), left.tool_calls.map(u64::from));
        self.tool_calls = calls.map(|calls| u32::try_from(calls).unwrap_or(u32::MAX));
        self
    }

    /// What a run may still spend.
    pub(crate) fn left(&self, spent: &Spent) -> Left {
        Left {
            input_tokens: self.input_tokens.map(|l| l.saturating_sub(spent.input_tokens)),
            output_tokens: self.output_tokens.map(|l| l.saturating_sub(spent.output_tokens)),
            cost_micros: self.cost_micros.map(|l| l.saturating_sub(spent.cost_micros)),
            tool_calls: self.tool_calls.map(|l| l.saturating_sub(spent.tool_calls)),
        }
    }

    /// Whether a last request may still be made.
    pub(crate) fn may_land(&self, spent: &Spent) -> bool {
        let left = |spent: u64, limit: Option<u64>| limit.is_none_or(|l| spent < l);
        self.soft_landing
            && self.turns.is_none_or(|l| l > 0)
            && left(spent.input_tokens, self.input_tokens)
            && left(spent.output_tokens, self.output_tokens)
            && left(spent.wall_millis, self.wall_time.map(millis))
            && left(spent.cost_micros, self.cost_micros)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What a run has spent so far. Kept in the session, so that a resumed run goes on counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Spent {
    /// Model answers.
    pub turns: u32,
    /// Tool calls that were started.
    pub tool_calls: u32,
    /// Input tokens, those of failed attempts, compaction and sub-agents included.
    pub input_tokens: u64,
    /// Output tokens, likewise.
    pub output_tokens: u64,
    /// Working time in milliseconds, without waiting for people.
    pub wall_millis: u64,
    /// Millionths of the host's currency.
    pub cost_micros: u64,
}

/// What a run may still spend, where it is limited: its budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    pub(crate) cost_micros: Option<u64>,
    pub(crate) tool_calls: Option<u32>,
}

/// A limit, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::turns`].
    Turns,
    /// [`Limits::tool_calls`].
    ToolCalls,
    /// [`Limits::input_tokens`].
    InputTokens,
    /// [`Limits::output_tokens`].
    OutputTokens,
    /// [`Limits::wall_time`].
    WallTime,
    /// [`Limits::cost_micros`].
    Cost,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Turns => "turn limit",
            Self::ToolCalls => "tool call limit",
            Self::InputTokens => "input token limit",
            Self::OutputTokens => "output token limit",
            Self::WallTime => "time limit",
            Self::Cost => "cost limit",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_reached_exactly_at_its_value_and_tokens_keep_a_reserve_for_the_landing() {
        let limits = Limits::default().with_turns(Some(2)).with_input_tokens(Some(1000));
        let spent = |turns, input_tokens| Spent { turns, input_tokens, ..Spent::default() };
        for (spent, reached, may_land) in [
            (spent(0, 0), None, true),
            (spent(1, 899), None, true),
            (spent(2, 0), Some(Limit::Turns), true),
            (spent(1, 900), Some(Limit::InputTokens), true),
            (spent(1, 1000), Some(Limit::InputTokens), false),
        ] {
            assert_eq!((limits.reached(&spent), limits.may_land(&spent)), (reached, may_land), "{spent:?}");
        }
        let hard = limits.with_soft_landing(false);
        assert_eq!(hard.reached(&spent(1, 999)), None);
        assert!(!hard.may_land(&spent(0, 0)));
    }

    #[test]
    fn a_limit_of_zero_lets_nothing_through() {
        let limits = Limits::default().with_turns(Some(0)).with_cost_micros(Some(0));
        assert_eq!(limits.reached(&Spent::default()), Some(Limit::Turns));
        assert!(!limits.may_land(&Spent::default()));
    }

    #[test]
    fn large_limits_do_not_overflow() {
        let limits = Limits::default().with_input_tokens(Some(u64::MAX));
        assert_eq!(limits.reached(&Spent { input_tokens: 1, ..Spent::default() }), None);
        assert_eq!(
            limits.reached(&Spent { input_tokens: u64::MAX, ..Spent::default() }),
            Some(Limit::InputTokens)
        );
    }
}
