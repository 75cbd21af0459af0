//! Any arguments, through the model of `cmd.exe` that the tests use: they arrive as they were, and nothing else runs.
#![no_main]

#[path = "../../crates/mcp-client/tests/it/cmd_model.rs"]
mod cmd_model;

use cmd_model::{Read, expand_percent, read, split_arguments, split_script, without_outer_quotes};
use haversack_mcp_client::process::quote::cmd_arguments;
use libfuzzer_sys::fuzz_target;

const SCRIPT: &str = r"C:\Program Files\n\x.cmd";

fuzz_target!(|data: &str| {
    // A character that no argument can hold cuts the text into arguments.
    let args: Vec<&str> = data.split('\n').collect();
    let Ok(line) = cmd_arguments(SCRIPT, &args) else {
        assert!(data.contains(['\0', '\r']) || data.len() > 1_000);
        return;
    };
    let line = expand_percent(without_outer_quotes(&line));
    let (script, rest) = split_script(&line);
    assert_eq!(script, SCRIPT);
    let Read::Command(rest) = read(rest) else { panic!("something else runs: {line}") };
    // The shim's own line, with the arguments put in for `%*`.
    let Read::Command(inner) = read(&format!("\"%_prog%\" {rest}")) else {
        panic!("something else runs in the second reading: {rest}")
    };
    let arrived = split_arguments(inner.strip_prefix("\"%_prog%\"").unwrap());
    assert_eq!(arrived, args);
});
