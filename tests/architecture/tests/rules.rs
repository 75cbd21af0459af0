//! The rules of ARCHITECTURE.md that a machine can check. A change to a table here is a change of architecture.

use std::collections::BTreeSet;
use std::path::Path;

use haversack_architecture_tests::{arrows, folders, package_count, sources, workspace_root};

/// Who may depend on whom. Hosts, benches and tests (the packages that are never published) may use anything.
const ALLOWED: &[(&str, &[&str])] = &[
    ("haversack-agent-core", &[]),
    ("haversack-skills", &[]),
    ("haversack-http", &[]),
    ("haversack-mcp-client", &["haversack-http"]),
    ("haversack-providers", &["haversack-agent-core", "haversack-http"]),
    ("haversack-skill-runtime", &["haversack-skills", "haversack-agent-core"]),
    (
        "haversack-tool-adapter",
        &["haversack-agent-core", "haversack-mcp-client", "haversack-skills", "haversack-skill-runtime"],
    ),
    // The library stands on what skill-runtime stands on; the others are for the program, each behind a feature.
    (
        "haversack-skill-server",
        &[
            "haversack-skill-runtime",
            "haversack-skills",
            "haversack-agent-core",
            "haversack-http",
            "haversack-mcp-client",
            "haversack-providers",
            "haversack-tool-adapter",
        ],
    ),
    (
        "haversack",
        &[
            "haversack-agent-core",
            "haversack-skills",
            "haversack-http",
            "haversack-mcp-client",
            "haversack-providers",
            "haversack-skill-runtime",
            "haversack-tool-adapter",
        ],
    ),
];

/// Packages that are never published.
const LEAVES: &[&str] =
    &["haversack-examples", "haversack-benches", "haversack-architecture-tests", "haversack-interop-tests"];

/// How many packages a crate may pull in, itself included: (package, features, ceiling).
const CEILINGS: &[(&str, &[&str], usize)] = &[
    ("haversack-skills", &[], 48),
    ("haversack-agent-core", &[], 32),
    ("haversack-mcp-client", &[], 42),
    ("haversack-providers", &["reqwest"], 90),
];

#[test]
fn a_crate_depends_only_on_the_crates_that_the_design_allows() {
    for (package, targets) in arrows() {
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == package) else {
            assert!(
                LEAVES.contains(&package.as_str()),
                "{package} is not in the table of arrows: add it on purpose"
            );
            continue;
        };
        let forbidden: Vec<_> = targets.iter().filter(|t| !allowed.contains(&t.as_str())).collect();
        assert!(forbidden.is_empty(), "{package} may not depend on {forbidden:?}");
    }
}

#[test]
fn the_table_of_arrows_names_only_packages_that_exist() {
    let packages: BTreeSet<String> = folders().into_keys().collect();
    for (package, _) in ALLOWED {
        assert!(packages.contains(*package), "{package} is in the table of arrows and nowhere else");
    }
}

#[test]
fn http_reaches_the_mcp_client_only_behind_a_feature() {
    let manifest = std::fs::read_to_string(workspace_root().join("crates/mcp-client/Cargo.toml")).unwrap();
    // Its own tests may speak HTTP; what users build may not without the feature.
    let built = manifest.split("[dev-dependencies]").next().unwrap();
    let lines: Vec<_> = built.lines().filter(|line| line.starts_with("haversack-http")).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains("optional = true")), "{lines:?}");
}

#[test]
fn a_crate_pulls_in_no_more_packages_than_its_ceiling() {
    for (package, features, ceiling) in CEILINGS {
        let count = package_count(package, features);
        assert!(
            count <= *ceiling,
            "{package} with {features:?} pulls in {count} packages, at most {ceiling} are allowed"
        );
    }
}

#[test]
fn folders_are_named_like_their_packages() {
    for (package, folder) in folders() {
        let folder = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let short = package.strip_prefix("haversack-").unwrap_or(&package).to_owned();
        let short = short.strip_suffix("-tests").unwrap_or(&short);
        assert_eq!(folder, short, "{package}");
    }
}

