//! Compaction as a step of the run, between turns.

use crate::compaction::{
    Compaction, cut_point, protected, replace_prefix, stub_results, summary_request, text_tokens, tokens,
};
use crate::event::{Added, Event};
use crate::history::History;
use crate::ledger::{AttemptEnd, Purpose};
use crate::model::{ModelError, ModelEvent, ModelRequest, PromptSection};
use crate::outcome::{Outcome, RunError};
use crate::session::Session;
use crate::state::{ModelCall, Phase, RunState, Step};
use crate::usage::{StopReason, Usage};

/// Tokens of the next request, estimated from the last count of the provider and what came since.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    /// Tokens of the first `counted` messages with everything before them; zero when nothing is known.
    tokens: u64,
    counted: usize,
}

/// A compaction that waits for its summary.
#[derive(Debug)]
pub(super) struct Compacting {
    cut: usize,
    before: u64,
    stubbed: usize,
    summary: String,
    usage: Usage,
    /// The request was refused as too long: this has to help.
    overflow: Option<Box<ModelError>>,
}

impl RunState {
    /// Notes what the provider counted for the request and its answer.
    pub(super) fn calibrate(&mut self, session: &Session, usage: &Usage) {
        if let Some(input) = usage.input {
            self.gauge.tokens = input.saturating_add(usage.output.unwrap_or(0));
            self.gauge.counted = session.messages.len();
        }
    }

    pub(super) fn estimate(&mut self, session: &Session) -> u64 {
        if self.gauge.counted > session.messages.len() {
            self.gauge = Gauge::default();
        }
        if self.gauge.counted == 0 && self.gauge.tokens == 0 {
            self.gauge.tokens = self.overhead();
        }
        let new = session.messages.iter().skip(self.gauge.counted);
        self.gauge.tokens = new.fold(self.gauge.tokens, |sum, m| sum.saturating_add(tokens(m)));
        self.gauge.counted = session.messages.len();
        self.gauge.tokens
    }

    /// Estimated tokens of the system prompt and the tools.
    fn overhead(&self) -> u64 {
        let system: usize = self.setup.system.iter().map(|s| s.text.len()).sum();
        let tools = self.offered.iter().map(|t| t.description.len() + t.input_schema.to_string().len());
        text_tokens(system + tools.sum::<usize>())
    }

    /// Tokens that a request may hold, if anybody knows.
    fn budget(&self) -> Option<u64> {
        let settings = &self.setup.compaction;
        let info = &self.setup.model(self.model)?.info;
        let window = settings.window.or(info.context_window)?;
        let max_output = self.setup.options.max_output_tokens.map(u64::from).or(info.max_output_tokens);
        Some(settings.budget(window, max_output))
    }

    /// Makes room if the next request would be too long. Whether a summary is awaited.
    pub(super) fn make_room(&mut self, session: &mut Session) -> bool {
        if !self.setup.compaction.automatic || self.compaction_is_spent {
            return false;
        }
        let Some(budget) = self.budget() else { return false };
        self.estimate(session) > budget && self.compact(session, None)
    }

    /// Stubs, and asks for a summary if that is not enough. Whether a summary is awaited.
    pub(super) fn compact(&mut self, session: &mut Session, overflow: Option<Box<ModelError>>) -> bool {
        let settings = self.setup.compaction.clone();
        // Measured like what comes after: the provider's own count is of another kind than our estimates.
        let before = self.measure_again(session);
        self.events.push_back(Event::CompactionStarted { tokens: before });
        let mut stubbed = stub_results(&mut session.messages, settings.keep_results, settings.stub_bytes);
        let after = self.measure_again(session);
        let enough = self.budget().is_some_and(|budget| after <= budget) && overflow.is_none();
        if enough && stubbed > 0 && !self.only_compacts {
            self.compacted(before, after, stubbed, 0, None);
            return false;
        }
        let Some(cut) = cut_point(&session.messages, settings.keep_messages) else {
            // Too few messages to summarise: what is left is to look at the last results as well.
            stubbed += stub_results(&mut session.messages, 2, settings.stub_bytes / 2);
            let after = self.measure_again(session);
            self.compacted(before, after, stubbed, 0, None);
            return false;
        };
        self.ask_for_summary(session, &settings, cut);
        self.compacting = Some(Compacting {
            cut,
            before,
            stubbed,
            summary: String::new(),
            usage: Usage::default(),
            overflow,
        });
        true
    }

    fn measure_again(&mut self, session: &Session) -> u64 {
        self.gauge = Gauge::default();
        self.sent = 0;
        self.estimate(session)
    }

