//! Reading and merging of configurations.

use std::time::Duration;

use haversack_mcp_client::config::{
    Config, MAX_SERVERS, Origin, ProblemKind, ServerConfig, ToolFilter, TransportConfig,
};
use haversack_mcp_client::protocol::EraChoice;
use proptest::prelude::*;
use serde_json::{Value, json};

fn from_file(text: &str) -> Config {
    Config::new("/p").with_repository_file(".mcp.json", text.as_bytes())
}

fn one(entry: &Value) -> Config {
    from_file(&json!({"mcpServers": {"s": entry}}).to_string())
}

fn commands(config: &Config) -> Vec<(String, String)> {
    config
        .startable()
        .map(|server| match &server.config().transport {
            TransportConfig::Stdio(stdio) => (server.name().to_owned(), stdio.command.clone()),
            other => panic!("startable: {other:?}"),
        })
        .collect()
}

fn kinds(config: &Config) -> Vec<ProblemKind> {
    config.problems().iter().map(|problem| problem.kind).collect()
}

#[test]
fn every_field_of_an_entry_is_read() {
    let config = one(&json!({
        "type": "stdio", "command": "npx", "args": ["-y", "pkg"], "env": {"A": "1", "B": "${B}"}, "cwd": "sub",
        "passEnv": ["GH_TOKEN"], "disabled": false, "required": true, "startTimeout": 5000, "timeout": 1500.5,
        "maxTimeout": 60000, "era": "legacy", "allowTools": ["a", "b"], "denyTools": ["b"], "alwaysAllow": ["x"]
    }));
    assert_eq!(config.problems(), []);
    let server = config.server("s").unwrap();
    assert_eq!(server.origin(), &Origin::repository(".mcp.json"));
    let entry = server.config();
    let TransportConfig::Stdio(stdio) = &entry.transport else { panic!("{entry:?}") };
    assert_eq!(stdio.command, "npx");
    assert_eq!(stdio.args, ["-y", "pkg"]);
    assert_eq!(stdio.env.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>(), ["A=1", "B=${B}"]);
    assert_eq!(stdio.cwd.as_deref(), Some("sub"));
    assert_eq!(stdio.pass_env, ["GH_TOKEN"]);
    assert!(entry.required && !entry.disabled);
    assert_eq!(entry.start_timeout, Some(Duration::from_secs(5)));
    assert_eq!(entry.call_timeout, Some(Duration::from_micros(1_500_500)));
    assert_eq!(entry.max_call_time, Some(Duration::from_secs(60)));
    assert_eq!(entry.era, EraChoice::Legacy);
    assert!(entry.tools.allows("a") && !entry.tools.allows("b") && !entry.tools.allows("c"));
}

#[test]
fn an_entry_that_is_wrong_about_what_runs_is_left_out_and_says_why() {
    let cases = [
        (json!(null), "must be an object, not null"),
        (json!("npx"), "must be an object, not a string"),
        (json!({}), "`command` is missing"),
        (json!({"type": "stdio", "url": "http://x"}), "`command` is missing"),
        (json!({"command": "  "}), "`command` must not be blank"),
        (json!({"command": 7}), "`command` must be a string, not a number (put it in quotes)"),
        (json!({"command": "a\0b"}), "`command` must not hold a NUL character"),
        (json!({"command": "x", "args": "y"}), "`args` must be an array of strings, not a string"),
        (
            json!({"command": "x", "args": ["y", 2]}),
            "`args[1]` must be a string, not a number (put it in quotes)",
        ),
        (json!({"command": "x", "env": []}), "`env` must be an object of strings, not an array"),
        (
            json!({"command": "x", "env": {"PORT": 80}}),
            "`env.PORT` must be a string, not a number (put it in quotes)",
        ),
        (json!({"command": "x", "env": {"A=B": "c"}}), "`A=B` cannot be the name of a variable"),
        (json!({"command": "x", "passEnv": [""]}), "`` cannot be the name of a variable"),
        (
            json!({"command": "x", "cwd": ""}),
            "`cwd` must not be blank; leave it out for the project's folder",
        ),
        (json!({"command": "x", "disabled": "yes"}), "`disabled` must be true or false, not a string"),
        (json!({"command": "x", "denyTools": "t"}), "`denyTools` must be an array of strings, not a string"),
        (json!({"command": "x", "type": 3}), "`type` must be a string, not a number"),
        (json!({"type": "http"}), "`url` is missing"),
        (
            json!({"url": "http://x", "headers": {"A": 1}}),
            "`headers.A` must be a string, not a number (put it in quotes)",
        ),
    ];
    for (entry, message) in cases {
        let text = json!({"mcpServers": {"bad": entry, "good": {"command": "ok"}}}).to_string();
        let config = from_file(&text);
        assert_eq!(commands(&config), [("good".into(), "ok".into())], "{entry}");
        let [problem] = config.problems() else { panic!("{entry}: {:?}", config.problems()) };
        assert_eq!(problem.kind, ProblemKind::BadEntry);
        assert_eq!(problem.to_string(), format!(".mcp.json: server `bad`: {message}"));
    }
}

