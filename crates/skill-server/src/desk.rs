//! Questions that a call has for a person, on their way to whoever can ask: the way from [`Approver`] to the protocol.

use std::fmt::Write as _;

use async_trait::async_trait;
use haversack_agent_core::approval::{Approver, Ask, Verdict};
use haversack_skill_runtime::redact::Redactor;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

/// Characters of the arguments that a question shows.
const SHOWN: usize = 4_000;

/// A question and the way back.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) ask: Ask,
    pub(crate) reply: oneshot::Sender<Verdict>,
}

/// Puts each ask of a call before whoever drives the call, and waits.
pub(crate) struct Desk(pub(crate) mpsc::UnboundedSender<Question>);

#[async_trait]
impl Approver for Desk {
    async fn decide(&self, asks: Vec<Ask>) -> Vec<Verdict> {
        let mut verdicts = Vec::with_capacity(asks.len());
        for ask in asks {
            let (reply, verdict) = oneshot::channel();
            // At most as many are open as the call has calls of tools at a time, which is bounded there.
            let sent = self.0.send(Question { ask, reply }).is_ok();
            let verdict = if sent { verdict.await.ok() } else { None };
            verdicts.push(verdict.unwrap_or_else(|| Verdict::deny("nobody answered")));
        }
        verdicts
    }
}

/// The question as a form: what is to run, why it is asked, and with what arguments, secrets masked.
pub(crate) fn form(skill: &str, ask: &Ask, redactor: &Redactor) -> ElicitRequestParams {
    let mut message = format!("The skill `{skill}` wants to run `{}`: {}.", ask.tool, ask.reason);
    for name in ask.path.iter() {
        let _ = write!(message, " Asked by the agent `{name}`.");
    }
    let arguments = redactor.json(ask.arguments.clone()).to_string();
    let shown: String = arguments.chars().take(SHOWN).collect();
    let _ = write!(message, "\n\nArguments: {shown}");
    if shown.len() < arguments.len() {
        let _ = write!(message, " [{} characters more]", arguments.chars().count() - SHOWN);
    }
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema: schema() }
}

fn schema() -> ElicitationSchema {
    let fields = json!({
        "type": "object",
        "properties": {
            "allow": {"type": "boolean", "title": "Allow", "description": "Run it, this once."},
        },
        "required": ["allow"],
    });
    let read = fields.as_object().cloned().map(ElicitationSchema::from_json_schema);
    // The constant above is a schema of this kind, which a test holds it to.
    read.and_then(Result::ok).unwrap_or_else(|| ElicitationSchema::new(std::collections::BTreeMap::new()))
}

/// What an answer to [`form`] says. Only a plain yes allows.
pub(crate) fn verdict(answer: &ElicitResult) -> Verdict {
    let allowed = answer.content.as_ref().and_then(|content| content.get("allow")).and_then(Value::as_bool);
    match answer.action {
        ElicitationAction::Accept if allowed == Some(true) => Verdict::Allow,
        ElicitationAction::Cancel => {
            Verdict::Stop { reason: "the person who was asked cancelled".to_owned() }
        }
        _ => Verdict::deny("the person who was asked did not allow it"),
    }
}

/// What is said where the client cannot ask anybody.
pub(crate) fn nobody(ask: &Ask) -> Verdict {
    Verdict::Stop {
        reason: format!(
            "{}, and this client cannot ask anybody (it does not offer elicitation); whoever runs the server can allow \
             it beforehand with --pre-approve or --allow-tool",
            ask.reason
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_yes_allows() {
        let answer = |action, content: Option<Value>| {
            let answer = ElicitResult::new(action);
            verdict(&content.map_or(answer.clone(), |content| answer.with_content(content)))
        };
        assert_eq!(answer(ElicitationAction::Accept, Some(json!({"allow": true}))), Verdict::Allow);
        for content in
            [None, Some(json!({"allow": false})), Some(json!({"allow": "true"})), Some(json!([true]))]
        {
            assert!(!answer(ElicitationAction::Accept, content.clone()).allows(), "{content:?}");
        }
        assert!(!answer(ElicitationAction::Decline, Some(json!({"allow": true}))).allows());
        assert!(matches!(answer(ElicitationAction::Cancel, None), Verdict::Stop { .. }));
    }

    #[test]
    fn the_form_asks_for_one_boolean() {
        let schema = serde_json::to_value(schema()).unwrap();
        assert_eq!(schema["properties"]["allow"]["type"], "boolean");
        assert_eq!(schema["required"], json!(["allow"]));
    }
}