    fn ask_for_summary(&mut self, session: &Session, settings: &Compaction, cut: usize) {
        /// Of the window, in bytes per token: 0.6 times 3.5 leaves room for the prompt and the summary.
        const BYTES_PER_WINDOW_TOKEN: f64 = 2.1;
        /// For models whose window nobody knows.
        const USUAL_WINDOW: u64 = 32_768;
        let info = self.setup.model(self.model).map(|m| &m.info);
        let window = settings.window.or(info.and_then(|i| i.context_window)).unwrap_or(USUAL_WINDOW);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rough size"
        )]
        let max_bytes = (window as f64 * BYTES_PER_WINDOW_TOKEN) as usize;
        let (system, ask) = summary_request(session.messages.get(..cut).unwrap_or_default(), max_bytes);
        let mut request = ModelRequest::new([ask].into_iter().collect::<History>());
        request.system = [PromptSection::new("summary", system)].into();
        request.options.max_output_tokens = Some(settings.summary_tokens);
        self.phase = Phase::Compacting;
        self.steps.push_back(Step::CallModel(ModelCall {
            model: self.model,
            request,
            purpose: Purpose::Compaction,
        }));
    }

    pub(super) fn summary_event(&mut self, session: &mut Session, event: ModelEvent) {
        /// Far above any summary that was asked for.
        const MAX_SUMMARY: usize = 1024 * 1024;
        let Some(compacting) = &mut self.compacting else { return };
        match event {
            ModelEvent::Text(delta) if compacting.summary.len() < MAX_SUMMARY => {
                compacting.summary.push_str(&delta);
            }
            ModelEvent::Usage(usage) => compacting.usage.merge(usage),
            ModelEvent::BlockDone(block) => {
                // The block is what counts; some models send no deltas.
                if let Some(text) = block.as_text() {
                    compacting.summary.clear();
                    compacting.summary.push_str(text);
                }
            }
            ModelEvent::Stop { reason, .. } => {
                let problem = match reason {
                    StopReason::Filtered => Some("the provider withheld the summary".to_owned()),
                    _ => None,
                };
                self.summary_ended(session, problem);
            }
            _ => {}
        }
    }

    pub(super) fn summary_failed(&mut self, session: &mut Session, error: &ModelError) {
        self.summary_ended(session, Some(format!("the summary failed: {error}")));
    }

    fn summary_ended(&mut self, session: &mut Session, problem: Option<String>) {
        let Some(done) = self.compacting.take() else { return };
        self.phase = Phase::Idle;
        let end = if problem.is_some() { AttemptEnd::Failed } else { AttemptEnd::Answered };
        self.book(session, Purpose::Compaction, end, done.usage);
        let blank = done.summary.trim().is_empty();
        let problem = problem.or_else(|| blank.then(|| "the summary is empty".to_owned()));
        let mut summarised = 0;
        if problem.is_none() {
            let going = session.messages.get(..done.cut).unwrap_or_default().to_vec();
            let kept = protected(&self.setup.compaction, &going);
            let content = replace_prefix(&mut session.messages, done.cut, &done.summary, &kept);
            let message = session.next_number();
            self.events.push_back(Event::MessageAdded { message, why: Added::Summary, content });
            summarised = done.cut;
        }
        let after = self.measure_again(session);
        let helped = self.compacted(done.before, after, done.stubbed, summarised, problem);
        if self.only_compacts {
            let text = done.summary;
            return self.finish(session, Ok(Outcome::Done { text, structured: None }));
        }
        match done.overflow {
            Some(error) if !helped => self.finish(session, Err(RunError::ContextFull(error))),
            Some(_) => self.attempt_answer(session),
            None => self.call_model(session),
        }
    }

    /// Tells what a compaction has brought. One that frees too little is the last of its run. Whether it helped.
    fn compacted(
        &mut self,
        before: u64,
        after: u64,
        stubbed: usize,
        summarised: usize,
        problem: Option<String>,
    ) -> bool {
        let percent = u64::from(self.setup.compaction.minimum_gain_percent.min(100));
        let helped = before.saturating_sub(after) >= (before.saturating_mul(percent) / 100).max(1);
        let problem = problem.or_else(|| {
            (!helped).then(|| format!("less than {percent} % was freed, so this run compacts no more"))
        });
        self.compaction_is_spent |= !helped;
        self.events.push_back(Event::CompactionEnded { tokens: after, stubbed, summarised, problem });
        helped
    }

    /// The provider says that the request is too long: compact once, try once more.
    pub(super) fn overflowed(&mut self, session: &mut Session, error: ModelError) {
        let error = Box::new(error);
        if std::mem::replace(&mut self.overflow_is_handled, true) {
            return self.finish(session, Err(RunError::ContextFull(error)));
        }
        let before = self.measure_again(session);
        if self.compact(session, Some(error.clone())) {
            return;
        }
        if self.estimate(session) < before {
            self.attempt_answer(session);
        } else {
            self.finish(session, Err(RunError::ContextFull(error)));
        }
    }

    /// The one step of a run that only compacts.
    pub(super) fn compact_only(&mut self, session: &mut Session) {
        if !self.compact(session, None) {
            self.finish(session, Ok(Outcome::Done { text: String::new(), structured: None }));
        }
    }

    /// A summary that is cut is no summary; what it used is booked.
    pub(super) fn cut_summary(&mut self, session: &mut Session) {
        if let Some(compacting) = self.compacting.take() {
            let begun = !self.steps.iter().any(|s| matches!(s, Step::CallModel(_)));
            if begun {
                self.book(session, Purpose::Compaction, AttemptEnd::Aborted, compacting.usage);
            }
            let tokens = self.estimate(session);
            self.events.push_back(Event::CompactionEnded {
                tokens,
                stubbed: compacting.stubbed,
                summarised: 0,
                problem: Some("the run ended before the summary was there".to_owned()),
            });
            self.phase = Phase::Idle;
        }
    }
}
