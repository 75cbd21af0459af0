//! `${VAR}` and `${VAR:-default}`.

use std::path::Path;

use haversack_mcp_client::config::StdioConfig;
use haversack_mcp_client::config::expand::{ExpandError, MAX_EXPANDED_BYTES, expand, expand_stdio};
use haversack_mcp_client::environment::Environment;
use proptest::prelude::*;

fn host() -> Environment {
    [("A", "value"), ("EMPTY", ""), ("_x1", "under"), ("NESTED", "${A}"), ("HOME", "/home/u")].into()
}

#[test]
fn the_expansion_table_holds() {
    let cases: [(&str, &str, &[&str]); 29] = [
        ("plain", "plain", &[]),
        ("${A}", "value", &[]),
        ("x${A}y${A}z", "xvalueyvaluez", &[]),
        ("${_x1}", "under", &[]),
        ("${A:-default}", "value", &[]),
        ("${GONE:-default}", "default", &[]),
        ("${GONE:-}", "", &[]),
        ("${GONE}", "${GONE}", &["GONE"]),
        ("${GONE}/${ALSO_GONE}/${GONE}", "${GONE}/${ALSO_GONE}/${GONE}", &["ALSO_GONE", "GONE"]),
        ("${EMPTY}", "", &[]),
        ("${EMPTY:-default}", "", &[]),
        // One pass: neither a value nor a default is looked through again.
        ("${NESTED}", "${A}", &[]),
        ("${GONE:-${A}}", "${A}", &[]),
        ("${A:-${B}}", "value", &[]),
        ("${GONE:-{\"x\":{}}}!", "{\"x\":{}}!", &[]),
        ("${A:-{\"x\":1}}", "value", &[]),
        // No reference, so left alone.
        ("$A", "$A", &[]),
        ("$$", "$$", &[]),
        ("${}", "${}", &[]),
        ("${1A}", "${1A}", &[]),
        ("${A-b}", "${A-b}", &[]),
        ("${A:b}", "${A:b}", &[]),
        ("${a%b}", "${a%b}", &[]),
        ("${A", "${A", &[]),
        ("${A:-x", "${A:-x", &[]),
        ("${A:-{x}", "${A:-{x}", &[]),
        ("$${A}", "$value", &[]),
        ("${${A}}", "${value}", &[]),
        ("日${A}本${ A}", "日value本${ A}", &[]),
    ];
    for (written, text, unset) in cases {
        let expanded = expand(written, &host()).unwrap();
        assert_eq!(expanded.text, text, "{written}");
        assert_eq!(expanded.unset.iter().collect::<Vec<_>>(), unset.iter().collect::<Vec<_>>(), "{written}");
    }
}

#[test]
fn a_text_cannot_be_blown_up_by_its_variables() {
    let big = Environment::default().with("BIG", "x".repeat(1000));
    let error = expand(&"${BIG}".repeat(MAX_EXPANDED_BYTES / 1000 + 1), &big).unwrap_err();
    assert_eq!(error, ExpandError::TooLong { field: "text".into() });
    assert!(expand(&"${BIG}".repeat(MAX_EXPANDED_BYTES / 1000), &big).is_ok());
}

#[test]
fn an_entry_is_expanded_everywhere_but_in_its_keys() {
    let entry = StdioConfig::new("${HOME}/bin/${A}")
        .with_args(["--${A}", "${GONE}"])
        .with_env("${A}", "${A}")
        .with_cwd("${A:-x}/sub");
    let expanded = expand_stdio(&entry, &host(), Path::new("/srv")).unwrap();
    assert_eq!(expanded.program, "/home/u/bin/value");
    assert_eq!(expanded.args, ["--value", "${GONE}"]);
    assert_eq!(expanded.env["${A}"], "value");
    assert_eq!(expanded.cwd, Path::new("/srv/value/sub"));
    assert_eq!(expanded.unset.iter().collect::<Vec<_>>(), ["GONE"]);
    let shown = format!("{expanded:?}");
    assert!(!shown.contains("value"), "{shown}");
}

#[test]
fn paths_are_taken_from_the_root_and_programs_from_the_working_folder() {
    let cases = [
        ("npx", None, "npx", "/srv"),
        ("./run.sh", None, "/srv/./run.sh", "/srv"),
        ("bin/run", Some("sub"), "/srv/sub/bin/run", "/srv/sub"),
        ("bin/run", Some("/abs"), "/abs/bin/run", "/abs"),
        ("/usr/bin/x", Some("sub"), "/usr/bin/x", "/srv/sub"),
    ];
    for (command, cwd, program, folder) in cases {
        let mut entry = StdioConfig::new(command);
        entry.cwd = cwd.map(Into::into);
        let expanded = expand_stdio(&entry, &host(), Path::new("/srv")).unwrap();
        assert_eq!((expanded.program.as_str(), expanded.cwd.as_path()), (program, Path::new(folder)));
    }
}

#[test]
fn a_command_or_folder_that_expands_to_nothing_is_an_error() {
    for (entry, field) in
        [(StdioConfig::new("${EMPTY}"), "command"), (StdioConfig::new("x").with_cwd("${EMPTY}"), "cwd")]
    {
        let error = expand_stdio(&entry, &host(), Path::new("/srv")).unwrap_err();
        assert_eq!(error, ExpandError::Blank { field: field.into() });
    }
    let long = Environment::default().with("BIG", "x".repeat(MAX_EXPANDED_BYTES));
    let entry = StdioConfig::new("x").with_args(["a", "${BIG}b"]);
    let error = expand_stdio(&entry, &long, Path::new("/srv")).unwrap_err();
    assert_eq!(error.to_string(), "`args[1]` has more than 131072 bytes once its variables are put in");
}

#[cfg(unix)]
#[test]
fn a_value_that_is_no_unicode_counts_as_not_set() {
    use std::os::unix::ffi::OsStringExt as _;
    let odd = Environment::default().with("ODD", std::ffi::OsString::from_vec(vec![0xff]));
    let expanded = expand("${ODD}", &odd).unwrap();
    assert_eq!((expanded.text.as_str(), expanded.unset.len()), ("${ODD}", 1));
}

proptest! {
    #[test]
    fn text_without_a_reference_is_left_alone_and_nothing_panics(text in r"[${}:\-A-Za-z_ é]{0,24}") {
        let expanded = expand(&text, &host()).unwrap();
        if !text.contains("${") {
            prop_assert_eq!(&expanded.text, &text);
        }
        // With nothing set and no defaults, everything stays as written.
        let untouched = expand(&text, &Environment::default()).unwrap();
        if !text.contains(":-") {
            prop_assert_eq!(untouched.text, text);
        }
    }
}
