//! Skills of servers: listed for each run, asked about, and offered beside the local ones.

use haversack_mcp_client::consent::{ConsentStore, Decision};
use haversack_mcp_client::manager::ReadyServer;
use haversack_tool_adapter::served_skills::{ServedOffer, ServedSkills};

use crate::consent::{Consent, ConsentQuestion, ConsentSubject};
use crate::report::{Note, Report, SkillReport, SkillState};
use crate::server_side::ServerSide;

/// What the connected servers offer and somebody has agreed to. What is left out is in the report.
pub(crate) async fn agreed(
    servers: &ServerSide,
    consent: Option<&dyn Consent>,
    report: &mut Report,
) -> Vec<ServedOffer> {
    let (ready, store, workspace) = servers.ready();
    let mut agreed = Vec::new();
    for server in ready {
        let Some(offer) = listed(&server, report).await else { continue };
        for refused in offer.refused() {
            tell(report, offer.server(), &refused.name, SkillState::Withheld(refused.reason.to_owned()));
        }
        if offer.is_empty() {
            continue;
        }
        if settle(&offer, store, workspace, consent, report).await {
            agreed.push(offer);
        } else {
            for name in offer.names() {
                let why = "nobody has agreed to the skills of this server".to_owned();
                tell(report, offer.server(), name, SkillState::Withheld(why));
            }
        }
    }
    agreed
}

async fn listed(server: &ReadyServer, report: &mut Report) -> Option<ServedOffer> {
    if !server.client.serves_skills() {
        return None;
    }
    let about = || format!("MCP server `{}`", server.name);
    match server.client.list_skills().await {
        Ok(listing) => {
            report
                .notes
                .extend(listing.problems.iter().map(|problem| Note::new(about(), problem.to_string())));
            Some(ServedOffer::new(server.name.clone(), server.client.clone(), listing.items))
        }
        Err(error) => {
            report.notes.push(Note::new(about(), format!("its skills could not be listed: {error}")));
            None
        }
    }
}

/// Whether the user agrees, now or before, to exactly these files.
async fn settle(
    offer: &ServedOffer,
    store: &dyn ConsentStore,
    workspace: &str,
    consent: Option<&dyn Consent>,
    report: &mut Report,
) -> bool {
    let fingerprint = offer.fingerprint();
    let mut failed = |error: String| report.notes.push(Note::new("server consent", error));
    match store.decision(workspace, fingerprint).await {
        Ok(Some(decision)) => return decision == Decision::Allow,
        Ok(None) => {}
        Err(error) => failed(error.to_string()),
    }
    let Some(consent) = consent else { return false };
    let question =
        ConsentQuestion::new(ConsentSubject::ServedSkills, offer.question(), fingerprint.to_string());
    let Some(allowed) = consent.ask(question).await else { return false };
    let decision = if allowed { Decision::Allow } else { Decision::Refuse };
    if let Err(error) = store.record(workspace, fingerprint, decision).await {
        failed(format!("the answer counts for now only: {error}"));
    }
    allowed
}

/// Adds what is offered to the report.
pub(crate) fn describe(served: &ServedSkills, omitted: &[String], report: &mut Report) {
    for name in served.names() {
        let server = served.server(name).unwrap_or_default();
        let is_omitted = omitted.iter().any(|omitted| omitted == name);
        let state = if is_omitted { SkillState::Omitted } else { SkillState::Offered };
        tell(report, server, name, state);
    }
    for (server, refused) in served.clashes() {
        tell(report, server, &refused.name, SkillState::Withheld(refused.reason.to_owned()));
    }
    report.skills.sort_by(|a, b| a.name.cmp(&b.name));
}

fn tell(report: &mut Report, server: &str, name: &str, state: SkillState) {
    report.skills.push(SkillReport { name: name.to_owned(), origin: format!("mcp:{server}"), state });
}
