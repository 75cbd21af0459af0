//! Command lines for `cmd.exe`, read back by a model of it.

use haversack_mcp_client::process::quote::{MAX_LINE_UNITS, QuoteError, cmd_arguments, quote_for_program};
use proptest::prelude::*;

use crate::cmd_model::{Read, expand_percent, read, split_arguments, split_script, without_outer_quotes};

/// Runs the line through both readings of `cmd.exe`, as for a shim that calls its program with `%*`, and the program's
/// own splitting.
fn arrive(script: &str, args: &[String]) -> Result<(String, Vec<String>), String> {
    let line = cmd_arguments(script, args).map_err(|error| error.to_string())?;
    let line = expand_percent(without_outer_quotes(&line));
    let (script, rest) = split_script(&line);
    let Read::Command(rest) = read(rest) else {
        return Err(format!("first reading of {line}: {:?}", read(rest)));
    };
    // The shim's own line; what stands for `%*` is not looked through for variables.
    let inner = format!("\"%_prog%\"  \"%dp0%\\cli.js\" {rest}");
    let Read::Command(inner) = read(&inner) else {
        return Err(format!("second reading of {inner}: {:?}", read(&inner)));
    };
    let arrived = split_arguments(inner.strip_prefix("\"%_prog%\"").unwrap());
    Ok((script, arrived.into_iter().skip(1).collect()))
}

const ODD: [&str; 22] = [
    "plain",
    "",
    " ",
    "two words",
    "\"",
    "a\"b",
    "say \"hi\"",
    "\"&calc&\"",
    "\\",
    "trailing\\",
    "two\\\\",
    "a\\\"b",
    "a b\\",
    "%PATH%",
    "%PATH:a=b%",
    "%PATH:~0,3%",
    "100%",
    "a&b",
    "^caret^",
    "!bang!",
    "(x) | <y> ; , =",
    "naïve 日本\u{a0}\t",
];

#[test]
fn every_odd_argument_arrives_as_it_was() {
    for first in ODD {
        for second in ODD {
            let args = [first.to_owned(), second.to_owned()];
            let (script, arrived) = arrive(r"C:\Program Files (x86)\a&b %PATH%\npx.cmd", &args).unwrap();
            assert_eq!(script, r"C:\Program Files (x86)\a&b %PATH%\npx.cmd");
            assert_eq!(arrived, args);
        }
    }
}

#[test]
fn the_lines_are_the_ones_that_were_agreed_on() {
    let cases: [(&[&str], &str); 6] = [
        (&[], r#"/d /v:off /s /c "npx.cmd""#),
        (&["-y", "@scope/pkg@1.2"], r#"/d /v:off /s /c "npx.cmd -y ^@scope/pkg^@1.2""#),
        (&["a b"], r#"/d /v:off /s /c "npx.cmd ^"a^ b^"""#),
        (&["%PATH%"], r#"/d /v:off /s /c "npx.cmd ^"^%PATH^%^"""#),
        (&["say \"x\""], r#"/d /v:off /s /c "npx.cmd ^"say^ ^"^"x^"^"^"""#),
        (&["dir x\\"], r#"/d /v:off /s /c "npx.cmd ^"dir^ x\\^"""#),
    ];
    for (args, line) in cases {
        assert_eq!(cmd_arguments("npx.cmd", args).unwrap(), line);
    }
}

#[test]
fn what_no_command_line_can_hold_is_refused() {
    for odd in ["a\0b", "a\nb", "a\rb"] {
        assert_eq!(cmd_arguments("x.cmd", &["ok", odd]), Err(QuoteError::Unrepresentable { position: 2 }));
        assert_eq!(cmd_arguments::<&str>(odd, &[]), Err(QuoteError::Unrepresentable { position: 0 }));
    }
    let long = "é".repeat(MAX_LINE_UNITS);
    assert!(
        matches!(cmd_arguments("x.cmd", &[&long]), Err(QuoteError::TooLong { units }) if units > MAX_LINE_UNITS)
    );
    let nearly = "é".repeat(MAX_LINE_UNITS - 30);
    assert!(cmd_arguments("x.cmd", &[&nearly]).is_ok());
}

#[test]
fn the_model_sees_the_attack_that_backslash_quoting_allows() {
    // What many languages did before CVE-2024-24576: the model must call it out, or the tests above prove nothing.
    let naive = r#"^"x\^"^ ^&^ calc^""#;
    let Read::Command(once) = read(naive) else { panic!() };
    assert_eq!(once, r#""x\" & calc""#);
    assert_eq!(read(&once), Read::Special('&'));
    assert_eq!(expand_percent("^%PATH:x=y^%"), "^LEAKED");
}

#[test]
fn an_argument_for_a_program_is_quoted_only_where_needed() {
    for (arg, quoted) in [
        ("plain", "plain"),
        (r"C:\x", r"C:\x"),
        ("", "\"\""),
        ("a b", "\"a b\""),
        (r"a b\", r#""a b\\""#),
        (r#"a\"b"#, r#""a\\""b""#),
        ("a,b", "\"a,b\""),
    ] {
        assert_eq!(quote_for_program(arg), quoted);
    }
}

proptest! {
    #[test]
    fn any_arguments_arrive_as_they_were(args in proptest::collection::vec(
        prop_oneof!["[\"\\\\%^&|<>()!,;= a:~]{0,12}", "[^\0\r\n]{0,12}"], 0..5,
    )) {
        let (script, arrived) = arrive(r"C:\n p\x.cmd", &args).map_err(TestCaseError::fail)?;
        prop_assert_eq!(script, r"C:\n p\x.cmd");
        prop_assert_eq!(arrived, args);
    }
}
