//! The core has no runtime, no network and no files in its tree: it runs wherever its host polls it, browsers included.

use std::path::PathBuf;
use std::process::Command;

/// What would bring one along.
const RUNTIMES: [&str; 12] = [
    "tokio",
    "mio",
    "async-std",
    "smol",
    "async-io",
    "async-executor",
    "polling",
    "futures-executor",
    "hyper",
    "reqwest",
    "rustix",
    "libc",
];

fn tree(features: &[&str]) -> Vec<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["tree", "--offline", "--edges", "normal", "--prefix", "none", "--no-default-features"])
        .args(features)
        .current_dir(PathBuf::from(env!("CARGO_MANIFEST_DIR")))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

#[test]
fn only_the_feature_of_that_name_brings_tokio() {
    for features in [&[][..], &["--features", "testing,schemars,tracing"]] {
        let packages = tree(features);
        assert!(packages.len() > 5, "{packages:?}");
        let found: Vec<_> = packages.iter().filter(|p| RUNTIMES.contains(&p.as_str())).collect();
        assert!(found.is_empty(), "{features:?} brings {found:?}");
    }
    assert!(tree(&["--features", "tokio"]).iter().any(|p| p == "tokio"), "the check sees what there is");
}
