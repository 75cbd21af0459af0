//! What comes in: answers, requests and notifications of the server's.

use std::ops::Range;
use std::time::Instant;

use serde_json::{Value, json};

use super::super::answer::Answer;
use super::super::json::{Object, repair};
use super::super::message::{self, AnswerId, Incoming, PeerId, RequestId, RpcError, code};
use super::super::notice::{ListKind, MAX_NOTICE_CHARS, Notice, Progress, bounded, excerpt};
use super::super::opening::OpeningStep;
use super::super::output::{Outcome, Output};
use super::super::pending::{Entry, Reported};
use super::super::revision::Era;
use super::super::schema::ProblemCode;
use super::{ClientMachine, LIST_CHANGE_PAUSE, MAX_ASKS, Phase, Raw, WhichOpening, after};

impl<T> ClientMachine<T> {
    pub(super) fn handle(&mut self, now: Instant, raw: Raw<'_>) {
        if matches!(self.phase, Phase::Closed) {
            return;
        }
        match message::parse(raw.as_bytes()) {
            Ok(Incoming::Answer { id, result }) => self.handle_answer(now, &id, result, raw),
            Ok(Incoming::Call { id: Some(id), method, params }) => {
                let params = object_of(params.map(|params| params.get()));
                self.handle_request(id, &method, params);
            }
            Ok(Incoming::Call { id: None, method, params }) => {
                self.handle_notification(now, &method, params.map_or("null", |params| params.get()));
            }
            Ok(Incoming::Batch { members, in_all }) => {
                if in_all > members.len() {
                    let message = format!("a batch of {in_all} messages was cut at {}", members.len());
                    self.problem(ProblemCode::TooLong, message);
                }
                self.batch_came = Some(now);
                self.batch.extend(members.into_iter().map(|member| member.get().as_bytes().to_vec()));
            }
            Err(_) => match repair(raw.as_bytes()) {
                Some(repaired) if message::parse(&repaired).is_ok() => {
                    self.handle(now, Raw::Slice(&repaired));
                }
                _ => self.noise(raw.as_bytes()),
            },
        }
    }

    pub(super) fn handle_next_of_batch(&mut self) -> Option<()> {
        let member = self.batch.pop_front()?;
        match self.batch_came {
            // A batch inside a batch is noise, which bounds the depth.
            Some(now) if !member.starts_with(b"[") => self.handle(now, Raw::Slice(&member)),
            _ => self.noise(&member),
        }
        Some(())
    }

    fn handle_answer(&mut self, now: Instant, id: &AnswerId, result: Option<Range<usize>>, raw: Raw<'_>) {
        match id {
            AnswerId::Exact(id) | AnswerId::Loose(id) => {
                if let Some(entry) = self.pending.settle(*id) {
                    let outcome = Outcome::Answered(Answer::new(raw.into_vec(), result));
                    self.outputs.push_back(Output::Settled { tag: entry.tag, outcome });
                    return;
                }
                if self.pending.take_tombstone(*id) {
                    self.counts.late_answers += 1;
                    return;
                }
            }
            AnswerId::Null => {
                let opening = matches!(self.phase, Phase::Opening { step: OpeningStep::Discover, .. });
                // An old server that could not even read the question: an answer to nothing else is due.
                if opening {
                    self.settle_opening(now, &Answer::new(raw.into_vec(), result));
                    return;
                }
                let error = Answer::new(raw.into_vec(), result).result().err();
                let said = error.map_or_else(String::new, |error| format!(": {error}"));
                let message = format!("the server says that it could not read a message of ours{said}");
                self.problem(ProblemCode::PeerCouldNotRead, message);
                return;
            }
            AnswerId::Foreign => {}
        }
        if let Some(which) = self.opening_id(id, raw.as_bytes()) {
            let answer = Answer::new(raw.into_vec(), result);
            match which {
                WhichOpening::Current => self.settle_opening(now, &answer),
                WhichOpening::GivenUp => self.opening.discovered_late(answer.result()),
            }
            return;
        }
        let message = format!("an answer to nothing that we asked: {}", excerpt(raw.as_bytes()));
        self.problem(ProblemCode::UnknownAnswer, message);
    }

