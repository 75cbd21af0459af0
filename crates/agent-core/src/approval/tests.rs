use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::policy::{Decision, Grants, Policy, decide};
use crate::tool::ToolSpec;

fn ask_of(spec: &ToolSpec, call: &str, arguments: Value, generation: u64) -> Ask {
    let policy = Policy::default();
    let proposal = Proposal::new(spec, Fingerprint::of(spec), &[]);
    let ruling = decide(&proposal, &policy, &Grants::default(), &[], None);
    assert_eq!(ruling.decision, Decision::Ask);
    Ask::new(call, &proposal, &ruling, arguments, generation)
}

fn pay() -> ToolSpec {
    ToolSpec::new("pay", "Pays a bill")
}

/// One open ask, and what its call would be checked against when it runs.
fn opened() -> (Asks, Ask) {
    let mut asks = Asks::new();
    let ask = ask_of(&pay(), "call_1", json!({"amount": 5}), 0);
    asks.open(ask.clone()).unwrap();
    (asks, ask)
}

fn take(asks: &mut Asks, spec: &ToolSpec, call: &str, arguments: &Value) -> Option<Verdict> {
    asks.take(&[], &call.into(), Fingerprint::of(spec), arguments).map(|(_, verdict)| verdict)
}

#[test]
fn an_answer_is_spent_once_by_the_call_that_was_shown() {
    let (mut asks, ask) = opened();
    assert_eq!(take(&mut asks, &pay(), "call_1", &ask.arguments), None, "unanswered is not allowed");
    asks.answer(&ask.digest, Verdict::Allow).unwrap();
    assert_eq!(asks.pending().count(), 0);
    assert_eq!(take(&mut asks, &pay(), "call_1", &ask.arguments), Some(Verdict::Allow));
    assert_eq!(take(&mut asks, &pay(), "call_1", &ask.arguments), None, "replay");
    assert_eq!(asks.answer(&ask.digest, Verdict::Allow), Err(Refused::Stale), "replayed answer");
}

#[test]
fn a_preview_is_cut_with_a_word_about_it_and_is_no_part_of_what_is_approved() {
    let ask = ask_of(&pay(), "call_1", json!({"amount": 5}), 0);
    let shown = ask.clone().with_preview("-4\n+5");
    assert_eq!((shown.preview.as_deref(), shown.digest), (Some("-4\n+5"), ask.digest));
    let long = ask.with_preview(&"ü".repeat(MAX_PREVIEW_CHARS + 1)).preview.unwrap();
    assert!(long.ends_with("ü\n[the rest is left out]") && long.chars().count() < MAX_PREVIEW_CHARS + 30);
}

#[test]
fn attack_changed_arguments_find_no_verdict() {
    let (mut asks, ask) = opened();
    asks.answer(&ask.digest, Verdict::Allow).unwrap();
    assert_eq!(take(&mut asks, &pay(), "call_1", &json!({"amount": 5000})), None);
}

#[test]
fn attack_a_changed_tool_finds_no_verdict() {
    let (mut asks, ask) = opened();
    asks.answer(&ask.digest, Verdict::Allow).unwrap();
    let drifted = ToolSpec::new("pay", "Pays a bill, and tips the server");
    assert_eq!(take(&mut asks, &drifted, "call_1", &ask.arguments), None);
}

#[test]
fn attack_another_call_finds_no_verdict() {
    let (mut asks, ask) = opened();
    asks.answer(&ask.digest, Verdict::Allow).unwrap();
    assert_eq!(take(&mut asks, &pay(), "call_2", &ask.arguments), None);
    let child: Arc<[Arc<str>]> = Arc::new(["child".into()]);
    let found = asks.take(&child, &"call_1".into(), Fingerprint::of(&pay()), &ask.arguments);
    assert_eq!(found, None, "the same call id in a sub-agent is another call");
}

#[test]
fn attack_an_answer_to_an_old_generation_is_stale() {
    let (mut asks, ask) = opened();
    assert_eq!(asks.close(), vec![ask.clone()], "the host learns which asks to take off the screen");
    // The model makes the very same call again.
    let again = ask_of(&pay(), "call_1", json!({"amount": 5}), asks.generation());
    asks.open(again.clone()).unwrap();
    assert_eq!(asks.answer(&ask.digest, Verdict::Allow), Err(Refused::Stale));
    assert_eq!(asks.open(ask), Err(Refused::Stale));
    assert_eq!(take(&mut asks, &pay(), "call_1", &again.arguments), None);
}

#[test]
fn attack_a_second_answer_does_not_replace_the_first() {
    let (mut asks, ask) = opened();
    asks.answer(&ask.digest, Verdict::deny("no")).unwrap();
    assert_eq!(asks.answer(&ask.digest, Verdict::Allow), Err(Refused::Answered));
    assert_eq!(take(&mut asks, &pay(), "call_1", &ask.arguments), Some(Verdict::deny("no")));
}

#[test]
fn attack_an_ask_whose_shown_parts_were_changed_is_not_genuine() {
    let (_, ask) = opened();
    let mut asks = Asks::new();
    let forged = Ask { arguments: json!({"amount": 1}), ..ask };
    assert!(!forged.is_genuine());
    assert_eq!(asks.open(forged), Err(Refused::Stale));
}

