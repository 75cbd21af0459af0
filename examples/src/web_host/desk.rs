//! The desk between the pages and the run: what happened goes out, messages and decisions come in.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use haversack::ConsentQuestion;
use haversack::agent_core::handle::{RunHandle, Steered};
use haversack::agent_core::message::{CallId, ToolStatus};
use haversack::agent_core::policy::Rule;
use haversack::agent_core::usage::Usage;
use haversack::prelude::*;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::chat::diff::{self, Change};
use crate::terminal::plain;
use crate::web_host::log::Log;

/// Messages that wait for the run before them.
const MAX_WAITING: usize = 8;
/// Characters of a result that a page shows; the model has the whole.
const RESULT_CHARS: usize = 4_000;

/// What pages and run share.
pub struct Desk {
    /// What happened.
    pub log: Log,
    root: PathBuf,
    inbox: mpsc::Sender<String>,
    stop: Notify,
    parts: Mutex<Parts>,
}

#[derive(Default)]
struct Parts {
    run: Option<RunHandle>,
    /// The arguments of calls as the model wrote them, until the calls have their results.
    arguments: HashMap<CallId, String>,
    /// The rules that the pages have shown beside open questions.
    rules: HashMap<String, Rule>,
    consents: HashMap<u64, oneshot::Sender<bool>>,
    questions: u64,
}

/// What a page decides about a call.
pub enum Decision {
    /// It runs, this once.
    Allow,
    /// It runs, and so do others by the rule that the page has shown.
    Always,
    /// It does not run, for this reason.
    Deny(String),
}

impl Desk {
    /// A desk for a project, and the messages that come in.
    pub fn new(root: PathBuf) -> (Self, mpsc::Receiver<String>) {
        let (inbox, messages) = mpsc::channel(MAX_WAITING);
        (Self { log: Log::new(), root, inbox, stop: Notify::new(), parts: Mutex::default() }, messages)
    }

    /// Takes a message: into the run that goes on, or as the start of the next one. `false` when too many wait.
    pub fn message(&self, text: String) -> bool {
        let run = self.parts().run.clone();
        match run.map(|run| run.steer(text.as_str())) {
            Some(Steered::Queued) => true,
            Some(Steered::Full(_)) => false,
            _ => self.inbox.try_send(text).is_ok(),
        }
    }

    /// Ends what goes on.
    pub fn cancel(&self) {
        match &self.parts().run {
            Some(run) => run.cancel("stopped by the user"),
            None => self.stop.notify_waiters(),
        }
    }

    /// Decides about a call. `false` when nobody asks this any more.
    pub fn decide(&self, digest: &str, decision: Decision) -> bool {
        let (run, rule) = {
            let parts = self.parts();
            (parts.run.clone(), parts.rules.get(digest).cloned())
        };
        let verdict = match decision {
            Decision::Allow => Verdict::Allow,
            Decision::Always => Verdict::AllowAlways(rule.into_iter().collect()),
            Decision::Deny(reason) => Verdict::deny(reason),
        };
        run.zip(digest.parse().ok()).is_some_and(|(run, digest)| run.decide(&digest, verdict).is_ok())
    }

    /// Answers a question for consent. `false` when nobody asks this any more.
    pub fn answer(&self, question: u64, yes: bool) -> bool {
        let answer = self.parts().consents.remove(&question);
        answer.is_some_and(|answer| answer.send(yes).is_ok())
    }

    /// Puts a question for consent on the pages, and waits for the first answer.
    pub async fn consent(&self, question: ConsentQuestion) -> Option<bool> {
        let (answer, answered) = oneshot::channel();
        let id = {
            let mut parts = self.parts();
            parts.questions += 1;
            let id = parts.questions;
            parts.consents.insert(id, answer);
            id
        };
        self.log.add(&json!({"type": "consent", "id": id, "text": plain(&question.text)}));
        // Also when the host goes away, the question is taken off the pages.
        let mut closed = Closed { desk: self, id, how: "withdrawn" };
        let answer = answered.await.ok();
        closed.how = match answer {
            Some(true) => "agreed",
            Some(false) => "not agreed",
            None => closed.how,
        };
        answer
    }

    /// Comes back when somebody stops what goes on before there is a run.
    pub async fn stopped(&self) {
        self.stop.notified().await;
    }

    /// Says whether something goes on.
    pub fn busy(&self, is_busy: bool) {
        self.log.add(&json!({"type": "busy", "busy": is_busy}));
    }

    /// Says something to the person.
    pub fn note(&self, text: &str) {
        self.log.add(&json!({"type": "note", "text": plain(text)}));
    }

    /// A run begins.
    pub fn begin(&self, handle: RunHandle) {
        self.parts().run = Some(handle);
    }