    /// Whether an answer is one to an opening message.
    pub(super) fn opening_id(&self, id: &AnswerId, line: &[u8]) -> Option<WhichOpening> {
        let current = match self.phase {
            Phase::Opening { step, id, .. } => Some((step, id)),
            _ => None,
        };
        match id {
            AnswerId::Exact(number) | AnswerId::Loose(number) => {
                let (step, current) = current?;
                (step == OpeningStep::Initialize && current.0 == *number).then_some(WhichOpening::Current)
            }
            AnswerId::Foreign => {
                let id = answer_id_text(line)?;
                match current {
                    Some((OpeningStep::Discover, current)) if current.as_text() == id => {
                        Some(WhichOpening::Current)
                    }
                    _ => {
                        let given_up = self.given_up_discover?;
                        (given_up.as_text() == id).then_some(WhichOpening::GivenUp)
                    }
                }
            }
            AnswerId::Null => None,
        }
    }

    pub(super) fn settle_opening(&mut self, now: Instant, answer: &Answer) {
        let Phase::Opening { step, ends, .. } = self.phase else { return };
        let next = match step {
            OpeningStep::Discover => self.opening.discovered(answer.result()),
            OpeningStep::Initialize => self.opening.initialized(answer.result()),
        };
        self.open(now, ends, next);
    }

    fn handle_request(&mut self, id: PeerId, method: &str, params: Object) {
        if matches!(self.phase, Phase::Ready(Era::Modern)) {
            let method = excerpt(method.as_bytes());
            let message =
                format!("the server asked {method}, which it may not in this revision: not answered");
            self.problem(ProblemCode::ForbiddenRequest, message);
            return;
        }
        let declared = match method {
            "ping" => return self.reply(&id, Ok(&json!({}))),
            "roots/list" => "roots",
            "sampling/createMessage" => "sampling",
            "elicitation/create" => "elicitation",
            _ => "",
        };
        if !self.config.capabilities.contains_key(declared) {
            let message = format!("this client does not serve {}", excerpt(method.as_bytes()));
            let error = RpcError::new(code::METHOD_NOT_FOUND, message);
            self.reply(&id, Err(&error));
        } else if self.asks.len() >= MAX_ASKS || self.asks.contains(&id) {
            let error =
                RpcError::new(code::INTERNAL_ERROR, "too many requests are waiting, or this id is in use");
            self.reply(&id, Err(&error));
        } else {
            self.asks.insert(id.clone());
            self.outputs.push_back(Output::Asked { id, method: method.to_owned(), params });
        }
    }

    fn handle_notification(&mut self, now: Instant, method: &str, params_json: &str) {
        let params = object_of(Some(params_json));
        let Some(id) = subscription_of(&params) else {
            return self.handle_plain_notification(now, method, params, params_json);
        };
        // Of a subscription: its id must be one of ours, and the acknowledgement comes first.
        let entry = id.and_then(|id| self.pending.get_mut(RequestId(id)).map(|entry| (RequestId(id), entry)));
        match entry {
            Some((id, entry)) if method == "notifications/subscriptions/acknowledged" => {
                entry.acknowledged = true;
                self.outputs.push_back(Output::Acknowledged { id });
            }
            Some((_, Entry { acknowledged: true, .. })) => {
                self.handle_plain_notification(now, method, params, params_json);
            }
            _ => {
                let method = excerpt(method.as_bytes());
                let message = format!("{method} of a subscription that is not open was left out");
                self.problem(ProblemCode::Stray, message);
            }
        }
    }

