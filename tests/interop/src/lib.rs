//! Real peers: where they lie, and what it means when they do not.
//!
//! `tests/interop/install` puts them below `tests/interop/.peers`, or below the folder that `HAVERSACK_PEERS` names.

use std::path::{Path, PathBuf};

/// The root folder of the workspace.
pub fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("two folders up is the root").to_owned()
}

/// The folder of one peer, as `install` names it, or `None` after saying loudly that the test is skipped.
///
/// # Panics
///
/// When it is missing although `HAVERSACK_INTEROP=required` is set, as `tests/interop/run` does.
pub fn peer(name: &str) -> Option<PathBuf> {
    let base = std::env::var_os("HAVERSACK_PEERS").map(PathBuf::from);
    let folder = base.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".peers")).join(name);
    let ready = folder.join(".ready").exists();
    let required = std::env::var("HAVERSACK_INTEROP").is_ok_and(|v| v == "required");
    assert!(ready || !required, "the peer `{name}` is not installed: run tests/interop/install");
    if !ready {
        eprintln!("SKIPPED: the peer `{name}` is not installed; tests/interop/install brings it");
    }
    ready.then_some(folder)
}

/// A file or folder of the shared test data beside the checkout, or `None` after saying loudly that the test is
/// skipped because the whole folder `shared` is not there.
///
/// # Panics
///
/// When `shared` is there and the file is not.
pub fn shared(path: &str) -> Option<PathBuf> {
    let shared = workspace_root().parent().expect("the checkout lies in a folder").join("shared");
    if !shared.is_dir() {
        eprintln!("SKIPPED: the folder `shared` is not beside this checkout, so `{path}` cannot be read");
        return None;
    }
    let file = shared.join(path);
    assert!(file.exists(), "{path} is missing in the folder `shared`");
    Some(file)
}
