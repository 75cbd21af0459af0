//! Answers that were damaged: whatever the bytes, a call ends, keeps the contract of its events, and reads the same in all
//! pieces.

use haversack_agent_core::model::{ModelError, ModelEvent};
use haversack_agent_core::testing::check_events;
use proptest::prelude::*;

use crate::corpus::{Record, records_of_all};
use crate::observe::Outcome;

fn items(outcome: Outcome) -> Vec<Result<ModelEvent, ModelError>> {
    outcome.events.into_iter().map(Ok).chain(outcome.error.map(Err)).collect()
}

#[tokio::test]
async fn every_recorded_answer_keeps_the_contract_of_a_model() {
    let mut broken = Vec::new();
    for record in records_of_all() {
        let outcome = record.with_body(record.reply.body.clone(), 1000).await;
        broken.extend(
            check_events(&items(outcome)).iter().map(|f| format!("{} {}: {f}", record.api, record.id)),
        );
    }
    assert!(broken.is_empty(), "{} break it\n{}", broken.len(), broken.join("\n"));
}

/// Cuts out, doubles and overwrites, at places that are parts of the whole.
fn damage(body: &[u8], changes: &[(u8, f64, u8)]) -> Vec<u8> {
    let mut body = body.to_vec();
    for (kind, place, byte) in changes {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a place"
        )]
        let at = ((body.len() as f64) * place) as usize;
        let end = body.len().min(at + usize::from(*byte));
        match kind % 3 {
            0 => drop(body.drain(at..end)),
            1 => {
                let doubled = body[at..end].to_vec();
                body.splice(at..at, doubled);
            }
            _ => {
                if let Some(place) = body.get_mut(at) {
                    *place = *byte;
                }
            }
        }
    }
    body
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn damaged_answers_end_and_read_the_same_in_all_pieces(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<u8>(), 0.0..1.0_f64, any::<u8>()), 1..6),
    ) {
        static RECORDS: std::sync::LazyLock<Vec<Record>> = std::sync::LazyLock::new(|| {
            let is_small = |record: &Record| record.reply.status < 400 && record.reply.body.len() < 6000;
            records_of_all().into_iter().filter(is_small).collect()
        });
        if RECORDS.is_empty() {
            return Ok(());
        }
        let record = &RECORDS[which.index(RECORDS.len())];
        let body = damage(&record.reply.body, &changes);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let read = |piece| items(runtime.block_on(record.with_body(body.clone(), piece)));
        let whole = read(usize::MAX);
        let mut findings = check_events(&whole);
        // Responses says everything twice, and of two that differ the second counts; blocks of Anthropic may overlap, and
        // then the previews of two texts mix. Only a broken server does either.
        let mixes = ["openai_responses", "anthropic_messages"].contains(&record.api.as_str());
        findings.retain(|finding| !mixes || !finding.rule.contains("preview"));
        prop_assert!(findings.is_empty(), "{} {}: {:?}", record.api, record.id, findings);
        // What is wrong with bytes that are no answer at all may be told in other words when less of them is here.
        let told = |items: Vec<Result<ModelEvent, ModelError>>| items.into_iter().map(Result::ok).collect::<Vec<_>>();
        prop_assert_eq!(told(read(1)), told(whole), "{} {}", record.api, record.id);
    }
}