    fn handle_plain_notification(
        &mut self,
        now: Instant,
        method: &str,
        mut params: Object,
        params_json: &str,
    ) {
        match method {
            "notifications/progress" => self.handle_progress(now, &params),
            "notifications/tools/list_changed" => self.list_changed(now, ListKind::Tools),
            "notifications/resources/list_changed" => self.list_changed(now, ListKind::Resources),
            "notifications/prompts/list_changed" => self.list_changed(now, ListKind::Prompts),
            "notifications/cancelled" => self.handle_cancelled(&params),
            "notifications/resources/updated" => {
                let uri = params.get("uri").and_then(Value::as_str).unwrap_or_default();
                let uri = uri.chars().take(MAX_NOTICE_CHARS * 4).collect();
                self.outputs.push_back(Output::Notice(Notice::ResourceUpdated { uri }));
            }
            "notifications/message" => {
                let text =
                    |key: &str| params.get(key).and_then(Value::as_str).map(|text| excerpt(text.as_bytes()));
                let (level, logger) = (text("level").unwrap_or_else(|| "info".to_owned()), text("logger"));
                let data = params.shift_remove("data").unwrap_or(Value::Null);
                let data = bounded(params_json, data);
                self.outputs.push_back(Output::Notice(Notice::Log { level, logger, data }));
            }
            _ => {
                let method = excerpt(method.as_bytes());
                let params = bounded(params_json, Value::Object(params));
                self.outputs.push_back(Output::Notice(Notice::Notification { method, params }));
            }
        }
    }

    fn handle_progress(&mut self, now: Instant, params: &Object) {
        let token = params.get("progressToken");
        let id = token.and_then(|token| token.as_u64().or_else(|| token.as_str()?.parse().ok()));
        let value = params.get("progress").and_then(Value::as_f64);
        let reported = id.map_or(Reported::Stray, |id| self.pending.progress(now, id, value));
        match (reported, id, value) {
            (Reported::News, Some(id), Some(progress)) => {
                let message = params.get("message").and_then(Value::as_str);
                let progress = Progress {
                    progress,
                    total: params.get("total").and_then(Value::as_f64),
                    message: message.map(|message| excerpt(message.as_bytes())),
                };
                self.outputs.push_back(Output::Progress { id: RequestId(id), progress });
            }
            (Reported::NotRising, ..) => {
                self.problem(
                    ProblemCode::Stray,
                    "a progress report that does not rise was left out".to_owned(),
                );
            }
            _ => {
                let message = "a progress report for nothing that reports progress was left out";
                self.problem(ProblemCode::Stray, message.to_owned());
            }
        }
    }

    /// The server takes back a request of its own, or ends a subscription of ours.
    fn handle_cancelled(&mut self, params: &Object) {
        let Some(id) = params.get("requestId") else { return };
        if let Some(peer) = PeerId::from_json(&id.to_string())
            && self.asks.remove(&peer)
        {
            self.outputs.push_back(Output::AskCancelled { id: peer });
            return;
        }
        let Some(id) = id.as_u64().map(RequestId) else { return };
        if self.pending.get(id).is_some_and(|entry| entry.method == "subscriptions/listen")
            && let Some(entry) = self.pending.give_up(id)
        {
            self.outputs.push_back(Output::Settled { tag: entry.tag, outcome: Outcome::Ended });
        }
    }

    pub(super) fn list_changed(&mut self, now: Instant, list: ListKind) {
        if let Some(version) = self.list_versions.get_mut(list as usize) {
            *version += 1;
        }
        if let Some(due) = self.list_changes.get_mut(list as usize) {
            due.get_or_insert_with(|| after(now, LIST_CHANGE_PAUSE));
        }
    }

    pub(super) fn handle_too_long(&mut self, head: &[u8], limit: usize) {
        let entry = message::answered_id(head).and_then(|(id, _)| self.pending.settle(id));
        if let Some(entry) = entry {
            self.outputs.push_back(Output::Settled { tag: entry.tag, outcome: Outcome::TooLong { limit } });
        } else {
            let message = format!("a line of over {limit} bytes was dropped: {}", excerpt(head));
            self.problem(ProblemCode::TooLong, message);
        }
    }

    // ---- small parts ----
}

/// Parameters as an object; anything else is read as an empty one.
fn object_of(json: Option<&str>) -> Object {
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

/// The subscription that a notification belongs to: `None` if to none, `Some(None)` if its id is none of ours.
fn subscription_of(params: &Object) -> Option<Option<u64>> {
    let id = params.get("_meta")?.get("io.modelcontextprotocol/subscriptionId")?;
    Some(id.as_u64().or_else(|| id.as_str()?.parse().ok()))
}

/// The id of an answer, if it is a text.
fn answer_id_text(line: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Head {
        id: Value,
    }
    let head: Head = serde_json::from_slice(line).ok()?;
    head.id.as_str().map(str::to_owned)
}