/// Words that may not appear in the code of a crate, and why: (folder, words, reason).
const ABSENT: &[(&str, &[&str], &str)] = &[
    (
        "crates/agent-core/src",
        &["std::fs", "std::env", "std::net", "std::process", "SystemTime", "haversack_"],
        "agent-core knows no files, no environment, no network, no sibling",
    ),
    (
        "crates/skills/src",
        &["std::env", "std::net", "std::process", "tokio"],
        "skills reads folders and nothing else",
    ),
    (
        "crates/mcp-client/src/protocol",
        &["tokio", "std::fs", "std::env", "std::process", "std::thread", "Instant::now", "SystemTime"],
        "the protocol machine knows no runtime, clock or process",
    ),
    ("crates/tool-adapter/src", &["std::fs", "std::env", "std::process"], "the adapter only translates"),
];

#[test]
fn what_a_crate_promises_to_know_nothing_of_is_not_in_its_code() {
    for (folder, words, reason) in ABSENT {
        let folder = workspace_root().join(folder);
        for (file, text) in sources(&folder) {
            for (number, line) in code_lines(&text).filter(|_| !is_test(&file)) {
                for word in *words {
                    assert!(
                        !line.contains(word),
                        "{}:{number}: `{word}`: {reason}",
                        folder.join(&file).display()
                    );
                }
            }
        }
    }
}

#[test]
fn only_the_process_module_creates_child_processes() {
    for (package, folder) in folders() {
        if LEAVES.contains(&package.as_str()) {
            continue;
        }
        for (file, text) in sources(&folder.join("src")) {
            let servers = package == "haversack-mcp-client"
                && (file.starts_with("process") || file == Path::new("process.rs"));
            let commands = package == "haversack" && file == Path::new("fs_tools/process.rs");
            let allowed = servers || commands;
            for (number, line) in code_lines(&text) {
                // As a word: `ServerCommand` and the like start nothing.
                let spawns = line.match_indices("Command::new(").any(|(at, _)| {
                    !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
                });
                assert!(
                    allowed || !spawns,
                    "{}:{number}: only mcp-client's process module and the command tool start children",
                    file.display()
                );
            }
        }
    }
}

#[test]
fn no_source_is_a_drawer_for_leftovers_or_longer_than_the_wall() {
    for (_, folder) in folders() {
        for (file, text) in sources(&folder) {
            let stem = file.file_stem().unwrap().to_str().unwrap();
            assert!(
                !["mod", "utils", "util", "common", "helpers", "misc"].contains(&stem),
                "{}",
                file.display()
            );
            let is_code = file.starts_with("src");
            assert!(
                !is_code || text.lines().count() <= 700,
                "{}/{} is past 700 lines",
                folder.display(),
                file.display()
            );
        }
    }
}

#[test]
fn no_doc_example_is_left_out_of_the_tests() {
    for (_, folder) in folders() {
        for (file, text) in sources(&folder) {
            let ignored = text
                .lines()
                .any(|l| l.trim_start().starts_with("//") && l.contains("```") && l.contains("ignore"));
            assert!(!ignored, "{}: a doc example is marked as ignored", file.display());
        }
    }
}

#[test]
fn nothing_of_the_machine_that_it_was_written_on_is_in_the_sources() {
    let forbidden = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/dev")];
    for (_, folder) in folders() {
        for (file, text) in sources(&folder) {
            for word in forbidden {
                assert!(!text.contains(word), "{}: names the path {word}", file.display());
            }
        }
    }
}

/// Whether a file below `src` holds unit tests only: `tests.rs`, `…_tests.rs`, or anything in a folder `tests`.
fn is_test(file: &Path) -> bool {
    let stem = file.file_stem().unwrap().to_str().unwrap();
    stem == "tests" || stem.ends_with("_tests") || file.components().any(|c| c.as_os_str() == "tests")
}

/// Lines outside comments and outside the unit tests at the end of a file, with their numbers.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.lines().position(|l| l.trim() == "#[cfg(test)]").unwrap_or(usize::MAX);
    let lines = text.lines().enumerate().take(end).map(|(i, l)| (i + 1, l));
    lines.filter(|(_, l)| !l.trim_start().starts_with("//"))
}
