//! What the architecture tests look at: the workspace as cargo and as the file system tell it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The root folder of the workspace.
pub fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("two folders up is the root").to_owned()
}

/// The normal and build dependencies of each workspace package on other workspace packages.
pub fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("metadata lists packages");
    let ours: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    packages
        .iter()
        .map(|package| {
            let to = package["dependencies"].as_array().expect("each package lists dependencies").iter();
            let to = to.filter(|d| d["kind"].as_str() != Some("dev")).filter_map(|d| d["name"].as_str());
            let to = to.filter(|name| ours.contains(name)).map(str::to_owned).collect();
            (package["name"].as_str().expect("each package has a name").to_owned(), to)
        })
        .collect()
}

/// The manifest folder of each workspace package.
pub fn folders() -> BTreeMap<String, PathBuf> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().expect("metadata lists packages").clone();
    packages
        .iter()
        .map(|p| {
            let manifest = PathBuf::from(p["manifest_path"].as_str().expect("each package has a manifest"));
            let name = p["name"].as_str().expect("each package has a name").to_owned();
            (name, manifest.parent().expect("a manifest lies in a folder").to_owned())
        })
        .collect()
}

/// How many packages a package pulls in for a build on this system, itself included.
pub fn package_count(package: &str, features: &[&str]) -> usize {
    let mut command = cargo();
    command.args([
        "tree",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--no-default-features",
        "--package",
        package,
    ]);
    if !features.is_empty() {
        command.arg("--features").arg(features.join(","));
    }
    // The same package is printed once for each way that leads to it, marked as seen or as a macro.
    let lines = run(command);
    let names = lines.lines().map(|l| l.split(" (").next().unwrap_or(l).trim()).filter(|l| !l.is_empty());
    names.collect::<BTreeSet<_>>().len()
}

/// Every Rust source below a folder, sorted, as (path relative to the folder, text).
pub fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
            let path = entry.expect("a folder entry can be read").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source is UTF-8");
                found.push((path.strip_prefix(folder).expect("below the folder").to_owned(), text));
            }
        }
    }
    found.sort();
    found
}

fn metadata() -> Value {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--no-deps"]);
    serde_json::from_str(&run(command)).expect("cargo metadata prints JSON")
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace_root());
    command
}

fn run(mut command: Command) -> String {
    let output = command.output().expect("cargo starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}
