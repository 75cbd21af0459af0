//! The calls that the loop itself answers: the search for deferred tools, and the final answer as data.

use std::sync::Arc;

use crate::closing;
use crate::deferred::{TOOL_SEARCH, report, search};
use crate::event::{Added, Event};
use crate::message::{Message, ToolCall, ToolStatus};
use crate::model::ToolChoice;
use crate::outcome::StopCause;
use crate::session::Session;
use crate::setup::Setup;
use crate::state::RunState;
use crate::tool::ToolSpec;

impl RunState {
    /// Appends the deferred tools that the session has loaded before, in the order of loading.
    pub(super) fn offer_loaded(&mut self, session: &Session) {
        let setup = Arc::clone(&self.setup);
        let loaded = session.loaded_tools.iter().filter_map(|name| setup.deferred(name)).cloned();
        self.offer(loaded.collect());
    }

    /// Appends tools to those on offer. Nothing that is there moves.
    fn offer(&mut self, more: Vec<Arc<ToolSpec>>) {
        if !more.is_empty() {
            self.offered = self.offered.iter().cloned().chain(more).collect();
        }
    }

    pub(super) fn answers_by_tool(&self) -> bool {
        self.setup.wanted.as_ref().is_some_and(|w| w.is_answer(&w.output.name))
    }

    pub(super) fn tool_choice(&self) -> ToolChoice {
        let answer = self.setup.wanted.as_ref().filter(|w| w.is_answer(&w.output.name));
        match answer {
            Some(wanted) if self.wants_answer || self.landing.is_some() => {
                ToolChoice::Tool(Arc::clone(&wanted.output.name))
            }
            _ if self.landing.is_some() => ToolChoice::None,
            _ => ToolChoice::Auto,
        }
    }

    /// Answers a call that needs no tool of the host. Whether it was one.
    pub(super) fn builtin(
        &mut self,
        setup: &Setup,
        session: &mut Session,
        place: usize,
        call: &ToolCall,
    ) -> bool {
        if let Some(wanted) = setup.wanted.as_ref().filter(|w| w.is_answer(&call.name)) {
            let problem = match &call.malformed {
                Some(_) => Some("the arguments are no JSON object".to_owned()),
                None => wanted.problem(&call.arguments),
            };
            self.take_answer(session, place, call, problem, wanted.output.repairs);
            return true;
        }
        if self.landing.is_some() {
            self.settle(session, place, call, ToolStatus::NotStarted, closing::TOOL_LIMIT);
            return true;
        }
        if setup.deferred.is_empty() {
            return false;
        }
        if *call.name == *TOOL_SEARCH {
            let found = search(&setup.deferred, &call.arguments);
            let (new, known) = self.load(session, found);
            self.settle(session, place, call, ToolStatus::Ok, report(&new, &known));
            return true;
        }
        match setup.deferred(&call.name) {
            Some(spec) if !session.loaded_tools.contains(&spec.name) => {
                // The model guessed the arguments: now it gets to see what they are.
                let (new, known) = self.load(session, vec![Arc::clone(spec)]);
                let text = format!(
                    "`{}` had to be loaded first, so it was not run. Look at its schema and call it again.\n{}",
                    spec.name,
                    report(&new, &known)
                );
                self.settle(session, place, call, ToolStatus::Error, text);
                true
            }
            _ => false,
        }
    }

    /// Loads tools. Gives those that are new, and those that were there.
    fn load(
        &mut self,
        session: &mut Session,
        found: Vec<Arc<ToolSpec>>,
    ) -> (Vec<Arc<ToolSpec>>, Vec<Arc<ToolSpec>>) {
        let (known, new): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|spec| session.loaded_tools.contains(&spec.name));
        if !new.is_empty() {
            let names: Vec<Arc<str>> = new.iter().map(|s| Arc::clone(&s.name)).collect();
            session.loaded_tools.extend(names.iter().cloned());
            self.offer(new.clone());
            self.events.push_back(Event::ToolsLoaded { names });
        }
        (new, known)
    }

    fn take_answer(
        &mut self,
        session: &mut Session,
        place: usize,
        call: &ToolCall,
        problem: Option<String>,
        repairs: u32,
    ) {
        let Some(problem) = problem else {
            // Of several answers in one message the first that fits counts.
            self.structured.get_or_insert_with(|| call.arguments.clone());
            self.settle(session, place, call, ToolStatus::Ok, "Accepted.");
            return;
        };
        let text = format!("The answer does not fit the schema:\n{problem}\nGive it again, complete.");
        self.settle(session, place, call, ToolStatus::Error, text);
        self.count_repair(session, problem, repairs);
    }

    /// Counts an answer that did not fit. Whether there may be another.
    fn count_repair(&mut self, session: &mut Session, problem: String, repairs: u32) -> bool {
        let count = &mut session.open.schema_repairs;
        *count = count.saturating_add(1);
        self.wants_answer = true;
        if *count > repairs {
            self.end_with(StopCause::NoStructuredOutput { problem });
            return false;
        }
        true
    }

    /// The model has ended its turn in words: that is the answer, unless the answer has to be data.
    pub(super) fn answered_finally(&mut self, session: &mut Session) {
        let setup = Arc::clone(&self.setup);
        let Some(wanted) = &setup.wanted else { return self.done(session) };
        // With a message waiting this is not the end yet.
        if self.landing.is_none() && !self.steering.is_empty() {
            return;
        }
        let problem = if wanted.is_answer(&wanted.output.name) {
            format!("Give your final answer by calling `{}`.", wanted.output.name)
        } else {
            match wanted.read(&self.text) {
                Ok(answer) => {
                    self.structured = Some(answer);
                    self.verdict_on_run = None;
                    return self.done(session);
                }
                Err(problem) => {
                    format!("The answer does not fit the schema:\n{problem}\nGive it again: JSON only.")
                }
            }
        };
        if self.verdict_on_run.is_none() && self.count_repair(session, problem.clone(), wanted.output.repairs)
        {
            self.add(session, Message::user(problem), Added::SchemaRepair);
        }
    }
}