    /// The run is over. Messages that came too late for it start the next one.
    pub fn end(&self, outcome: &Result<Outcome, RunError>, usage: Usage) {
        let run = self.parts().run.take();
        for message in run.iter().flat_map(RunHandle::undelivered) {
            if self.inbox.try_send(message.text()).is_err() {
                self.note(&format!("not delivered: {}", message.text()));
            }
        }
        match outcome {
            Ok(Outcome::Done { .. }) => {}
            Ok(Outcome::Cancelled { reason }) => self.note(reason),
            Ok(Outcome::Stopped { why }) => self.note(&format!("stopped: {why}")),
            Ok(other) => self.note(&format!("{other:?}")),
            Err(error) => self.note(&error.to_string()),
        }
        let counted = |count: Option<u64>| count.unwrap_or_default();
        self.log.add(&json!({"type": "tokens", "in": counted(usage.input), "out": counted(usage.output)}));
    }

    /// Puts an event of the run on the pages.
    pub fn event(&self, event: &Event) {
        if let Event::MessageEnded { content, .. } = event {
            let calls = content.tool_calls().map(|call| (call.id.clone(), call.arguments.to_string()));
            self.parts().arguments.extend(calls);
        }
        if let Some(line) = self.line(event) {
            self.log.add(&line);
        }
    }

    fn line(&self, event: &Event) -> Option<Value> {
        Some(match event {
            Event::MessageAdded { content, .. } => json!({"type": "user", "text": plain(&content.text())}),
            Event::Text { message, delta } => {
                json!({"type": "text", "message": message, "delta": plain(delta)})
            }
            Event::AttemptDiscarded { message, .. } => json!({"type": "discard", "message": message}),
            Event::ApprovalAsked { ask } => self.ask(ask),
            Event::ApprovalClosed { ask, how } => {
                self.parts().rules.remove(&ask.digest.to_string());
                json!({"type": "decided", "digest": ask.digest, "how": format!("{how:?}").to_lowercase()})
            }
            Event::ToolStarted { call, name, edited } => {
                let written = self.parts().arguments.get(call).cloned().unwrap_or_default();
                let arguments = edited.as_ref().map_or(written, ToString::to_string);
                json!({"type": "call", "call": call, "name": name, "arguments": plain(&arguments)})
            }
            Event::ToolProgress { call, text, .. } => {
                json!({"type": "progress", "call": call, "text": plain(text)})
            }
            Event::ToolEnded { call, result, .. } => {
                self.parts().arguments.remove(call);
                let text: String = plain(&result.text()).chars().take(RESULT_CHARS).collect();
                let is_ok = result.status == ToolStatus::Ok;
                json!({"type": "result", "call": call, "name": result.name, "ok": is_ok, "text": text})
            }
            Event::Retrying { error, delay, .. } => {
                json!({"type": "note", "text": plain(&format!("{error}; trying again in {} s", delay.as_secs()))})
            }
            Event::LimitReached { limit, .. } => {
                json!({"type": "note", "text": format!("the {limit} is reached")})
            }
            Event::SubAgent { event, .. } => return self.line(event).filter(|line| line["type"] != "text"),
            _ => return None,
        })
    }

    fn ask(&self, ask: &Ask) -> Value {
        let diff = diff::of_ask(ask, &self.root).map(|changes| {
            let line = |change: &Change| match change {
                Change::Place(text) => ("@", plain(text)),
                Change::Same(text) => (" ", plain(text)),
                Change::Removed(text) => ("-", plain(text)),
                Change::Added(text) => ("+", plain(text)),
            };
            changes.iter().map(line).collect::<Vec<_>>()
        });
        let arguments = serde_json::to_string_pretty(&ask.arguments).unwrap_or_default();
        // One rule only: a page of this size has no room for a choice between them.
        let rule = ask.suggested.first();
        if let Some(rule) = rule {
            self.parts().rules.insert(ask.digest.to_string(), rule.clone());
        }
        let always = rule.map(|rule| plain(&rule.to_string()));
        json!({
            "type": "ask", "digest": ask.digest, "tool": ask.tool, "origin": plain(&ask.origin),
            "arguments": plain(&arguments), "diff": diff, "always": always,
            "destructive": ask.effects.destructive == Some(true),
        })
    }

    fn parts(&self) -> MutexGuard<'_, Parts> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a question for consent off the pages, answered or not.
struct Closed<'a> {
    desk: &'a Desk,
    id: u64,
    how: &'static str,
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.desk.parts().consents.remove(&self.id);
        self.desk.log.add(&json!({"type": "consented", "id": self.id, "how": self.how}));
    }
}
