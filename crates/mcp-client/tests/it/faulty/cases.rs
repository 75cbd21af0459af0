//! The table: each mode, what is done with it, and what must come of it.
#![expect(clippy::too_many_lines, reason = "tables are as long as what they list")]

use std::sync::Arc;
use std::time::Duration;

use haversack_mcp_client::protocol::{Era, EraChoice, ListKind, Notice, OpeningError, ProblemCode, Revision};
use haversack_mcp_client::{Error, Event, ExitHow};
use serde_json::{Value, json};

use super::{Ann, Case, OneFolder, Report, Step, case, hello, impatient, ms, options};

pub(super) fn opening_cases() -> Vec<Case> {
    vec![
        case("ok", |r| {
            r.works();
            assert_eq!((r.era(), r.exit.unwrap().how), (Era::Legacy, ExitHow::Stdin));
        }),
        case("ok", Report::works).options(options().with_era(EraChoice::Legacy)),
        case("ok", Report::works).options(options().with_era(EraChoice::AutoLegacyFirst)),
        case("ok", |r| {
            let error = r.start_error.as_ref().unwrap().to_string();
            assert!(error.contains("server/discover was refused"), "{error}");
        })
        .options(options().with_era(EraChoice::Modern)),
        case("modern", |r| {
            r.works();
            assert_eq!((r.era(), r.got_method("initialize")), (Era::Modern, 0));
            let id = &r.got(|message| message["method"] == "server/discover")[0]["id"];
            assert!(id.is_string(), "{id}");
        }),
        case("modern", |r| {
            let error = r.start_error.as_ref().unwrap();
            let is = |theirs: &[String]| theirs == ["2026-07-28"];
            assert!(matches!(error, Error::Opening { error: OpeningError::NoCommonRevision { theirs }, .. } if is(theirs)));
            assert!(error.to_string().contains("2025-11-25"), "{error}");
        })
        .options(options().with_era(EraChoice::Legacy)),
        case("modern", |r| {
            r.works();
            assert_eq!(r.era(), Era::Modern, "the memory was wrong");
        })
        .options(options().with_era(EraChoice::AutoLegacyFirst)),
        case("dual", |r| {
            r.works();
            assert_eq!(r.era(), Era::Modern);
        }),
        case("dual", |r| {
            r.works();
            assert_eq!(r.era(), Era::Legacy);
        })
        .options(options().with_era(EraChoice::Legacy)),
        case("slow-start", Report::works).args(&["--seconds", "1.5"]),
        case("silent", |r| {
            let error = r.start_error.as_ref().unwrap();
            assert!(error.is_timeout() && error.to_string().contains("no answer to initialize"), "{error}");
        })
        .options(impatient()),
        case("exit-at-start", |r| {
            let error = r.start_error.as_ref().unwrap();
            let text = error.to_string();
            assert!(text.contains("exited with code 3") && text.ends_with("faulty: giving up"), "{text}");
            assert!(error.stderr_tail().unwrap().starts_with("faulty: cannot open database\n"));
        }),
        case("crash-on-unknown", |r| {
            r.works();
            assert_eq!((r.logged("start").len(), r.got_method("server/discover")), (2, 1));
        }),
        case("hang-on-unknown", |r| {
            r.works();
            assert_eq!((r.logged("start").len(), r.got_method("server/discover")), (2, 1));
        })
        .options(options().with_probe_timeout(ms(700))),
        case("discover-silent", |r| {
            r.works();
            assert_eq!((r.era(), r.logged("start").len()), (Era::Legacy, 1));
        })
        .options(options().with_probe_timeout(ms(700))),
        case("discover-silent", |r| {
            r.works();
            assert_eq!(r.got_method("server/discover"), 0, "a known era spares the wait");
        })
        .options(options().with_era(EraChoice::AutoLegacyFirst)),
        case("discover-empty", Report::works),
        case("discover-old-versions", |r| {
            r.works();
            assert_eq!(r.info.as_ref().unwrap().protocol_version, Revision::V2026_07_28);
        }),
        case("discover-only-unknown", |r| {
            let error = r.start_error.as_ref().unwrap().to_string();
            assert!(error.contains("2099-01-01") && error.contains("2026-07-28"), "{error}");
            assert_eq!(r.got_method("initialize"), 0);
        }),
        case("version-old", |r| {
            r.works();
            assert_eq!(r.info.as_ref().unwrap().protocol_version, Revision::V2024_11_05);
        }),
        case("version-missing", |r| {
            let error = r.start_error.as_ref().unwrap().to_string();
            assert!(error.contains("names no protocol version"), "{error}");
        }),
        case("request-before-init", |r| {
            r.works();
            let ping = r.got(|message| message["id"] == "early-ping");
            assert_eq!(ping[0]["result"], json!({}));
            let roots = r.got(|message| message["id"] == 0);
            assert_eq!(roots[0]["error"]["code"], -32601);
        }),
        case("huge-instructions", |r| {
            r.works();
            assert_eq!(r.info.as_ref().unwrap().instructions.as_ref().unwrap().len(), 1_000_000);
        }),
    ]
}

