//! Any bytes as a configuration file: no panic, the host's names stay the host's, and the question hides nothing.
#![no_main]

use haversack_mcp_client::config::Config;
use haversack_mcp_client::config::TransportConfig;
use haversack_mcp_client::config::expand::{MAX_EXPANDED_BYTES, expand_stdio};
use haversack_mcp_client::environment::Environment;
use haversack_mcp_client::visible::is_invisible;
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|data: &[u8]| {
    let host = json!({"mine": {"command": "host"}});
    let config = Config::new("/p").with_repository_file("f", data).with_host_servers(&host);
    assert!(config.server("mine").is_some_and(|server| server.origin().is_host()));
    for problem in config.problems() {
        assert!(!problem.to_string().chars().any(is_invisible));
    }
    if let Some(question) = config.consent_question() {
        assert!(!question.to_string().chars().any(|c| is_invisible(c) && c != '\n'));
        assert!(config.approve(question.fingerprint()).is_ok());
        // The same text means the same, and the order of the sources does not matter for the host's names.
        let again = Config::new("/q").with_host_servers(&host).with_repository_file("f", data);
        assert_eq!(
            again.consent_question().map(|question| question.fingerprint()),
            Some(question.fingerprint())
        );
    }
    let environment = Environment::from([("A", "x"), ("BIG", "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy")]);
    for server in config.servers() {
        if let TransportConfig::Stdio(stdio) = &server.config().transport
            && let Ok(expanded) = expand_stdio(stdio, &environment, config.root())
        {
            assert!(expanded.args.iter().all(|arg| arg.len() <= MAX_EXPANDED_BYTES));
            assert_eq!(expanded.args.len(), stdio.args.len());
        }
    }
});
