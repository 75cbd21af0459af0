//! May a call run? The policy decides, and a person where the policy or the step says so.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use haversack_agent_core::approval::{Approver, Ask, Verdict};
use haversack_agent_core::arguments::ArgumentCheck;
use haversack_agent_core::digest::Fingerprint;
use haversack_agent_core::policy::{Decision, Grants, Policy, Proposal, Tightening, decide};
use haversack_agent_core::tool::ToolSpec;
use haversack_agent_core::tool_context::{Tool, ToolContext};
use serde_json::Value;

use crate::metadata::Approval;
use crate::pipeline::machine::{Call, Reply};

/// A tool with what is read of it once.
pub(super) struct Known {
    tool: Arc<dyn Tool>,
    spec: ToolSpec,
    fingerprint: Fingerprint,
    check: ArgumentCheck,
}

impl Known {
    pub(super) fn new(tool: Arc<dyn Tool>) -> Self {
        let spec = tool.spec().clone();
        let check = ArgumentCheck::new(Arc::clone(&spec.input_schema));
        Self { fingerprint: Fingerprint::of(&spec), check, spec, tool }
    }

    pub(super) fn name(&self) -> Arc<str> {
        Arc::clone(&self.spec.name)
    }

    pub(super) fn tool(&self) -> &dyn Tool {
        &*self.tool
    }

    pub(super) fn check(&self, arguments: &Value) -> Result<(), String> {
        self.check.check(arguments).map_err(|wrong| format!("the arguments do not fit: {wrong}"))
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Known").field(&self.spec.name).finish()
    }
}

pub(super) async fn reply(
    tools: &BTreeMap<Arc<str>, Known>,
    policy: &Policy,
    approver: Option<&dyn Approver>,
    call: &Call,
    context: &ToolContext,
) -> Reply {
    // What cannot run anyway is not asked about; running it says why.
    let Some(known) = tools.get(&*call.tool) else { return Reply::Allow };
    if known.check(&call.arguments).is_err() {
        return Reply::Allow;
    }
    let ask = match judged(known, policy, call, context) {
        Judged::Allowed => return Reply::Allow,
        Judged::Denied(reason) => return Reply::Deny(reason),
        Judged::Ask(ask) => ask,
    };
    let Some(approver) = approver else {
        return Reply::Stop(format!("{}, and there is nobody to ask", ask.reason));
    };
    match approver.decide(vec![*ask]).await.into_iter().next() {
        Some(Verdict::Allow | Verdict::AllowAlways(_)) => Reply::Allow,
        Some(Verdict::AllowEdited(arguments)) => Reply::AllowEdited(arguments),
        Some(Verdict::Deny { reason }) => Reply::Deny(reason),
        Some(Verdict::Stop { reason }) => Reply::Stop(reason),
        // A pipeline cannot be put aside until somebody answers.
        _ => Reply::Stop("there was no answer".to_owned()),
    }
}

enum Judged {
    Allowed,
    Denied(String),
    Ask(Box<Ask>),
}

fn judged(known: &Known, policy: &Policy, call: &Call, context: &ToolContext) -> Judged {
    let keys = catch_unwind(AssertUnwindSafe(|| known.tool.approval_keys(&call.arguments)));
    let Ok(keys) = keys else { return Judged::Denied("the tool panicked over these arguments".to_owned()) };
    let effects = catch_unwind(AssertUnwindSafe(|| known.tool.effects(&call.arguments))).unwrap_or_default();
    let proposal = Proposal::new(&known.spec, known.fingerprint, &keys).with_effects(effects);
    let wanted = (call.approval > Approval::None)
        .then(|| Tightening::Ask(format!("step {} of the pipeline wants `{}`", call.step, call.approval)));
    let grants = Grants::default();
    let ruling = decide(&proposal, policy, &grants, &[], wanted.as_ref());
    match ruling.decision {
        Decision::Allow => Judged::Allowed,
        Decision::Ask => {
            let id = format!("{}/{}", context.call_id().as_str(), call.step);
            let mut ask = Ask::new(id, &proposal, &ruling, call.arguments.clone(), 0)
                .with_path(context.path().to_vec());
            if let Some(Tightening::Ask(reason)) = wanted {
                ask.reason = reason;
            }
            Judged::Ask(Box::new(ask))
        }
        Decision::Deny => Judged::Denied(ruling.reason.to_string()),
    }
}
