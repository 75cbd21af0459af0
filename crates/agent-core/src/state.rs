//! The run as a value, without input or output: feed it what happened, ask it what to do next.
//!
//! [`Run`](crate::run::Run) is the driver that most hosts want. This module is for those with an executor of their
//! own: workflow engines, browsers, tests that decide the order of everything. The same inputs in the same order
//! give the same steps, events and session, byte for byte: there is no clock, no randomness and no id generator
//! in here.
//!
//! The loop of a driver:
//!
//! 1. Take every [`poll_event`](RunState::poll_event) and show it.
//! 2. Take every [`poll_step`](RunState::poll_step) and begin it: each step is given once.
//! 3. Wait for whatever was begun, or for [`poll_deadline`](RunState::poll_deadline), and
//!    [`feed`](RunState::feed) what came. Then again from 1.
//!
//! After [`Step::Finished`] the session is valid. To end earlier, call [`close`](RunState::close): it cannot fail
//! and does not wait.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::approval::Refused;
use crate::digest::Digest;
use crate::event::{Event, MessageNumber};
use crate::inbox::MAX_QUEUED_MESSAGES;
use crate::limits::Limit;
use crate::message::{CallId, Message};
use crate::outcome::{Outcome, RunError};
use crate::session::Session;
use crate::setup::Setup;
use crate::tool::ToolSpec;

mod step;
pub(crate) mod answer;
mod turn;
mod attempt;
mod batch;
mod verdicts;
mod repeats;
mod running;
mod builtin;
mod compact;
mod child;
mod ending;

use answer::Answer;
pub(crate) use child::Ancestry;
use compact::{Compacting, Gauge};
use running::RunningCall;
pub use step::{Input, ModelCall, ReadyCall, Step};

#[derive(Debug, PartialEq)]
enum Phase {
    /// Nothing is in motion: decide what comes next.
    Idle,
    /// A model call is open.
    Calling,
    /// Waits before the next attempt.
    Backoff { until: Duration },
    /// Hooks judge calls.
    Gating,
    /// Calls wait for verdicts or run.
    Batch,
    /// Hooks judge the end.
    Ending,
    /// A summary is being written.
    Compacting,
    /// Running calls wind down; then the run ends as noted.
    WindingDown { until: Duration },
    /// Over.
    Finished,
}

/// How a run begins.
#[derive(Debug)]
pub(crate) enum Start {
    /// With a message.
    With(Message),
    /// Where the session ended.
    Again,
    /// To make room, and nothing else.
    Compact,
}

/// A run without input or output. See the [module](self).
pub struct RunState {
    setup: Arc<Setup>,
    ancestry: Ancestry,
    phase: Phase,
    steps: VecDeque<Step>,
    events: VecDeque<Event>,
    now: Option<Duration>,
    /// Working time below a millisecond that is not booked yet.
    unbooked: Duration,
    /// Every call id of the session.
    ids: HashSet<CallId>,
    offered: Arc<[Arc<ToolSpec>]>,
    steering: VecDeque<Message>,
    follow_ups: VecDeque<Message>,
    answer: Answer,
    number: MessageNumber,
    /// Attempts at the present answer.
    attempt: u32,
    /// Attempts at the present answer with the present model.
    model_attempts: u32,
    model: usize,
    /// The limit for which the present request is the last.
    landing: Option<Limit>,
    /// Messages of the last request.
    sent: usize,
    running: Vec<RunningCall>,
    /// All running calls are sub-agents that wait for people.
    sub_agents_wait: bool,
    /// The first call of the batch that has no result yet, or one before it.
    first_open: usize,
    turn_open: bool,
    /// Whether the approver is at work.
    deciding: bool,
    /// Asks that the approver has yet to be given.
    undecided: Vec<Digest>,
    /// How the run ends when the running calls are done.
    verdict_on_run: Option<Result<Outcome, RunError>>,
    text: String,
    gauge: Gauge,
    compacting: Option<Compacting>,
    /// The last compaction of this run freed too little.
    compaction_is_spent: bool,
    /// The present answer was too long for the context before, and room was made.
    overflow_is_handled: bool,
    /// The run compacts, and that is all.
    only_compacts: bool,
    /// The answer as data.
    structured: Option<Value>,
    /// The next answer has to be a call of the answer tool.
    wants_answer: bool,
    /// A call of the present answer names a tool that does not exist.
    unknown_tool: bool,
    /// A call of the present answer was answered well.
    any_ok: bool,
}

impl fmt::Debug for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunState")
            .field("phase", &self.phase)
            .field("running", &self.running.len())
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