#[test]
fn a_setting_that_only_tunes_falls_back_to_its_default() {
    let cases = [
        (json!({"timeout": "60"}), "`timeout` must be a number of milliseconds; the default is used"),
        (
            json!({"timeout": 0}),
            "`timeout` must be between 1 and 86,400,000 milliseconds; the default is used",
        ),
        (json!({"timeout": -5}), "`timeout` must be a number of milliseconds; the default is used"),
        (
            json!({"maxTimeout": 1e18}),
            "`maxTimeout` must be between 1 and 86,400,000 milliseconds; the default is used",
        ),
        (
            json!({"startTimeout": 1e300}),
            "`startTimeout` must be a number of milliseconds; the default is used",
        ),
        (json!({"era": "old"}), "`era` must be \"auto\", \"legacy\" or \"modern\"; the default is used"),
        (json!({"required": 1}), "`required` must be true or false; the default is used"),
    ];
    for (mut entry, message) in cases {
        entry["command"] = "x".into();
        let config = one(&entry);
        assert_eq!(config.server("s").unwrap().config(), &ServerConfig::stdio("x"), "{entry}");
        let [problem] = config.problems() else { panic!("{entry}") };
        assert_eq!((problem.kind, problem.message.as_str()), (ProblemKind::BadSetting, message));
    }
}

#[test]
fn null_is_the_same_as_absent() {
    let config = one(&json!({
        "type": null, "command": "x", "args": null, "env": null, "cwd": null, "disabled": null, "timeout": null,
        "era": null, "allowTools": null
    }));
    assert_eq!(config.problems(), []);
    assert_eq!(config.server("s").unwrap().config(), &ServerConfig::stdio("x"));
}

#[test]
fn other_transports_are_reported_and_their_siblings_start() {
    let config = from_file(
        &json!({"mcpServers": {
            "a-http": {"type": "http", "url": "https://h/mcp", "headers": {"Authorization": "Bearer s3cret"}},
            "b-url": {"url": "https://h/mcp"},
            "c-streamable": {"type": "streamable-http", "url": "https://h/mcp"},
            "d-sse": {"type": "sse", "url": "https://h/sse"},
            "e-ws": {"type": "ws", "url": "wss://h"},
            "f-odd": {"type": "local", "command": "x"},
            "g-off": {"type": "sse", "url": "https://h", "disabled": true},
            "h-stdio": {"command": "ok"}
        }})
        .to_string(),
    );
    let config = config.without_http();
    assert_eq!(commands(&config), [("h-stdio".into(), "ok".into())]);
    let mut reported: Vec<_> = config
        .problems()
        .iter()
        .map(|problem| {
            assert_eq!(problem.kind, ProblemKind::Unsupported);
            assert!(!problem.to_string().contains("s3cret"));
            problem.server.clone().unwrap()
        })
        .collect();
    reported.sort_unstable();
    assert_eq!(reported, ["a-http", "b-url", "c-streamable", "d-sse", "e-ws", "f-odd"]);
    assert!(!format!("{config:?}").contains("s3cret"));
}