pub(super) fn byte_cases() -> Vec<Case> {
    vec![
        case("banner", |r| {
            r.works();
            assert!(r.counts.noise >= 5, "{:?}", r.counts);
            let is = |event: &&Event| matches!(event, Event::Notice(Notice::Noise { text }) if !text.contains('\u{1b}'));
            assert!(r.events.iter().filter(is).count() >= 5);
        }),
        case("bom", Report::works),
        case("crlf", Report::works),
        case("one-byte", Report::works),
        case("split-utf8", Report::works),
        case("pretty", |r| {
            let error = r.start_error.as_ref().unwrap();
            assert!(error.is_timeout(), "{error}");
        })
        .options(impatient()),
        case("lone-surrogate", |r| assert_eq!(r.text(0), "\u{fffd} \0 end")),
        case("nan", |r| {
            assert!(matches!(r.failure(0), Error::InvalidAnswer { .. }));
            assert!(r.call_times[0] < Duration::from_secs(10), "at once, and not by its timeout");
        }),
        case("dup-keys", |r| assert_eq!(r.text(0), "two")),
        case("no-newline-exit", |r| {
            assert_eq!(r.text(0), "echo: hi ü\u{2028}");
            assert_eq!(r.exit.unwrap().how, ExitHow::Itself);
        }),
        case("big-line", |r| assert_eq!(r.text(0).len(), 20_000_000)),
        case("big-line", |r| {
            let error = r.failure(0).to_string();
            assert!(error.contains("limit of 1000000 bytes"), "{error}");
            assert!(r.calls[1].is_err() && !r.failure(1).is_closed(), "the connection goes on");
        })
        .options(options().with_max_line_bytes(1_000_000))
        .steps([hello(), hello()]),
        case("endless-line", |r| {
            let error = r.failure(0);
            assert!(error.is_closed() && error.to_string().contains("bytes that does not end"), "{error}");
        })
        .options(options().with_max_line_bytes(4_000_000)),
        case("stderr-flood", |r| {
            r.works();
            assert!((60_000..=65_536).contains(&r.stderr_tail.len()), "{}", r.stderr_tail.len());
        }),
        case("stdout-closed", |r| {
            let error = r.lists[0].as_ref().unwrap_err();
            assert!(error.is_closed(), "{error}");
            assert!(r.call_times[0] < Duration::from_secs(10), "at once");
        }),
        case("no-read", |r| {
            assert!(r.failure(0).is_timeout() && r.failure(1).is_timeout(), "{:?}", r.calls);
            assert_eq!(r.exit.unwrap().how, ExitHow::Term);
        })
        .options(options().with_call_timeout(ms(700)))
        .steps([Step::Call("echo", json!({"text": "x".repeat(3_000_000)})), hello()]),
    ]
}

