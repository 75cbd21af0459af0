//! Where a host reaches into a run: before a request, before and after a tool, and when the run would end.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::history::History;
use crate::message::{CallId, Message};
use crate::model::ModelRequest;
use crate::policy::Tightening;
use crate::tool::{Effects, ToolOutput};

/// A host's own code at the joints of a run. Every method has a default that changes nothing.
///
/// # Contract
///
/// - Hooks of one agent are called in the order in which they were added, one after the other.
/// - A hook sees owned data, never the session: it may take its time and may be dropped at any await.
/// - No hook can allow what the policy asks about or denies.
/// - A panic where a hook decides counts as *no*: [`before_tool`](Self::before_tool) denies the call,
///   [`before_request`](Self::before_request) ends the run with an error, and so that nothing slips through that a
///   hook meant to hide, a panic in [`after_tool`](Self::after_tool) turns the output into an error result.
#[async_trait]
pub trait Hooks: Send + Sync + 'static {
    /// May change a request before it is sent. What is changed here is not stored, so a change that differs from
    /// request to request costs the provider's cached prefix.
    async fn before_request(&self, request: &mut ModelRequest) -> Flow {
        let _ = request;
        Flow::Continue
    }

    /// May refuse a call, insist on an approval, or change the arguments. Changed arguments are validated again,
    /// and policy and people judge the changed ones.
    async fn before_tool(&self, call: &PlannedCall) -> Gate {
        let _ = call;
        Gate::Pass
    }

    /// May change what a tool gave back, before it is cut to size and stored.
    async fn after_tool(&self, call: &PlannedCall, output: &mut ToolOutput) {
        let _ = (call, output);
    }

    /// May keep the run going when the model is done. Counts as a turn like any other, so the turn limit bounds it.
    async fn on_stop(&self, ending: &Ending) -> OnStop {
        let _ = ending;
        OnStop::End
    }
}

#[async_trait]
impl<H: Hooks + ?Sized> Hooks for Arc<H> {
    async fn before_request(&self, request: &mut ModelRequest) -> Flow {
        (**self).before_request(request).await
    }

    async fn before_tool(&self, call: &PlannedCall) -> Gate {
        (**self).before_tool(call).await
    }

    async fn after_tool(&self, call: &PlannedCall, output: &mut ToolOutput) {
        (**self).after_tool(call, output).await;
    }

    async fn on_stop(&self, ending: &Ending) -> OnStop {
        (**self).on_stop(ending).await
    }
}

/// Whether a run goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flow {
    /// It does.
    #[default]
    Continue,
    /// It stops, for this reason.
    Stop(String),
}

/// What a hook says of a call. There is nothing here that could allow it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum Gate {
    /// Nothing against it.
    #[default]
    Pass,
    /// With these arguments instead.
    Rewrite(Value),
    /// Only if somebody approves, for this reason.
    Ask(String),
    /// No, for this reason, which the model is told.
    Deny(String),
}

/// What all hooks together say of a call.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Judgement {
    /// The arguments to run with, when a hook changed them.
    pub rewrite: Option<Value>,
    /// The strictest objection.
    pub objection: Option<Tightening>,
}

impl Judgement {
    /// Adds what the next hook says. A denial is never taken back, an objection never weakened, and of several
    /// equally strict ones every reason is kept, in the order of the hooks.
    #[must_use]
    pub fn and(mut self, gate: Gate) -> Self {
        use Tightening as T;
        self.objection = match (self.objection, gate) {
            (before, Gate::Pass) => before,
            (before, Gate::Rewrite(arguments)) => {
                self.rewrite = Some(arguments);
                before
            }
            (Some(T::Deny(first)), Gate::Deny(second)) => Some(T::Deny(format!("{first}; {second}"))),
            (Some(T::Deny(first)), Gate::Ask(_)) => Some(T::Deny(first)),
            (_, Gate::Deny(why)) => Some(T::Deny(why)),
            (Some(T::Ask(first)), Gate::Ask(second)) => Some(T::Ask(format!("{first}; {second}"))),
            (None, Gate::Ask(why)) => Some(T::Ask(why)),
        };
        self
    }
}

impl From<Gate> for Judgement {
    fn from(gate: Gate) -> Self {
        Self::default().and(gate)
    }
}

/// What a hook says of the end.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum OnStop {
    /// The run may end.
    #[default]
    End,
    /// The run goes on with this message.
    Continue(Message),
}

/// A call that passed validation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PlannedCall {
    /// The call.
    pub id: CallId,
    /// The tool.
    pub tool: Arc<str>,
    /// The arguments, as they are now.
    pub arguments: Value,
    /// What running it may do.
    pub effects: Effects,
    /// The sub-agents that lead to the run, outermost first; empty in the top run.
    pub path: Arc<[Arc<str>]>,
}

/// A run that would end.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Ending {
    /// The text of the last answer.
    pub text: String,
    /// The whole conversation.
    pub messages: History,
    /// Turns that the run has taken.
    pub turns: u32,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_strictest_objection_counts_and_no_reason_of_that_strictness_is_lost() {
        let ask = |why: &str| Gate::Ask(why.to_owned());
        let deny = |why: &str| Gate::Deny(why.to_owned());
        let asked = |why: &str| Some(Tightening::Ask(why.to_owned()));
        let denied = |why: &str| Some(Tightening::Deny(why.to_owned()));
        for (gates, objection) in [
            (vec![], None),
            (vec![Gate::Pass, ask("a"), Gate::Pass], asked("a")),
            (vec![ask("a"), ask("b")], asked("a; b")),
            (vec![ask("a"), deny("b")], denied("b")),
            (vec![deny("a"), ask("b")], denied("a")),
            (vec![deny("a"), deny("b"), ask("c")], denied("a; b")),
        ] {
            let judgement = gates.iter().cloned().fold(Judgement::default(), Judgement::and);
            assert_eq!(judgement.objection, objection, "{gates:?}");
        }
    }

    #[test]
    fn the_last_rewrite_counts_and_says_nothing_about_objections() {
        let judgement = Judgement::from(Gate::Rewrite(json!(1)))
            .and(Gate::Ask("why".into()))
            .and(Gate::Rewrite(json!(2)));
        assert_eq!(judgement.rewrite, Some(json!(2)));
        assert_eq!(judgement.objection, Some(Tightening::Ask("why".into())));
    }
}
