use super::*;

fn kind(line: &str) -> String {
    match parse(line.as_bytes()) {
        Ok(Incoming::Call { id: Some(id), method, .. }) => format!("request {} {method}", id.as_json()),
        Ok(Incoming::Call { id: None, method, .. }) => format!("notification {method}"),
        Ok(Incoming::Answer { id, .. }) => format!("answer {id:?}"),
        Ok(Incoming::Batch { members, in_all }) => format!("batch {} of {in_all}", members.len()),
        Err(noise) => format!("{noise:?}"),
    }
}

#[test]
fn a_message_is_told_by_the_keys_that_are_present() {
    let table = [
        (r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#, "request 0 ping"),
        (r#"{"id":"weird-é","method":"x/unknown","params":{}}"#, "request \"weird-é\" x/unknown"),
        (r#"{"id":"0","method":"ping"}"#, "request \"0\" ping"),
        (r#"{"id":-1.50,"method":"ping"}"#, "request -1.50 ping"),
        (r#"{"id":null,"method":"ping"}"#, "NotAMessage"),
        (r#"{"id":{},"method":"ping"}"#, "NotAMessage"),
        (r#"{"jsonrpc":"2.0","method":"notifications/message"}"#, "notification notifications/message"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "answer Exact(1)"),
        (r#"{"jsonrpc":"2.0","id":1,"error":{}}"#, "answer Exact(1)"),
        (r#"{"result":{},"jsonrpc":"2.0","id":17}"#, "answer Exact(17)"),
        (r#"{"error":{"code":1},"id":3,"jsonrpc":"2.0"}"#, "answer Exact(3)"),
        (r#"{"id":1}"#, "answer Exact(1)"),
        (r#"{"id":"1","result":{}}"#, "answer Loose(1)"),
        (r#"{"id":1.0,"result":{}}"#, "answer Loose(1)"),
        (r#"{"id":"x","result":{}}"#, "answer Foreign"),
        (r#"{"id":-1,"result":{}}"#, "answer Foreign"),
        (r#"{"id":null,"error":{"code":-32700}}"#, "answer Null"),
        (r#"{"error":{"code":-32700}}"#, "answer Null"),
        (r#"[{"id":1,"result":{}},5]"#, "batch 2 of 2"),
        ("[]", "batch 0 of 0"),
        ("{}", "NotAMessage"),
        (r#"{"hello":"world"}"#, "NotAMessage"),
        ("5", "NotAMessage"),
        ("\"text\"", "NotAMessage"),
        ("null", "NotAMessage"),
        ("true", "NotAMessage"),
        ("INFO ready", "NotJson"),
        ("{not json", "NotJson"),
        (r#"{"id":1} trailing"#, "NotJson"),
    ];
    for (line, wanted) in table {
        assert_eq!(kind(line), wanted, "{line}");
    }
}

#[test]
fn the_id_at_either_end_of_a_line_is_the_one_that_a_full_parse_finds() {
    let lines = [
        r#"{"jsonrpc":"2.0","id":18446744073709551615,"result":{"a":"}"}}"#,
        r#"{"result":{"content":[{"type":"text","text":",\"jsonrpc\":\"2.0\",\"id\":9}"}]},"jsonrpc":"2.0","id":4}"#,
        r#"{"jsonrpc": "2.0", "id": 12, "error": {"code": 1}}"#,
    ];
    for line in lines {
        let value: Value = serde_json::from_str(line).unwrap();
        let (id, result) = answered_id(line.as_bytes()).unwrap();
        assert_eq!(Some(id), value["id"].as_u64(), "{line}");
        if let Some(result) = result {
            let result: Value = serde_json::from_slice(&line.as_bytes()[result]).unwrap();
            assert_eq!(result, value["result"], "{line}");
        }
    }
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":"1","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":99999999999999999999,"result":{}}"#,
        r#"{"result":{},"jsonrpc":"2.0","id":"4"}"#,
        r#"{"result":{}}"#,
    ] {
        assert_eq!(answered_id(line.as_bytes()), None, "{line}");
    }
}

#[test]
fn an_error_of_any_shape_says_something() {
    let table = [
        (r#"{"code":-32601,"message":"no"}"#, Some(-32601), "no"),
        (r#"{"code":"E_FAIL","message":"code as text"}"#, None, "code as text"),
        (r#"{"code":-32603}"#, Some(-32603), "an error without a message: {\"code\":-32603}"),
        (r#""just a string""#, None, "just a string"),
        (r#"{"message":"no code"}"#, None, "no code"),
        (r#"{"code":1e3,"message":"float"}"#, Some(1000), "float"),
        (r#"{"code":0,"message":"zero"}"#, Some(0), "zero"),
        ("null", None, "null"),
        ("[1]", None, "[1]"),
    ];
    for (json, code, message) in table {
        let error = RpcError::from_value(serde_json::from_str(json).unwrap());
        assert_eq!((error.code, error.message.as_str()), (code, message), "{json}");
    }
}

#[test]
fn a_batch_of_too_many_members_is_cut_and_counted() {
    let line = format!("[{}]", vec!["1"; MAX_BATCH_MEMBERS + 5].join(","));
    assert_eq!(kind(&line), format!("batch {MAX_BATCH_MEMBERS} of {}", MAX_BATCH_MEMBERS + 5));
}

#[test]
fn depth_does_not_matter_where_nobody_looks() {
    let deep = format!("{{\"id\":5,\"result\":{}{}}}", "[".repeat(5000), "]".repeat(5000));
    assert_eq!(kind(&deep), "answer Exact(5)");
}