impl RunState {
    pub(crate) fn new(setup: Arc<Setup>, session: &mut Session, work: Start, ancestry: Ancestry) -> Self {
        let offered = Arc::clone(&setup.offered);
        let mut state = Self {
            setup,
            ancestry,
            phase: Phase::Idle,
            steps: VecDeque::new(),
            events: VecDeque::new(),
            now: None,
            unbooked: Duration::ZERO,
            ids: HashSet::new(),
            offered,
            steering: VecDeque::new(),
            follow_ups: VecDeque::new(),
            answer: Answer::default(),
            number: 0,
            attempt: 0,
            model_attempts: 0,
            model: 0,
            landing: None,
            sent: 0,
            running: Vec::new(),
            sub_agents_wait: false,
            first_open: 0,
            turn_open: false,
            deciding: false,
            undecided: Vec::new(),
            verdict_on_run: None,
            text: String::new(),
            gauge: Gauge::default(),
            compacting: None,
            compaction_is_spent: false,
            overflow_is_handled: false,
            only_compacts: false,
            structured: None,
            wants_answer: false,
            unknown_tool: false,
            any_ok: false,
        };
        state.offer_loaded(session);
        match work {
            Start::With(message) => state.begin(session, Some(message)),
            Start::Again => state.begin(session, None),
            Start::Compact => state.begin_compaction(session),
        }
        state
    }

    /// The next thing to begin, if there is any.
    pub fn poll_step(&mut self, session: &mut Session) -> Option<Step> {
        if self.steps.is_empty() && self.phase == Phase::Idle {
            self.next_turn(session);
        }
        self.steps.pop_front()
    }

    /// The next thing that happened, if there is any.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Input::Time`] is due at the latest, by the host's clock.
    pub fn poll_deadline(&self, session: &Session) -> Option<Duration> {
        let phase = match self.phase {
            Phase::Backoff { until } | Phase::WindingDown { until } => Some(until),
            _ => None,
        };
        let calls = self.running.iter().filter_map(|r| r.deadline).min();
        let wall = self.wall_deadline(session);
        [phase, calls, wall].into_iter().flatten().min()
    }

    /// Takes in what happened. What comes too late is ignored: a model event after a cancel, a second result.
    ///
    /// # Errors
    ///
    /// [`Refused`] for a verdict that does not count.
    pub fn feed(&mut self, session: &mut Session, input: Input) -> Result<(), Refused> {
        match input {
            Input::Model(Ok(event)) => self.model_event(session, event),
            Input::Model(Err(error)) => self.model_failed(session, error),
            Input::ModelEnded => self.model_ended(session),
            Input::RequestStopped(reason) => self.request_stopped(session, reason),
            Input::RequestPanicked => self.request_panicked(session),
            Input::Gates(gates) => self.gated(session, gates),
            Input::Verdict { ask, verdict } => return self.answered(session, &ask, verdict),
            Input::Decided => self.decided(session),
            Input::ToolProgress { call, text, skipped } => {
                if self.running.iter().any(|r| r.call == call) {
                    self.events.push_back(Event::ToolProgress { call, text, skipped });
                }
            }
            Input::ToolDone { call, result, kept } => self.tool_done(session, &call, result, kept),
            Input::Child { call, name, event } => {
                self.events.push_back(Event::SubAgent { call, name, event });
            }
            Input::Books(entries) => self.book_child(session, entries),
            Input::Granted(grants) => session.grants.merge(&grants),
            Input::Suspended { call, session: child } => self.suspended(session, &call, child),
            Input::Ended(how) => self.end_judged(session, how),
            Input::HookPanicked(hook) => self.events.push_back(Event::HookPanicked { hook }),
            Input::Steer(message) => self.steering.push_back(message),
            Input::FollowUp(message) => self.follow_ups.push_back(message),
            Input::Cancel { reason } => self.cut(session, Ok(Outcome::Cancelled { reason })),
            Input::SubAgentsWait(waits) => self.sub_agents_wait = waits,
            Input::Time(now) => self.set_time(session, now),
        }
        Ok(())
    }

    pub(crate) fn ancestry(&self) -> &Ancestry {
        &self.ancestry
    }

    /// Whether there are events or steps to take.
    pub(crate) fn has_output(&self) -> bool {
        !self.events.is_empty() || !self.steps.is_empty() || self.phase == Phase::Idle
    }

    /// Whether the run is over.
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Whether the queues have room for another steering message and another follow-up.
    pub(crate) fn takes_messages(&self) -> (bool, bool) {
        (self.steering.len() < MAX_QUEUED_MESSAGES, self.follow_ups.len() < MAX_QUEUED_MESSAGES)
    }

    /// The messages that were not delivered, steering first. A run that is over has no more use for them.
    pub fn take_undelivered(&mut self) -> Vec<Message> {
        self.steering.drain(..).chain(self.follow_ups.drain(..)).collect()
    }
}