pub(super) fn answer_cases() -> Vec<Case> {
    vec![
        case("id-float", Report::works),
        case("id-unknown", |r| {
            r.works();
            assert!(r.problems(ProblemCode::UnknownAnswer) >= 4);
        }),
        case("id-null-error", |r| {
            assert!(r.failure(0).is_timeout());
            assert_eq!(r.problems(ProblemCode::PeerCouldNotRead), 1);
        })
        .options(options().with_call_timeout(ms(700))),
        case("dup-answer", |r| {
            r.works();
            assert!(r.problems(ProblemCode::UnknownAnswer) >= 2);
        }),
        case("neither", |r| {
            let error = r.failure(0).to_string();
            assert!(error.contains("neither a result nor an error"), "{error}");
        }),
        case("error-shapes", |r| {
            for (shape, call) in r.calls.iter().enumerate() {
                let error = call.as_ref().unwrap_err();
                assert!(matches!(error, Error::Rpc { .. }) || shape == 8, "{shape}: {error}");
                assert!(matches!(error, Error::InvalidAnswer { .. }) || shape != 8, "{shape}: {error}");
            }
        })
        .steps((0..9).map(|shape| Step::Call("echo", json!({"shape": shape}))).collect::<Vec<_>>()),
        case("batch", |r| {
            r.works();
            let is = |event: &&Event| matches!(event, Event::Notice(Notice::Log { data, .. }) if data == "in a batch");
            assert_eq!(r.events.iter().filter(is).count(), 2);
        }),
        case("result-shapes", |r| {
            for call in &r.calls {
                assert!(call.is_ok(), "{call:?}");
            }
            assert_eq!(r.calls[9].as_ref().unwrap().structured, Some(json!({"a": 1})));
        })
        .steps(
            "text empty missing null string object error error-empty is-error-text structured-only structured-array both \
             schema-broken image image-bad image-no-mime audio resource-text resource-blob link unknown-type no-type \
             null-item text-number old array number nothing many control never-heard-of"
                .split_whitespace()
                .map(|shape| Step::Call("echo", json!({"shape": shape})))
                .collect::<Vec<_>>(),
        ),
    ]
}

pub(super) fn list_cases() -> Vec<Case> {
    const SIX: [&str; 6] = ["page0_a", "page0_b", "page1_a", "page1_b", "page2_a", "page2_b"];
    vec![
        case("pages", |r| assert_eq!(r.tool_names(), SIX)),
        case("pages-null-cursor", |r| assert_eq!(r.tool_names(), SIX)),
        case("pages-empty-cursor", |r| assert_eq!(r.tool_names(), ["first", "second"])),
        case("pages-error", |r| {
            assert_eq!(r.tool_names(), ["page0_a", "page0_b"]);
            assert_eq!(r.list_problems(ProblemCode::PageFailed), 1);
        }),
        case("list-changed", |r| {
            assert_eq!(r.tool_names(), ["echo", "add", "late"]);
            let is = |event: &&Event| matches!(event, Event::Notice(Notice::ListChanged(ListKind::Tools)));
            assert_eq!(r.events.iter().filter(is).count(), 1);
        }),
        case("no-tools-cap", |r| {
            assert_eq!((r.tool_names().len(), r.list_problems(ProblemCode::NotDeclared)), (0, 1));
            assert_eq!(r.got_method("tools/list"), 0);
        })
        .steps([Step::List]),
        case("bad-names", |r| {
            let names = r.tool_names();
            assert_eq!((names.len(), r.list_problems(ProblemCode::Duplicate)), (21, 1));
            assert!(names.contains(&"files/read") && names.contains(&"\u{1f600}") && names.contains(&""));
            assert_eq!(r.text(0), "echo: x");
            assert_eq!(r.got(|message| message["params"]["name"] == "line\nbreak").len(), 1);
        })
        .steps([Step::List, Step::Call("line\nbreak", json!({"text": "x"}))]),
        case("bad-schemas", |r| {
            assert_eq!((r.tool_names().len(), r.list_problems(ProblemCode::BadEntry)), (24, 1));
            assert!(!r.tool_names().contains(&"s_deep") && r.tool_names().contains(&"good_one"));
        })
        .steps([Step::List]),
        case("bad-tools", |r| {
            assert_eq!(r.tool_names(), ["good_one", "ann", "title"]);
            assert_eq!(r.list_problems(ProblemCode::BadEntry), 7);
        })
        .steps([Step::List]),
        case("many-tools", |r| assert_eq!(r.tool_names().len(), 2000)).steps([Step::List]),
    ]
}