#[test]
fn a_server_over_http_starts_where_this_build_has_http() {
    let config = one(&json!({"url": "https://h/mcp", "headers": {"Authorization": "Bearer s3cret"}}));
    assert!(matches!(config.server("s").unwrap().config().transport, TransportConfig::Http(_)));
    assert!(!format!("{config:?}").contains("s3cret"));
    let has_http = cfg!(feature = "http");
    assert_eq!(config.startable().count(), usize::from(has_http));
    assert_eq!(config.problems().len(), usize::from(!has_http), "{:?}", config.problems());
}

#[test]
fn a_disabled_server_is_known_and_not_started() {
    let config = one(&json!({"command": "x", "disabled": true}));
    assert!(config.server("s").is_some());
    assert_eq!(config.startable().count(), 0);
    assert_eq!(config.problems(), []);
}

#[test]
fn a_later_source_wins_by_name_and_the_host_wins_whatever_the_order() {
    let a = br#"{"mcpServers": {"s": {"command": "claude"}, "only-a": {"command": "a"}}}"#;
    let b = br#"{"mcpServers": {"s": {"command": "gbs"}, "only-b": {"command": "b"}}}"#;
    let host = json!({"s": {"command": "host"}});
    let all = [
        Config::new("/p")
            .with_repository_file(".mcp.json", a)
            .with_repository_file(".gbs/mcp.json", b)
            .with_host_servers(&host),
        Config::new("/p")
            .with_host_servers(&host)
            .with_repository_file(".mcp.json", a)
            .with_repository_file(".gbs/mcp.json", b),
    ];
    for config in all {
        assert_eq!(
            commands(&config),
            [("only-a".into(), "a".into()), ("only-b".into(), "b".into()), ("s".into(), "host".into())]
        );
        assert!(config.server("s").unwrap().origin().is_host());
        assert!(kinds(&config).contains(&ProblemKind::NameTaken));
    }
    let without_host =
        Config::new("/p").with_repository_file(".mcp.json", a).with_repository_file(".gbs/mcp.json", b);
    assert_eq!(without_host.server("s").unwrap().origin(), &Origin::repository(".gbs/mcp.json"));
    let [replaced] = without_host.problems() else { panic!() };
    assert_eq!(
        replaced.to_string(),
        ".mcp.json: server `s`: does not count, since .gbs/mcp.json defines the same name"
    );
}

