//! Whatever a stored history looks like: one repair makes it valid, always to the same bytes, and a second one finds
//! nothing.

use haversack_agent_core::message::{Block, Message, Role, ToolCall, ToolResult, ToolStatus};
use haversack_agent_core::session::{Problem, Session};
use proptest::prelude::*;
use serde_json::json;

fn call(id: &str) -> Block {
    ToolCall::new(id, "t", json!({})).into()
}

fn result(id: &str) -> Block {
    ToolResult::new(id, "t", ToolStatus::Ok, vec![Block::text(format!("of {id}"))]).into()
}

fn assistant(blocks: impl Into<Vec<Block>>) -> Message {
    Message::new(Role::Assistant, blocks.into())
}

fn tool(blocks: impl Into<Vec<Block>>) -> Message {
    Message::new(Role::Tool, blocks.into())
}

fn bytes(session: &Session) -> String {
    serde_json::to_string(session).unwrap()
}

/// Repairs, and checks what holds behind every repair.
fn repaired(messages: &[Message]) -> (Session, Vec<Problem>) {
    let broken = Session::from_messages(messages.to_vec());
    let mut session = broken.clone();
    let problems = session.repair();
    assert_eq!(broken.check(), problems, "a check says what a repair would do");
    let once = bytes(&session);
    assert_eq!(session.repair(), [], "a second repair finds nothing");
    assert_eq!(bytes(&session), once, "and changes nothing");
    let mut again = broken.clone();
    again.repair();
    assert_eq!(bytes(&again), once, "the same history is repaired to the same bytes");
    if problems.is_empty() {
        assert_eq!(once, bytes(&broken), "what is valid is not touched");
    }
    (session, problems)
}

/// Every call has one result, directly behind it and in order; every result has its call; no id is there twice.
fn assert_paired(session: &Session) {
    let mut seen = std::collections::BTreeSet::new();
    let mut messages = session.messages().iter().peekable();
    while let Some(message) = messages.next() {
        assert!(!message.blocks.is_empty());
        assert_ne!(message.role, Role::Tool, "results without calls: {session:#?}");
        let calls: Vec<_> = message.tool_calls().map(|c| c.id.clone()).collect();
        assert!(message.tool_calls().all(|c| c.arguments.is_object()));
        assert!(calls.iter().all(|id| seen.insert(id.clone())), "an id is there twice");
        if message.role == Role::Assistant && !calls.is_empty() {
            let results: Vec<_> = messages
                .next_if(|m| m.role == Role::Tool)
                .unwrap()
                .tool_results()
                .map(|r| r.id.clone())
                .collect();
            assert_eq!(results, calls);
        }
    }
}

#[test]
fn each_kind_of_damage_is_named_and_put_right() {
    let text = || assistant([Block::text("then")]);
    let id = |id: &str| id.into();
    let cases: Vec<(&str, Vec<Message>, Vec<Problem>)> = vec![
        ("nothing", vec![Message::user("go"), assistant([call("a")]), tool([result("a")])], vec![]),
        (
            "a missing result",
            vec![Message::user("go"), assistant([call("a")]), Message::user("on")],
            vec![Problem::MissingResult { message: 1, call: id("a") }],
        ),
        (
            "one of two missing",
            vec![assistant([call("a"), call("b")]), tool([result("b")])],
            vec![Problem::MissingResult { message: 0, call: id("a") }],
        ),
        (
            "a result of nothing",
            vec![Message::user("go"), tool([result("x")])],
            vec![Problem::StrayResult { message: 1, call: id("x") }],
        ),
        (
            "a result twice",
            vec![assistant([call("a")]), tool([result("a"), result("a")])],
            vec![Problem::StrayResult { message: 1, call: id("a") }],
        ),
        (
            "results in two messages",
            vec![assistant([call("a"), call("b")]), tool([result("a")]), tool([result("b")])],
            vec![Problem::ScatteredResults { message: 0 }],
        ),
        (
            "results in another order",
            vec![assistant([call("a"), call("b")]), tool([result("b"), result("a")])],
            vec![Problem::ScatteredResults { message: 0 }],
        ),
        (
            "an id twice",
            vec![assistant([call("a")]), tool([result("a")]), assistant([call("a")]), tool([result("a")])],
            vec![Problem::DuplicateCall { message: 2, call: id("a") }],
        ),
        (
            "arguments that are no object",
            vec![assistant([ToolCall::new("a", "t", json!([1])).into()]), tool([result("a")])],
            vec![Problem::ArgumentsNotObject { message: 0, call: id("a") }],
        ),
        ("a message of nothing", vec![assistant([]), text()], vec![Problem::EmptyMessage { message: 0 }]),
    ];
    for (name, messages, expected) in cases {
        let (session, problems) = repaired(&messages);
        assert_eq!(problems, expected, "{name}");
        assert_paired(&session);
    }
}

#[test]
fn a_lost_result_says_that_nobody_knows_and_not_that_nothing_was_done() {
    let (session, _) = repaired(&[assistant([call("a")])]);
    let result = session.messages()[1].tool_results().next().unwrap().clone();
    assert_eq!(result.status, ToolStatus::Interrupted);
    assert!(result.text().contains("unknown"), "{}", result.text());
}

fn any_block() -> impl Strategy<Value = Block> {
    let id = prop_oneof![Just(""), Just("a"), Just("b"), Just("c"), Just("a_1_0")];
    prop_oneof![
        Just(Block::text("x")),
        (id.clone(), prop_oneof![Just(json!({})), Just(json!([1])), Just(json!(null))])
            .prop_map(|(id, arguments)| ToolCall::new(id, "t", arguments).into()),
        id.prop_map(result),
    ]
}

fn any_message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![Just(Role::User), Just(Role::Assistant), Just(Role::Tool)];
    (role, prop::collection::vec(any_block(), 0..4)).prop_map(|(role, blocks)| {
        // A wire has calls in answers only, and results in messages of tools only.
        let fits = |block: &Block| match block {
            Block::ToolCall(_) => role == Role::Assistant,
            Block::ToolResult(_) => role == Role::Tool,
            _ => role != Role::Tool,
        };
        Message::new(role, blocks.into_iter().filter(fits).collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_history_is_repaired_once_and_to_the_same_bytes(messages in prop::collection::vec(any_message(), 0..8)) {
        let (session, _) = repaired(&messages);
        assert_paired(&session);
    }

    #[test]
    fn what_was_valid_stays_the_prefix_of_what_is_repaired(
        messages in prop::collection::vec(any_message(), 0..8),
        tail in prop::collection::vec(any_message(), 0..3),
    ) {
        let (valid, _) = repaired(&messages);
        let mut longer: Vec<Message> = valid.messages().iter().map(|m| (**m).clone()).collect();
        // An end with open calls is not valid yet; its results may still come.
        prop_assume!(longer.last().is_none_or(|m| m.tool_calls().next().is_none()));
        longer.push(Message::user("on"));
        longer.extend(tail);
        let (repaired, _) = repaired(&longer);
        prop_assert!(repaired.messages().starts_with(&valid.messages()[..]), "a cached prefix is left alone");
    }
}