#[test]
fn an_ask_whose_arguments_changed_replaces_the_old_one_and_its_answer() {
    let (mut asks, old) = opened();
    asks.answer(&old.digest, Verdict::Allow).unwrap();
    let new = ask_of(&pay(), "call_1", json!({"amount": 6}), 0);
    asks.open(new.clone()).unwrap();
    assert_eq!(asks.pending().collect::<Vec<_>>(), [&new]);
    assert_eq!(take(&mut asks, &pay(), "call_1", &old.arguments), None);
    assert_eq!(asks.answer(&old.digest, Verdict::Allow), Err(Refused::Stale));
}

#[test]
fn opening_the_very_same_ask_again_keeps_its_answer() {
    let (mut asks, ask) = opened();
    asks.answer(&ask.digest, Verdict::Allow).unwrap();
    asks.open(ask.clone()).unwrap();
    assert_eq!(asks.pending().count(), 0);
}

#[test]
fn a_deferred_ask_stays_open_for_an_answer() {
    let (mut asks, ask) = opened();
    asks.answer(&ask.digest, Verdict::Defer).unwrap();
    assert_eq!(asks.pending().count(), 1);
    asks.answer(&ask.digest, Verdict::Allow).unwrap();
}

#[test]
fn open_asks_and_answers_survive_a_restart_to_the_byte() {
    let (mut asks, first) = opened();
    let odd = json!({"amount": 2.415_520_431_710_071e268, "note": "\u{e9}e\u{301}", "z": 1, "a": null});
    let second = ask_of(&pay(), "call_2", odd, 0).with_proposed(json!({"amount": 7}));
    asks.open(second.clone()).unwrap();
    asks.answer(&first.digest, Verdict::AllowEdited(json!({"amount": 4}))).unwrap();
    let saved = serde_json::to_string(&asks).unwrap();
    let mut loaded: Asks = serde_json::from_str(&saved).unwrap();
    assert_eq!(loaded, asks);
    assert_eq!(serde_json::to_string(&loaded).unwrap(), saved);
    assert!(loaded.pending().all(Ask::is_genuine));
    loaded.answer(&second.digest, Verdict::Allow).unwrap();
    assert_eq!(take(&mut loaded, &pay(), "call_2", &second.arguments), Some(Verdict::Allow));
}

#[test]
fn an_async_closure_a_function_and_a_shared_approver_are_approvers() {
    async fn refuse(asks: Vec<Ask>) -> Vec<Verdict> {
        asks.iter().map(|_| Verdict::deny("")).collect()
    }
    fn takes(_: impl Approver) {}
    takes(refuse);
    takes(|asks: Vec<Ask>| async move { vec![Verdict::Allow; asks.len()] });
    takes(async |asks: Vec<Ask>| vec![Verdict::Allow; asks.len()]);
    let shared: Arc<dyn Approver> = Arc::new(refuse);
    takes(shared);
}

#[derive(Clone, Debug)]
enum Move {
    Open(u8, u8),
    Answer(u8, u8, u8, bool),
    Take(u8, u8),
    Close,
    Restart,
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        (0..3_u8, 0..2_u8).prop_map(|(call, args)| Move::Open(call, args)),
        (0..3_u8, 0..2_u8, 0..3_u8, any::<bool>()).prop_map(|(c, a, g, yes)| Move::Answer(c, a, g, yes)),
        (0..3_u8, 0..2_u8).prop_map(|(call, args)| Move::Take(call, args)),
        Just(Move::Close),
        Just(Move::Restart),
    ]
}

proptest! {
    /// A reference model that knows nothing of digests: per call, which arguments are open and what was said.
    #[test]
    fn in_any_order_a_call_runs_only_by_an_answer_to_itself_in_this_generation_and_once(
        moves in prop::collection::vec(any_move(), 0..40)
    ) {
        let mut asks = Asks::new();
        let mut open: std::collections::BTreeMap<u8, (u8, Option<bool>)> = Default::default();
        let mut generation = 0;
        let args = |a: u8| json!({"a": a});
        let id = |c: u8| c.to_string();
        for step in moves {
            match step {
                Move::Open(call, a) => {
                    asks.open(ask_of(&pay(), &id(call), args(a), generation)).unwrap();
                    match open.get(&call) {
                        Some((old, _)) if *old == a => {}
                        _ => { open.insert(call, (a, None)); }
                    }
                }
                Move::Answer(call, a, g, yes) => {
                    let digest = ask_of(&pay(), &id(call), args(a), u64::from(g)).digest;
                    let verdict = if yes { Verdict::Allow } else { Verdict::deny("no") };
                    let expected = match open.get_mut(&call) {
                        Some((shown, said)) if *shown == a && u64::from(g) == generation => {
                            if said.is_some() { Err(Refused::Answered) } else { *said = Some(yes); Ok(()) }
                        }
                        _ => Err(Refused::Stale),
                    };
                    prop_assert_eq!(asks.answer(&digest, verdict), expected);
                }
                Move::Take(call, a) => {
                    let expected = match open.get(&call) {
                        Some((shown, Some(yes))) if *shown == a => Some(*yes),
                        _ => None,
                    };
                    if expected.is_some() { open.remove(&call); }
                    let found = take(&mut asks, &pay(), &id(call), &args(a)).map(|v| v.allows());
                    prop_assert_eq!(found, expected);
                }
                Move::Close => {
                    let unanswered = open.values().filter(|(_, said)| said.is_none()).count();
                    prop_assert_eq!(asks.close().len(), unanswered);
                    open.clear();
                    generation += 1;
                }
                Move::Restart => {
                    asks = serde_json::from_str(&serde_json::to_string(&asks).unwrap()).unwrap();
                }
            }
        }
    }
}
