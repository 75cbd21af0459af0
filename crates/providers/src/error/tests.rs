use super::*;
use serde_json::json;

fn read(body: &str) -> Box<ModelError> {
    let headers = HeaderMap::new();
    from_body(
        Answer { provider: "p", status: 400, headers: &headers, now: SystemTime::UNIX_EPOCH },
        body.as_bytes(),
    )
}

#[test]
fn every_known_shape_of_an_error_body_is_read() {
    for (body, message, kind, code) in [
        (r#"{"error":{"message":"m","type":"t","code":"c","param":"p"}}"#, Some("m"), Some("t"), json!("c")),
        (r#"{"error":{"message":"m","type":"t","code":429}}"#, Some("m"), Some("t"), json!(429)),
        (r#"{"error":"m","code":"c"}"#, Some("m"), None, Value::Null),
        (r#"{"detail":"m"}"#, Some("m"), None, Value::Null),
        (r#"{"detail":[{"loc":["body"]}]}"#, Some(r#"[{"loc":["body"]}]"#), None, Value::Null),
        (r#"{"object":"error","message":"m","type":"t","code":"1500"}"#, Some("m"), Some("t"), json!("1500")),
        (r#"{"code":"c","message":"m","type":"t"}"#, Some("m"), Some("t"), json!("c")),
        (r#"[{"error":{"code":400,"message":"m","status":"S"}}]"#, Some("m"), Some("S"), json!(400)),
        (r#"{"type":"error","error":{"type":"t","message":"m"}}"#, Some("m"), Some("t"), Value::Null),
        ("<html>\n<h1>502", Some("<html>\n<h1>502"), None, Value::Null),
        ("", Some(""), None, Value::Null),
        ("[]", None, None, Value::Null),
        ("null", None, None, Value::Null),
        ("7", None, None, Value::Null),
    ] {
        let error = read(body);
        let reply = error.reply.unwrap();
        assert_eq!(reply.message.as_deref(), message, "{body}");
        assert_eq!(error.error_type.as_deref(), kind, "{body}");
        assert_eq!(reply.code.unwrap_or_default(), code, "{body}");
        assert!(error.message.starts_with("p"), "{}", error.message);
    }
}

#[test]
fn what_an_upstream_said_is_part_of_the_message() {
    let error =
        read(r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"slow down"}}}"#);
    assert_eq!(error.message, "p: Provider returned error: slow down");
    assert_eq!(error.reply.unwrap().message.as_deref(), Some("Provider returned error"));
}

#[test]
fn long_bodies_are_cut_between_characters() {
    let error = read(&format!("x{}", "ü".repeat(MAX_KEPT_BODY)));
    assert_eq!(error.reply.unwrap().body.len(), MAX_KEPT_BODY - 1);
    assert!(error.message.chars().count() <= MAX_PLAIN_MESSAGE + 3);
}

#[test]
fn a_quota_of_a_day_or_of_nothing_is_used_up_whatever_wait_comes_with_it() {
    let google = |message: &str, quota: &str| {
        json!({"error": {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [
                {"quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests", "quotaId": quota},
            ]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"},
        ]}})
        .to_string()
    };
    let metric = "You exceeded your current quota. * Quota exceeded for metric: free_tier_requests, limit: ";
    let upstream =
        json!({"error": {"code": 429, "message": "Rate limit exceeded: free-models-per-day"}}).to_string();
    for (body, kind) in [
        (google(metric, "GenerateRequestsPerDayPerProjectPerModel-FreeTier"), ModelErrorKind::QuotaExhausted),
        (
            google(&format!("{metric}0"), "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"),
            ModelErrorKind::QuotaExhausted,
        ),
        (
            google(&format!("{metric}15"), "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"),
            ModelErrorKind::RateLimited,
        ),
        (upstream, ModelErrorKind::QuotaExhausted),
    ] {
        let error = read(&body);
        assert_eq!(error.kind, kind, "{body}");
        assert_eq!(error.is_transient(), kind == ModelErrorKind::RateLimited, "{body}");
    }
}