#[test]
fn a_repository_cannot_take_a_name_of_the_host_even_if_the_hosts_entry_does_not_run() {
    let hosts = [
        json!({"git": {"type": "ws", "url": "wss://h"}}),
        json!({"git": {"command": "x", "disabled": true}}),
        json!({"git": {"command": ""}}),
        json!({"git": "nonsense"}),
    ];
    for host in hosts {
        let config = Config::new("/p")
            .with_repository_file(".mcp.json", br#"{"mcpServers": {"git": {"command": "evil"}}}"#)
            .with_host_servers(&host);
        assert_eq!(commands(&config), [], "{host}");
        assert!(kinds(&config).contains(&ProblemKind::NameTaken), "{host}");
    }
}

#[test]
fn a_repository_cannot_come_close_to_a_name_of_the_host() {
    let host = json!({"my_server": {"command": "host"}});
    for (name, taken) in [
        ("my_server", true),
        ("My_Server", true),
        ("my server", true),
        ("my.server", true),
        ("myserver", false),
        ("日本", false),
    ] {
        let file = json!({"mcpServers": {name: {"command": "repo"}}}).to_string();
        let orders = [
            Config::new("/p").with_host_servers(&host).with_repository_file("f", file.as_bytes()),
            Config::new("/p").with_repository_file("f", file.as_bytes()).with_host_servers(&host),
        ];
        for config in orders {
            assert_eq!(commands(&config).iter().any(|(_, command)| command == "repo"), !taken, "{name}");
            assert_eq!(kinds(&config), if taken { vec![ProblemKind::NameTaken] } else { vec![] }, "{name}");
        }
    }
}

#[test]
fn broken_files_leave_the_others_working() {
    let good = br#"{"mcpServers": {"s": {"command": "ok"}}}"#;
    let cases: [(&[u8], &str); 9] = [
        (b"{", "is not a valid configuration: EOF while parsing an object at line 1 column 1"),
        (
            b"{\n  \"mcpServers\": {\n    \"s\": {,}\n}}",
            "is not a valid configuration: key must be a string at line 3 column 11",
        ),
        (
            b"[]",
            "is not a valid configuration: invalid type: sequence, expected an object with the member `mcpServers` at line 1 column 0",
        ),
        (
            b"{\"mcpServers\": []}",
            "is not a valid configuration: invalid type: sequence, expected an object from server names to entries at line 1 column 17",
        ),
        (b"{} trailing", "is not a valid configuration: trailing characters at line 1 column 4"),
        (b"{\"servers\": {\"s\": {\"command\": \"x\"}}}", "has no `mcpServers` (found `servers`)"),
        (b"\xff\xfe", "is not a valid configuration: expected value at line 1 column 1"),
        (b"nul", "is not a valid configuration: EOF while parsing a value at line 1 column 3"),
        (&[b' '; haversack_mcp_client::config::MAX_FILE_BYTES + 1], "has more than 1048576 bytes"),
    ];
    for (text, message) in cases {
        let config = Config::new("/p")
            .with_repository_file(".mcp.json", text)
            .with_repository_file(".gbs/mcp.json", good);
        assert_eq!(commands(&config), [("s".into(), "ok".into())], "{message}");
        let [problem] = config.problems() else { panic!("{message}: {:?}", config.problems()) };
        assert_eq!(problem.kind, ProblemKind::Malformed);
        assert_eq!(problem.to_string(), format!(".mcp.json: {message}"));
    }
    for text in ["", " \n", "{}", "{\"mcpServers\": null}", "{\"mcpServers\": {}}"] {
        let config = from_file(text);
        assert_eq!((commands(&config), config.problems()), (vec![], &[][..]), "{text}");
    }
}

#[test]
fn a_byte_order_mark_and_crlf_change_nothing() {
    let text = "{\n\"mcpServers\": {\"s\": {\"command\": \"ok\"}}\n}";
    for text in [format!("\u{feff}{text}"), text.replace('\n', "\r\n")] {
        assert_eq!(commands(&from_file(&text)), [("s".into(), "ok".into())]);
    }
}

#[test]
fn a_name_that_is_defined_twice_in_one_file_is_reported_and_the_last_one_counts() {
    let config = from_file(
        r#"{"mcpServers": {"s": {"command": "a"}, "s": {"command": "b"}}, "mcpServers": {"s": {"command": "c"}}}"#,
    );
    assert_eq!(commands(&config), [("s".into(), "c".into())]);
    assert_eq!(kinds(&config), [ProblemKind::Duplicate, ProblemKind::Duplicate]);
}

#[test]
fn too_many_servers_and_names_out_of_bounds_are_left_out_and_reported() {
    let many: serde_json::Map<_, _> =
        (0..MAX_SERVERS + 5).map(|at| (format!("s{at:03}"), json!({"command": "x"}))).collect();
    let config = from_file(&json!({"mcpServers": many}).to_string());
    assert_eq!(config.startable().count(), MAX_SERVERS);
    let [problem] = config.problems() else { panic!() };
    assert_eq!((problem.kind, problem.server.as_deref()), (ProblemKind::TooMany, Some("s128")));

    for name in ["", "  ", &"n".repeat(257)] {
        let config = from_file(&json!({"mcpServers": {name: {"command": "x"}}}).to_string());
        assert_eq!((commands(&config), kinds(&config)), (vec![], vec![ProblemKind::BadEntry]));
    }
}

#[test]
fn messages_show_no_invisible_character_and_are_bounded() {
    let quoted = from_file(&json!({"mcpServers": format!("\u{202e}{}", "y".repeat(900))}).to_string());
    let shown = quoted.problems()[0].to_string();
    assert!(shown.contains("\\u{202e}yyy") && shown.len() < 400, "{shown}");

    let name = format!("a\u{202e}b{}", "x".repeat(200));
    let config = from_file(&json!({"mcpServers": {name: {"command": 1}}}).to_string());
    let shown = config.problems()[0].to_string();
    assert!(shown.starts_with(".mcp.json: server `a\\u{202e}bxxx"), "{shown}");
    assert!(shown.len() < 250, "{shown}");
}

#[test]
fn a_project_is_read_from_its_two_files() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(Config::read_project(root.path()).problems(), []);

    std::fs::write(
        root.path().join(".mcp.json"),
        r#"{"mcpServers": {"a": {"command": "1"}, "b": {"command": "2"}}}"#,
    )
    .unwrap();
    std::fs::create_dir(root.path().join(".gbs")).unwrap();
    std::fs::write(root.path().join(".gbs/mcp.json"), r#"{"mcpServers": {"b": {"command": "3"}}}"#).unwrap();
    let config = Config::read_project(root.path());
    assert_eq!(commands(&config), [("a".into(), "1".into()), ("b".into(), "3".into())]);
    assert_eq!(config.root(), root.path());
}

#[cfg(unix)]
#[test]
fn what_is_no_file_or_is_too_big_is_a_problem_and_nothing_waits_for_it() {
    let root = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/dev/zero", root.path().join(".mcp.json")).unwrap();
    std::fs::create_dir_all(root.path().join(".gbs/mcp.json")).unwrap();
    let config = Config::read_project(root.path());
    assert_eq!(kinds(&config), [ProblemKind::Unreadable, ProblemKind::Unreadable]);
    assert_eq!(config.problems()[0].to_string(), ".mcp.json: is not a file");
}

#[test]
fn hosts_can_build_entries_themselves() {
    let entry = ServerConfig::stdio("x").with_required(true).with_tools(ToolFilter::all().without(["drop"]));
    let config = Config::new("/p").with_host_server("s", entry.clone());
    assert_eq!(config.server("s").unwrap().config(), &entry);
    assert!(entry.tools.allows("keep") && !entry.tools.allows("drop"));
    for (value, found) in [(json!([]), "an array"), (json!("x"), "a string")] {
        let config = Config::new("/p").with_host_servers(&value);
        assert_eq!(
            config.problems()[0].to_string(),
            format!("settings: must be an object of servers, not {found}")
        );
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        ".{0,4}",
        proptest::sample::select(vec![
            "command",
            "args",
            "env",
            "cwd",
            "type",
            "url",
            "headers",
            "disabled",
            "required",
            "timeout",
            "startTimeout",
            "maxTimeout",
            "era",
            "allowTools",
            "denyTools",
            "passEnv",
        ])
        .prop_map(String::from),
    ];
    leaf.prop_recursive(4, 32, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(key.clone(), inner, 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_and_any_values_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), value in any_json()) {
        let _ = Config::new("/p").with_repository_file("f", &bytes);
        let config = Config::new("/p")
            .with_repository_file("f", json!({"mcpServers": value}).to_string().as_bytes())
            .with_host_servers(&value);
        for problem in config.problems() {
            prop_assert!(!problem.to_string().is_empty());
        }
        // Each name is either a server or a problem, never nothing.
        if let Value::Object(members) = &value {
            for name in members.keys() {
                let reported = config.problems().iter().any(|problem| problem.server.as_deref() == Some(name));
                prop_assert!(reported || config.server(name).is_some(), "{name}");
            }
        }
        // Whatever the repository says, a name of the host is the host's.
        for server in config.servers() {
            prop_assert!(server.origin().is_host());
        }
    }
}