pub(super) fn call_cases() -> Vec<Case> {
    vec![
        case("exit-mid-call", |r| {
            let error = r.failure(0);
            assert!(error.is_closed() && error.to_string().contains("exited with code 9"), "{error}");
            assert!(r.call_times[0] < Duration::from_secs(10), "at once");
            assert_eq!(r.exit.unwrap().how, ExitHow::Itself);
        }),
        case("slow-call", |r| {
            assert!(r.failure(0).is_timeout());
            let call = r.got(|message| message["method"] == "tools/call");
            let cancelled = r.got(|message| message["method"] == "notifications/cancelled");
            assert_eq!(cancelled[0]["params"]["requestId"], call[0]["id"]);
        })
        .options(options().with_call_timeout(ms(500)))
        .steps([hello(), Step::Await("notifications/cancelled")]),
        case("ignore-cancel", |r| {
            assert!(r.failure(0).is_timeout());
            assert_eq!((r.counts.late_answers, r.problems(ProblemCode::UnknownAnswer)), (1, 0));
            assert_eq!(r.tool_names(), ["echo", "add"], "the connection goes on");
        })
        .args(&["--seconds", "1.5"])
        .options(options().with_call_timeout(ms(500)))
        .steps([hello(), Step::AwaitLate(1), Step::List]),
        case("progress", |r| {
            assert_eq!(r.progress, (1..=10).map(f64::from).collect::<Vec<_>>());
            assert_eq!(r.text(0), "echo: ");
        })
        .args(&["--seconds", "3"])
        .options(options().with_call_timeout(ms(1500)))
        .steps([Step::Follow(Duration::from_secs(20))]),
        case("progress", |r| {
            assert!(r.failure(0).is_timeout(), "the hard limit holds");
            assert!(!r.progress.is_empty());
        })
        .args(&["--seconds", "20"])
        .options(options().with_call_timeout(ms(5000)))
        .steps([Step::Follow(Duration::from_secs(6))]),
        case("progress-odd", |r| {
            assert_eq!(r.progress, [5.0]);
            assert!(r.calls[0].is_ok());
        })
        .steps([Step::Follow(Duration::from_secs(20)), Step::List]),
        case("ask-sampling", |r| assert!(r.text(0).contains("-32601"), "{}", r.text(0))),
        case("ask-roots", |r| assert!(r.text(0).contains("-32601"), "{}", r.text(0))),
        case("ask-roots", |r| assert!(r.text(0).contains("file:///srv/"), "{}", r.text(0)))
            .options(options().with_roots(Arc::new(OneFolder))),
        case("ask-unknown", |r| {
            let asked = r.logged("asked");
            assert_eq!(asked[0]["answer"]["id"], "weird-é");
            assert_eq!(asked[0]["answer"]["error"]["code"], -32601);
        }),
        case("echo-env", |r| {
            let seen: Value = serde_json::from_str(&r.text(0)).unwrap();
            assert_eq!(seen["env"]["MARK"], "1 2\n3");
            assert_eq!(
                seen["env"].get("CARGO_MANIFEST_DIR"),
                None,
                "nothing of the host's is passed on unasked"
            );
            assert_eq!(seen["argv"][6], "a \"quoted\" $HOME *");
            assert_eq!(seen["pid"], seen["pgid"]);
        })
        .args(&["--log", "a \"quoted\" $HOME *"]),
    ]
}

pub(super) fn ending_cases() -> Vec<Case> {
    vec![
        case("ignore-eof", |r| {
            r.works();
            assert_eq!(r.exit.unwrap().how, ExitHow::Term);
        }),
        case("ignore-term", |r| {
            r.works();
            assert_eq!(r.exit.unwrap().how, ExitHow::Kill);
            assert_eq!(r.logged("signal").len(), 1, "it was asked to terminate first");
        }),
        case("slow-exit", |r| {
            assert_eq!((r.exit.unwrap().how, r.logged("clean exit").len()), (ExitHow::Stdin, 1));
        })
        .args(&["--seconds", "1"])
        .options(options().with_close_grace(Duration::from_secs(10), ms(1000))),
        case("grandchild", |r| {
            r.works();
            assert_eq!(r.logged("grandchild").len(), 1);
        }),
        case("wrapper", Report::works),
        case("wrapper,ignore-term", |r| {
            r.works();
            assert!(matches!(r.exit.unwrap().how, ExitHow::Term | ExitHow::Kill));
        }),
        case("die-on-term-slow", |r| {
            assert_eq!((r.exit.unwrap().how, r.logged("clean exit").len()), (ExitHow::Term, 1));
        })
        .options(options().with_close_grace(ms(500), Duration::from_secs(10))),
    ]
}

pub(super) fn modern_cases() -> Vec<Case> {
    vec![
        case("input-required", |r| {
            let error = r.failure(0);
            assert!(
                matches!(error, Error::InputNeeded { needed, .. } if needed == "elicitation/create"),
                "{error}"
            );
        }),
        case("input-required", |r| {
            assert_eq!(r.text(0), r#"got {"who": {"action": "accept", "content": {"name": "Ann"}}}"#);
            let rounds = r.logged("mrtr");
            assert_ne!(rounds[0]["id"], rounds[1]["id"]);
            assert_eq!(rounds[1]["requestState"], format!("stäte|1=\"\\/{}", rounds[0]["id"]));
        })
        .options(options().with_elicitation(Arc::new(Ann))),
        case("input-required-stateonly", |r| {
            assert_eq!(r.text(0), "got null");
            let rounds = r.logged("mrtr");
            assert_eq!(rounds[1]["requestState"], format!("stäte|1=\"\\/{}", rounds[0]["id"]));
        }),
        case("input-required-legacy", |r| {
            let error = r.lists[0].as_ref().unwrap_err();
            assert!(matches!(error, Error::InvalidAnswer { .. }), "{error}");
        })
        .steps([Step::List]),
        case("result-type-missing", Report::works),
        case("no-cache-hints", |r| {
            r.works();
            assert_eq!(r.got_method("tools/list"), 2);
        })
        .steps([Step::List, hello(), Step::List]),
        case("long-ttl", |r| {
            assert_eq!(r.tool_names(), ["echo", "add", "fetch_1"]);
            assert_eq!(r.got_method("tools/list"), 1);
        })
        .steps([Step::List, Step::List]),
        case("listen", |r| {
            assert!(r.listens[0].is_ok(), "{:?}", r.listens);
            let is = |event: &&Event| matches!(event, Event::Notice(Notice::ListChanged(ListKind::Tools)));
            assert!(r.events.iter().filter(is).count() >= 1);
            let opened = r.got(|message| message["method"] == "subscriptions/listen");
            let cancelled = r.got(|message| message["method"] == "notifications/cancelled");
            assert_eq!(cancelled[0]["params"]["requestId"], opened[0]["id"]);
        })
        .steps([Step::Listen, Step::Await("notifications/cancelled")]),
        case("listen-no-ack", |r| {
            assert!(r.listens[0].as_ref().unwrap_err().is_timeout());
            assert!(r.problems(ProblemCode::Stray) >= 1);
            r.works();
        })
        .options(options().with_request_timeout(ms(1500)))
        .steps([Step::Listen, Step::List, hello()]),
        case("listen-refused", |r| {
            assert!(matches!(r.listens[0], Err(Error::Rpc { .. })));
            r.works();
        })
        .steps([Step::Listen, Step::List, hello()]),
        case("server-request-modern", |r| {
            r.works();
            assert_eq!(r.problems(ProblemCode::ForbiddenRequest), 1);
            assert_eq!(r.got(|message| message["id"] == "bad").len(), 0);
        }),
    ]
}
